//! IPbus devices in software: what a URI's scheme and options make of one.

use crate::boards::word;
use hodo_ipbus::device::{Device, DeviceConfig, Failure, Faults, FaultyDevice, Registers, Way};
use hodo_ipbus::wire::Version;
use hodo_ipbus_host::Files;
use hodo_machine::Transport;
use hodo_sim::options::{instant, list, probability, quantity};
use hodo_sim::{Network, OptionError};
use hodo_tester::{Error, Uri};
use hodo_uhal::files;
use hodo_uhal::table::{Limits, Table};
use hodo_uhal::uri::PAYLOAD_BYTES;
use std::ops::RangeInclusive;

/// A scheme of devices that are served.
pub(crate) struct Scheme {
    /// The name of the scheme.
    pub(crate) name: &'static str,
    /// Over what.
    pub(crate) transport: Transport,
    /// Which version of the protocol.
    pub(crate) version: Version,
}

/// Every scheme of devices.
pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme { name: "ipbusudp-2.0", transport: Transport::Datagram, version: Version::V2_0 },
    Scheme { name: "ipbustcp-2.0", transport: Transport::Stream, version: Version::V2_0 },
    Scheme { name: "ipbusudp-1.3", transport: Transport::Datagram, version: Version::V1_3 },
    Scheme { name: "ipbustcp-1.3", transport: Transport::Stream, version: Version::V1_3 },
];

/// Returns the scheme of a URI, or `None` if it is not that of a device.
pub(crate) fn scheme(uri: &Uri) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == uri.scheme)
}

/// A device to be served, and its faults.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    config: DeviceConfig,
    faults: Faults,
    boards: u16,
}

/// The largest number of boards, more than a crate, a room or an experiment has.
const BOARDS_MAX: u64 = 10_000;

/// The values of the options that the simulated network does not know.
const OPTIONS: &[(&str, &str)] = &[
    ("table", "an address table: a path, or file://…"),
    ("others", "memory, error or timeout: what is at the addresses that no node of the table has"),
    ("boards", "how many there are, from 1 to 10000, each with a port of its own; over UDP only"),
    ("buffers", "replies that are kept, from 1 to 1024, as 16"),
    ("buffer_bytes", "bytes of a packet from 64 to 65507, as 2040"),
    ("memory", "bytes from 64K to 16G, as 64M"),
    ("configuration", "words, as 0xC0A80001,0: those of the configuration space"),
    ("bus_error", "addresses, as 0x1000 or 0x1000-0x1FFF, or several with commas"),
    ("bus_timeout", "addresses, as 0x1000 or 0x1000-0x1FFF, or several with commas"),
    ("wrong_id", "a probability from 0 to 1, as 0.01"),
    ("reboot", "a time, as 50ms, or several with commas; or a probability from 0 to 1 for each packet, as 0.001"),
    ("reboot_memory", "keep or clear"),
];

/// The options for faults of the network, which are those of the simulated network.
const WAY_OPTIONS: &[&str] = &["loss", "duplicate", "reorder", "delay", "jitter", "partition", "seed"];

impl Served {
    /// Parses the device and its faults from a URI.
    pub(crate) fn new(uri: &Uri, scheme: &Scheme) -> Result<Served, Error> {
        let config = DeviceConfig::new(scheme.transport, scheme.version);
        let mut served = Served { config, faults: Faults::default(), boards: 1 };
        let (ways, others): (Vec<_>, Vec<_>) = uri.options.iter().cloned().partition(|(name, _)| is_of_a_way(name));
        served.take_ways(ways).map_err(|error| Error::Usage(format!("`{uri}`: {error}")))?;
        // The table first: what the others say counts whatever is in it.
        let (table, others): (Vec<_>, Vec<_>) = others.iter().partition(|(name, _)| name == "table");
        for (name, value) in table.into_iter().chain(others) {
            served.take(name, value).map_err(|error| match error {
                Error::Usage(text) => Error::Usage(format!("`{uri}`: {text}")),
                failed => failed,
            })?;
        }
        Ok(served)
    }

    /// Returns whether the device has any faults.
    pub(crate) fn is_faulty(&self) -> bool {
        self.faults != Faults { seed: self.faults.seed, ..Faults::default() }
    }

