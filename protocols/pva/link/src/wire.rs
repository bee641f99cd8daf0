//! The messages that an operation of a pvAccess link puts on the wire.
//!
//! | message | bytes |
//! |---|---|
//! | request | header 8, channel 4, operation 4, subcommand 1; of a put also a value |
//! | reply | header 8, operation 4, subcommand 1, status 1; of a get also a value |
//! | update | header 8, operation 4, subcommand 1, a value, due 8, number 8, set of overrun fields 1 |
//! | call | header 8, channel 4, operation 4, subcommand 1, an [argument](crate::call): its type, a number, count and bytes |
//! | its reply | header 8, operation 4, subcommand 1, status 1, type, count and bytes |
//! | create | header 8, count 2, number 4, a name |
//! | created | header 8, numbers 8, status 1 |
//! | destroy | header 8, numbers 8, in both directions |
//! | value | set of changed fields 2, and a scalar's 8 bytes, or an array's count (1 or 5) and elements |

use crate::call::{ARGUMENT_BYTES, REPLY_BYTES};
use crate::operation::Kind;
use hodo_measure::limits::{Carrier, OnTheWire};
use hodo_measure::{Mode, Plan, Test};
use hodo_pva::wire::HEADER;

/// Bytes of a request without a value.
const REQUEST: u64 = HEADER as u64 + 9;
/// Bytes of a reply without a value.
const REPLY: u64 = HEADER as u64 + 6;
/// Bytes of the set of changed fields: that of one field.
const CHANGED: u64 = 2;
/// Bytes of an update without its value: when it was due, its number, and an empty set of fields that were overrun.
const UPDATE: u64 = HEADER as u64 + 5 + CHANGED + 16 + 1;
/// The count of an array has one byte below this, and five from it on.
const LONG_FROM: u64 = 254;

/// Bytes of a name as `hodo:double:12345` has them, with their count.
const NAME: u64 = 18;
/// Bytes of a request to create a channel, of its reply, and of the message by which each side closes it.
const CREATE: u64 = HEADER as u64 + 6 + NAME;
const CREATED: u64 = HEADER as u64 + 9;
const DESTROY: u64 = HEADER as u64 + 8;

/// Returns the messages of a plan: a request and a reply for each operation.
pub(crate) fn on_the_wire(kind: Kind, plan: &Plan) -> OnTheWire {
    OnTheWire::over_sizes(plan.size, |size| match kind {
        Kind::Value => value(plan, size),
        Kind::Call => call(plan, size),
        Kind::Connect => OnTheWire::single(Carrier::Tcp, 0, CREATE + DESTROY, CREATED + DESTROY),
    })
}

/// Returns the messages of a call.
fn call(plan: &Plan, size: u32) -> OnTheWire {
    let filled = |size: u32| count_bytes(u64::from(size)) + u64::from(size);
    let (out, back) = match plan.mode {
        Mode::Receive => (0, size),
        Mode::Send => (size, 0),
        Mode::Both => (size, size),
    };
    let (out, back) = (REQUEST + ARGUMENT_BYTES + filled(out), REPLY + REPLY_BYTES + filled(back));
    OnTheWire::single(Carrier::Tcp, u64::from(size), out, back)
}

/// Returns the messages of a get, a put, a put-get or an update.
fn value(plan: &Plan, size: u32) -> OnTheWire {
    let single = |out, back| OnTheWire::single(Carrier::Tcp, u64::from(size), out, back);
    if plan.test == Test::Updates {
        return single(0, UPDATE + value_bytes(size));
    }
    let of_bytes = count_bytes(u64::from(size)) + u64::from(size);
    if plan.test == Test::Random && plan.mode == Mode::Receive {
        // A part of an array of bytes: offset, count and stride, and no set of changed fields.
        return single(REQUEST + 2 + count_bytes(u64::from(size)), REPLY + of_bytes);
    }
    // Sizes that are drawn are of arrays of bytes.
    let value = CHANGED + if plan.test == Test::Random { of_bytes } else { value_bytes(size) };
    match plan.mode {
        Mode::Receive => single(REQUEST, REPLY + value),
        Mode::Send => single(REQUEST + value, REPLY),
        Mode::Both => single(REQUEST + value, REPLY + value),
    }
}

/// Returns the bytes of a scalar of 8 bytes, and of an array of any other size.
fn value_bytes(size: u32) -> u64 {
    let bytes = u64::from(size);
    let count = if size.is_multiple_of(8) { bytes / 8 } else { bytes };
    if size == 8 { bytes } else { bytes + count_bytes(count) }
}

/// Returns the bytes that a count takes.
const fn count_bytes(count: u64) -> u64 {
    if count < LONG_FROM { 1 } else { 5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_is_as_long_as_one_of_pvxs() {
        let get = |size| on_the_wire(Kind::Value, &Plan::one(Mode::Receive, size)).messages[0];
        // Seen on the wire: a scalar double, and an array of 1000.
        assert_eq!((get(8).out_bytes, get(8).back_bytes), (17, 24));
        assert_eq!(get(8000).back_bytes, 8 + 4 + 1 + 1 + 2 + 5 + 8000);
        assert_eq!(get(80).back_bytes, 8 + 4 + 1 + 1 + 2 + 1 + 80);
    }
}
