//! Any value of any type survives the wire in both byte orders, whole and in part, and any bytes are refused or understood.

use hodo_machine::Random;
use hodo_pva::data::{Datum, Item, Length, Members};
use hodo_pva::{Array, BitSet, Error, Limits, Order, Plan, Reader, Scalar, Type, TypeCache, Value, Writer, wire::Side};
use std::sync::Arc;

fn scalar(random: &mut Random) -> Scalar {
    Scalar::ALL[random.below(Scalar::ALL.len() as u64) as usize]
}

fn members(random: &mut Random, depth: u64) -> Arc<Members> {
    let count = random.below(6);
    let fields: Vec<(String, Type)> = (0..count).map(|at| (format!("f{at}"), any_type(random, depth + 1))).collect();
    Members::new(if random.chance(0.5) { "named" } else { "" }, fields)
}

fn any_type(random: &mut Random, depth: u64) -> Type {
    let simple = depth > 3;
    match random.below(if simple { 5 } else { 10 }) {
        0 | 1 => scalar(random).into(),
        2 => Type::array(scalar(random)),
        3 => Type::Any,
        4 => match random.below(4) {
            0 => Type::BoundedText(20),
            1 => Type::Array(scalar(random), Length::Bounded(20)),
            2 => Type::Array(Scalar::I32, Length::Fixed(random.below(5))),
            _ => Type::AnyArray,
        },
        5 | 6 => Type::Structure(members(random, depth)),
        7 => Type::Union(members(random, depth)),
        8 => Type::StructureArray(members(random, depth)),
        _ => Type::UnionArray(members(random, depth)),
    }
}

fn any_text(random: &mut Random) -> String {
    "é".repeat(random.below(5) as usize * if random.chance(0.05) { 100 } else { 1 })
}

fn any_array(scalar: Scalar, length: u64, random: &mut Random) -> Array {
    if scalar == Scalar::Text {
        return Array::texts((0..length).map(|_| any_text(random)));
    }
    let width = scalar.width().expect("it is no text");
    let bytes: Vec<u8> = (0..length as usize * width).map(|_| random.bits() as u8).collect();
    let order = Order::BOTH[random.below(2) as usize];
    let bytes = if scalar == Scalar::Bool { bytes.iter().map(|byte| byte & 1).collect() } else { bytes };
    Array::from_bytes(scalar, order, bytes.into()).expect("whole elements")
}

/// Returns content for a field of a type.
fn any_datum(of: &Type, random: &mut Random, depth: u64) -> Datum {
    match of {
        Type::Scalar(Scalar::Text) | Type::BoundedText(_) => "short".into(),
        Type::Scalar(Scalar::Bool) => random.chance(0.5).into(),
        Type::Scalar(Scalar::F32 | Scalar::F64) => random.unit().into(),
        Type::Scalar(_) => (random.below(100) as u8).into(),
        Type::Array(scalar, length) => {
            let length = if let Length::Fixed(count) = length { *count } else { random.below(20) };
            any_array(*scalar, length, random).into()
        }
        Type::Structure(_) | Type::Union(_) if depth > 5 => any_value(of.clone(), random, depth).into(),
        Type::Structure(_) => any_value(of.clone(), random, depth).into(),
        Type::Union(members) if members.fields().is_empty() || random.chance(0.2) => Datum::Nothing,
        Type::Union(members) => {
            let member = &members.fields()[random.below(members.fields().len() as u64) as usize];
            Datum::Member(member.name.to_string(), Box::new(any_datum(&member.of, random, depth + 1)))
        }
        Type::Any if depth > 3 || random.chance(0.3) => Datum::Nothing,
        Type::Any => {
            let of = any_type(random, depth + 1);
            any_value(of, random, depth + 1).into()
        }
        Type::StructureArray(_) | Type::UnionArray(_) | Type::AnyArray => {
            let element = of.element().expect("it is an array");
            let one = |random: &mut Random| random.chance(0.8).then(|| any_value(element.clone(), random, depth + 1));
            Datum::Elements((0..random.below(4)).map(|_| one(random)).collect())
        }
    }
}

fn any_value(of: Type, random: &mut Random, depth: u64) -> Value {
    let mut value = Value::of(of);
    let plan = value.plan().clone();
    for number in 0..plan.len() {
        let of = plan.field(number).expect("it is there");
        if !matches!(of, Type::Structure(_)) {
            let datum = any_datum(of, random, depth);
            value.set_at(number, datum).unwrap_or_else(|error| panic!("{of:?}: {error}"));
        }
    }
    value
}

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
