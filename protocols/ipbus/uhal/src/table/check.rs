//! Everything that is wrong with a table, and what of it overlaps.

use super::draft::Findings;
use super::{Limits, MASK_ALL, Mask, Mode, Node, Table, build, load};
use crate::files::Source;
use crate::finding::{Finding, Place};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The most overlaps that are told.
pub const OVERLAPS_MAX: usize = 1000;
/// The most pairs of nodes that are compared; a table that needs more has thousands of nodes at one address.
const PAIRS_MAX: usize = 50_000_000;

/// The findings on a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Nodes that could be understood.
    pub nodes: usize,
    /// Errors and warnings, in the order of the files and lines.
    pub findings: Vec<Finding>,
    /// Nodes that share addresses, of those that could be understood; [`OVERLAPS_MAX`] of them at most.
    pub overlaps: Vec<Overlap>,
}

/// Two nodes that share an address, and bits of it. uHAL takes it, and writes a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The one that begins first.
    pub first: Occupant,
    /// The other one.
    pub second: Occupant,
}

/// A node that takes up addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// Path of the node.
    pub path: String,
    /// Where it is declared.
    pub place: Place,
    /// First address.
    pub address: u32,
    /// Last address.
    pub last_address: u32,
    /// Mask of the node.
    pub mask: Mask,
}

/// Reads a table to the end, whatever is wrong with it.
#[must_use]
pub fn check(file: &str, source: &dyn Source, limits: &Limits) -> Report {
    let (table, findings) = read(file, source, limits);
    let nodes = table.as_ref().map_or(0, |table| table.entries.len());
    let overlaps = table.as_ref().map_or_else(Vec::new, Table::overlaps);
    Report { nodes, findings, overlaps }
}

/// Reads as much of a table as can be understood, and returns all findings.
pub(super) fn read(file: &str, source: &dyn Source, limits: &Limits) -> (Option<Table>, Vec<Finding>) {
    let mut findings = Findings::default();
    let (files, top) = load::load(file, source, limits, &mut findings);
    let table = top.and_then(|top| build::build(&files, top, &mut findings));
    (table, by_place(findings.list))
}

/// Findings by file, in the order in which the files came up, and by line.
fn by_place(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut ranks: BTreeMap<String, usize> = BTreeMap::new();
    for finding in &findings {
        let next = ranks.len();
        ranks.entry(finding.place.file.clone()).or_insert(next);
    }
    findings.sort_by_key(|finding| (ranks[&finding.place.file], finding.place.line, finding.place.column));
    findings
}

impl Report {
    /// Returns how many errors keep the table from being used.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }
}

impl Table {
    /// Nodes that share an address and bits of it, but for a register and its own bits; [`OVERLAPS_MAX`] at most.
    #[must_use]
    pub fn overlaps(&self) -> Vec<Overlap> {
        let mut nodes: Vec<Node<'_>> = self.iter().filter(|node| node.occupies()).collect();
        nodes.sort_by_key(|node| node.address());
        let mut found = Vec::new();
        let mut pairs = 0;
        for (index, first) in nodes.iter().enumerate() {
            for second in nodes[index + 1..].iter().take_while(|node| node.address() <= first.last_address()) {
                if overlap(*first, *second) {
                    found.push(Overlap { first: Occupant::of(*first), second: Occupant::of(*second) });
                }
                pairs += 1;
                if found.len() == OVERLAPS_MAX || pairs == PAIRS_MAX {
                    return found;
                }
            }
        }
        found
    }
}

/// Tells whether two nodes with a common address have common bits of it.
fn overlap(one: Node<'_>, other: Node<'_>) -> bool {
    if one.mode() != Mode::Single || other.mode() != Mode::Single {
        return true;
    }
    let bits_of =
        |register: Node<'_>, node: Node<'_>| register.mask() == Mask(MASK_ALL) && node.parent() == Some(register);
    one.mask().0 & other.mask().0 != 0 && !bits_of(one, other) && !bits_of(other, one)
}

impl Occupant {
    fn of(node: Node<'_>) -> Self {
        Occupant {
            path: node.path(),
            place: node.place(),
            address: node.address(),
            last_address: node.last_address(),
            mask: node.mask(),
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlap { first, second } = self;
        write!(f, "{}: overlap: {first} and {second} of {}", first.place, second.place)?;
        f.write_str(" have bits in common; give one of them another address or mask")
    }
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (0x{:08X}", self.path, self.address)?;
        if self.last_address != self.address {
            write!(f, "-0x{:08X}", self.last_address)?;
        }
        if self.mask != Mask::ALL {
            write!(f, " mask {}", self.mask)?;
        }
        f.write_str(")")
    }
}
