//! How fast a link could be: pure functions from line, headers, window, bus and processor to operations per second.
//!
//! Every figure is an upper bound that real equipment cannot pass, so an achieved share over 1 means a wrong
//! assumption, not a good day. The derivations, with published cases worked through, are in `docs/limits.md`.
//!
//! ```
//! use hodo_measure::LimitKind;
//! use hodo_measure::limits::{Bound, Ip, Line, Packing, Path, Transport, least};
//!
//! let path = Path::new(Line::new(1e9, 1500), Ip::V4, Transport::Tcp { timestamps: true })?;
//! let cost = path.cost(32_012, 32_012, 0, Packing::Stream);
//! let limit = least(LimitKind::Line, vec![Bound::line(&path, &cost)], cost.payload_bytes).expect("one bound");
//! assert_eq!(limit.payload_bits_per_s.map(|rate| (rate / 1e5).round()), Some(9415.0));
//! # Ok::<(), hodo_measure::limits::LimitError>(())
//! ```

mod binds;
mod bound;
mod bus;
mod calculator;
mod ethernet;
mod latency;
mod model;
mod on_the_wire;
mod rate;
mod row;
mod shared;
#[cfg(test)]
mod tests;
mod transport;

pub use crate::units::text::format_rate;
pub use binds::REACHED;
pub use bound::{Bound, least};
pub use bus::{Bus, Pci, Pcie, PcieGeneration};
pub use calculator::{Calculated, Calculator, Processors, Sharing};
pub use ethernet::{
    FCS_BYTES, GAP_BYTES, HEADER_BYTES, Line, MIN_FRAME_BYTES, PREAMBLE_BYTES, SFD_BYTES, VLAN_TAG_BYTES,
};
pub use latency::FIBRE_NS_PER_KM;
pub use model::{Model, ModelledWay};
pub use on_the_wire::{Carrier, Hop, Messages, OnTheWire, Service, Theory, Way};
pub use rate::parse_rate;
pub use row::{Conditions, RoundTrip, limit, red_flag, share};
pub use shared::Fan;
pub use transport::{Ip, Packing, Path, Transport, WireCost};

use thiserror::Error;

/// Why a limit cannot be computed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The IP version needs another MTU.
    #[error("an MTU of {mtu} bytes is not possible here; give one from {min} to {max}")]
    Mtu {
        /// The MTU that was given.
        mtu: u32,
        /// The smallest MTU that works.
        min: u32,
        /// The largest MTU that exists.
        max: u32,
    },
    /// A line's rate is not a positive number of bits per second.
    #[error("a line rate of {0} bit/s is not possible; give a positive one, as 1G")]
    Rate(f64),
    /// More VLAN tags than a frame carries.
    #[error("{0} VLAN tags on a frame are not possible; give 0, 1 or 2")]
    VlanTags(u8),
    /// Text that is not a rate.
    #[error("\"{0}\" is not a rate; write bits per second as 1G, 100M, 2.5Gbit or 984395kbit")]
    UnreadableRate(String),
    /// PCI Express has no link with this number of lanes.
    #[error("PCI Express has no link of {0} lanes; give 1, 2, 4, 8, 12, 16 or 32")]
    Lanes(u8),
    /// PCI Express has no such generation.
    #[error("PCI Express generation {0} is not known; give 1 to 6")]
    Generation(u8),
    /// PCI Express has no such maximum payload size.
    #[error("a maximum payload of {0} bytes is not possible; give 128, 256, 512, 1024, 2048 or 4096")]
    MaxPayload(u32),
    /// PCI has no such width.
    #[error("PCI is not {0} bits wide; give 32 or 64")]
    Width(u32),
}
