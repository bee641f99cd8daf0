//! From the tables of a file to a network.

use super::file::{
    AccessName, BabbleTable, CrcName, EditionName, EndTable, FaultName, FaultTable, File, LatencyName, LinkTable,
    NodeTable, RegionTable, RmapTable, RouterTable, StatusBits, WhenDownName,
};
use super::{Plan, PlanError};
use crate::Names;
use hodo_spacewire::Picos;
use hodo_spacewire::bridge::{Device, Gate, GateProtocol};
use hodo_spacewire::end::{Edition, Fault, Settings as EndSettings};
use hodo_spacewire::gresb;
use hodo_spacewire::network::{
    BitErrors, Builder, CONFIGURATION_KEY, ConfigurationPort, Latency, LinkSettings, NodeId, NodeSettings, Place as At,
    Route, RouterId, RouterSettings, Sink, WhenDown,
};
use hodo_spacewire::rmap::{Crc, Ram, Region, Rights, TargetSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;

/// Networks without a file, by their names.
pub const PRESETS: &[(&str, &str)] =
    &[("lab", include_str!("presets/lab.toml")), ("cable", include_str!("presets/cable.toml"))];

/// Bytes of the longest packet from a host, unless the file says otherwise.
const PACKET_MAX: usize = 1 << 20;
/// Bytes of a reply beside its data: the longest path, the header and the CRC.
const REPLY_FRAME: usize = 12 + 12 + 1;
/// Bytes of the largest file of a region.
const REGION_MAX: usize = 1 << 30;
/// The memory of all regions together.
const MEMORY_MAX: usize = 4 << 30;

/// The text of a file, with its name and folder.
pub struct Place<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub folder: &'a Path,
}

impl Place<'_> {
    fn wrong(&self, at: usize, why: impl Display) -> PlanError {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        PlanError(format!("{}:{line}: {why}", self.name))
    }
}

/// Makes the network of a file.
pub fn plan(place: &Place<'_>) -> Result<Plan, PlanError> {
    let parsed: Result<File, toml::de::Error> = toml::from_str(place.text);
    let file = parsed.map_err(|why| place.wrong(why.span().map_or(0, |span| span.start), why.message()))?;
    if file.node.is_empty() {
        return Err(PlanError(format!("{}: there is no node; add a table [[node]]", place.name)));
    }
    let mut planning = Planning::default();
    for table in &file.node {
        let name = &table.get_ref().name;
        planning.node(table.get_ref(), place).map_err(|why| wrong(place, table, &format!("[[node]] {name}"), why))?;
    }
    for table in &file.router {
        let name = &table.get_ref().name;
        planning.router(table.get_ref()).map_err(|why| wrong(place, table, &format!("[[router]] {name}"), why))?;
    }
    for table in &file.link {
        let [one, other] = &table.get_ref().between;
        let title = format!("[[link]] between {one} and {other}");
        planning.link(table.get_ref()).map_err(|why| wrong(place, table, &title, why))?;
    }
    for table in &file.fault {
        let title = format!("[[fault]] at {}", table.get_ref().at);
        planning.fault(table.get_ref()).map_err(|why| wrong(place, table, &title, why))?;
    }
    let Planning { builder, faults, gates, devices, names, priorities, configurations, .. } = planning;
    let mut network = builder.build().map_err(|why| PlanError(format!("{}: {why}", place.name)))?;
    for (router, path) in priorities {
        network.registers(router).expect("it was just made").set_priority(path, true);
    }
    for (router, key) in configurations {
        network.set_configuration(router, ConfigurationPort::new(key)).expect("it was just made");
    }
    for (at, fault, first, every) in faults {
        let planned = match every {
            None => network.inject_at(at, fault, first),
            Some(every) => network.inject_every(at, fault, first, every),
        };
        planned.map_err(|why| PlanError(format!("{}: [[fault]]: {why}", place.name)))?;
    }
    Ok(Plan { network, gates, devices, names })
}

fn wrong<T>(place: &Place<'_>, table: &Spanned<T>, title: &str, why: impl Display) -> PlanError {
    place.wrong(table.span().start, format!("{title}: {why}"))
}

/// A network that is being made.
#[derive(Default)]
struct Planning {
    builder: Builder,
    gates: Vec<(String, Gate)>,
    devices: Vec<(NodeId, Device)>,
    names: Names,
    routers: BTreeMap<String, (RouterId, u8)>,
    ports: BTreeSet<u16>,
    connected: BTreeSet<String>,
    priorities: Vec<(RouterId, u8)>,
    faults: Vec<(At, Fault, Picos, Option<Picos>)>,
    /// The keys of configuration ports.
    configurations: Vec<(RouterId, u8)>,
    memory: usize,
}

