//! `hodo limits`: the calculator alone.

use crate::args::sizes::Sizes;
use crate::args::{self, Transport};
use crate::output_file::write_json;
use crate::{Error, Outcome, terminal};
use hodo_catalog::farm::on_the_stream;
use hodo_measure::limits::{
    Bound, Fan, Ip, Line, Packing, Path, Pci, Pcie, PcieGeneration, Transport as Carrier, format_rate, least,
};
use hodo_measure::{Limit, LimitKind};
use serde_json::{Value, json};

/// The largest payload in bytes on which two ends of a PCI Express link commonly agree.
const PCIE_MAX_PAYLOAD: u32 = 256;

/// Prints the limit of every size, and how it was computed.
pub fn run(limits: &args::Limits) -> Result<Outcome, Error> {
    let path = path(limits)?;
    let bus = bus(limits)?;
    let sizes = limits.sizes.clone().unwrap_or_else(|| Sizes::of(if limits.farm.is_some() { &[EVENT] } else { SIZES }));
    let rows = sizes.values().iter().map(|size| row(limits, &path, &bus, *size)).collect::<Result<Vec<_>, _>>()?;
    let to_stdout = limits.json.as_deref().is_some_and(|file| file.as_os_str() == "-");
    if let Some(file) = &limits.json {
        write_json("--json", file, &document(&path, &bus, &rows))?;
    }
    if !to_stdout {
        terminal::print(&text(limits, &path, &bus, &rows))?;
    }
    Ok(Outcome::Done)
}

/// The default sizes.
const SIZES: &[u32] = &[64, 1024, 1472, 8 << 10, 32 << 10];
/// The event of the published study.
const EVENT: u32 = 32_000;

/// The limit of operations of one size.
struct Row {
    size: u32,
    wire_bytes: f64,
    wire_ns: f64,
    limit: Limit,
}

fn path(limits: &args::Limits) -> Result<Path, Error> {
    let line = Line { rate_bits_per_s: limits.line_rate, mtu: limits.mtu, vlan_tags: u8::from(limits.vlan) };
    path_over(limits, line)
}

fn path_over(limits: &args::Limits, line: Line) -> Result<Path, Error> {
    let ip = if limits.ipv6 { Ip::V6 } else { Ip::V4 };
    let carrier = match limits.transport {
        Transport::Tcp => Carrier::Tcp { timestamps: !limits.no_timestamps },
        Transport::Udp => Carrier::Udp,
    };
    Path::new(line, ip, carrier).map_err(|why| Error::Usage(why.to_string()))
}

fn row(limits: &args::Limits, path: &Path, bus: &[Bus], size: u32) -> Result<Row, Error> {
    if let Some(max) = path.datagram_bytes_max().filter(|max| size > *max) {
        return Err(Error::Usage(format!("--sizes {size}: a UDP datagram has a size in 1..={max} bytes")));
    }
    let (bytes, (out, back)) = (u64::from(size), messages(limits, size));
    let mut bounds = vec![line_bound(limits, path, bytes)?];
    if let (Some(window), Some(rtt)) = (limits.window, limits.rtt) {
        let in_flight = u64::from(window) * u64::from(limits.farm.unwrap_or(1));
        bounds.push(Bound::window(in_flight, rtt.as_secs_f64() * 1e9));
    }
    bounds.extend(processors(limits, (out + back) as f64));
    bounds.extend(bus.iter().map(|bus| bus.bound(out.max(back) as f64)));
    let limit = least(LimitKind::Line, bounds, f64::from(size))
        .ok_or_else(|| Error::Usage(format!("--sizes {size}: nothing bounds this operation")))?;
    let wire_bytes = path.wire_bytes(out, Packing::Own);
    Ok(Row { size, wire_bytes, wire_ns: path.latency_ns(out, 0, 0.0), limit })
}

/// Bytes out and back of an operation on the stream: an event of a farm has a header, and a token that answers it.
fn messages(limits: &args::Limits, size: u32) -> (u64, u64) {
    match limits.farm {
        Some(_) => on_the_stream(u64::from(size), limits.token_data),
        None => (u64::from(size), 0),
    }
}

/// Returns the bound of the processors that the arguments describe, with `bytes` of each operation to copy, if they
/// describe any.
fn processors(limits: &args::Limits, bytes: f64) -> Option<Bound> {
    let cost_ns = limits.cpu_cost.map(|cost| cost.as_secs_f64() * 1e9);
    match (limits.copies.zip(limits.copy_rate), cost_ns) {
        (Some((copies, rate)), cost_ns) => {
            Some(Bound::copies(limits.cores, cost_ns.unwrap_or(0.0), copies, bytes, rate))
        }
        (None, cost_ns) => cost_ns.map(|cost_ns| Bound::cpu(limits.cores, cost_ns)),
    }
}

