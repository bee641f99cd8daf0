//! From the words of the file to types and first values.

use super::file::{AlarmTable, PvTable, TypeName};
use crate::machines::data::SetError;
use crate::machines::normative::Normative;
use crate::machines::{Array, Item, Scalar, Type, Value};
use crate::parse;
use crate::server::now;

/// The names of types that are not scalars.
const NAMES: &str = "any, enum, table, image, matrix, continuum, histogram, aggregate, name_value, attribute, union, uri, \
    multi_channel, scalar_multi_channel; a scalar (boolean, byte, ubyte, short, ushort, int, uint, long, ulong, float, double, string); \
    a scalar with [] for an array; or a table of fields for a structure";

/// Returns the first value of a PV.
///
/// # Errors
/// A sentence with the key and what to write instead.
pub fn value(table: &PvTable) -> Result<Value, String> {
    let mut value = Value::of(pv_type(table)?);
    if let TypeName::Name(name) = &table.of {
        presets(&mut value, name, table)?;
    }
    if let Some(first) = &table.value {
        let path = if value.plan().number("value").is_some() { "value" } else { "" };
        parse::json(&mut value, path, &json(first)?).map_err(|why| format!("value: {why}"))?;
    }
    for (path, content) in &table.fields {
        parse::json(&mut value, path, &json(content)?).map_err(|why| format!("fields: {why}"))?;
    }
    if value.time_stamp().is_some_and(|at| at.seconds == 0) {
        value.set_time_stamp(now()).map_err(|why| why.to_string())?;
    }
    value.unmark();
    Ok(value)
}

/// Returns a value of the file as JSON.
fn json(of: &toml::Value) -> Result<String, String> {
    serde_json::to_string(of).map_err(|why| format!("a value that JSON has no form for: {why}"))
}

/// Returns the type of a PV: a normative type with alarm, time stamp, and display, control and value alarm if it is a number.
fn pv_type(table: &PvTable) -> Result<Type, String> {
    let name = match &table.of {
        TypeName::Fields(_) => return plain(&table.of),
        TypeName::Name(name) => name.as_str(),
    };
    let scalar = |name: &str| Scalar::from_name(name);
    if let Some(of) = scalar(name) {
        return Ok(with_limits(Normative::scalar(of), of, table).build());
    }
    if let Some(of) = name.strip_suffix("[]").and_then(scalar) {
        return Ok(with_limits(Normative::scalar_array(of), of, table).build());
    }
    let element = || match &table.element {
        None => Ok(Scalar::F64),
        Some(TypeName::Name(name)) => scalar(name).ok_or(format!("element: {name} is no scalar type")),
        Some(TypeName::Fields(_)) => Err("element: write the name of a scalar type".to_owned()),
    };
    let built = match name {
        "enum" => Normative::enumeration(),
        "table" => Normative::table(columns(table)?),
        "image" => return Ok(Normative::nd_array().build()),
        "matrix" => Normative::matrix(),
        "continuum" => Normative::continuum(),
        "histogram" => Normative::histogram(element()?),
        "aggregate" => Normative::aggregate(),
        "name_value" => Normative::name_value(element()?),
        "attribute" => Normative::attribute(),
        "union" => Normative::union(members(table)?),
        "uri" => return Ok(Normative::uri(members(table)?).build()),
        "multi_channel" => return Ok(Normative::multi_channel().build()),
        "scalar_multi_channel" => return Ok(Normative::scalar_multi_channel(element()?).build()),
        _ => return Err(format!("type: there is no {name}; write one of {NAMES}")),
    };
    Ok(built.descriptor().alarm().time_stamp().build())
}

fn with_limits(built: Normative, of: Scalar, table: &PvTable) -> Normative {
    let built = built.alarm().time_stamp().display();
    let built = if of == Scalar::Text || of == Scalar::Bool { built } else { built.control() };
    if table.alarm.is_some() { built.value_alarm() } else { built }
}