impl Planning {
    fn node(&mut self, table: &NodeTable, place: &Place<'_>) -> Result<(), String> {
        if table.name.is_empty() || table.name.contains(':') {
            return Err("a name has letters, and no colon, which stands before the port of a router".into());
        }
        let mut settings = NodeSettings::default();
        if let Some(rate) = table.take {
            settings.sink = Sink::Rate(rate);
        }
        settings.packets = table.queue_packets.unwrap_or(settings.packets).max(1);
        settings.bytes = table.queue_bytes.unwrap_or(crate::session::PACKET_MAX);
        let queue_max = (settings.packets, settings.bytes);
        let node = self.builder.node(&table.name, settings).map_err(|why| why.to_string())?;
        self.names.nodes.push((table.name.clone(), node));
        if table.rmap.is_some() && table.memory.is_none() {
            return Err("rmap: this is for a node with a memory; add memory = [{ address = 0, size = \"1M\" }]".into());
        }
        if let Some(babble) = &table.babble {
            return self.babble(table, babble, node);
        }
        let (protocol, packet_max) = match (table.ssdtp2, table.gresb, &table.memory, &table.echo, table.discard) {
            (Some(gate), None, None, None, false) => {
                self.claim(gate.port)?;
                (GateProtocol::Ssdtp2 { port: gate.port, fragment: gate.fragment }, gate.packet_max)
            }
            (None, Some(gate), None, None, false) => {
                let to_host = if gate.port == 0 { Some(0) } else { gate.port.checked_add(1) };
                let to_host = to_host.ok_or("gresb: the port after 65535 is none; choose a lower one")?;
                self.claim(gate.port)?;
                self.claim(to_host)?;
                let status_bits = match gate.status_bits {
                    StatusBits::High => gresb::StatusBits::High,
                    StatusBits::Low => gresb::StatusBits::Low,
                };
                (GateProtocol::Gresb { to_bridge: gate.port, to_host, status_bits }, gate.packet_max)
            }
            (None, None, Some(regions), None, false) => {
                let target = target(table.rmap.as_ref().unwrap_or(&RmapTable::default()), queue_max.1)?;
                let ram = self.ram(regions, place)?;
                self.devices.push((node, Device::Memory(target, ram)));
                return Ok(());
            }
            (None, None, None, Some(echo), false) => {
                self.devices.push((node, Device::Echo(echo.path.clone())));
                return Ok(());
            }
            (None, None, None, None, true) => {
                self.devices.push((node, Device::Sink));
                return Ok(());
            }
            (None, None, None, None, false) => {
                return Err("nothing is at this node; write ssdtp2 = { port = 10030 }, gresb = { port = 3000 }, \
                            memory = [{ address = 0, size = \"1M\" }], echo = {}, discard = true or babble = { packet = [32] }"
                    .into());
            }
            _ => return Err("ssdtp2, gresb, memory, echo and discard exclude each other; make a node for each".into()),
        };
        let packet_max = packet_max.unwrap_or(PACKET_MAX);
        if packet_max > queue_max.1 {
            return Err(format!(
                "packet_max: the node's queue has {} bytes, less than a packet of {packet_max}; raise queue_bytes",
                queue_max.1
            ));
        }
        self.gates.push((table.name.clone(), Gate { node, protocol, packet_max, queue_max }));
        Ok(())
    }

    fn claim(&mut self, port: u16) -> Result<(), String> {
        if port != 0 && !self.ports.insert(port) {
            return Err(format!("port {port} is another node's already; give each its own"));
        }
        Ok(())
    }

    fn ram(&mut self, tables: &[RegionTable], place: &Place<'_>) -> Result<Ram, String> {
        let mut regions: Vec<Region> = Vec::new();
        for table in tables {
            let region = region(table, place)?;
            self.memory += region.bytes.len();
            if self.memory > MEMORY_MAX {
                return Err("memory: all memories together have more than 4 GiB; make them smaller".into());
            }
            let end = |region: &Region| region.address + region.bytes.len() as u64;
            if let Some(other) =
                regions.iter().find(|other| other.address < end(&region) && region.address < end(other))
            {
                return Err(format!(
                    "memory: the regions at {:#x} and {:#x} overlap; move one of them",
                    other.address, region.address
                ));
            }
            regions.push(region);
        }
        Ok(Ram { regions })
    }

