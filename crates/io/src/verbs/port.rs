#![allow(unsafe_code)]

use super::context::later;
use super::error::check;
use super::layout::{
    IBV_GID_TYPE_ROCE_V2, IBV_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_INFINIBAND, IBV_PORT_ACTIVE, ibv_gid, ibv_gid_entry,
    ibv_port_attr,
};
use super::{Context, Error};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The kind of network that a port is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLayer {
    /// InfiniBand, whose ports have local identifiers.
    InfiniBand,
    /// Ethernet, whose ports have global identifiers only.
    Ethernet,
    /// Anything else.
    Unknown,
}

/// The state of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortFacts {
    /// Whether data can be sent and received.
    pub is_active: bool,
    /// The state as the field writes it: DOWN, INIT, ARMED, ACTIVE.
    pub state: &'static str,
    /// The kind of network.
    pub link_layer: LinkLayer,
    /// The path MTU that the network allows now, in bytes.
    pub active_mtu: u32,
    /// The path MTU that the port could do, in bytes.
    pub max_mtu: u32,
    /// Bytes of a message at most.
    pub max_message: u32,
    /// The local identifier; 0 on Ethernet.
    pub lid: u16,
    /// Entries of the table of global identifiers.
    pub gids: u32,
    /// The rate of the link in bits a second; `None` if the driver reports a code that is not known here.
    pub line_rate: Option<u64>,
}

/// An entry of a port's table of global identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GidEntry {
    /// The identifier; all zeroes in an empty entry.
    pub gid: [u8; 16],
    /// Whether packets with it travel in UDP over IP; `None` if the library is too old to say.
    pub is_routable: Option<bool>,
}

impl Context {
    /// Returns the state of a port.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such port.
    pub fn port(&self, number: u8) -> Result<PortFacts, Error> {
        // SAFETY: the structure is plain numbers, for which all zeroes are valid.
        let mut raw: ibv_port_attr = unsafe { MaybeUninit::zeroed().assume_init() };
        let context = self.opened.raw.as_ptr();
        let answer = match later!(self.opened, query_port) {
            // SAFETY: the context is open, and pointer and size are those of a live structure.
            Some(query) => unsafe { query(context, number, &raw mut raw, size_of::<ibv_port_attr>()) },
            // SAFETY: as above; this one fills the structure up to its last field.
            None => unsafe { (self.opened.functions.ibv_query_port)(context, number, &raw mut raw) },
        };
        check("ibv_query_port", answer)?;
        Ok(facts(&raw))
    }

    /// Returns a global identifier of a port.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such port or entry.
    pub fn gid(&self, port: u8, index: u32) -> Result<GidEntry, Error> {
        let context = self.opened.raw.as_ptr();
        let mut entry =
            ibv_gid_entry { gid: ibv_gid([0; 16]), gid_index: 0, port_num: 0, gid_type: 0, ndev_ifindex: 0 };
        if let Some(query) = self.opened.functions._ibv_query_gid_ex {
            let size = size_of::<ibv_gid_entry>();
            // SAFETY: the context is open, and pointer and size are those of a live structure.
            let answer = unsafe { query(context, u32::from(port), index, &raw mut entry, 0, size) };
            match answer.abs() {
                0 => {
                    let is_routable = Some(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
                    return Ok(GidEntry { gid: entry.gid.0, is_routable });
                }
                libc::ENODATA => return Ok(GidEntry { gid: [0; 16], is_routable: None }),
                libc::EOPNOTSUPP => {}
                errno => return Err(Error::Refused { verb: "ibv_query_gid_ex", errno }),
            }
        }
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the context is open, and the pointer is that of a live identifier.
        let answer = unsafe { (self.opened.functions.ibv_query_gid)(context, port, index, &raw mut entry.gid) };
        check("ibv_query_gid", answer)?;
        Ok(GidEntry { gid: entry.gid.0, is_routable: None })
    }
}

fn facts(raw: &ibv_port_attr) -> PortFacts {
    const STATES: [&str; 6] = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];
    PortFacts {
        is_active: raw.state == IBV_PORT_ACTIVE,
        state: STATES.get(raw.state as usize).copied().unwrap_or("unknown"),
        link_layer: match u32::from(raw.link_layer) {
            IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
            // Drivers of before the field left it at 0.
            IBV_LINK_LAYER_INFINIBAND | 0 => LinkLayer::InfiniBand,
            _ => LinkLayer::Unknown,
        },
        active_mtu: mtu(raw.active_mtu),
        max_mtu: mtu(raw.max_mtu),
        max_message: raw.max_msg_sz,
        lid: raw.lid,
        gids: u32::try_from(raw.gid_tbl_len).unwrap_or(0),
        line_rate: line_rate(raw.active_width, raw.active_speed),
    }
}

/// Returns the bytes of a path MTU that verbs code as 1 to 5.
fn mtu(code: u32) -> u32 {
    if (1..=5).contains(&code) { 128 << code } else { 0 }
}

/// Returns the bits a second of a link of this width and speed, as the field codes them (volume 1, 14.2.5.6).
fn line_rate(width: u8, speed: u8) -> Option<u64> {
    let lanes = match width {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => return None,
    };
    let lane = match speed {
        1 => 2_500_000_000,
        2 => 5_000_000_000,
        4 | 8 => 10_000_000_000,
        16 => 14_062_500_000,
        32 => 25_781_250_000,
        64 => 53_125_000_000,
        128 => 106_250_000_000,
        _ => return None,
    };
    Some(lanes * lane)
}

#[cfg(test)]
mod tests {
    use super::{line_rate, mtu};

    #[test]
    fn codes_become_bytes_and_bits_a_second() {
        assert_eq!([1, 2, 3, 4, 5].map(mtu), [256, 512, 1024, 2048, 4096]);
        assert_eq!(mtu(0), 0);
        assert_eq!(mtu(6), 0);
        assert_eq!(line_rate(2, 32), Some(103_125_000_000));
        assert_eq!(line_rate(1, 1), Some(2_500_000_000));
        assert_eq!(line_rate(0, 1), None);
        assert_eq!(line_rate(1, 255), None);
    }
}
