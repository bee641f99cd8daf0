use super::{Declared, Entry, Mask, Mode, Permission, Table};
use crate::finding::Place;
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

/// A node of a table.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    table: &'t Table,
    index: u32,
}

impl<'t> Node<'t> {
    pub(super) fn at(table: &'t Table, index: u32) -> Self {
        Node { table, index }
    }

    pub(super) fn table(self) -> &'t Table {
        self.table
    }

    pub(super) fn index(self) -> u32 {
        self.index
    }

    pub(super) fn entry(self) -> &'t Entry {
        &self.table.entries[self.index as usize]
    }

    pub(super) fn declared(self) -> &'t Declared {
        &self.table.declared[self.entry().declared as usize]
    }

    /// Returns the number in the table, by which [`Table::numbered`] finds the node again.
    #[must_use]
    pub fn number(self) -> u32 {
        self.index
    }

    /// Returns the node's own name.
    #[must_use]
    pub fn id(self) -> &'t str {
        &self.declared().id
    }

    /// Returns the names from below the outermost node to this one, with dots, as [`Table::node`] takes them.
    #[must_use]
    pub fn path(self) -> String {
        match self.parent() {
            None => String::new(),
            Some(parent) if parent.parent().is_none() => self.id().to_owned(),
            Some(parent) => alloc::format!("{}.{}", parent.path(), self.id()),
        }
    }

    /// Returns the absolute address.
    #[must_use]
    pub fn address(self) -> u32 {
        self.entry().address
    }

    /// Returns the last address; the first one if there is only one.
    #[must_use]
    pub fn last_address(self) -> u32 {
        self.address().wrapping_add(self.declared().last_offset())
    }

    /// Returns the bits of the register.
    #[must_use]
    pub fn mask(self) -> Mask {
        Mask(self.declared().mask)
    }

    /// Returns the kind of register at the address.
    #[must_use]
    pub fn mode(self) -> Mode {
        self.declared().mode
    }

    /// Returns the words of a block or port; 1 if the file says nothing.
    #[must_use]
    pub fn size(self) -> u32 {
        self.declared().size
    }

    /// Returns the permission.
    #[must_use]
    pub fn permission(self) -> Permission {
        self.declared().permission
    }

    /// Returns the tags.
    #[must_use]
    pub fn tags(self) -> &'t str {
        &self.declared().tags
    }

    /// Returns the description.
    #[must_use]
    pub fn description(self) -> &'t str {
        &self.declared().description
    }

    /// Returns the class that a user's program is to give the node; `""` mostly.
    #[must_use]
    pub fn class(self) -> &'t str {
        &self.declared().class
    }

    /// Iterates over the parameters, names and values.
    pub fn parameters(self) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.declared().parameters.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Iterates over the names and values for the firmware's address decoder; the first is the `type`.
    pub fn firmware_info(self) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.declared().firmware_info.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the file that the node is in; for a module, the file that includes it.
    #[must_use]
    pub fn file(self) -> &'t str {
        &self.table.files[self.declared().file as usize]
    }

    /// Returns the place in the file.
    #[must_use]
    pub fn place(self) -> Place {
        let Declared { line, column, .. } = *self.declared();
        Place { file: self.file().to_owned(), line, column }
    }

    /// Returns the node around this one; `None` for the outermost.
    #[must_use]
    pub fn parent(self) -> Option<Node<'t>> {
        (self.index != 0).then(|| Node::at(self.table, self.entry().parent))
    }

    /// Iterates over the nodes right below this one, by their address.
    pub fn children(self) -> impl Iterator<Item = Node<'t>> {
        let next = move |index: u32| (index < self.entry().end).then(|| Node::at(self.table, index));
        core::iter::successors(next(self.index + 1), move |child| next(child.entry().end))
    }

    /// Iterates over the nodes below this one, each before those below itself, siblings by their address.
    pub fn iter(self) -> impl Iterator<Item = Node<'t>> {
        (self.index + 1..self.entry().end).map(move |index| Node::at(self.table, index))
    }

    /// Tells whether there is a register, a port or a word of a block at the address.
    pub(super) fn occupies(self) -> bool {
        match self.mode() {
            Mode::Hierarchical => false,
            Mode::Incremental => self.size() > 0,
            Mode::Single | Mode::NonIncremental => true,
        }
    }

    /// Tells whether one of the registers or words has the address.
    pub(super) fn covers(self, address: u32) -> bool {
        self.occupies() && address.wrapping_sub(self.address()) <= self.declared().last_offset()
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.table, other.table) && self.index == other.index
    }
}

impl Eq for Node<'_> {}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.path())
    }
}

/// As uHAL writes it: mode, address or addresses, mask, permission.
impl fmt::Display for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} 0x{:08X}", self.path(), self.mode(), self.address())?;
        if self.mode() == Mode::Incremental {
            write!(f, "-0x{:08X}", self.last_address())?;
        }
        if self.mask() != Mask::ALL {
            write!(f, " mask {}", self.mask())?;
        }
        write!(f, " {}", self.permission())
    }
}