    fn babble(&mut self, table: &NodeTable, babble: &BabbleTable, node: NodeId) -> Result<(), String> {
        let others = [table.ssdtp2.is_some(), table.gresb.is_some(), table.memory.is_some(), table.echo.is_some()];
        if others.contains(&true) || table.discard {
            return Err("babble excludes ssdtp2, gresb, memory, echo and discard; make a node for each".into());
        }
        let mut packet = babble.packet.clone();
        let size = babble.size.unwrap_or(packet.len());
        if size < packet.len() || size == 0 || size > PACKET_MAX {
            return Err(format!(
                "babble: size is {size}; write at least the {} bytes of packet, 1 to 1M",
                packet.len()
            ));
        }
        packet.resize(size, 0);
        self.devices.push((node, Device::Babble(packet)));
        Ok(())
    }

    fn router(&mut self, table: &RouterTable) -> Result<(), String> {
        if table.name.is_empty() || table.name.contains(':') {
            return Err("a name has letters, and no colon, which stands before the port".into());
        }
        let usual = RouterSettings::default();
        let settings = RouterSettings {
            ports: table.ports.unwrap_or(usual.ports),
            latency: match table.latency {
                LatencyName::Spw10x => Latency::SPW_10X,
                LatencyName::None => Latency::NONE,
            },
            when_down: match table.when_down {
                WhenDownName::Spill => WhenDown::Spill,
                WhenDownName::Wait => WhenDown::Wait,
            },
            start_on_request: table.start_on_request,
            watchdog: table.watchdog.map(picos),
        };
        let ports = settings.ports;
        let router = self.builder.router(&table.name, settings).map_err(|why| why.to_string())?;
        let mut routed = BTreeSet::new();
        for route in &table.routes {
            if !routed.insert(route.address) {
                return Err(format!(
                    "routes: address {} is there twice; give it one entry with all its ports",
                    route.address
                ));
            }
            if let Some(port) = route.ports.iter().find(|port| !(1..=ports).contains(*port)) {
                return Err(format!(
                    "routes: address {} leads to port {port}; the ports are 1 to {ports}",
                    route.address
                ));
            }
            if route.ports.is_empty() {
                return Err(format!("routes: address {} leads nowhere; name at least one port", route.address));
            }
            let outputs = route.ports.iter().fold(0, |outputs, port| outputs | 1 << port);
            let entry = Route { outputs, delete_header: route.delete_header, priority: route.priority };
            self.builder.route(router, route.address, entry).map_err(|why| format!("routes: {why}"))?;
        }
        for path in &table.priority_paths {
            if !(1..=ports).contains(path) {
                return Err(format!("priority_paths: there is no port {path}; the ports are 1 to {ports}"));
            }
            self.priorities.push((router, *path));
        }
        self.configurations.push((router, table.configuration_key.unwrap_or(CONFIGURATION_KEY)));
        self.routers.insert(table.name.clone(), (router, ports));
        Ok(())
    }

    fn fault(&mut self, table: &FaultTable) -> Result<(), String> {
        let kind = match table.kind {
            FaultName::Parity => Fault::Parity,
            FaultName::Escape => Fault::Escape,
            FaultName::Fct => Fault::Fct,
            FaultName::WithoutCredit => Fault::WithoutCredit,
            FaultName::Disconnect => Fault::Disconnect,
        };
        if table.every.is_some_and(|every| every < Duration::from_micros(1)) {
            return Err("every: faults are at least 1us apart".into());
        }
        let first = table.first.or(table.every).unwrap_or_default();
        self.faults.push((self.at(&table.at)?, kind, picos(first), table.every.map(picos)));
        Ok(())
    }

    fn link(&mut self, table: &LinkTable) -> Result<(), String> {
        let [one, other] = &table.between;
        let places = [self.at(one)?, self.at(other)?];
        for name in [one, other] {
            if !self.connected.insert(name.clone()) {
                return Err(format!("{name} has a link already; each end has one"));
            }
        }
        if !(table.metres >= 0.0 && table.metres <= 1000.0) {
            return Err("metres: a cable has 0 to 1000 m".into());
        }
        let rate = table.rate.unwrap_or(200_000_000);
        let tables = [&table.first, &table.second];
        let settings = LinkSettings {
            rates: tables.map(|end| end.rate.unwrap_or(rate)),
            any_rate: table.any_rate,
            cable: Picos::from_nanos((table.metres * 5.0).round() as u64),
            ends: tables.map(|end| end_settings(end, table.edition)),
            bit_errors: tables.map(|end| end.bit_error_rate.map(|rate| BitErrors { rate, seed: end.seed })),
        };
        self.builder.link(places[0], places[1], &settings).map_err(|why| why.to_string())?;
        self.names.links.push([(one.clone(), places[0]), (other.clone(), places[1])]);
        Ok(())
    }

