//! The messages that an operation of a pvAccess link puts on the wire.
//!
//! | message | bytes |
//! |---|---|
//! | request | header 8, channel 4, operation 4, subcommand 1; of a put also a value |
//! | reply | header 8, operation 4, subcommand 1, status 1; of a get also a value |
//! | update | header 8, operation 4, subcommand 1, a value, due 8, number 8, set of overrun fields 1 |
//! | value | set of changed fields 2, and a scalar's 8 bytes, or an array's count (1 or 5) and elements |

use crate::machines::wire::HEADER;
use hodo_measure::limits::{Carrier, OnTheWire};
use hodo_measure::{Mode, Plan, Test};

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

/// Returns the messages of a plan: a request and a reply for each operation.
pub(crate) fn on_the_wire(plan: &Plan) -> OnTheWire {
    OnTheWire::over_sizes(plan.size, |size| {
        if plan.test == Test::Updates {
            return OnTheWire::single(Carrier::Tcp, u64::from(size), 0, UPDATE + value_bytes(size));
        }
        if plan.test == Test::Random && plan.mode == Mode::Receive {
            // A part of an array of bytes: offset, count and stride, and no set of changed fields.
            let count = count_bytes(u64::from(size));
            return OnTheWire::single(
                Carrier::Tcp,
                u64::from(size),
                REQUEST + 2 + count,
                REPLY + count + u64::from(size),
            );
        }
        let value = CHANGED + value_bytes(size);
        let (out, back) = match plan.mode {
            Mode::Receive => (REQUEST, REPLY + value),
            Mode::Send => (REQUEST + value, REPLY),
            Mode::Both => (REQUEST + value, REPLY + value),
        };
        OnTheWire::single(Carrier::Tcp, u64::from(size), out, back)
    })
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
        let get = |size| on_the_wire(&Plan::one(Mode::Receive, size)).messages[0];
        // Seen on the wire: a scalar double, and an array of 1000.
        assert_eq!((get(8).out_bytes, get(8).back_bytes), (17, 24));
        assert_eq!(get(8000).back_bytes, 8 + 4 + 1 + 1 + 2 + 5 + 8000);
        assert_eq!(get(80).back_bytes, 8 + 4 + 1 + 1 + 2 + 1 + 80);
    }
}
