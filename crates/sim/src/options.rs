//! Options as people write them, in the query of a URI.

use crate::{Congestion, Network};
use hodo_machine::Instant;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Every option: its name, and what it takes.
const OPTIONS: &[(&str, &str)] = &[
    ("delay", "a time from 0ns to 10s, as 5us"),
    ("jitter", "a time from 0ns to 10s, as 4us"),
    ("loss", "a probability from 0 to 1, as 0.01 or 1%"),
    ("duplicate", "a probability from 0 to 1, as 0.01 or 1%"),
    ("reorder", "a probability from 0 to 1, as 0.01 or 1%"),
    ("corrupt", "a probability from 0 to 1, as 0.01 or 1%"),
    ("rate", "bits per second from 1K to 10T, as 1G"),
    ("queue", "bytes from 1 to 1G, as 64K"),
    ("mtu", "bytes of an IP packet from 68 to 65535, as 1500"),
    ("overhead", "bytes per packet from 0 to 10000, as 38"),
    ("partition", "a range of times, as 10ms..20ms, or several with commas"),
    ("cut", "a time, as 50ms, or several with commas; or a probability from 0 to 1 for each segment, as 0.001"),
    ("cost", "a time from 1ns to 1s, as 200ns"),
    ("congestion", "cubic, reno or none"),
    ("buffer", "bytes from 64K to 1G, as 4M"),
    ("connect", "a time from 1us to 1000s, as 1s"),
    ("seed", "a whole number, as 3"),
];

const PROBABILITY: RangeInclusive<f64> = 0.0..=1.0;
const NS_PER_S: u64 = 1_000_000_000;

/// Why options do not describe a network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// There is no such option.
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The value cannot be read, or is out of range.
    BadValue {
        /// The option.
        name: String,
        /// The value that was given.
        value: String,
        /// The values that the option takes.
        takes: &'static str,
    },
}

impl std::error::Error for OptionError {}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown { name } => {
                write!(f, "unknown option `{name}` of the simulated network; the known ones are ")?;
                for (index, (known, _)) in OPTIONS.iter().enumerate() {
                    write!(f, "{}{known}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(", each also as out.… or back.… for one direction")
            }
            OptionError::BadValue { name, value, takes } => {
                write!(f, "option `{name}` of the simulated network cannot be `{value}`: it takes {takes}")
            }
        }
    }
}

/// Sets one option.
pub(crate) fn set(network: &mut Network, name: &str, value: &str) -> Result<(), OptionError> {
    let Some((_, takes)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
        return Err(OptionError::Unknown { name: name.to_owned() });
    };
    apply(network, name, value).ok_or_else(|| OptionError::BadValue {
        name: name.to_owned(),
        value: value.to_owned(),
        takes,
    })
}

fn apply(network: &mut Network, name: &str, value: &str) -> Option<()> {
    match name {
        "delay" => network.delay = span(value, 0..=10 * NS_PER_S)?,
        "jitter" => network.jitter = span(value, 0..=10 * NS_PER_S)?,
        "loss" => network.loss = probability(value)?,
        "duplicate" => network.duplicate = probability(value)?,
        "reorder" => network.reorder = probability(value)?,
        "corrupt" => network.corrupt = probability(value)?,
        "rate" => network.rate = Some(quantity(value, 1000, 1_000..=10_000_000_000_000)?),
        "queue" => network.queue_bytes = quantity(value, 1024, 1..=1 << 30)?,
        "mtu" => network.mtu = Some(quantity(value, 1024, 68..=65_535)? as u32),
        "overhead" => network.overhead_bytes = quantity(value, 1024, 0..=10_000)? as u32,
        "partition" => network.partitions.extend(list(value, range)?),
        "cut" => match probability(value) {
            Some(probability) => network.cut = probability,
            None => network.cuts.extend(list(value, instant)?),
        },
        // Without any cost a sender that nothing holds back would send for ever at one instant.
        "cost" => network.cost = span(value, 1..=NS_PER_S)?,
        "congestion" => {
            let named = Congestion::ALL.into_iter().find(|(name, _)| *name == value);
            network.congestion = named.map(|(_, congestion)| congestion)?;
        }
        // Smaller than a segment, a buffer would never let one pass.
        "buffer" => network.buffer_bytes = quantity(value, 1024, 64 << 10..=1 << 30)?,
        "connect" => network.connect_timeout = span(value, 1_000..=1000 * NS_PER_S)?,
        "seed" => network.seed = value.parse().ok()?,
        _ => return None,
    }
    Some(())
}

/// Parses several of a kind, with commas.
pub fn list<T>(value: &str, item: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    value.split(',').map(item).collect()
}

