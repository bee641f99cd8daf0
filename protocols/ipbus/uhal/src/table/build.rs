//! From files to the tree.
//!
//! Each file is read once, however often it is included. But for its absolute address a node is the same wherever its
//! file is included, so the tree keeps what is declared once, and an address for each place where it lies.

use super::attribute::{Mode, Pairs, keep_first};
use super::load::Loaded;
use super::{Declared, Entry, MASK_ALL, Table};
use crate::finding::{NodeProblem, Problem, Remark};
use crate::table::draft::{DraftNode, Findings};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Builds the tree of one file and all that it includes, without the nodes that have errors.
pub(super) fn build(files: &[Loaded], top: usize, findings: &mut Findings) -> Option<Table> {
    let known = files.iter().map(|file| [None].repeat(file.draft.nodes.len())).collect();
    let mut declarer = Declarer { files, findings, declared: Vec::new(), known };
    let root = declarer.declare(top, 0)?;
    let declared = declarer.declared;
    if !declared[at(root)].id.is_empty() {
        let id = declared[at(root)].id.clone().into();
        findings.add(&files[top].draft.file, place(&files[top].draft.nodes[0]), Remark::RootId { id });
    }
    let told = [false].repeat(declared.len());
    let mut grower = Grower { files, findings, declared: &declared, told, entries: Vec::new() };
    grower.grow(root, None, 0);
    let entries = grower.entries;
    let mut by_name: Vec<u32> = (1..count(entries.len())).collect();
    let name = |index: u32| (entries[at(index)].parent, &*declared[at(entries[at(index)].declared)].id);
    by_name.sort_by(|one, other| name(*one).cmp(&name(*other)));
    let files = files.iter().map(|file| file.draft.file.clone()).collect();
    Some(Table { declared, entries, by_name, files, warnings: Vec::new() })
}

/// Converts an index, which fits because a tree has at most [`super::Limits::nodes`].
fn at(index: u32) -> usize {
    index as usize
}

fn count(nodes: usize) -> u32 {
    u32::try_from(nodes).expect("a tree has at most as many nodes as its limit, which is a u32")
}

fn place(node: &DraftNode) -> (u32, u32) {
    (node.line, node.column)
}

/// Puts modules in their places.
struct Declarer<'a> {
    files: &'a [Loaded],
    findings: &'a mut Findings,
    declared: Vec<Declared>,
    /// Which node of a file has been declared, and as what; nothing for one that has errors.
    known: Vec<Vec<Option<Option<u32>>>>,
}

