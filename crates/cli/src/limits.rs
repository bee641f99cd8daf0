//! `hodo limits`: the calculator alone.

#[cfg(feature = "farm")]
use crate::farm::FarmEvents;
use crate::output::Target;
use crate::{Error, Outcome, terminal};
use clap::{Args, ValueEnum};
use hodo_measure::limits::{
    Bus, Calculated, Calculator, Ip, Line, Path, Pci, Pcie, PcieGeneration, Processors, Sharing, Transport as Carrier,
    format_rate,
};
use hodo_measure::{Limit, Sizes, units};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The largest payload in bytes on which two ends of a PCI Express link commonly agree.
const PCIE_MAX_PAYLOAD: u32 = 256;

/// Prints the limit of every size, and how it was computed.
pub fn run(options: &LimitsOptions) -> Result<Outcome, Error> {
    let calculator = calculator(options)?;
    let sizes = options.sizes.clone().unwrap_or_else(|| Sizes::of(events(options).map_or(SIZES, |_| EVENT)));
    if let Some(max) = calculator.path.datagram_bytes_max()
        && let Some(size) = sizes.values().iter().find(|size| **size > max)
    {
        return Err(Error::Usage(format!("--sizes {size}: a UDP datagram has a size in 1..={max} bytes")));
    }
    let rows: Vec<Calculated> = sizes.values().iter().map(|size| calculator.limit(*size)).collect();
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    if let Some(json) = &json {
        json.write_json(&document(&calculator, &rows))?;
    }
    if !json.is_some_and(|json| json.is_stdout()) {
        terminal::print(&text(options, &calculator, &rows))?;
    }
    Ok(Outcome::Done)
}

/// The default sizes.
const SIZES: &[u32] = &[64, 1024, 1472, 8 << 10, 32 << 10];
/// The event of the published study.
const EVENT: &[u32] = &[32_000];

/// Messages that one sender distributes over several receivers.
struct Events {
    receivers: u32,
    header_bytes: u64,
    answer_bytes: u64,
}

#[cfg(feature = "farm")]
fn events(options: &LimitsOptions) -> Option<Events> {
    let (receivers, (header_bytes, answer_bytes)) = options.farm.messages()?;
    Some(Events { receivers, header_bytes, answer_bytes })
}

#[cfg(not(feature = "farm"))]
fn events(_: &LimitsOptions) -> Option<Events> {
    None
}

fn calculator(options: &LimitsOptions) -> Result<Calculator, Error> {
    let events = events(options);
    let (header_bytes, answer_bytes) =
        events.as_ref().map_or((0, 0), |events| (events.header_bytes, events.answer_bytes));
    let own = options.leaf_rate.map(|rate| path(options, rate)).transpose()?;
    let sharing = match (&events, options.flows, own) {
        (Some(events), _, Some(leaf)) => Sharing::Leaves(events.receivers, leaf),
        (_, Some(flows), own) => Sharing::Flows(flows, own),
        _ => Sharing::Alone,
    };
    let in_flight = |window| u64::from(window) * u64::from(events.as_ref().map_or(1, |events| events.receivers));
    let copies = options.copies.zip(options.copy_rate);
    let has_processors = options.cpu_cost.is_some() || copies.is_some();
    let cost = options.cpu_cost.unwrap_or_default();
    Ok(Calculator {
        path: path(options, options.line_rate)?,
        sharing,
        header_bytes,
        answer_bytes,
        window: options.window.map(in_flight).zip(options.rtt),
        processors: has_processors.then_some(Processors { cores: options.cores, cost, copies }),
        buses: buses(options)?,
    })
}

fn path(options: &LimitsOptions, rate_bits_per_s: f64) -> Result<Path, Error> {
    let line = Line { rate_bits_per_s, mtu: options.mtu, vlan_tags: u8::from(options.vlan) };
    let ip = if options.ipv6 { Ip::V6 } else { Ip::V4 };
    let carrier = match options.transport {
        Transport::Tcp => Carrier::Tcp { timestamps: !options.no_timestamps },
        Transport::Udp => Carrier::Udp,
    };
    Path::new(line, ip, carrier).map_err(|why| Error::Usage(why.to_string()))
}

