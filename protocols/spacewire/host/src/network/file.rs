//! The tables of a file.

use super::values::{bytes, name, rate, span, two_ends};
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Nodes.
    #[serde(default)]
    pub node: Vec<Spanned<NodeTable>>,
    /// Routers.
    #[serde(default)]
    pub router: Vec<Spanned<RouterTable>>,
    /// Links.
    #[serde(default)]
    pub link: Vec<Spanned<LinkTable>>,
    /// Faults.
    #[serde(default)]
    pub fault: Vec<Spanned<FaultTable>>,
}

/// `[[node]]`: a name, and one of what can be at a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTable {
    /// The name.
    pub name: String,
    /// Hosts reach it with SSDTP2.
    #[serde(default)]
    pub ssdtp2: Option<Ssdtp2Table>,
    /// Hosts reach it with GRESB.
    #[serde(default)]
    pub gresb: Option<GresbTable>,
    /// Regions of a memory behind an RMAP target.
    #[serde(default)]
    pub memory: Option<Vec<RegionTable>>,
    /// The RMAP target of a memory.
    #[serde(default)]
    pub rmap: Option<RmapTable>,
    /// Packets are sent back.
    #[serde(default)]
    pub echo: Option<EchoTable>,
    /// Packets are taken and forgotten.
    #[serde(default)]
    pub discard: bool,
    /// A packet is sent again and again.
    #[serde(default)]
    pub babble: Option<BabbleTable>,
    /// N-chars that are taken in a second; otherwise each as it arrives.
    #[serde(default, deserialize_with = "rate")]
    pub take: Option<u64>,
    /// Packets in each of its two queues.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// Bytes in each of its two queues.
    #[serde(default, deserialize_with = "bytes")]
    pub queue_bytes: Option<usize>,
}

/// `ssdtp2 = {...}`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssdtp2Table {
    /// The TCP port; 0 is any free one.
    pub port: u16,
    /// Bytes of a fragment to the host; otherwise packets are whole.
    #[serde(default)]
    pub fragment: Option<NonZeroUsize>,
    /// Bytes of the longest packet from a host.
    #[serde(default, deserialize_with = "bytes")]
    pub packet_max: Option<usize>,
}

/// `gresb = {...}`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GresbTable {
    /// The TCP port for packets from the host; that for packets to it is the next one.
    pub port: u16,
    /// The order of the status bits.
    #[serde(default, deserialize_with = "name")]
    pub status_bits: StatusBits,
    /// Bytes of the longest packet from a host.
    #[serde(default, deserialize_with = "bytes")]
    pub packet_max: Option<usize>,
}

/// The order of the status bits of GRESB.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusBits {
    /// Bit 6 truncated, bit 7 EEP.
    #[default]
    High,
    /// Bit 1 truncated, bit 0 EEP.
    Low,
}

/// A region of `memory = [...]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionTable {
    /// The address of its first byte, with the extended address above bit 32.
    pub address: u64,
    /// The size; otherwise that of the file.
    #[serde(default, deserialize_with = "bytes")]
    pub size: Option<usize>,
    /// The file with the bytes at first.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The rights of commands.
    #[serde(default, deserialize_with = "name")]
    pub access: AccessName,
    /// Bytes of a word: addresses and lengths have to be multiples of it.
    #[serde(default)]
    pub word: Option<u8>,
}

/// The rights of commands in a region.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessName {
    /// Read, write and modify.
    #[default]
    Full,
    /// Read.
    Read,
}

/// `rmap = {...}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmapTable {
    /// The logical address; 254 otherwise.
    #[serde(default)]
    pub logical_address: Option<u8>,
    /// The key; 0 otherwise.
    #[serde(default)]
    pub key: Option<u8>,
    /// Bytes of the buffer for verified writes.
    #[serde(default, deserialize_with = "bytes")]
    pub verify_buffer: Option<usize>,
    /// Bytes of the longest read or write.
    #[serde(default, deserialize_with = "bytes")]
    pub length_max: Option<usize>,
    /// Whether writes are stored although the data was damaged.
    #[serde(default)]
    pub writes_unchecked: bool,
    /// The draft of the standard that the CRCs follow.
    #[serde(default, deserialize_with = "name")]
    pub crc: CrcName,
}

/// The CRC of a target.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrcName {
    /// ECSS-E-ST-50-52C.
    #[default]
    Standard,
    /// Draft E of it.
    DraftE,
}

/// `echo = {...}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoTable {
    /// The bytes in front of each packet that is sent back.
    #[serde(default)]
    pub path: Vec<u8>,
}

