//! The messages that an operation of a raw link puts on the wire.

use crate::suite;
use hodo_measure::limits::{Carrier, Messages, OnTheWire};
use hodo_measure::{Mode, Plan, Test};
use hodo_raw::wire::updates::STAMP;
use hodo_raw::wire::{HEADER, PROOF};
use hodo_tester::Uri;

/// Returns the messages of a plan: one each way, of which one that carries no payload is a bare header. Of many one-way
/// operations in flight, a header answers or asks for a quarter of a window.
pub(crate) fn on_the_wire(uri: &Uri, plan: &Plan) -> OnTheWire {
    let carrier = match uri.scheme {
        scheme if scheme == suite::UDP.name => Carrier::Udp,
        scheme if scheme == suite::UNIX.name => Carrier::Unix,
        _ => Carrier::Tcp,
    };
    let quarter = if plan.test == Test::Latency { 1 } else { crate::link::acknowledge_every(plan.window) };
    OnTheWire::over_sizes(plan.size, |size| {
        let (header, message) = (HEADER as u64, u64::from(size).max(HEADER as u64));
        // Over UDP the sender's address is proven with each.
        let request = header + if carrier == Carrier::Udp { PROOF as u64 } else { 0 };
        // Each channel has its own.
        let sockets = plan.channels;
        let single = |out, back| OnTheWire { sockets, ..OnTheWire::single(carrier, u64::from(size), out, back) };
        let grouped = |first: Messages, rest: Messages| {
            let messages = vec![rest, first].into_iter().filter(|messages| messages.count > 0).collect();
            OnTheWire { operations: quarter, messages, ..single(0, 0) }
        };
        let rest = u64::from(quarter) - 1;
        match plan.mode {
            _ if plan.test == Test::Updates => single(0, message.max((HEADER + STAMP) as u64)),
            Mode::Both => single(message, message),
            Mode::Send => grouped(
                Messages { count: 1, out_bytes: message, back_bytes: header },
                Messages { count: rest, out_bytes: message, back_bytes: 0 },
            ),
            Mode::Receive => grouped(
                Messages { count: 1, out_bytes: request, back_bytes: message },
                Messages { count: rest, out_bytes: 0, back_bytes: message },
            ),
        }
    })
}