    /// Returns the number of devices.
    pub(crate) fn boards(&self) -> u16 {
        self.boards
    }

    /// Returns the device without faults.
    pub(crate) fn device(&self) -> Device {
        Device::new(self.config.clone())
    }

    /// Returns the device with its faults; several devices have different seeds.
    pub(crate) fn faulty_device(&self, number: usize) -> FaultyDevice {
        let seed = self.faults.seed.wrapping_add(number as u64);
        FaultyDevice::new(self.device(), Faults { seed, ..self.faults.clone() })
    }

    fn take_ways(&mut self, mut options: Vec<(String, String)>) -> Result<(), String> {
        if options.is_empty() {
            return Ok(());
        }
        options.insert(0, ("delay".to_owned(), "0ns".to_owned()));
        let (out, back) = Network::both_ways(&options).map_err(|error| match error {
            OptionError::BadValue { name, value, takes } => cannot(&name, &value, takes),
            other => other.to_string(),
        })?;
        self.faults = Faults { request: way(out.clone()), reply: way(back), seed: out.seed, ..Faults::default() };
        Ok(())
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let Some((_, takes)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = OPTIONS.iter().map(|(known, _)| *known).chain(WAY_OPTIONS.iter().copied()).collect();
            return Err(Error::Usage(format!(
                "unknown option `{name}` of a device; the known ones are {}",
                known.join(", ")
            )));
        };
        if name == "table" {
            self.config.registers = registers(value)?;
            return Ok(());
        }
        self.apply(name, value).ok_or_else(|| Error::Usage(cannot(name, value, takes)))
    }

