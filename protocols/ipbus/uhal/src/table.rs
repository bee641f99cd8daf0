//! Address tables: which registers does a device have, and what are they called?
//!
//! | attribute of `<node>` | meaning |
//! |---|---|
//! | `id` | the name; paths join names with dots: `daq.ctrl.enable`. Only the outermost node goes without |
//! | `address` | added to the absolute address of the node around it; for a module, joined by OR with the module's own |
//! | `mask` | the bits of a register; not beside `mode`, `size`, `class` or `module` |
//! | `mode` | `single`; `block`, `incremental`, `inc`; `port`, `non-incremental`, `non-inc` |
//! | `size` | the words of a block (needed) or a port |
//! | `permission` | `r`, `read`; `w`, `write`; `rw`, `wr`, `readwrite`, `writeread` (where it says nothing) |
//! | `module` | `file://…`: another file's nodes, a relative one from this file's folder on; not beside `mode`, `size`, `permission` |
//! | `class` | a class of a user's program, and what it is to be given: has no effect here |
//! | `parameters` | `name=value;name=value`; a module's own are replaced by those given to it |
//! | `tags`, `description` | text; a module's own is kept before the one given to it: `own[given]` |
//! | `fwinfo` | `type;name=value`: for the firmware's address decoder |
//!
//! The rules are those of uHAL 2.8.22, found out by asking it, also where they are odd. What it refuses is an error here,
//! with its place; what it takes in silence though it looks wrong is a warning. Different on purpose: relative patterns in
//! `module` begin at the including file's folder; an attribute that is there twice and text behind the outermost element
//! are errors; an unknown `$VARIABLE` is one; cycles are found.

mod access;
mod attribute;
mod build;
mod check;
mod draft;
mod load;
mod lookup;
mod node;

pub use access::{AccessError, Block, Mask, ReadWord, WriteWord};
pub(crate) use attribute::number;
pub use attribute::{Mode, Permission};
pub use check::{OVERLAPS_MAX, Occupant, Overlap, Report, check};
pub use lookup::NoNode;
pub use node::Node;

use crate::files::Source;
use crate::finding::{FileError, Finding};
use crate::pattern::Pattern;
use alloc::boxed::Box;
use alloc::vec::Vec;
use attribute::Pairs;

/// The mask of a whole register.
const MASK_ALL: u32 = u32::MAX;

/// An address table: a tree of nodes.
#[derive(Debug, Clone)]
pub struct Table {
    declared: Vec<Declared>,
    /// Each node before those below it, siblings by their address.
    entries: Vec<Entry>,
    /// Indices of all entries but the outermost, by parent and id.
    by_name: Vec<u32>,
    files: Vec<Box<str>>,
    warnings: Vec<Finding>,
}

/// A node as declared in a file, modules included; once for all the places where it lies.
#[derive(Debug, Clone)]
struct Declared {
    id: Box<str>,
    address: u32,
    mask: u32,
    size: u32,
    mode: Mode,
    permission: Permission,
    file: u32,
    line: u32,
    column: u32,
    class: Box<str>,
    tags: Box<str>,
    description: Box<str>,
    parameters: Pairs,
    firmware_info: Pairs,
    children: Vec<u32>,
}

impl Declared {
    /// Returns how far the last address is from the first.
    fn last_offset(&self) -> u32 {
        if self.mode == Mode::Incremental { self.size.saturating_sub(1) } else { 0 }
    }
}

/// One place of a node.
#[derive(Debug, Clone, Copy)]
struct Entry {
    declared: u32,
    parent: u32,
    /// The index after the last node below it.
    end: u32,
    address: u32,
}

/// Bounds on a table, which is a user's file and may be anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub file_bytes: usize,
    /// Files.
    pub files: usize,
    /// Levels of nodes, where a module is a level of its own.
    pub depth: usize,
    /// Nodes, those of modules counted each time.
    pub nodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { file_bytes: 16 << 20, files: 1000, depth: 64, nodes: 1_000_000 }
    }
}

impl Table {
    /// Reads a file and those that it includes.
    ///
    /// # Errors
    /// Where one of them has an error; all that was found comes with it.
    pub fn read(file: &str, source: &dyn Source, limits: &Limits) -> Result<Self, FileError> {
        let (table, findings) = check::read(file, source, limits);
        match table {
            Some(mut table) if findings.iter().all(|finding| !finding.is_error()) => {
                table.warnings = findings;
                Ok(table)
            }
            _ => Err(FileError { findings }),
        }
    }

    /// Returns the remarks on the files.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// Iterates over the files that it was read from; the first-named one is the last.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &**file)
    }

    /// Returns the outermost node.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node::at(self, 0)
    }

    /// Returns the node of a path, as `daq.ctrl.enable`; the outermost one for `""`.
    ///
    /// # Errors
    /// Where there is none: how far the path leads, and what is there.
    pub fn node(&self, path: &str) -> Result<Node<'_>, NoNode> {
        self.root().node(path)
    }

    /// Returns the node of a [number](Node::number).
    #[must_use]
    pub fn numbered(&self, number: u32) -> Option<Node<'_>> {
        ((number as usize) < self.entries.len()).then(|| Node::at(self, number))
    }

    /// Tells whether a path leads to a node.
    #[must_use]
    pub fn has_node(&self, path: &str) -> bool {
        self.node(path).is_ok()
    }

    /// Returns the nodes whose whole path fits, by path.
    #[must_use]
    pub fn nodes(&self, pattern: &Pattern) -> Vec<Node<'_>> {
        self.root().nodes(pattern)
    }

    /// Iterates over every node but the outermost, each before those below it, siblings by their address.
    pub fn iter(&self) -> impl Iterator<Item = Node<'_>> {
        self.root().iter()
    }

    /// Iterates over the registers, blocks and ports that an address belongs to.
    pub fn nodes_at(&self, address: u32) -> impl Iterator<Item = Node<'_>> {
        self.iter().filter(move |node| node.covers(address))
    }
}

#[cfg(test)]
mod tests;
