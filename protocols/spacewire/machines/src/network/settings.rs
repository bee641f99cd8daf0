//! How the nodes, links and routers of a network behave.
use super::random_bits::BitErrors;
use crate::end::{CREDIT_MAX, Settings as EndSettings};
use crate::time::Picos;

/// The lowest rate of a link, in bit/s: at half of it a bit lasts longer than the time after which a line counts as disconnected.
pub const RATE_MIN: u64 = 2_000_000;
/// The highest rate of a link without an explicit allowance, in bit/s.
pub const RATE_MAX: u64 = 400_000_000;
/// The longest cable, as a delay: about a kilometre. A line that is longer outlives the reset of its ends.
pub const CABLE_MAX: Picos = Picos::from_nanos(5_000);

/// How the host of a node takes N-chars from the receive buffer of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sink {
    /// Each N-char as it arrives, as long as the receive queue has room.
    #[default]
    AtOnce,
    /// One N-char after another, this many in a second.
    Rate(u64),
    /// Only with [`Network::take`](super::Network::take).
    Asked,
}

/// The bounds of a node's queues, and how its host receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// How N-chars leave the receive buffer.
    pub sink: Sink,
    /// Packets in each of the two queues.
    pub packets: usize,
    /// Bytes in each of the two queues. A longer packet cannot be sent, and is cut when it is received.
    pub bytes: usize,
}

impl Default for NodeSettings {
    fn default() -> Self {
        NodeSettings { sink: Sink::AtOnce, packets: 65_536, bytes: 16 << 20 }
    }
}

/// A link: its first end is the first of the two places that it connects.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSettings {
    /// The rates that the first and the second end send at in Run, in bit/s. A bit lasts a whole number of picoseconds.
    pub rates: [u64; 2],
    /// Allows rates over 400 Mbit/s.
    pub any_rate: bool,
    /// The delay of the cable: about 5 ns in a metre.
    pub cable: Picos,
    /// How the first and the second end behave.
    pub ends: [EndSettings; 2],
    /// Bit errors in what the first and the second end send.
    pub bit_errors: [Option<BitErrors>; 2],
}

impl LinkSettings {
    /// Returns a link without a cable, both ways at this rate in bit/s.
    #[must_use]
    pub fn at_rate(rate: u64) -> Self {
        LinkSettings { rates: [rate, rate], ..LinkSettings::default() }
    }
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings {
            rates: [200_000_000; 2],
            any_rate: false,
            cable: Picos::ZERO,
            ends: [EndSettings::default(), EndSettings::default()],
            bit_errors: [None, None],
        }
    }
}

/// Periods of the receive clock, the system clock and the transmit clock that something takes.
///
/// The receive and transmit clocks have a period of two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clocks {
    /// Periods of the receive clock.
    pub receive: u64,
    /// Periods of the system clock.
    pub system: u64,
    /// Periods of the transmit clock.
    pub transmit: u64,
}

/// How long a router takes, from the first bit in to the first bit out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Latency {
    /// The period of the system clock.
    pub system: Picos,
    /// How long an output takes to switch to another packet.
    pub switch: Picos,
    /// The way of an N-char, five receive periods of which are the character itself.
    pub data: Clocks,
    /// The way of a time-code, counted from its second character.
    pub time_code: Clocks,
}

impl Latency {
    /// The SpW-10X router (its manual, table 10-6): 133.3 ns to switch, 546.6 ns for data and 409.3 ns for a time-code at 200 Mbit/s.
    pub const SPW_10X: Latency = Latency {
        system: Picos(33_333),
        switch: Picos(133_300),
        data: Clocks { receive: 5, system: 8, transmit: 23 },
        time_code: Clocks { receive: 5, system: 6, transmit: 16 },
    };
    /// A router that takes no time beside that of the characters.
    pub const NONE: Latency = Latency {
        system: Picos::ZERO,
        switch: Picos::ZERO,
        data: Clocks { receive: 5, system: 0, transmit: 0 },
        time_code: Clocks { receive: 5, system: 0, transmit: 0 },
    };

    /// Returns the span from the last bit of a character at the input to its first bit at the output.
    pub(super) fn after_last_bit(&self, clocks: Clocks, bit_in: u64, bit_out: u64) -> u64 {
        let waits = clocks.receive * 2 * bit_in + clocks.system * self.system.0 + clocks.transmit * 2 * bit_out;
        waits.saturating_sub(10 * bit_in)
    }
}

/// The fate of a packet for an output whose link does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenDown {
    /// The packet is spilled, and an error counted.
    #[default]
    Spill,
    /// The packet waits for the link.
    Wait,
}

/// A wormhole router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterSettings {
    /// How many link ports it has, numbered from 1: at most 31.
    pub ports: u8,
    /// How long it takes.
    pub latency: Latency,
    /// The fate of a packet for an output whose link does not run.
    pub when_down: WhenDown,
    /// Starts a link that is not started when a packet needs it; the packet waits meanwhile.
    pub start_on_request: bool,
    /// How long a packet may stand at an input without moving before it is cut, or `None` for ever.
    pub watchdog: Option<Picos>,
}

impl Default for RouterSettings {
    fn default() -> Self {
        RouterSettings {
            ports: 8,
            latency: Latency::SPW_10X,
            when_down: WhenDown::Spill,
            start_on_request: false,
            watchdog: None,
        }
    }
}

/// The shortest watchdog.
pub(super) const WATCHDOG_MIN: Picos = Picos::from_nanos(1_000);
/// The least buffer that an FCT can be sent for, and the usual one.
pub(super) const BUFFERS: [u16; 2] = [crate::end::CREDIT_OF_FCT, CREDIT_MAX];
