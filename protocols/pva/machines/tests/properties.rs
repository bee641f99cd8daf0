//! Any value of any type survives the wire in both byte orders, whole and in part, and any bytes are refused or understood.

use crate::any;

use any::{any_type, any_value, members};
use hodo_machine::Random;
use hodo_pva::data::Item;
use hodo_pva::{BitSet, Error, Limits, Order, Plan, Reader, Scalar, Type, TypeCache, Value, Writer, wire::Side};
use std::sync::Arc;

fn encoded(order: Order, write: impl Fn(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, order);
    write(&mut writer);
    writer.to_vec()
}

/// Decodes into a value, and returns how many bytes are left.
fn read(into: &mut Value, bytes: &[u8], order: Order) -> Result<usize, Error> {
    let limits = Limits::default();
    let mut reader = Reader::new(bytes, order, &limits);
    into.decode(&mut reader, &mut TypeCache::new())?;
    Ok(reader.rest().len())
}

#[test]
fn any_value_of_any_type_survives_the_wire() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let of = any_type(&mut random, 0);
        let (first, second) = (any_value(of.clone(), &mut random, 0), any_value(of.clone(), &mut random, 0));
        let mut reused = Value::new(first.plan());
        for order in Order::BOTH {
            let limits = Limits::default();
            let whole = encoded(order, |writer| Value::encode_any(Some(&first), writer));
            let mut reader = Reader::new(&whole, order, &limits);
            let found = Value::decode_any(&mut reader, &mut TypeCache::new()).expect("it is whole");
            assert_eq!(found.as_ref(), Some(&first), "seed {seed}");
            assert!(reader.rest().is_empty());
            for value in [&first, &second] {
                let bytes = encoded(order, |writer| value.encode(writer));
                assert_eq!(read(&mut reused, &bytes, order), Ok(0), "seed {seed}");
                assert_eq!(&reused, value, "seed {seed}");
                assert_eq!(encoded(order, |writer| reused.encode(writer)), bytes, "seed {seed}");
            }
        }
    }
}

#[test]
fn what_is_sent_in_part_is_taken_over_in_part() {
    let limits = Limits::default();
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let of = Type::Structure(members(&mut random, 0));
        let (before, after) = (any_value(of.clone(), &mut random, 0), any_value(of, &mut random, 0));
        let plan: &Arc<Plan> = before.plan();
        let set: BitSet = (0..plan.len()).filter(|_| random.chance(0.3)).collect();
        let order = Order::BOTH[random.below(2) as usize];
        let bytes = encoded(order, |writer| after.encode_set(&set, writer));
        let mut sent = before.clone();
        let mut reader = Reader::new(&bytes, order, &limits);
        assert_eq!(sent.decode_changed(&mut reader, &mut TypeCache::new()), Ok(()), "seed {seed}");
        assert!(reader.rest().is_empty(), "seed {seed}");
        assert_eq!(sent.changed(), &set);
        let mut merged = before.clone();
        merged.unmark();
        let mut overrun = BitSet::new();
        merged.merge(&after, &set, &mut overrun);
        assert!(overrun.is_empty(), "seed {seed}");
        assert_eq!(sent, merged, "seed {seed}");
        let mut leaves = set.clone();
        plan.expand(&mut leaves);
        for number in (0..plan.len()).filter(|number| !matches!(plan.field(*number), Some(Type::Structure(_)))) {
            let from = if leaves.has(number) { &after } else { &before };
            assert_eq!(show(&sent, number), show(from, number), "seed {seed}, field {number}");
        }
    }
}

fn show(value: &Value, number: usize) -> String {
    match value.at(number) {
        Some(Item::Union(held)) => format!("{held:?}"),
        item => format!("{item:?}"),
    }
}

#[test]
fn a_message_with_any_byte_wrong_is_refused_or_understood() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let of = any_type(&mut random, 0);
        let value = any_value(of, &mut random, 0);
        let order = Order::BOTH[random.below(2) as usize];
        let bytes = encoded(order, |writer| Value::encode_any(Some(&value), writer));
        let limits = Limits { value_bytes: 1 << 16, fields: 200, ..Limits::default() };
        for _ in 0..30 {
            let mut wrong = bytes.clone();
            let at = random.below(wrong.len() as u64) as usize;
            wrong[at] = random.bits() as u8;
            wrong.truncate(bytes.len() - random.below(2) as usize);
            let mut reader = Reader::new(&wrong, order, &limits);
            if let Ok(Some(found)) = Value::decode_any(&mut reader, &mut TypeCache::new()) {
                let again = encoded(order, |writer| Value::encode_any(Some(&found), writer));
                let mut reader = Reader::new(&again, order, &limits);
                let same = Value::decode_any(&mut reader, &mut TypeCache::new()).expect("it was just made");
                assert_eq!(same, Some(found), "seed {seed}");
            }
        }
    }
}

/// A type that comes again and again is compiled once, in either byte order; and one that has a number is the number's present one.
#[test]
fn a_type_that_comes_again_has_the_same_plan() {
    use hodo_pva::normative::Normative;
    let limits = Limits::default();
    let of = Normative::scalar(Scalar::F64).alarm().time_stamp().build();
    let (mut types, mut plans) = (TypeCache::new(), Vec::new());
    for order in [Order::Little, Order::Little, Order::Big, Order::Little] {
        let mut writer = Writer::new(Side::Client, order);
        of.encode(&mut writer);
        let bytes = writer.to_vec();
        let mut reader = Reader::new(&bytes, order, &limits);
        plans.push(types.decode(&mut reader).expect("a type").expect("one"));
        assert!(reader.rest().is_empty() && *plans.last().expect("one").of() == of);
    }
    assert!(Arc::ptr_eq(&plans[0], &plans[1]) && Arc::ptr_eq(&plans[0], &plans[3]));
    let inner = [[0xFD, 0, 1, 0x22], [0xFD, 0, 1, 0x43]];
    let decoded = inner.map(|inner| {
        // A structure with a long identifier, and one field whose type is given number 1.
        let bytes = [&b"\x80\x14a:long:identifier:00\x01\x01f"[..], &inner].concat();
        let again = b"\x80\x14a:long:identifier:00\x01\x01f\xFE\x00\x01";
        let mut plan = |bytes: &[u8]| types.decode(&mut Reader::new(bytes, Order::Big, &limits)).expect("a type");
        (plan(&bytes), plan(again))
    });
    let of = |index: usize| decoded[index].1.as_ref().and_then(|plan| plan.field(1).cloned());
    assert_eq!([of(0), of(1)], [Some(Scalar::I32.into()), Some(Scalar::F64.into())]);
}
