//! The packets that an operation puts on the wire, from which its limits are computed.
//!
//! | part of a packet | bytes | of |
//! |---|---|---|
//! | base transport header | 12 | every packet |
//! | RDMA extended header | 16 | the first packet of a WRITE, and a request of a READ |
//! | immediate data | 4 | the last packet of a message that has them |
//! | ACK extended header | 4 | an acknowledgement, and the first and the last packet of a READ's response |
//! | payload | up to the path MTU | |
//! | padding | 0 to 3 | the last packet |
//! | invariant CRC | 4 | every packet |
//!
//! Ethernet, IP and UDP are around it.

use crate::options::{Kind, LinkOptions};
use hodo_measure::limits::{Carrier, Messages, OnTheWire};
use hodo_measure::{Mode, Plan, Test};

const BASE: u64 = 12;
const RDMA: u64 = 16;
const IMMEDIATE: u64 = 4;
const ACK: u64 = 4;
const CRC: u64 = 4;
/// An acknowledgement.
const ACKNOWLEDGEMENT: u64 = BASE + ACK + CRC;

/// Bytes that the kernel takes at once, to cut them into packets.
const HANDED_OVER_MAX: u64 = 65_000;
/// Operations that one acknowledgement covers at most.
const ACKNOWLEDGED_MAX: u32 = 64;

/// One message: the extended headers of its first and of its last packet.
#[derive(Debug, Clone, Copy)]
struct Message {
    bytes: u64,
    first: u64,
    last: u64,
}

impl Message {
    /// Returns its packets, as many of each length, without the headers of UDP: the first, those in between, and the last.
    fn packets(self, mtu: u64) -> [(u64, u64); 3] {
        let around = BASE + CRC;
        let count = self.bytes.div_ceil(mtu).max(1);
        let rest = self.bytes - (count - 1) * mtu;
        let last = around + rest.next_multiple_of(4) + self.last;
        match count {
            1 => [(0, 0), (0, 0), (1, last + self.first)],
            _ => [(1, around + self.first + mtu), (count - 2, around + mtu), (1, last)],
        }
    }

    /// Returns the bytes of its packets together.
    fn length(self, mtu: u64) -> u64 {
        self.packets(mtu).iter().map(|(count, bytes)| count * bytes).sum()
    }
}

/// Returns the packets of a plan. Of many operations in flight, one acknowledgement covers those of a quarter of a window: an
/// adapter may acknowledge as rarely.
pub(crate) fn on_the_wire(options: &LinkOptions, plan: &Plan) -> OnTheWire {
    let mtu = u64::from(options.mtu);
    let operations = (plan.window / 4).clamp(1, ACKNOWLEDGED_MAX);
    OnTheWire::over_sizes(plan.size, |size| {
        let (out, back) = both_ways(options.kind, plan, u64::from(size), mtu);
        let is_read = options.kind == Kind::Read && plan.test != Test::Updates;
        let acknowledgement = if is_read { 0 } else { ACKNOWLEDGEMENT };
        OnTheWire {
            operations,
            messages: packets(out, back, mtu, u64::from(operations), acknowledgement),
            handed_over: handed_over(out, back, mtu, u64::from(operations), acknowledgement),
            theory: None,
            ..OnTheWire::single(Carrier::Udp, u64::from(size), 0, 0)
        }
    })
}

/// Returns the messages out and back of one operation.
fn both_ways(kind: Kind, plan: &Plan, bytes: u64, mtu: u64) -> (Option<Message>, Option<Message>) {
    let message = |bytes, first, last| Some(Message { bytes, first, last });
    match (kind, plan.mode) {
        _ if plan.test == Test::Updates => (None, message(bytes, 0, IMMEDIATE)),
        // The first and the last packet of a response have an ACK's header; one packet alone has one of them.
        (Kind::Read, _) => (message(0, RDMA, 0), message(bytes, if bytes > mtu { ACK } else { 0 }, ACK)),
        (Kind::Send, Mode::Send) => (message(bytes, 0, 0), None),
        (Kind::Write, Mode::Send) => (message(bytes, RDMA, 0), None),
        (kind, mode) => {
            let (first, last) = if kind == Kind::Write { (RDMA, IMMEDIATE) } else { (0, 0) };
            (message(if mode == Mode::Both { bytes } else { 0 }, first, IMMEDIATE), message(bytes, first, last))
        }
    }
}

/// Returns the packets of this many operations both ways, and the acknowledgement of each direction.
fn packets(
    out: Option<Message>,
    back: Option<Message>,
    mtu: u64,
    operations: u64,
    acknowledgement: u64,
) -> Vec<Messages> {
    let mut all = Vec::new();
    for (message, is_out) in [(out, true), (back, false)] {
        let Some(message) = message else { continue };
        let both = |count, bytes, answer| {
            let (out_bytes, back_bytes) = if is_out { (bytes, answer) } else { (answer, bytes) };
            Messages { count, out_bytes, back_bytes }
        };
        let [first, between, (last_count, last)] = message.packets(mtu);
        all.extend([first, between].map(|(count, bytes)| both(count * operations, bytes, 0)));
        all.push(both(last_count * operations - 1, last, 0));
        all.push(both(1, last, acknowledgement));
    }
    all.retain(|messages| messages.count > 0);
    all
}

/// Returns what is handed to the kernel for this many operations: each message at once with the acknowledgement that goes the same way,
/// or, where it is too long, in parts.
fn handed_over(
    out: Option<Message>,
    back: Option<Message>,
    mtu: u64,
    operations: u64,
    acknowledgement: u64,
) -> Vec<Messages> {
    let length = |message: Option<Message>| message.map_or(0, |message| message.length(mtu));
    let (out, back) = (length(out), length(back));
    let parts = out.max(back).div_ceil(HANDED_OVER_MAX).max(1);
    // An acknowledgement goes against the payload that it is for, and along with that of the other direction, if there is any.
    let (with_out, with_back) = (if back > 0 { acknowledgement } else { 0 }, if out > 0 { acknowledgement } else { 0 });
    let each = Messages { count: parts * operations - 1, out_bytes: out / parts, back_bytes: back / parts };
    let last = Messages { count: 1, out_bytes: out / parts + with_out, back_bytes: back / parts + with_back };
    [each, last].into_iter().filter(|messages| messages.count > 0).collect()
}

#[cfg(test)]
mod tests;