fn buses(options: &LimitsOptions) -> Result<Vec<Bus>, Error> {
    let pci = options.pci.map(|(bits, megahertz)| Pci::new(bits, megahertz * 1e6).map(Bus::Pci));
    let pci = pci.transpose().map_err(|why| Error::Usage(format!("--pci: {why}")))?;
    let pcie = options.pcie.map(|(generation, lanes)| {
        let generation = PcieGeneration::try_from(generation)?;
        Pcie::new(generation, lanes, PCIE_MAX_PAYLOAD).map(Bus::Pcie)
    });
    let pcie = pcie.transpose().map_err(|why| Error::Usage(format!("--pcie: {why}")))?;
    Ok(pci.into_iter().chain(pcie).collect())
}

fn document(calculator: &Calculator, rows: &[Calculated]) -> Value {
    let path = &calculator.path;
    let bus = |bus: &Bus| json!({ "nominal_bits_per_s": bus.nominal_bits_per_s(), "text": bus.to_string() });
    json!({
        "schema": "hodo.limits/1",
        "line": {
            "rate_bits_per_s": path.line().rate_bits_per_s,
            "mtu": path.line().mtu,
            "vlan_tags": path.line().vlan_tags,
            "path": path.describe(),
            "payload_share": path.payload_share(),
            "payload_bits_per_s": path.payload_bits_per_s(),
        },
        "bus": calculator.buses.iter().map(bus).collect::<Vec<_>>(),
        "limits": rows,
    })
}

fn text(options: &LimitsOptions, calculator: &Calculator, rows: &[Calculated]) -> String {
    let path = &calculator.path;
    let line = path.line();
    let mut text = format!(
        "{} at {}\nfull packets: {} B of payload in {} B on the line, share {:.4}: {}\n",
        path.describe(),
        format_rate(line.rate_bits_per_s),
        path.segment_bytes(),
        line.wire_bytes(line.mtu),
        path.payload_share(),
        format_rate(path.payload_bits_per_s()),
    );
    for bus in &calculator.buses {
        text.push_str(&format!("{bus}\n"));
    }
    if let Some(events) = events(options) {
        text.push_str(&events_text(&events, calculator, rows));
    }
    if let Some(flows) = options.flows {
        text.push_str(&format!("{flows} flows share the line; each row is the share of one flow\n"));
    }
    text.push_str(&format!(
        "\n{:>10}  {:>13}  {:>14}  {:>12}  {:<10}  how\n",
        "size B", "operations/s", "payload", "line time", "binds"
    ));
    rows.iter().for_each(|row| text.push_str(&row_text(row)));
    text
}

fn events_text(events: &Events, calculator: &Calculator, rows: &[Calculated]) -> String {
    let Events { receivers, header_bytes, answer_bytes } = events;
    let noun = if *receivers == 1 { "node" } else { "nodes" };
    let share = |row: &Calculated| {
        let (out, back) = calculator.messages(row.size_bytes);
        format!("{:.1} %", 100.0 * back as f64 / out as f64)
    };
    format!(
        "events to {receivers} {noun}: {header_bytes} B of header on top of each; a token of {answer_bytes} B comes back, \
         {} of what goes out\n",
        rows.iter().map(share).collect::<Vec<_>>().join(", ")
    )
}

/// Returns a row with the bound that binds; the other bounds follow below it.
fn row_text(row: &Calculated) -> String {
    let operations = row.limit.operations_per_s.unwrap_or(f64::INFINITY);
    let figures = format!(
        "{:>10}  {:>13}  {:>14}  {:>12}  {:<10}  ",
        row.size_bytes,
        if operations < 100.0 { format!("{operations:.3}") } else { format!("{operations:.0}") },
        row.limit.payload_bits_per_s.map_or_else(String::new, format_rate),
        format!("{:.2} us", row.wire_ns / 1e3),
        binds(&row.limit),
    );
    let under = format!("\n{:1$}", "", figures.len());
    let formulas = row.limit.formula.split(" <= ").collect::<Vec<_>>().join(&under);
    format!("{figures}{formulas}\n")
}