/// `babble = {...}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BabbleTable {
    /// The bytes at the beginning of the packet.
    #[serde(default)]
    pub packet: Vec<u8>,
    /// The length of the packet, with zeros behind these bytes; otherwise that of these.
    #[serde(default, deserialize_with = "bytes")]
    pub size: Option<usize>,
}

/// `[[fault]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultTable {
    /// The end that does it: the name of a node, or `router:port`.
    pub at: String,
    /// The fault.
    #[serde(deserialize_with = "name")]
    pub kind: FaultName,
    /// When, in the time of the network.
    #[serde(default, deserialize_with = "span")]
    pub first: Option<Duration>,
    /// The time until the next one; otherwise there is one.
    #[serde(default, deserialize_with = "span")]
    pub every: Option<Duration>,
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultName {
    /// A character has the wrong parity.
    Parity,
    /// ESC, ESC.
    Escape,
    /// An FCT that nothing has made room for.
    Fct,
    /// An N-char goes out without credit.
    WithoutCredit,
    /// The transmitter stops.
    Disconnect,
}

/// `[[router]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterTable {
    /// The name.
    pub name: String,
    /// Ports, 1 to 31.
    #[serde(default)]
    pub ports: Option<u8>,
    /// How long it takes.
    #[serde(default, deserialize_with = "name")]
    pub latency: LatencyName,
    /// The fate of packets for a link that does not run.
    #[serde(default, deserialize_with = "name")]
    pub when_down: WhenDownName,
    /// Whether packets start a link that is not started.
    #[serde(default)]
    pub start_on_request: bool,
    /// How long a packet may stand.
    #[serde(default, deserialize_with = "span")]
    pub watchdog: Option<Duration>,
    /// The key of its configuration port; 0x20 otherwise.
    #[serde(default)]
    pub configuration_key: Option<u8>,
    /// Logical addresses.
    #[serde(default)]
    pub routes: Vec<RouteTable>,
    /// Path addresses that go before others.
    #[serde(default)]
    pub priority_paths: Vec<u8>,
}

/// The latency of a router.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyName {
    /// The SpW-10X.
    #[default]
    #[serde(rename = "spw-10x")]
    Spw10x,
    /// Nothing beside the characters.
    None,
}

/// The fate of packets for a link that does not run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenDownName {
    /// They are spilled.
    #[default]
    Spill,
    /// They wait.
    Wait,
}

/// A route of `routes = [...]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    /// The logical address, 32 to 254.
    pub address: u8,
    /// The output ports, any free one of which is taken.
    pub ports: Vec<u8>,
    /// Whether the leading byte is deleted.
    #[serde(default)]
    pub delete_header: bool,
    /// Whether packets go before others.
    #[serde(default)]
    pub priority: bool,
}

/// `[[link]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// The two ends: the name of a node, or `router:port`.
    #[serde(deserialize_with = "two_ends")]
    pub between: [String; 2],
    /// The rate of both directions; 200 Mbit/s otherwise.
    #[serde(default, deserialize_with = "rate")]
    pub rate: Option<u64>,
    /// Whether rates over 400 Mbit/s are allowed.
    #[serde(default)]
    pub any_rate: bool,
    /// The length of the cable in metres, of 5 ns each.
    #[serde(default)]
    pub metres: f64,
    /// The edition of the standard.
    #[serde(default, deserialize_with = "name")]
    pub edition: EditionName,
    /// The first end, where it differs from the second.
    #[serde(default)]
    pub first: EndTable,
    /// The second end.
    #[serde(default)]
    pub second: EndTable,
}

/// The edition of the standard.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub enum EditionName {
    /// ECSS-E-ST-50-12C of 2008.
    #[default]
    #[serde(rename = "2008")]
    Of2008,
    /// Rev.1 of 2019.
    #[serde(rename = "rev1")]
    Rev1,
}

/// `first = {...}`, `second = {...}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndTable {
    /// The rate that it sends at.
    #[serde(default, deserialize_with = "rate")]
    pub rate: Option<u64>,
    /// Never starts.
    #[serde(default)]
    pub disabled: bool,
    /// Starts by itself; so otherwise.
    #[serde(default)]
    pub link_start: Option<bool>,
    /// Starts when the other does; so otherwise.
    #[serde(default)]
    pub auto_start: Option<bool>,
    /// N-chars in the receive buffer.
    #[serde(default)]
    pub buffer: Option<u16>,
    /// The probability that a bit that it sends arrives flipped.
    #[serde(default)]
    pub bit_error_rate: Option<f64>,
    /// The seed of the bit errors.
    #[serde(default)]
    pub seed: u64,
}
