//! Values of a file that need parsing.

use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, value::Error as NameError};
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// Reads a rate in bits or characters per second.
pub fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let whole = |text: &str| match hodo_units::rate(text)? {
        rate if (1.0..=1e12).contains(&rate) => Ok(rate as u64),
        _ => Err(format!("{text} is not in 1..=1000G")),
    };
    text(from, "write a rate in quotes, as \"200M\"", whole)
}

/// Reads a span of time.
pub fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    text(from, "write a span of time in quotes, as \"100us\"", hodo_units::span)
}

/// Reads a size.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let size = |text: &str| match hodo_units::bytes(text)? {
        size @ 1..=0x4000_0000 => Ok(size as usize),
        _ => Err(format!("{text} is not in 1..=1G")),
    };
    text(from, "write a size in quotes, as \"64K\"", size)
}

/// Reads the names of the ends of a link, neither fewer nor more.
pub fn two_ends<'de, D: Deserializer<'de>>(from: D) -> Result<[String; 2], D::Error> {
    let ends: Vec<String> = Vec::deserialize(from)?;
    let count = ends.len();
    let remedy = |_| format!("a link has two ends, not {count}; write between = [\"host\", \"router:1\"]");
    ends.try_into().map_err(remedy).map_err(D::Error::custom)
}

/// Reads one of several names. A number stands for its digits, as `edition = 2008`.
pub fn name<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let name = match toml::Value::deserialize(from)? {
        toml::Value::String(name) => name,
        toml::Value::Integer(number) => number.to_string(),
        other => other.type_str().to_owned(),
    };
    T::deserialize(name.into_deserializer()).map_err(|why: NameError| D::Error::custom(why))
}

fn text<'de, D: Deserializer<'de>, T>(
    from: D,
    remedy: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from).map_err(|_: D::Error| D::Error::custom(remedy))?;
    parse(&text).map(Some).map_err(|why| D::Error::custom(format!("{why}; {remedy}")))
}
