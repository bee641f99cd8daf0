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

use super::options::{Kind, LinkOptions};
use hodo_measure::limits::{Carrier, Messages, OnTheWire};
use hodo_measure::{Mode, Plan, Test};

const BASE: u64 = 12;
const RDMA: u64 = 16;
const IMMEDIATE: u64 = 4;
const ACK: u64 = 4;
const CRC: u64 = 4;
/// An acknowledgement.
const ACKNOWLEDGEMENT: u64 = BASE + ACK + CRC;

/// One message: the extended headers of its first and of its last packet.
struct Message {
    bytes: u64,
    first: u64,
    last: u64,
}

impl Message {
    /// Returns the bytes of its packets without those of UDP: of the first, of each in between with their number, and of the
    /// last; a message of one packet has only the first.
    fn packets(&self, mtu: u64) -> (u64, Option<(u64, u64, u64)>) {
        let around = BASE + CRC;
        let count = self.bytes.div_ceil(mtu).max(1);
        let rest = self.bytes - (count - 1) * mtu;
        let last = around + rest.next_multiple_of(4) + self.last;
        if count == 1 {
            (last + self.first, None)
        } else {
            (around + self.first + mtu, Some((count - 2, around + mtu, last)))
        }
    }
}

/// Returns the packets of a plan.
pub(super) fn on_the_wire(options: &LinkOptions, plan: &Plan) -> OnTheWire {
    let mtu = u64::from(options.mtu);
    OnTheWire::over_sizes(plan.size, |size| {
        let bytes = u64::from(size);
        let (out, back) = match (options.kind, plan.mode) {
            _ if plan.test == Test::Updates => (None, Some(Message { bytes, first: 0, last: IMMEDIATE })),
            (Kind::Read, _) => (Some(Message { bytes: 0, first: RDMA, last: 0 }), Some(response(bytes, mtu))),
            (Kind::Send, Mode::Send) => (Some(Message { bytes, first: 0, last: 0 }), None),
            (Kind::Write, Mode::Send) => (Some(Message { bytes, first: RDMA, last: 0 }), None),
            (kind, mode) => {
                let (first, last) = if kind == Kind::Write { (RDMA, IMMEDIATE) } else { (0, 0) };
                let asked = if mode == Mode::Both { bytes } else { 0 };
                (Some(Message { bytes: asked, first, last: IMMEDIATE }), Some(Message { bytes, first, last }))
            }
        };
        let is_read = options.kind == Kind::Read && plan.test != Test::Updates;
        let messages = messages(out.as_ref(), back.as_ref(), mtu, is_read);
        OnTheWire { messages, ..OnTheWire::single(Carrier::Udp, bytes, 0, 0) }
    })
}

/// Returns the response of a READ: its first and last packets have an ACK's header, and one packet alone has one.
fn response(bytes: u64, mtu: u64) -> Message {
    Message { bytes, first: if bytes > mtu { ACK } else { 0 }, last: ACK }
}

/// Returns the packets both ways. The last one of a message is acknowledged, and so is the whole message; a READ is by its response.
fn messages(out: Option<&Message>, back: Option<&Message>, mtu: u64, is_read: bool) -> Vec<Messages> {
    let mut all = Vec::new();
    let acknowledgement = if is_read { 0 } else { ACKNOWLEDGEMENT };
    for (message, is_out) in out.map(|out| (out, true)).into_iter().chain(back.map(|back| (back, false))) {
        let (first, others) = message.packets(mtu);
        let mut add = |count, bytes, answer| {
            let (out_bytes, back_bytes) = if is_out { (bytes, answer) } else { (answer, bytes) };
            if count > 0 {
                all.push(Messages { count, out_bytes, back_bytes });
            }
        };
        match others {
            None => add(1, first, acknowledgement),
            Some((count, each, last)) => {
                add(1, first, 0);
                add(count, each, 0);
                add(1, last, acknowledgement);
            }
        }
    }
    all
}