fn binds(limit: &Limit) -> String {
    // The word that the document has for it.
    serde_json::to_value(limit.binds).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Arguments of the calculator.
#[derive(Debug, Args)]
pub struct LimitsOptions {
    /// Bit rate on the wire.
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = units::line_rate)]
    pub line_rate: f64,
    /// Largest IP packet in bytes.
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub mtu: u32,
    /// Transport of the payload.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,
    /// Each frame carries a VLAN tag.
    #[arg(long)]
    pub vlan: bool,
    /// IPv6 instead of IPv4.
    #[arg(long)]
    pub ipv6: bool,
    /// TCP without the timestamps option.
    #[arg(long)]
    pub no_timestamps: bool,
    /// Bytes of payload per operation [default: 64,1024,1472,8K,32K, or 32000 for a farm].
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// The events of a farm, instead of bare payload.
    #[cfg(feature = "farm")]
    #[command(flatten)]
    pub farm: FarmEvents,
    /// Operations in flight, for the bound of window over round-trip; for a farm, the credits of each node.
    #[arg(long, value_name = "N", requires = "rtt", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub window: Option<u32>,
    /// Round-trip time, as 100us.
    #[arg(long, value_name = "TIME", requires = "window", value_parser = units::span)]
    pub rtt: Option<Duration>,
    /// Processor time of an operation on the busier side, as 8us.
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub cpu_cost: Option<Duration>,
    /// Number of processors of that side that share the work.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cores: u32,
    /// How often they copy each byte of an operation, on top of that cost.
    #[arg(long, value_name = "N", requires = "copy_rate", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub copies: Option<u32>,
    /// Bits per second that one processor copies, as 100G.
    #[arg(long, value_name = "RATE", requires = "copies", value_parser = units::line_rate)]
    pub copy_rate: Option<f64>,
    /// A PCI bus: width in bits / clock in MHz, as 32/33 or 64/66.
    #[arg(long, value_name = "BITS/MHZ", value_parser = pci)]
    pub pci: Option<(u32, f64)>,
    /// A PCI Express link: generation x lanes, as 3x8.
    #[arg(long, value_name = "GENxLANES", value_parser = pcie)]
    pub pcie: Option<(u8, u8)>,
    /// Number of senders that share the line.
    #[arg(long, value_name = "N", group = "several", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub flows: Option<u32>,
    /// Bit rate of each sender's own line before the shared one; for a farm, of each node's line behind it.
    #[arg(long, value_name = "RATE", requires = "several", value_parser = units::line_rate)]
    pub leaf_rate: Option<f64>,
    /// Write the results as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The transport of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

fn pci(text: &str) -> Result<(u32, f64), String> {
    let wrong = || format!("`{text}` is not a PCI bus; write its width and clock as 32/33, 64/66 or 64/133");
    let (bits, megahertz) = text.split_once('/').ok_or_else(wrong)?;
    let bits = bits.parse().ok().filter(|bits| [32, 64].contains(bits)).ok_or_else(wrong)?;
    let megahertz = units::positive(megahertz).ok().filter(|clock| *clock <= 1000.0).ok_or_else(wrong)?;
    Ok((bits, megahertz))
}

fn pcie(text: &str) -> Result<(u8, u8), String> {
    let wrong =
        || format!("`{text}` is not a PCI Express link; write generation and lanes as 3x8 (1..=6, 1 to 32 lanes)");
    let (generation, lanes) = text.split_once('x').ok_or_else(wrong)?;
    let generation = generation.parse().ok().filter(|generation| (1..=6).contains(generation)).ok_or_else(wrong)?;
    let lanes = lanes.parse().ok().filter(|lanes| [1, 2, 4, 8, 12, 16, 32].contains(lanes)).ok_or_else(wrong)?;
    Ok((generation, lanes))
}