/// Parses a number from 0 to 1, or as much in percent.
pub fn probability(value: &str) -> Option<f64> {
    let number = match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => value.parse().ok()?,
    };
    Some(number).filter(|number| PROBABILITY.contains(number))
}

/// Parses a time with its unit, within bounds in nanoseconds.
pub fn span(value: &str, nanos: RangeInclusive<u64>) -> Option<Duration> {
    let split = value.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == "0" => 1.0,
        _ => return None,
    };
    let found = number.parse::<f64>().ok()? * scale;
    // Negative and absurd numbers are out of range before they are made whole.
    ((0.0..=1e18).contains(&found) && nanos.contains(&(found.round() as u64)))
        .then(|| Duration::from_nanos(found.round() as u64))
}

/// Parses a time since the start.
pub fn instant(value: &str) -> Option<Instant> {
    span(value, 0..=1_000_000 * NS_PER_S).map(|time| Instant::ZERO + time)
}

fn range(value: &str) -> Option<Range<Instant>> {
    let (from, to) = value.split_once("..")?;
    let (from, to) = (instant(from)?, instant(to)?);
    (from < to).then_some(from..to)
}

/// Parses a whole number within bounds, with K, M, G or T as powers of `kilo`.
pub fn quantity(value: &str, kilo: u64, allowed: RangeInclusive<u64>) -> Option<u64> {
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = match &value[digits.len()..] {
        "" => 0,
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let found = digits.parse::<f64>().ok()? * (kilo as f64).powi(power);
    ((0.0..=1e18).contains(&found) && allowed.contains(&(found.round() as u64))).then(|| found.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Vec<(String, String)> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn millis(from: u64) -> Instant {
        Instant::from_nanos(from * 1_000_000)
    }

    #[test]
    fn reads_every_option() {
        let query = "delay=5us&jitter=4.5us&loss=0.01&duplicate=0.02&reorder=0.03&corrupt=0.04&rate=1G&queue=64K&\
                     mtu=1500&overhead=38&partition=10ms..20ms,30ms..40ms&cut=50ms&cut=0.25&cost=200ns&buffer=1M&\
                     congestion=reno&connect=2s&seed=3";
        let expected = Network {
            delay: Duration::from_micros(5),
            jitter: Duration::from_nanos(4_500),
            loss: 0.01,
            duplicate: 0.02,
            reorder: 0.03,
            corrupt: 0.04,
            rate: Some(1_000_000_000),
            queue_bytes: 64 << 10,
            mtu: Some(1500),
            overhead_bytes: 38,
            partitions: vec![millis(10)..millis(20), millis(30)..millis(40)],
            cut: 0.25,
            cuts: vec![millis(50)],
            cost: Duration::from_nanos(200),
            congestion: Congestion::Reno,
            buffer_bytes: 1 << 20,
            connect_timeout: Duration::from_secs(2),
            seed: 3,
        };
        assert_eq!(Network::from_options(&options(query)), Ok(expected));
        assert_eq!(OPTIONS.len(), 17, "an option was added: put it into this test");
    }

    #[test]
    fn one_direction_can_differ() {
        let (out, back) = Network::both_ways(&options("delay=1ms&back.loss=0.5&out.rate=1M")).unwrap();
        assert_eq!((out.delay, back.delay), (Duration::from_millis(1), Duration::from_millis(1)));
        assert_eq!((out.loss, back.loss, out.rate, back.rate), (0.0, 0.5, Some(1_000_000), None));
    }

    #[test]
    fn names_the_culprit_and_the_remedy() {
        let unknown = Network::from_options(&options("delai=5us")).unwrap_err().to_string();
        assert!(unknown.contains("`delai`") && unknown.contains("delay, jitter, loss"), "{unknown}");
        for wrong in [
            "delay=5",
            "delay=-5us",
            "delay=11s",
            "delay=us",
            "delay=NaNus",
            "loss=1.5",
            "loss=x",
            "loss=NaN",
            "rate=0",
            "rate=1Q",
            "queue=0",
            "mtu=10",
            "mtu=99999",
            "partition=2ms",
            "partition=2ms..1ms",
            "cut=2",
            "cut=",
            "cost=0",
            "seed=-1",
            "seed=1.5",
            "buffer=1",
            "connect=0",
            "delay=",
            "rate=é",
        ] {
            let error = Network::from_options(&options(wrong)).unwrap_err();
            let (name, value) = wrong.split_once('=').unwrap();
            assert!(matches!(&error, OptionError::BadValue { name: found, .. } if found == name), "{wrong}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(&format!("`{name}`")) && text.contains(&format!("`{value}`")), "{text}");
        }
        assert!(Network::both_ways(&options("back.delai=5us")).is_err());
    }
}
