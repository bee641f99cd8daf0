//! The calls that are measured: `hodo:call:N` is called with bytes, and with how many to return.
//!
//! | | field | |
//! |---|---|---|
//! | argument | `back`, uint | the bytes to return |
//! | | `value`, ubyte[] | bytes |
//! | reply | `value`, ubyte[] | so many bytes |

use hodo_pva::{Array, Scalar, Type, Value};

/// Places of the fields of an argument.
const BACK: usize = 1;
const VALUE: usize = 2;
/// Bytes of the type and of `back` in an argument, and of the type in a reply: a structure without identifier.
pub(crate) const ARGUMENT_BYTES: u64 = 3 + (5 + 1) + (6 + 1) + 4;
pub(crate) const REPLY_BYTES: u64 = 3 + (6 + 1);

/// Returns the name of the channel of this number.
pub(crate) fn call_name(number: u32) -> String {
    format!("hodo:call:{number}")
}

/// Tells whether this is the name of a channel that can be called so.
pub(crate) fn is_call_name(name: &str) -> bool {
    name.strip_prefix("hodo:call:").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns an argument without bytes.
pub(crate) fn argument() -> Value {
    let fields = [("back", Scalar::U32.into()), ("value", Type::array(Scalar::U8))];
    Value::of(Type::structure("", fields))
}

/// Fills an argument.
pub(crate) fn fill(argument: &mut Value, out: Array, back: u32) {
    argument.set_at(BACK, u64::from(back)).expect("the type was made with this field");
    argument.set_at(VALUE, out).expect("the type was made with this field");
}

/// Returns how many bytes an argument asks for; `None` if it is another argument.
pub(crate) fn asked(argument: Option<&Value>) -> Option<usize> {
    usize::try_from(argument?.get("back")?.as_i64()?).ok()
}

/// Returns a reply without bytes.
pub(crate) fn reply() -> Value {
    Value::of(Type::structure("", [("value", Type::array(Scalar::U8))]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_pva::Order;
    use hodo_pva::wire::{Side, Writer};

    #[test]
    fn arguments_and_replies_are_as_long_as_the_limit_takes_them_for() {
        let bytes = |value: &Value| {
            let mut writer = Writer::new(Side::Client, Order::Little);
            Value::encode_any(Some(value), &mut writer);
            writer.len() as u64
        };
        let (mut argument, mut reply) = (argument(), reply());
        for (count, count_bytes) in [(0, 1), (8, 1), (254, 5), (1000, 5)] {
            fill(&mut argument, vec![1_u8; count].into(), 7);
            reply.set_at(1, vec![1_u8; count]).expect("it is an array of bytes");
            let filled = count as u64 + count_bytes;
            assert_eq!((bytes(&argument), bytes(&reply)), (ARGUMENT_BYTES + filled, REPLY_BYTES + filled));
            assert_eq!(asked(Some(&argument)), Some(7));
        }
        assert_eq!((asked(Some(&reply)), asked(None)), (None, None));
        assert!(is_call_name(&call_name(7)) && !is_call_name("hodo:call:") && !is_call_name("hodo:calls:7"));
    }
}
