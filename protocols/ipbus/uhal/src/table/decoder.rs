//! The address decoder of a firmware, as `fwinfo` describes it: which slave has which addresses?
//!
//! | `fwinfo` of a node | meaning |
//! |---|---|
//! | `endpoint;width=N` | a slave, which has the 2^N words from the node's address on; N from 0 to 32 |
//! | `endpoint` around other endpoints | the same, as wide as all in it needs |
//! | `endpoint` around none | the same, of one word |
//! | anything else, or none | no slave: endpoints below the node are slaves of the decoder around it |
//!
//! Endpoints in an endpoint are the slaves of a decoder of its own. The rules are those of uHAL's `gen_ipbus_addr_decode`,
//! which also checks the nodes below each endpoint, those with masks too. Nodes that only group others have no addresses.

use super::draft::{FINDINGS_MAX, Findings};
use super::{Mode, Node, Occupant, Table, check};
use crate::finding::{Finding, FirmwareProblem};
use alloc::borrow::ToOwned;
use alloc::vec::Vec;

/// The address bits of the bus.
const WIDTH_MAX: u8 = 32;

/// The address decoder of a table's outermost node, and the findings on all decoders in the table.
#[derive(Debug, Clone)]
pub struct Decoder<'t> {
    /// The outermost node.
    pub root: Node<'t>,
    /// The outermost endpoints, in the order of their nodes: siblings by their address.
    pub slaves: Vec<Endpoint<'t>>,
    /// Registers that none of the slaves has.
    pub outside: Vec<Node<'t>>,
    /// The address bits that choose among the slaves, and select a word of one: those of the outermost node's `fwinfo`, or
    /// as many as its slaves and the registers outside of them need.
    pub width: u8,
    /// Errors and warnings, in the order of the files and lines.
    pub findings: Vec<Finding>,
}

/// A node whose words are a slave's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint<'t> {
    /// The node.
    pub node: Node<'t>,
    /// The address bits of its words.
    pub width: u8,
}

impl Endpoint<'_> {
    /// Returns the address of the last word; the end of the bus for an endpoint that would pass it.
    #[must_use]
    pub fn last_address(&self) -> u32 {
        self.node.address().saturating_add(self.last_offset())
    }

    fn last_offset(&self) -> u32 {
        u32::try_from((1_u64 << self.width) - 1).unwrap_or(u32::MAX)
    }
}

impl Decoder<'_> {
    /// Tells whether the `fwinfo` of the table describes no decoder.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }
}

impl Table {
    /// Returns the address decoder that the `fwinfo` of the nodes describes.
    #[must_use]
    pub fn decoder(&self) -> Decoder<'_> {
        let mut reader = Reader { findings: Findings::default() };
        let (whole, Inside { endpoints: slaves, registers: outside }) = reader.endpoint(self.root(), 0);
        let outside = if slaves.is_empty() { Vec::new() } else { outside };
        let findings = check::by_place(reader.findings.list);
        Decoder { root: whole.node, slaves, outside, width: whole.width, findings }
    }
}

/// The nodes right inside an endpoint: those inside of an inner one are left out, and bits of a register are part of it.
struct Inside<'t> {
    endpoints: Vec<Endpoint<'t>>,
    registers: Vec<Node<'t>>,
}

struct Reader {
    findings: Findings,
}

