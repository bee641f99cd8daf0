//! Types and values at random, the same for a seed on every machine.
#![allow(dead_code, reason = "each file uses a part")]

use hodo_machine::Random;
use hodo_pva::data::{Datum, Length, Members};
use hodo_pva::{Array, Order, Scalar, Type, Value};
use std::sync::Arc;

/// Seeds that are compared with a peer.
pub const SEEDS: u64 = 60;

/// Returns the value of a seed.
pub fn of_seed(seed: u64) -> Value {
    let mut random = Random::new(seed);
    let of = Type::Structure(members(&mut random, 0));
    any_value(of, &mut random, 0)
}

fn scalar(random: &mut Random) -> Scalar {
    Scalar::ALL[random.below(Scalar::ALL.len() as u64) as usize]
}

pub fn members(random: &mut Random, depth: u64) -> Arc<Members> {
    // pvDataCPP knows no union without members.
    let count = 1 + random.below(5);
    let fields: Vec<(String, Type)> = (0..count).map(|at| (format!("f{at}"), any_type(random, depth + 1))).collect();
    Members::new(if random.chance(0.5) { "named" } else { "" }, fields)
}

pub fn any_type(random: &mut Random, depth: u64) -> Type {
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

pub fn any_value(of: Type, random: &mut Random, depth: u64) -> Value {
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
