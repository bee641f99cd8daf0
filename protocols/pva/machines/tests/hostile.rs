//! Types and values that are made to take much memory, time or stack are refused within the limits.

use crate::counting;

use counting::bytes_here;
use hodo_pva::data::Members;
use hodo_pva::{Error, Limits, Order, Reader, Scalar, Type, TypeCache, Value, Writer, wire::Side};

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    nesting: 20,
    fields: 1000,
    cached_fields: 2000,
    value_bytes: 1 << 18,
    recycled_bytes: 0,
};

/// Decodes a type and a value of it, and returns the memory that was taken in all.
fn decoded(bytes: &[u8]) -> (Result<Option<Value>, Error>, u64) {
    let mut types = TypeCache::new();
    let (_, before) = bytes_here();
    let found = Value::decode_any(&mut Reader::new(bytes, Order::Little, &LIMITS), &mut types);
    (found, bytes_here().1 - before)
}

fn typed(of: &Type, behind: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, Order::Little);
    of.encode(&mut writer);
    writer.bytes(behind);
    writer.to_vec()
}

fn nested(levels: usize, of: impl Fn(Type) -> Type) -> Type {
    (0..levels).fold(Scalar::Bool.into(), |inner, _| of(inner))
}

#[test]
fn types_nest_twenty_levels_and_no_more() {
    for wrap in [
        |inner| Type::structure("", [("x", inner)]),
        |inner| Type::union("", [("x", inner)]),
        |inner| Type::StructureArray(Members::new("", [("x", inner)])),
    ] {
        let mut types = TypeCache::new();
        let bytes = typed(&nested(20, wrap), &[]);
        assert!(types.decode_type(&mut Reader::new(&bytes, Order::Little, &LIMITS)).is_ok());
        let bytes = typed(&nested(21, wrap), &[]);
        let refused = types.decode_type(&mut Reader::new(&bytes, Order::Little, &LIMITS));
        assert_eq!(refused, Err(Error::TooDeep { max: 20 }));
    }
}

#[test]
fn endless_beginnings_of_types_do_not_take_the_stack() {
    for beginning in [&[0x88u8][..], &[0x89], &[0xFD, 1, 0], &[0x80, 0, 1, 0], &[0x82, 0x82]] {
        let (found, _) = decoded(&beginning.repeat(100_000));
        assert!(found.is_err() || beginning == [0x82, 0x82], "{beginning:02X?}");
    }
}

/// An any-field that holds an any-field, and so on: each brings a type of its own.
#[test]
fn values_in_values_nest_no_deeper_than_types() {
    let any = typed(&Type::Any, &[]);
    let (found, _) = decoded(&any.repeat(100_000));
    assert_eq!(found, Err(Error::TooDeep { max: 20 }));
}

/// Twenty types, each of ten of the one before it: together they name 10^20 fields.
#[test]
fn types_of_remembered_types_cannot_name_more_fields_than_allowed() {
    let mut bytes = Vec::new();
    bytes.extend([0x80, 0, 20]);
    for id in 0..20u8 {
        bytes.extend([1, b'x', 0xFD, id, 0, 0x80, 0, 10]);
        for _ in 0..10 {
            bytes.extend([1, b'y']);
            if id == 0 { bytes.push(0x43) } else { bytes.extend([0xFE, id - 1, 0]) }
        }
    }
    let (found, taken) = decoded(&bytes);
    assert!(matches!(found, Err(Error::OverLimit { max: 1000, .. })), "{found:?}");
    assert!(taken < 1 << 18, "{taken} bytes");
}

#[test]
fn remembered_types_have_a_bound_together_and_may_be_replaced() {
    let mut types = TypeCache::new();
    let hundred = Type::structure("", (0..99).map(|at| (format!("f{at}"), Scalar::Bool.into())));
    let remember = |types: &mut TypeCache, id: u16| {
        let [low, high] = id.to_le_bytes();
        let bytes = [&[0xFD, low, high][..], &typed(&hundred, &[])].concat();
        types.decode_type(&mut Reader::new(&bytes, Order::Little, &LIMITS)).map(|_| ())
    };
    for _ in 0..3 {
        for id in 0..20 {
            assert_eq!(remember(&mut types, id), Ok(()));
        }
    }
    assert!(matches!(remember(&mut types, 20), Err(Error::OverLimit { count: 2100, max: 2000, .. })));
    let known = types.decode(&mut Reader::new(&[0xFE, 19, 0], Order::Little, &LIMITS));
    assert_eq!(known.expect("it is known").expect("a type").of(), &hundred);
    let unknown = types.decode(&mut Reader::new(&[0xFE, 20, 0], Order::Little, &LIMITS));
    assert_eq!(unknown, Err(Error::TypeId { id: 20 }));
}

/// Elements of nine bytes, each of a new type that contains a large remembered one, whose structures are all empty.
#[test]
fn a_large_remembered_type_is_not_compiled_again_and_again() {
    let empty = Type::structure("", (0..990).map(|at| (format!("f{at}"), Type::structure::<&str>("", []))));
    let element = [1, 0x80, 0, 1, 1, b'x', 0xFE, 1, 0];
    let all = |count: u8| {
        let mut bytes = vec![0x80, 0, 2, 1, b'a', 0xFD, 1, 0];
        bytes.extend(typed(&empty, &[]));
        bytes.extend([1, b'b', 0x8A, count]);
        bytes.extend(element.repeat(usize::from(count)));
        bytes
    };
    let (found, without) = decoded(&all(0));
    assert!(found.is_ok_and(|value| value.is_some()), "the type itself is within the limits");
    let (found, taken) = decoded(&all(200));
    assert!(matches!(found, Err(Error::OverLimit { max: 1000, .. })), "{found:?}");
    assert!(taken < 20 * without, "{taken} bytes, {without} without");
}

#[test]
fn counts_without_content_are_refused_before_memory_is_taken() {
    let empty = Type::structure("", [("nothing", Type::structure::<&str>("", []))]);
    let count = [0xFE, 0xFF, 0xFF, 0xFF, 0x7E];
    for of in [
        Type::array(Scalar::U8),
        Type::array(Scalar::Text),
        Type::Scalar(Scalar::Text),
        Type::AnyArray,
        empty.clone().into_array().expect("a structure has"),
    ] {
        let (found, taken) = decoded(&typed(&of, &count));
        assert!(matches!(found, Err(Error::Truncated { .. })), "{of:?}: {found:?}");
        assert!(taken < 4096, "{of:?}: {taken} bytes");
    }
    // Elements that take no bytes but the one that says that they are there.
    let mut many = vec![0xFE, 0, 0, 8, 0];
    many.resize(5 + (8 << 16), 1);
    let (found, taken) = decoded(&typed(&empty.into_array().expect("a structure has"), &many));
    assert!(matches!(found, Err(Error::OverLimit { .. })), "{found:?}");
    assert!(taken < 1 << 20, "{taken} bytes");
}

#[test]
fn a_fixed_array_of_more_than_is_there_is_refused() {
    let (found, taken) = decoded(&[0x80, 0, 1, 1, b'a', 0x5B, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3]);
    assert!(matches!(found, Err(Error::Truncated { .. })), "{found:?}");
    assert!(taken < 4096, "{taken} bytes");
}

#[test]
fn a_union_without_that_member_is_refused() {
    let of = Type::union("", [("a", Scalar::Bool.into())]);
    assert_eq!(decoded(&typed(&of, &[1, 0])).0, Err(Error::Selector { selector: 1, members: 1 }));
}