fn columns(table: &PvTable) -> Result<Vec<(String, Scalar)>, String> {
    if table.columns.is_empty() {
        return Err("columns: a table has some: write columns = { x = \"double\", name = \"string\" }".to_owned());
    }
    let column = |(name, of): (&String, &toml::Value)| {
        let of = of.as_str().and_then(Scalar::from_name);
        of.map(|of| (name.clone(), of))
            .ok_or(format!("columns: {name}: write the name of a scalar type, as \"double\""))
    };
    table.columns.iter().map(column).collect()
}

/// Returns the members of a union, or the arguments of a URI, from `element`.
fn members(table: &PvTable) -> Result<Vec<(String, Type)>, String> {
    match &table.element {
        None => Ok(Vec::new()),
        Some(TypeName::Fields(fields)) => fields.iter().map(field).collect(),
        Some(TypeName::Name(_)) => {
            Err("element: write the members with their types, as element = { number = \"double\" }".to_owned())
        }
    }
}

fn field((name, of): (&String, &toml::Value)) -> Result<(String, Type), String> {
    let of = match of {
        toml::Value::String(of) => plain(&TypeName::Name(of.clone())),
        toml::Value::Table(fields) => plain(&TypeName::Fields(fields.clone())),
        _ => Err("write the name of a type in quotes, or a table of fields".to_owned()),
    };
    Ok((name.clone(), of.map_err(|why| format!("{name}: {why}"))?))
}

/// Returns a type that is no normative one: a scalar, any, a structure, and arrays of them.
fn plain(of: &TypeName) -> Result<Type, String> {
    let name = match of {
        TypeName::Fields(fields) => {
            let fields = fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
            return Ok(Type::structure("", fields));
        }
        TypeName::Name(name) => name.as_str(),
    };
    let (single, is_array) = name.strip_suffix("[]").map_or((name, false), |single| (single, true));
    let of = match single {
        "any" => Type::Any,
        "alarm" => crate::machines::normative::alarm_t(),
        "time" => crate::machines::normative::time_t(),
        "choice" => crate::machines::normative::enum_t(),
        single => Scalar::from_name(single)
            .map(Type::from)
            .ok_or(format!("type: there is no {name}; write one of {NAMES}"))?,
    };
    if is_array { of.into_array().ok_or(format!("type: there is no {name}")) } else { Ok(of) }
}

/// Sets what the file says beside the value.
fn presets(value: &mut Value, name: &str, table: &PvTable) -> Result<(), String> {
    let of = |key: &'static str| move |why: SetError| format!("{key}: {why} for {name}");
    if let Some(text) = &table.description {
        let path = if value.plan().number("display").is_some() { "display.description" } else { "descriptor" };
        value.set(path, text.as_str()).map_err(of("description"))?;
    }
    if let Some(units) = &table.units {
        value.set("display.units", units.as_str()).map_err(of("units"))?;
    }
    if let Some(digits) = table.precision {
        value.set("display.precision", digits).map_err(of("precision"))?;
    }
    for (key, limits) in [("display", table.display), ("control", table.control)] {
        if let Some([low, high]) = limits {
            if low > high {
                return Err(format!("{key}: the lower limit is above the upper one; exchange them"));
            }
            set_number(value, &format!("{key}.limitLow"), low).map_err(|why| format!("{key}: {why} for {name}"))?;
            set_number(value, &format!("{key}.limitHigh"), high).map_err(|why| format!("{key}: {why} for {name}"))?;
        }
    }
    if let Some(alarm) = &table.alarm {
        set_alarms(value, alarm).map_err(|why| format!("alarm: {why} for {name}"))?;
    }
    if !table.choices.is_empty() {
        value.set("value.choices", Array::texts(&table.choices)).map_err(of("choices"))?;
    } else if name == "enum" {
        return Err("choices: an enumeration has some: write choices = [\"Off\", \"On\"]".to_owned());
    }
    if name == "table" {
        value.set("labels", Array::texts(table.columns.keys())).map_err(of("columns"))?;
    }
    Ok(())
}