    fn apply(&mut self, name: &str, value: &str) -> Option<()> {
        let config = &mut self.config;
        let number = |value: &str, allowed| quantity(value, 1024, allowed).filter(|_| !value.contains('.'));
        match name {
            "others" => {
                if let Some(failure) = failure(value)? {
                    config.registers = std::mem::take(&mut config.registers).alone(failure);
                }
            }
            "boards" => self.boards = number(value, 1..=BOARDS_MAX)? as u16,
            "buffers" => config.buffers = number(value, 1..=1024)? as u32,
            "buffer_bytes" => {
                let allowed = u64::from(*PAYLOAD_BYTES.start())..=u64::from(*PAYLOAD_BYTES.end());
                config.buffer_bytes = number(value, allowed)? as u32;
            }
            "memory" => config.memory_bytes_max = usize::try_from(number(value, 64 << 10..=16 << 30)?).ok()?,
            "configuration" => config.configuration = list(value, word)?,
            "bus_error" => self.fail(value, Failure::Error)?,
            "bus_timeout" => self.fail(value, Failure::Timeout)?,
            "wrong_id" => self.faults.wrong_id = probability(value)?,
            "reboot" => match probability(value) {
                Some(probability) => self.faults.reboot = probability,
                None => self.faults.reboots.extend(list(value, instant)?),
            },
            "reboot_memory" => {
                self.faults.clear_memory = match value {
                    "keep" => false,
                    "clear" => true,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn fail(&mut self, addresses: &str, failure: Failure) -> Option<()> {
        for range in list(addresses, range)? {
            let registers = std::mem::take(&mut self.config.registers);
            self.config.registers = registers.failing_at(range, failure);
        }
        Some(())
    }
}

fn is_of_a_way(name: &str) -> bool {
    let base = name.strip_prefix("out.").or_else(|| name.strip_prefix("back.")).unwrap_or(name);
    WAY_OPTIONS.contains(&base)
}

fn way(network: Network) -> Way {
    let Network { loss, duplicate, reorder, delay, jitter, partitions, .. } = network;
    Way { loss, duplicate, reorder, delay, jitter, partitions }
}

/// Returns the registers of an address table.
fn registers(table: &str) -> Result<Registers, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::Failed(error.to_string());
    let file = match table.contains("://") {
        true => files::one(table, "", &Files).map_err(|error| wrong(&error))?,
        false => table.to_owned(),
    };
    let table = Table::read(&file, &Files, &Limits::default()).map_err(|error| wrong(&error))?;
    Registers::try_from(&table).map_err(|error| wrong(&error))
}

fn failure(value: &str) -> Option<Option<Failure>> {
    match value {
        "memory" => Some(None),
        "error" => Some(Some(Failure::Error)),
        "timeout" => Some(Some(Failure::Timeout)),
        _ => None,
    }
}

fn range(value: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    let (first, last) = (word(first)?, word(last)?);
    (first <= last).then_some(first..=last)
}

fn cannot(name: &str, value: &str, takes: &str) -> String {
    format!("option `{name}` cannot be `{value}`: it takes {takes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn served(text: &str) -> Result<Served, Error> {
        let uri = hodo_tester::Catalog::new(&[&crate::IPBUS]).uri(text).unwrap();
        Served::new(&uri, scheme(&uri).unwrap())
    }

    #[test]
    fn every_option_has_its_effect() {
        let all = "ipbusudp-2.0://?out.loss=0.1&back.loss=0.2&delay=20us&jitter=3us&duplicate=0.3&reorder=0.4&seed=7&\
                   partition=1s..2s&buffers=4&buffer_bytes=8K&memory=1M&configuration=0xA,11&bus_error=0x10-0x1F,3&\
                   bus_timeout=9&boards=3&wrong_id=0.5&reboot=0.6&reboot=1s,2s&reboot_memory=clear&others=error";
        let Served { config, faults, boards } = served(all).unwrap();
        assert_eq!(boards, 3);
        assert_eq!((config.buffers, config.buffer_bytes, config.memory_bytes_max), (4, 8192, 1 << 20));
        assert_eq!(config.configuration, [10, 11]);
        let none = Registers::default();
        let expected = none.alone(Failure::Error);
        let expected = expected.failing_at(0x10..=0x1F, Failure::Error).failing_at(3..=3, Failure::Error);
        assert_ne!(config.registers, expected, "the timeout too");
        assert_eq!((faults.request.loss, faults.reply.loss), (0.1, 0.2));
        assert_eq!((faults.request.delay, faults.reply.jitter), (Duration::from_micros(20), Duration::from_micros(3)));
        assert_eq!((faults.reply.duplicate, faults.request.reorder), (0.3, 0.4));
        assert_eq!((faults.seed, faults.wrong_id, faults.reboot, faults.clear_memory), (7, 0.5, 0.6, true));
        assert_eq!((faults.reboots.len(), faults.request.partitions.len()), (2, 1));
    }

    #[test]
    fn without_options_nothing_goes_wrong() {
        for scheme in SCHEMES {
            let served = served(scheme.name).unwrap();
            assert!(!served.is_faulty());
            assert_eq!((served.config.transport, served.config.version), (scheme.transport, scheme.version));
        }
        assert!(!served("ipbusudp-2.0://?loss=0").unwrap().is_faulty());
        assert!(served("ipbusudp-2.0://?reboot=1s").unwrap().is_faulty());
    }

    #[test]
    fn names_the_culprit_and_the_remedy() {
        let refused = |option: &str| served(&format!("ipbusudp-2.0://?{option}")).unwrap_err().to_string();
        let unknown = refused("los=1");
        assert!(unknown.contains("`los`") && unknown.contains("buffers") && unknown.contains("loss"), "{unknown}");
        for wrong in [
            "loss=2",
            "delay=5",
            "boards=0",
            "buffers=0",
            "buffers=1.5",
            "buffers=2000",
            "buffer_bytes=1M",
            "memory=1",
            "configuration=x",
            "bus_error=5-4",
            "bus_timeout=0x1FFFFFFFF",
            "wrong_id=-1",
            "reboot=soon",
            "reboot_memory=some",
            "others=nothing",
        ] {
            let (name, value) = wrong.split_once('=').unwrap();
            let text = refused(wrong);
            assert!(text.contains(&format!("`{name}` cannot be `{value}`: it takes")), "{text}");
        }
        let table = refused("table=/no/such/table.xml");
        assert_eq!(
            table,
            "/no/such/table.xml: error: `/no/such/table.xml` cannot be read: there is no such file; check the path"
        );
        assert_eq!(refused("table=file:///no/such/*.xml"), "no file matches `/no/such/*.xml`; check the path");
    }
}
