//! Opening a device, and the checks of what is asked of it.

use super::remedies::{context, listing, no_device, refused, words};
use super::{VerbsDevice, remedies};
use crate::{AddressOfQueuePair, DeviceError, Gid, Limits, Reliability};
use hodo_io::verbs::{Context, DeviceFacts, Library, LinkLayer, Paging, Placement, PortFacts};
use hodo_io::{Clock, Patience};
use hodo_roce::Access;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The kind of memory that regions are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryKind {
    /// Memory of the host, pinned while it is registered.
    #[default]
    Pinned,
    /// Memory of the host that the device faults in on demand (ODP).
    OnDemand {
        /// Whether a region is faulted in when it is registered.
        prefetch: bool,
    },
    /// As above, with one key for the whole address space. Regions that the far end may access still have a key of their own.
    Implicit {
        /// Whether a region is faulted in when it is registered.
        prefetch: bool,
    },
    /// Memory of the device.
    Device,
}

impl MemoryKind {
    pub(super) fn placement(self) -> Placement {
        match self {
            MemoryKind::Pinned => Placement::Host(Paging::Pinned),
            MemoryKind::OnDemand { .. } => Placement::Host(Paging::OnDemand),
            MemoryKind::Implicit { .. } => Placement::Host(Paging::Implicit),
            MemoryKind::Device => Placement::Device,
        }
    }

    pub(super) fn is_prefetched(self) -> bool {
        matches!(self, MemoryKind::OnDemand { prefetch: true } | MemoryKind::Implicit { prefetch: true })
    }
}

/// The choice of a device and its port, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbsSettings {
    /// The device's name; the first device if there is none.
    pub device: Option<String>,
    /// The device's port, from 1.
    pub port: u8,
    /// The index of the port's global identifier. Without it, on Ethernet, the first one of an IPv4 address is chosen, or of an
    /// IPv6 address if there is none; on InfiniBand, none.
    pub gid: Option<u8>,
    /// The kind of memory that regions are in.
    pub memory: MemoryKind,
    /// Whether completions have timestamps of the device ([`crate::Device::timestamps`]).
    pub has_timestamps: bool,
    /// Whether there is a channel for events, without which a wait cannot sleep.
    pub has_events: bool,
    /// Entries of the completion queue at first; it is extended when queue pairs need more.
    pub completions: u32,
}

impl Default for VerbsSettings {
    fn default() -> Self {
        VerbsSettings {
            device: None,
            port: 1,
            gid: None,
            memory: MemoryKind::Pinned,
            has_timestamps: false,
            has_events: true,
            completions: 1024,
        }
    }
}

/// Opens a device through the library of this name.
pub(super) fn open(library: &str, settings: &VerbsSettings, clock: Clock) -> Result<VerbsDevice, DeviceError> {
    let library = Library::open_named(library).map_err(|error| DeviceError::Missing(error.to_string()))?;
    let names = library.devices().map_err(|error| listing(&error))?;
    let wish = settings.device.as_deref();
    let name = names.iter().find(|name| wish.is_none_or(|wish| wish == *name));
    let name = name.ok_or_else(|| no_device(wish, &names))?.clone();
    let context = library.open_device(&name).map_err(|error| context(&name, &error))?;
    let facts = context.facts().map_err(|error| refused("Couldn't query device for its features", &error))?;
    check_capabilities(&facts, settings)?;
    let port = port(&context, &name, &facts, settings.port)?;
    let gid = gid(&context, &name, &port, settings)?;
    let domain = context.domain().map_err(|error| refused("Couldn't allocate PD", &error))?;
    let entries = settings.completions.clamp(1, facts.completions.max(1));
    let completions = context.completion_queue(entries, settings.has_events, settings.has_timestamps);
    Ok(VerbsDevice {
        pairs: Vec::new(),
        regions: BTreeMap::new(),
        completions: completions.map_err(|error| refused("Couldn't create CQ", &error))?,
        domain,
        context,
        name,
        settings: settings.clone(),
        facts,
        port,
        gid,
        is_armed: false,
        timestamps: Vec::new(),
        entries: Vec::new(),
        inline: Vec::new(),
        patience: Patience::new(),
        clock,
    })
}