impl Reader {
    /// Reads an endpoint, or the outermost node, and all inside of it. `around` is the address of the endpoint around it.
    fn endpoint<'t>(&mut self, node: Node<'t>, around: u32) -> (Endpoint<'t>, Inside<'t>) {
        let inside = self.inside(node);
        let needed = inside.width_from(node.address());
        let is_endpoint = is_endpoint(node);
        let width = if is_endpoint { self.width(node, &inside, needed) } else { None };
        let endpoint = Endpoint { node, width: width.unwrap_or(needed) };
        let words = 1_u64 << endpoint.width;
        if is_endpoint && u64::from(node.address().wrapping_sub(around)) % words != 0 {
            self.add(node, FirmwareProblem::Misaligned { endpoint: Occupant::from(endpoint) });
        }
        if is_endpoint {
            self.fit(endpoint, &inside);
        }
        self.stand_apart(&inside.endpoints);
        (endpoint, inside)
    }

    fn inside<'t>(&mut self, node: Node<'t>) -> Inside<'t> {
        let mut inside = Inside { endpoints: Vec::new(), registers: Vec::new() };
        let around = if is_endpoint(node) { node.address() } else { 0 };
        let mut next = node.index() + 1;
        while let Some(below) = node.table().numbered(next).filter(|_| next < node.entry().end) {
            next += 1;
            if is_endpoint(below) {
                next = below.entry().end;
                inside.endpoints.push(self.endpoint(below, around).0);
            } else if below.occupies() && !below.is_group() && !is_part(below) {
                inside.registers.push(below);
            }
        }
        if inside.endpoints.is_empty() && node.occupies() && !node.is_group() {
            inside.registers.push(node);
        }
        inside
    }

    /// Returns the width that an endpoint says it has; `None` if it says none that can be used.
    fn width(&mut self, node: Node<'_>, inside: &Inside<'_>, needed: u8) -> Option<u8> {
        let Some((_, value)) = node.firmware_info().find(|(name, _)| *name == "width") else {
            // A module may have its width from where it is included.
            if inside.endpoints.is_empty() && node.parent().is_some() {
                let endpoint = Occupant { width: None, ..Occupant::of(node) };
                self.add(node, FirmwareProblem::NoWidth { endpoint, needed });
            }
            return None;
        };
        let digits = !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit());
        let width = value.parse().ok().filter(|width| digits && *width <= WIDTH_MAX);
        if width.is_none() {
            let endpoint = Occupant { width: None, ..Occupant::of(node) };
            self.add(node, FirmwareProblem::BadWidth { endpoint, value: value.to_owned() });
        }
        width
    }

    /// Adds the nodes that end beyond the endpoint. Registers beside inner endpoints count as well.
    fn fit(&mut self, endpoint: Endpoint<'_>, inside: &Inside<'_>) {
        let inner = inside.endpoints.iter().map(|inner| (inner.node, inner.last_address(), Some(*inner)));
        let registers = inside.registers.iter().map(|register| (*register, register.last_address(), None));
        for (node, last, inner) in inner.chain(registers) {
            let last_offset = last.wrapping_sub(endpoint.node.address());
            if last_offset > endpoint.last_offset() && self.findings.errors <= FINDINGS_MAX {
                let inner = inner.map_or_else(|| Occupant::of(node), Occupant::from);
                let (endpoint, needed) = (Occupant::from(endpoint), width_of(last_offset));
                self.add(node, FirmwareProblem::Beyond { endpoint, inner, needed });
            }
        }
    }

    /// Adds the pairs of endpoints that have addresses in common.
    fn stand_apart(&mut self, endpoints: &[Endpoint<'_>]) {
        let mut sorted = endpoints.to_vec();
        sorted.sort_by_key(|endpoint| endpoint.node.address());
        for (index, first) in sorted.iter().enumerate() {
            let last = first.last_address();
            for second in sorted[index + 1..].iter().take_while(|second| second.node.address() <= last) {
                if self.findings.errors > FINDINGS_MAX {
                    return;
                }
                let (place, first, second) = (first.node, Occupant::from(*first), Occupant::from(*second));
                self.add(place, FirmwareProblem::Shared { first, second });
            }
        }
    }

    fn add(&mut self, node: Node<'_>, problem: FirmwareProblem) {
        let declared = node.declared();
        self.findings.add(node.file(), (declared.line, declared.column), problem);
    }
}

impl Inside<'_> {
    /// Returns the least width that covers all from an address on.
    fn width_from(&self, address: u32) -> u8 {
        let endpoints = self.endpoints.iter().map(Endpoint::last_address);
        let registers = self.registers.iter().map(|register| register.last_address());
        endpoints.chain(registers).map(|last| width_of(last.wrapping_sub(address))).max().unwrap_or(0)
    }
}

/// Returns the address bits of words up to an offset.
fn width_of(last_offset: u32) -> u8 {
    u8::try_from(u32::BITS - last_offset.leading_zeros()).unwrap_or(WIDTH_MAX)
}

fn is_endpoint(node: Node<'_>) -> bool {
    node.firmware_info().any(|(name, value)| name == "type" && value == "endpoint")
}

/// Tells whether the node is some bits of the register around it.
fn is_part(node: Node<'_>) -> bool {
    let is_whole =
        |around: Node<'_>| around.mode() == Mode::Single && around.address() == node.address() && !around.is_group();
    node.parent().is_some_and(is_whole)
}

impl From<Endpoint<'_>> for Occupant {
    fn from(endpoint: Endpoint<'_>) -> Self {
        Occupant { last_address: endpoint.last_address(), width: Some(endpoint.width), ..Occupant::of(endpoint.node) }
    }
}