fn set_alarms(value: &mut Value, alarm: &AlarmTable) -> Result<(), SetError> {
    value.set("valueAlarm.active", true)?;
    for (word, limit, severity) in [
        ("lowAlarm", alarm.low, 2),
        ("lowWarning", alarm.low_warning, 1),
        ("highWarning", alarm.high_warning, 1),
        ("highAlarm", alarm.high, 2),
    ] {
        if let Some(limit) = limit {
            set_number(value, &format!("valueAlarm.{word}Limit"), limit)?;
            value.set(&format!("valueAlarm.{word}Severity"), severity)?;
        }
    }
    value.set("valueAlarm.hysteresis", alarm.hysteresis)
}

/// Sets a field of any number type; a fraction that the type lacks is cut off, and what is too large is the largest.
///
/// # Errors
/// A [`SetError`] for a field that is no number.
pub fn set_number(value: &mut Value, path: &str, to: f64) -> Result<(), SetError> {
    let number = value.plan().number(path).ok_or(SetError::NoField)?;
    match value.plan().field(number) {
        Some(Type::Scalar(scalar)) => match number_of(*scalar, to) {
            Some(datum) => value.set_at(number, datum),
            None => Err(SetError::WrongType),
        },
        _ => Err(SetError::WrongType),
    }
}

fn number_of(scalar: Scalar, to: f64) -> Option<crate::machines::Datum> {
    Some(match scalar {
        Scalar::Bool => (to != 0.0).into(),
        Scalar::I8 => (to as i8).into(),
        Scalar::I16 => (to as i16).into(),
        Scalar::I32 => (to as i32).into(),
        Scalar::I64 => (to as i64).into(),
        Scalar::U8 => (to as u8).into(),
        Scalar::U16 => (to as u16).into(),
        Scalar::U32 => (to as u32).into(),
        Scalar::U64 => (to as u64).into(),
        Scalar::F32 => (to as f32).into(),
        Scalar::F64 => to.into(),
        Scalar::Text => return None,
    })
}

/// Returns an array of this type of number.
#[must_use]
pub fn array_of(scalar: Scalar, elements: impl Iterator<Item = f64>) -> Option<Array> {
    Some(match scalar {
        Scalar::Bool => Array::bools(elements.map(|element| element != 0.0)),
        Scalar::I8 => elements.map(|element| element as i8).collect::<Vec<_>>().into(),
        Scalar::I16 => elements.map(|element| element as i16).collect::<Vec<_>>().into(),
        Scalar::I32 => elements.map(|element| element as i32).collect::<Vec<_>>().into(),
        Scalar::I64 => elements.map(|element| element as i64).collect::<Vec<_>>().into(),
        Scalar::U8 => elements.map(|element| element as u8).collect::<Vec<_>>().into(),
        Scalar::U16 => elements.map(|element| element as u16).collect::<Vec<_>>().into(),
        Scalar::U32 => elements.map(|element| element as u32).collect::<Vec<_>>().into(),
        Scalar::U64 => elements.map(|element| element as u64).collect::<Vec<_>>().into(),
        Scalar::F32 => elements.map(|element| element as f32).collect::<Vec<_>>().into(),
        Scalar::F64 => elements.collect::<Vec<_>>().into(),
        Scalar::Text => return None,
    })
}

/// Returns the number in the field `value`, or in `value.index`.
#[must_use]
pub fn number(value: &Value) -> Option<f64> {
    value.get("value").and_then(Item::as_f64).or_else(|| value.get("value.index")?.as_f64())
}

/// Returns the value of a PV that is only called.
#[must_use]
pub fn called() -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::Text).build());
    value.set("value", "call this PV").expect("it has one");
    value
}