/// Returns the bound of the line alone, or shared by several senders that have lines of their own before it.
fn line_bound(limits: &args::Limits, path: &Path, bytes: u64) -> Result<Bound, Error> {
    let (out, back) = messages(limits, bytes as u32);
    let cost = path.cost(bytes, out, back, Packing::Stream);
    let trunk = Bound::line(path, &cost);
    let leaf = |rate| path_over(limits, Line { rate_bits_per_s: rate, ..*path.line() });
    if let (Some(leaves), Some(rate)) = (limits.farm, limits.leaf_rate) {
        return Ok(Fan { leaves, leaf: leaf(rate)?, trunk: *path }.bound(&cost, &cost));
    }
    let Some(flows) = limits.flows else { return Ok(trunk) };
    let shared = trunk.shared_by(flows);
    let Some(rate) = limits.leaf_rate else { return Ok(shared) };
    let leaf = Bound::line(&leaf(rate)?, &cost);
    let formula = format!("own line [{}], shared line [{}]", leaf.formula, shared.formula);
    let least = if leaf.operations_per_s < shared.operations_per_s { leaf } else { shared };
    Ok(Bound { formula, ..least })
}

/// A bus between memory and adapter.
enum Bus {
    Pci(Pci),
    Pcie(Pcie),
}

impl Bus {
    fn bound(&self, bytes: f64) -> Bound {
        match self {
            Bus::Pci(pci) => pci.bound(bytes, 0.0),
            Bus::Pcie(pcie) => pcie.bound(bytes, 0.0),
        }
    }

    fn nominal_bits_per_s(&self) -> f64 {
        match self {
            Bus::Pci(pci) => pci.nominal_bits_per_s(),
            Bus::Pcie(pcie) => pcie.nominal_bits_per_s(),
        }
    }

    fn text(&self) -> String {
        let nominal = format_rate(self.nominal_bits_per_s());
        match self {
            Bus::Pci(_) => format!("PCI bus, nominal {nominal}, both directions together"),
            Bus::Pcie(pcie) => format!(
                "PCI Express, {nominal} a direction after encoding, {} in packets of {PCIE_MAX_PAYLOAD} bytes",
                format_rate(pcie.payload_bits_per_s())
            ),
        }
    }
}

fn bus(limits: &args::Limits) -> Result<Vec<Bus>, Error> {
    let mut bus = Vec::new();
    if let Some((bits, megahertz)) = limits.pci {
        let pci = Pci::new(bits, megahertz * 1e6).map_err(|why| Error::Usage(format!("--pci: {why}")))?;
        bus.push(Bus::Pci(pci));
    }
    if let Some((generation, lanes)) = limits.pcie {
        let pcie = PcieGeneration::try_from(generation)
            .and_then(|generation| Pcie::new(generation, lanes, PCIE_MAX_PAYLOAD))
            .map_err(|why| Error::Usage(format!("--pcie: {why}")))?;
        bus.push(Bus::Pcie(pcie));
    }
    Ok(bus)
}

fn document(path: &Path, bus: &[Bus], rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({ "size_bytes": row.size, "wire_bytes": row.wire_bytes, "wire_ns": row.wire_ns, "limit": row.limit })
        })
        .collect();
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
        "bus": bus.iter().map(|bus| json!({
            "nominal_bits_per_s": bus.nominal_bits_per_s(), "text": bus.text()
        })).collect::<Vec<_>>(),
        "limits": rows,
    })
}

fn text(limits: &args::Limits, path: &Path, bus: &[Bus], rows: &[Row]) -> String {
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
    for bus in bus {
        text.push_str(&format!("{}\n", bus.text()));
    }
    if let Some(nodes) = limits.farm {
        text.push_str(&farm_text(limits, nodes, rows));
    }
    if let Some(flows) = limits.flows {
        text.push_str(&format!("{flows} flows share the line; each row is what is left to one of them\n"));
    }
    text.push_str(&format!(
        "\n{:>10}  {:>13}  {:>14}  {:>12}  {:<10}  how\n",
        "size B", "operations/s", "payload", "line time", "binds"
    ));
    for row in rows {
        text.push_str(&row_text(row));
    }
    text
}

fn farm_text(limits: &args::Limits, nodes: u32, rows: &[Row]) -> String {
    let noun = if nodes == 1 { "node" } else { "nodes" };
    let (header, token) = messages(limits, 0);
    let shares = rows.iter().map(|row| format!("{:.1} %", 100.0 * token as f64 / messages(limits, row.size).0 as f64));
    format!(
        "events to {nodes} {noun}: {header} B of header on top of each; a token of {token} B comes back, {} of what goes out\n",
        shares.collect::<Vec<_>>().join(", ")
    )
}

/// Returns a row with the bound that binds; the other bounds follow below it.
fn row_text(row: &Row) -> String {
    let operations = row.limit.operations_per_s.unwrap_or(f64::INFINITY);
    let figures = format!(
        "{:>10}  {:>13}  {:>14}  {:>12}  {:<10}  ",
        row.size,
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