    /// Returns where an end is: at a node, or at a port of a router.
    fn at(&self, name: &str) -> Result<At, String> {
        let Some((router, port)) = name.split_once(':') else {
            let node = self.names.nodes.iter().find(|(known, _)| known == name);
            let (_, node) = node.ok_or_else(|| match self.routers.get(name) {
                Some(_) => format!("{name} is a router; add the port, as {name}:1"),
                None => format!("there is no node {name}"),
            })?;
            return Ok(At::Node(*node));
        };
        let (id, ports) = self.routers.get(router).ok_or_else(|| format!("there is no router {router}"))?;
        match port.parse() {
            Ok(port) if (1..=*ports).contains(&port) => Ok(At::Router(*id, port)),
            _ => Err(format!("router {router} has no port {port}; its ports are 1 to {ports}")),
        }
    }
}

fn picos(span: Duration) -> Picos {
    Picos::from_nanos(span.as_nanos() as u64)
}

fn end_settings(table: &EndTable, edition: EditionName) -> EndSettings {
    let usual = EndSettings::default();
    EndSettings {
        edition: match edition {
            EditionName::Of2008 => Edition::Of2008,
            EditionName::Rev1 => Edition::Rev1,
        },
        disabled: table.disabled,
        link_start: table.link_start.unwrap_or(usual.link_start),
        auto_start: table.auto_start.unwrap_or(usual.auto_start),
        buffer: table.buffer.unwrap_or(usual.buffer),
    }
}

/// Returns the settings of a target at a node whose queue has so many bytes, which every reply has to fit into.
fn target(table: &RmapTable, queue: usize) -> Result<TargetSettings, String> {
    let usual = TargetSettings::default();
    let fitting = queue.saturating_sub(REPLY_FRAME);
    if let Some(length) = table.length_max.filter(|length| *length > fitting) {
        return Err(format!(
            "length_max: the node's queue has {queue} bytes, less than a reply with {length}; raise queue_bytes"
        ));
    }
    let bounded = |size: Option<usize>, usual: u32, key: &str| match size {
        None => Ok(usual),
        Some(size) if size < 1 << 24 => Ok(size as u32),
        Some(_) => Err(format!("{key}: RMAP transfers less than 16M at once")),
    };
    Ok(TargetSettings {
        logical_address: table.logical_address.or(usual.logical_address),
        key: table.key.or(usual.key),
        verify_buffer: bounded(table.verify_buffer, usual.verify_buffer, "verify_buffer")?,
        length_max: bounded(table.length_max, usual.length_max.min(fitting as u32), "length_max")?,
        writes_unchecked: table.writes_unchecked,
        crc: match table.crc {
            CrcName::Standard => Crc::Standard,
            CrcName::DraftE => Crc::DraftE,
        },
        ..usual
    })
}

fn region(table: &RegionTable, place: &Place<'_>) -> Result<Region, String> {
    let mut bytes = match &table.file {
        None => Vec::new(),
        Some(file) => {
            let file = place.folder.join(file);
            let most = table.size.unwrap_or(REGION_MAX);
            hodo_io::files::read(&file, most as u64).map_err(|why| match why.kind() {
                ErrorKind::FileTooLarge => {
                    format!("memory: {} has more than {most} bytes; raise the size, up to 1G", file.display())
                }
                _ => format!("memory: {} cannot be read: {why}", file.display()),
            })?
        }
    };
    match table.size {
        None if bytes.is_empty() => return Err("memory: a region has a size, as size = \"1M\", or a file".into()),
        Some(size) => bytes.resize(size, 0),
        None => {}
    }
    let end = table.address.checked_add(bytes.len() as u64);
    if end.is_none_or(|end| end > 1 << 40) {
        return Err(format!("memory: the region at {:#x} goes beyond the 40 bits of an address", table.address));
    }
    let word = table.word.unwrap_or(1);
    if !matches!(word, 1 | 2 | 4 | 8) {
        return Err("memory: a word has 1, 2, 4 or 8 bytes".into());
    }
    let rights = match table.access {
        AccessName::Full => Rights::ALL,
        AccessName::Read => Rights::READ,
    };
    Ok(Region { address: table.address, bytes, rights, word })
}