fn check_capabilities(facts: &DeviceFacts, settings: &VerbsSettings) -> Result<(), DeviceError> {
    let missing = |text: &str, remedy: &str| Err(DeviceError::Missing(format!("{text}: {remedy}")));
    let odp = &facts.on_demand;
    let is_on_demand = matches!(settings.memory, MemoryKind::OnDemand { .. } | MemoryKind::Implicit { .. });
    if is_on_demand && !(odp.explicit && odp.send && odp.receive) {
        let text = "The device isn't ODP capable or does not support RC send and receive with ODP";
        return missing(text, "pin the memory instead, or use an adapter whose `ibv_devinfo -v` lists ODP for RC");
    }
    if matches!(settings.memory, MemoryKind::Implicit { .. }) && !odp.implicit {
        return missing("The device doesn't support implicit ODP", "use explicit ODP");
    }
    if settings.memory == MemoryKind::Device && facts.device_memory == 0 {
        return missing("Device doesn't support dm allocation", "use the host's memory");
    }
    if settings.has_timestamps && facts.timestamp_mask == 0 {
        return missing("The device isn't completion timestamp capable", "take the host's times");
    }
    Ok(())
}

fn port(context: &Context, name: &str, facts: &DeviceFacts, number: u8) -> Result<PortFacts, DeviceError> {
    let missing = |text: String| Err(DeviceError::Missing(text));
    let ports = facts.ports;
    if number == 0 || u32::from(number) > ports {
        return missing(format!("Couldn't get port info: {name} has no port {number}; choose one from 1 to {ports}"));
    }
    let port = context.port(number).map_err(|error| refused("Couldn't get port info", &error))?;
    if !port.is_active {
        let remedy = "bring up its network interface (ip link set DEVICE up), and on InfiniBand start a subnet manager";
        return missing(format!("port {number} of {name} is {}: {remedy}", port.state));
    }
    if port.link_layer == LinkLayer::InfiniBand && port.lid == 0 {
        return missing(format!("Couldn't get local LID of port {number} of {name}: start a subnet manager (opensm)"));
    }
    Ok(port)
}

fn gid(
    context: &Context,
    name: &str,
    port: &PortFacts,
    settings: &VerbsSettings,
) -> Result<Option<(Gid, u8)>, DeviceError> {
    let number = settings.port;
    if let Some(index) = settings.gid {
        let unreadable = |why: &str| {
            let list = format!("`ibv_devinfo -v -d {name} -i {number}` lists them");
            DeviceError::Missing(format!("can't read sgid of index {index}: {why}; {list}"))
        };
        if u32::from(index) >= port.gids {
            return Err(unreadable(&format!("port {number} of {name} has {} entries", port.gids)));
        }
        let entry = context.gid(number, u32::from(index)).map_err(|error| unreadable(&words(&error)))?;
        return match Gid(entry.gid) {
            gid if gid == Gid::default() => Err(unreadable("the entry is empty")),
            gid => Ok(Some((gid, index))),
        };
    }
    if port.link_layer != LinkLayer::Ethernet {
        return Ok(None);
    }
    let indices = 0..=u8::try_from(port.gids.saturating_sub(1)).unwrap_or(u8::MAX);
    let entries = indices.filter_map(|index| Some((context.gid(number, u32::from(index)).ok()?, index)));
    let there = entries.map(|(entry, index)| (Gid(entry.gid), entry.is_routable != Some(false), index));
    let best = there.filter(|(gid, ..)| *gid != Gid::default()).min_by_key(|(gid, is_routable, _)| {
        let is_ipv6 = matches!(gid.address(), IpAddr::V6(_));
        (!is_routable, is_ipv6, gid.0.starts_with(&[0xfe, 0x80]))
    });
    let none = || {
        let remedy = "give its network interface an address (ip address add 10.0.0.1/24 dev DEVICE)";
        DeviceError::Missing(format!("port {number} of {name} has no GID: {remedy}"))
    };
    best.map(|(gid, _, index)| Some((gid, index))).ok_or_else(none)
}

