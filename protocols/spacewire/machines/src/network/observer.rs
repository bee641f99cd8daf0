//! The records of a network for an observer: the view of an analyser on every link.
use super::{Deadlock, Place};
use crate::EndOfPacket;
use crate::character::Code;
use crate::end::{Failure, Fault, State};
use crate::time::Picos;

/// Something that happened at one end of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record<'a> {
    /// NULLs left one after another; the first began at the time of the record.
    Nulls {
        /// How many.
        count: u64,
        /// How long a bit lasts.
        bit: Picos,
    },
    /// Data left one byte after another; the first began at the time of the record.
    Data {
        /// The bytes.
        bytes: &'a [u8],
        /// How long a bit lasts.
        bit: Picos,
    },
    /// A byte arrived over a line with bit errors, where it may not be the one that left. Otherwise what arrives is what left.
    Received(u8),
    /// A code left; it began at the time of the record.
    Code(Code),
    /// A fault left in place of a code.
    Fault(Fault),
    /// The state of the end changed.
    State(State),
    /// The link went down.
    Failed(Failure),
    /// The first character of a packet arrived.
    PacketBegins,
    /// The end of a packet arrived, or an error cut it.
    PacketEnds {
        /// The length in bytes.
        length: u64,
        /// How it ended.
        end: EndOfPacket,
    },
    /// A time-code arrived.
    TimeCode(u8),
    /// Packets in routers wait for each other in a circle. The place is one of those that wait.
    Deadlock(&'a Deadlock),
}

/// Receives a record for everything that happens in a network.
///
/// The records of one place and kind come in the order of time. Those of different places may be out of order by as much
/// as one call of [`run_until`](super::Network::run_until) spans: sort them by their time if that matters.
pub trait Observer {
    /// Whether records are made at all. `()` observes nothing and costs nothing.
    const ACTIVE: bool = true;

    /// Takes a record.
    fn record(&mut self, at: Picos, place: Place, record: Record<'_>);
}

impl Observer for () {
    const ACTIVE: bool = false;

    fn record(&mut self, _: Picos, _: Place, _: Record<'_>) {}
}
