//! The kinds of values in the file, as functions for `deserialize_with`. Each error says what to write.

use super::Launch;
use hodo_daemon::launch::expand;
use hodo_units as units;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// Reads a text.
pub fn text<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from).map(T::from).map_err(|_| D::Error::custom("write it in quotes"))
}

/// Reads true or false.
pub fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    bool::deserialize(from).map_err(|_| D::Error::custom("write true or false"))
}

/// Reads a whole number in `FIRST..END`.
pub fn whole<'de, D, T, const FIRST: u64, const END: u64>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<u64>,
{
    let number = u64::deserialize(from).ok().filter(|number| (FIRST..END).contains(number));
    number.map(T::from).ok_or_else(|| D::Error::custom(format_args!("write a whole number in {FIRST}..{END}")))
}

/// Reads a span of time.
pub fn span<'de, D: Deserializer<'de>, T: From<Duration>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from).map_err(|_| D::Error::custom("write a span of time, as \"60s\""))?;
    units::span(&text).map(T::from).map_err(D::Error::custom)
}

/// Reads a list of texts.
pub fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Vec::deserialize(from).map_err(|_| D::Error::custom("write a list of texts, as [\"--partition=daq\"]"))
}

/// Reads what starts the processes.
pub fn launch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Launch>, D::Error> {
    let launch = String::deserialize(from).ok().and_then(|name| Launch::of_name(&name));
    launch.map(Some).ok_or_else(|| D::Error::custom("write local, ssh or slurm"))
}

/// Reads hosts: one text, or several.
pub fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    let wrong = || D::Error::custom("write hosts as \"sfc,node[1-20]\", or as a list of texts");
    let texts = match Texts::deserialize(from).map_err(|_| wrong())? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    };
    let mut hosts = Vec::new();
    for text in texts {
        hosts.extend(expand(&text).map_err(D::Error::custom)?);
    }
    if hosts.is_empty() { Err(wrong()) } else { Ok(hosts) }
}