/// Checks that the device can register such a region.
pub(super) fn check_region(device: &VerbsDevice, length: usize, access: Access) -> Result<(), DeviceError> {
    if length == 0 {
        return Err(DeviceError::OutOfRange("a region has at least one byte".to_owned()));
    }
    if !access.is_consistent() {
        let text = "a region to which the far end may write is one to which the local side may write";
        return Err(DeviceError::OutOfRange(text.to_owned()));
    }
    let VerbsDevice { facts, settings, name, .. } = device;
    if settings.memory == MemoryKind::Device && length as u64 > facts.device_memory {
        let (size, limit) = (length, facts.device_memory);
        return Err(DeviceError::Missing(format!(
            "Device memory is insufficient: {size} bytes asked for, {name} has {limit}"
        )));
    }
    if matches!(settings.memory, MemoryKind::OnDemand { .. } | MemoryKind::Implicit { .. }) {
        let odp = &facts.on_demand;
        let wishes = [
            (access.remote_write, odp.write, "RDMA write"),
            (access.remote_read, odp.read, "RDMA read"),
            (access.remote_atomic, odp.atomic, "atomic operations"),
        ];
        if let Some((.., what)) = wishes.iter().find(|(is_wished, can, _)| *is_wished && !can) {
            let text =
                format!("The device isn't ODP capable for {what}: register without that right, or pin the memory");
            return Err(DeviceError::Missing(text));
        }
    }
    Ok(())
}

/// Checks that the device can do such queue pairs.
pub(super) fn check_limits(device: &VerbsDevice, limits: &Limits) -> Result<(), DeviceError> {
    let facts = &device.facts;
    let wishes = [
        ("send requests", limits.send_depth, facts.queue_depth),
        ("receive requests", limits.receive_depth, facts.queue_depth),
        ("entries of a send request", limits.send_entries, facts.entries),
        ("entries of a receive request", limits.receive_entries, facts.entries),
    ];
    match wishes.iter().find(|(_, wish, limit)| wish > limit) {
        None => Ok(()),
        Some((what, wish, limit)) => {
            Err(DeviceError::OutOfRange(format!("{wish} {what}: {} has at most {limit}", device.name)))
        }
    }
}

/// Checks that the device can connect so, and that the far end can be named.
pub(super) fn check_connection(
    device: &VerbsDevice,
    remote: &AddressOfQueuePair,
    reliability: &Reliability,
) -> Result<(), DeviceError> {
    let Reliability { mtu, .. } = *reliability;
    let (port, number, name) = (&device.port, device.settings.port, &device.name);
    if ![256, 512, 1024, 2048, 4096].contains(&mtu) {
        return Err(DeviceError::OutOfRange(format!("a path MTU of {mtu}: choose 256, 512, 1024, 2048 or 4096")));
    }
    if mtu > port.active_mtu {
        let limit = port.active_mtu;
        return Err(DeviceError::OutOfRange(format!(
            "a path MTU of {mtu}: port {number} of {name} allows {limit} now; choose that, or raise the MTU of its network \
             interface above {mtu} by at least 80"
        )));
    }
    let reads = device.facts.reads.0.min(device.facts.reads.1).min(255);
    let ranges = [
        ("the timeout", reliability.timeout, 31),
        ("the retries", reliability.retries, 7),
        ("the retries when the receiver is not ready", reliability.receiver_not_ready_retries, 7),
        ("the timer when the receiver is not ready", reliability.receiver_not_ready_timer, 31),
        ("the service level", reliability.service_level, 15),
        ("the reads in flight", reliability.reads, reads),
    ];
    if let Some((what, value, limit)) = ranges.iter().find(|(_, value, limit)| u32::from(*value) > *limit) {
        return Err(DeviceError::OutOfRange(format!("{what}: {value}, at most {limit} on {name}")));
    }
    if port.link_layer == LinkLayer::Ethernet && remote.gid == Gid::default() {
        return Err(remedies::no_remote_gid());
    }
    Ok(())
}