impl Declarer<'_> {
    fn declare(&mut self, file: usize, node: usize) -> Option<u32> {
        if let Some(known) = self.known[file][node] {
            return known;
        }
        let draft = &self.files[file].draft.nodes[node];
        let declared = if draft.module.is_some() {
            let module = self.files[file].modules.get(&node).and_then(|module| self.declare(*module, 0));
            module.map(|module| self.module(file, node, module))
        } else {
            Some(self.plain(file, node))
        };
        let declared = declared.filter(|declared| self.fits(file, draft, declared)).map(|declared| {
            self.declared.push(declared);
            count(self.declared.len() - 1)
        });
        self.known[file][node] = Some(declared);
        declared
    }

    fn plain(&mut self, file: usize, node: usize) -> Declared {
        let draft = &self.files[file].draft.nodes[node];
        let children: Vec<u32> = draft.children.iter().filter_map(|child| self.declare(file, *child)).collect();
        self.remark_same_ids(&children);
        Declared {
            id: draft.id.clone().unwrap_or_default(),
            address: draft.address,
            mask: draft.mask,
            size: draft.size,
            mode: draft.mode.unwrap_or_else(|| self.mode_of(draft, &children)),
            permission: draft.permission,
            file: count(file),
            line: draft.line,
            column: draft.column,
            class: draft.class.clone(),
            tags: draft.tags.clone(),
            description: draft.description.clone(),
            parameters: draft.parameters.clone(),
            firmware_info: draft.firmware_info.clone(),
            children,
        }
    }

    /// Returns the mode if the file says nothing: a node with anything but masks below it is no register; nor is one
    /// below which there is an error, because nobody knows what it is.
    fn mode_of(&self, draft: &DraftNode, children: &[u32]) -> Mode {
        let known = draft.children.len() == children.len();
        let masked = known && children.iter().all(|child| self.declared[at(*child)].mask != MASK_ALL);
        if masked { Mode::Single } else { Mode::Hierarchical }
    }

    /// Returns a module's outermost node, with the attributes that the including node adds.
    fn module(&mut self, file: usize, node: usize, module: u32) -> Declared {
        let mut declared = self.declared[at(module)].clone();
        let draft = &self.files[file].draft.nodes[node];
        if draft.address & declared.address != 0 {
            let remark = Remark::ModuleBits { address: draft.address, module: declared.address };
            self.findings.add(&self.files[file].draft.file, place(draft), remark);
        }
        declared.address |= draft.address;
        if let Some(id) = &draft.id {
            declared.id.clone_from(id);
        }
        (declared.file, declared.line, declared.column) = (count(file), draft.line, draft.column);
        declared.class.clone_from(&draft.class);
        declared.tags = inside(&declared.tags, &draft.tags);
        declared.description = inside(&declared.description, &draft.description);
        // Of two parameters of one name the outer one counts; of two facts about the firmware the inner one.
        declared.parameters = joined(&draft.parameters, &declared.parameters);
        declared.firmware_info = joined(&declared.firmware_info, &draft.firmware_info);
        declared
    }

    fn fits(&mut self, file: usize, draft: &DraftNode, declared: &Declared) -> bool {
        // uHAL reckons so with a block of 0 words too: at address 0 it is one.
        let last = declared.address.checked_add(declared.size.wrapping_sub(1));
        let fits = declared.mode != Mode::Incremental || last.is_some();
        if !fits {
            let problem = NodeProblem::BeyondBus { address: declared.address, size: declared.size };
            self.findings.add(&self.files[file].draft.file, place(draft), problem);
        }
        fits
    }

    fn remark_same_ids(&mut self, children: &[u32]) {
        let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
        let mut found = Vec::new();
        for child in children {
            let child = &self.declared[at(*child)];
            match lines.get(&*child.id) {
                Some(line) => found.push((child, Remark::SameId { id: child.id.clone().into(), line: *line })),
                None => drop(lines.insert(&child.id, child.line)),
            }
        }
        for (child, remark) in found {
            self.findings.add(&self.files[at(child.file)].draft.file, (child.line, child.column), remark);
        }
    }
}

/// Joins two texts as uHAL keeps both: `inner[outer]`.
fn inside(inner: &str, outer: &str) -> Box<str> {
    match (inner, outer) {
        ("", text) | (text, "") => text.into(),
        _ => alloc::format!("{inner}[{outer}]").into(),
    }
}

fn joined(first: &Pairs, second: &Pairs) -> Pairs {
    let mut pairs: Pairs = first.iter().chain(second).cloned().collect();
    keep_first(&mut pairs);
    pairs
}

/// Gives every node its places in the tree.
struct Grower<'a> {
    files: &'a [Loaded],
    findings: &'a mut Findings,
    declared: &'a [Declared],
    /// Whether each node was remarked on: it is not remarked on in another place again.
    told: Vec<bool>,
    entries: Vec<Entry>,
}

impl Grower<'_> {
    fn grow(&mut self, declared: u32, parent: Option<u32>, above: u32) {
        let node = &self.declared[at(declared)];
        let address = node.address.wrapping_add(above);
        self.remark(declared, above);
        let index = count(self.entries.len());
        self.entries.push(Entry { declared, parent: parent.unwrap_or(0), end: 0, address });
        let mut children = node.children.clone();
        children.sort_by_key(|child| self.declared[at(*child)].address.wrapping_add(address));
        for child in children {
            self.grow(child, Some(index), address);
        }
        self.entries[at(index)].end = count(self.entries.len());
    }

    fn remark(&mut self, declared: u32, above: u32) {
        let node = &self.declared[at(declared)];
        let last = node.address.wrapping_add(node.last_offset());
        let remark = if last.checked_add(above).is_none() {
            Remark::Wraps { address: last.wrapping_add(above) }
        } else if node.address & above != 0 {
            Remark::ParentBits { address: node.address, parent: above }
        } else {
            return;
        };
        if !core::mem::replace(&mut self.told[at(declared)], true) {
            let file = &self.files[at(node.file)].draft.file;
            self.findings.add(file, (node.line, node.column), Problem::from(remark));
        }
    }
}
