//! Accesses to a register, a block or a port.

use super::SessionError;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Command, Data};
use hodo_uhal::table::{Block, Mask, Node, ReadWord, Table, WriteWord};
use std::marker::PhantomData;
use std::sync::Arc;

/// Where a register is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At<'a> {
    /// At this address.
    Address(u32),
    /// Some bits of the register at this address.
    Bits(u32, Mask),
    /// Where the address table has the node of this path.
    Node(&'a str),
}

impl From<u32> for At<'_> {
    fn from(address: u32) -> Self {
        At::Address(address)
    }
}

impl<'a> From<&'a str> for At<'a> {
    fn from(path: &'a str) -> Self {
        At::Node(path)
    }
}

/// An access to a register, a block or a port, which returns a `T`. It takes one transaction, or several for many
/// words.
#[derive(Debug, Clone)]
pub struct Access<'a, T> {
    at: At<'a>,
    what: What,
    brings: PhantomData<T>,
}

#[derive(Debug, Clone)]
enum What {
    Read,
    Write(u32),
    ReadBlock { words: u32, from: Begin, into: Vec<u32> },
    WriteBlock { data: Arc<[u32]>, from: Begin },
    RmwBits { and: u32, or: u32 },
    RmwSum { addend: u32 },
}

/// Where a block begins, and how its words lie.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// The start of the block. The mode applies to an address; a node has its own mode.
    Start(Mode),
    /// The number of words after the start of the block.
    Offset(u32),
}

impl<'a> Access<'a, u32> {
    /// Reads one register. The value of a node is that of its bits.
    pub fn read(at: impl Into<At<'a>>) -> Self {
        Access::new(at, What::Read)
    }

    /// Sets a register to `register & and | or`, whatever the node's bits. The access returns the register as it was
    /// before, or with version 1.3 as it is after.
    pub fn rmw_bits(at: impl Into<At<'a>>, and: u32, or: u32) -> Self {
        Access::new(at, What::RmwBits { and, or })
    }

    /// Adds to a register, with wrap-around. The access returns the same value as [`Self::rmw_bits`].
    pub fn rmw_sum(at: impl Into<At<'a>>, addend: u32) -> Self {
        Access::new(at, What::RmwSum { addend })
    }
}

impl<'a> Access<'a, Vec<u32>> {
    /// Reads words from a node's start, or from consecutive addresses.
    pub fn read_block(at: impl Into<At<'a>>, words: u32) -> Self {
        Access::new(at, What::ReadBlock { words, from: Begin::Start(Mode::Incrementing), into: Vec::new() })
    }

    /// Reads words from an offset in a block.
    pub fn read_block_at(at: impl Into<At<'a>>, offset: u32, words: u32) -> Self {
        Access::new(at, What::ReadBlock { words, from: Begin::Offset(offset), into: Vec::new() })
    }

    /// Reads words that all come from one address; the words of a node are read as by [`Self::read_block`].
    pub fn read_fifo(at: impl Into<At<'a>>, words: u32) -> Self {
        Access::new(at, What::ReadBlock { words, from: Begin::Start(Mode::Fifo), into: Vec::new() })
    }

    /// Reads words of the configuration space, in which there are no nodes.
    #[must_use]
    pub fn read_configuration(address: u32, words: u32) -> Self {
        Access::new(address, What::ReadBlock { words, from: Begin::Start(Mode::Configuration), into: Vec::new() })
    }

    /// Returns the access with a vector whose capacity is reused for the words.
    #[must_use]
    pub fn into(mut self, room: Vec<u32>) -> Self {
        if let What::ReadBlock { into, .. } = &mut self.what {
            *into = room;
        }
        self
    }
}

impl<'a> Access<'a, ()> {
    /// Writes one register. If a node is some bits of it, the others stay as they are.
    pub fn write(at: impl Into<At<'a>>, value: u32) -> Self {
        Access::new(at, What::Write(value))
    }

    /// Writes words from a node's start on, or to consecutive addresses.
    pub fn write_block(at: impl Into<At<'a>>, data: impl Into<Arc<[u32]>>) -> Self {
        Access::new(at, What::WriteBlock { data: data.into(), from: Begin::Start(Mode::Incrementing) })
    }

    /// Writes words at an offset in a block.
    pub fn write_block_at(at: impl Into<At<'a>>, offset: u32, data: impl Into<Arc<[u32]>>) -> Self {
        Access::new(at, What::WriteBlock { data: data.into(), from: Begin::Offset(offset) })
    }

    /// Writes words that all go to one address; the words of a node are written as by [`Self::write_block`].
    pub fn write_fifo(at: impl Into<At<'a>>, data: impl Into<Arc<[u32]>>) -> Self {
        Access::new(at, What::WriteBlock { data: data.into(), from: Begin::Start(Mode::Fifo) })
    }

    /// Writes words of the configuration space, in which there are no nodes.
    pub fn write_configuration(address: u32, data: impl Into<Arc<[u32]>>) -> Self {
        Access::new(address, What::WriteBlock { data: data.into(), from: Begin::Start(Mode::Configuration) })
    }
}

/// The command that an access puts on the bus.
pub(super) struct Resolved {
    pub(super) command: Command,
    /// The number of the node.
    pub(super) node: Option<u32>,
    /// The bits of the returned word.
    pub(super) mask: Mask,
    pub(super) action: Action,
}

/// The action of an access, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads, modifies and writes.
    Modify,
}

impl<'a, T> Access<'a, T> {
    fn new(at: impl Into<At<'a>>, what: What) -> Self {
        Access { at: at.into(), what, brings: PhantomData }
    }

    /// Resolves the access to a command with this tag.
    pub(super) fn resolve(self, tag: u64, table: Option<&Table>) -> Result<Resolved, SessionError> {
        let node = match self.at {
            At::Node(path) => {
                let table = table.ok_or_else(|| SessionError::NoTable { node: path.to_owned() })?;
                Some(table.node(path).map_err(SessionError::NoNode)?)
            }
            _ => None,
        };
        let action = self.what.action();
        let (command, mask) = match node {
            Some(node) => self.what.of_node(tag, node)?,
            None => self.what.of_address(tag, self.at)?,
        };
        Ok(Resolved { command, node: node.map(Node::number), mask, action })
    }
}

impl What {
    fn action(&self) -> Action {
        match self {
            What::Read | What::ReadBlock { .. } => Action::Read,
            What::Write(_) | What::WriteBlock { .. } => Action::Write,
            What::RmwBits { .. } | What::RmwSum { .. } => Action::Modify,
        }
    }

    fn of_node(self, tag: u64, node: Node<'_>) -> Result<(Command, Mask), SessionError> {
        Ok(match self {
            What::Read => {
                let ReadWord { address, mask } = node.read()?;
                (Command::Read { tag, address }, mask)
            }
            What::Write(value) => (write(tag, node.write(value)?), Mask::ALL),
            What::ReadBlock { words, from, into } => {
                let block = match from {
                    Begin::Start(_) => node.read_block(words)?,
                    Begin::Offset(offset) => node.read_block_at(offset, words)?,
                };
                (read_block(tag, block, into), Mask::ALL)
            }
            What::WriteBlock { data, from } => {
                let words = count(&data)?;
                let block = match from {
                    Begin::Start(_) => node.write_block(words)?,
                    Begin::Offset(offset) => node.write_block_at(offset, words)?,
                };
                (write_block(tag, block, data), Mask::ALL)
            }
            What::RmwBits { and, or } => (Command::RmwBits { tag, address: node.modify()?, and, or }, Mask::ALL),
            What::RmwSum { addend } => (Command::RmwSum { tag, address: node.modify()?, addend }, Mask::ALL),
        })
    }

    fn of_address(self, tag: u64, at: At<'_>) -> Result<(Command, Mask), SessionError> {
        let (address, mask) = match at {
            At::Bits(address, mask) => (address, mask),
            At::Address(address) => (address, Mask::ALL),
            At::Node(path) => return Err(SessionError::NoTable { node: path.to_owned() }),
        };
        let block = |from, words| match from {
            Begin::Start(mode) => Block { address, words, mode },
            Begin::Offset(offset) => Block { address: address.wrapping_add(offset), words, mode: Mode::Incrementing },
        };
        Ok(match self {
            What::Read => (Command::Read { tag, address }, mask),
            What::Write(value) => {
                let word = mask.write(address, value).ok_or(SessionError::OutsideMask { address, value, mask })?;
                (write(tag, word), Mask::ALL)
            }
            What::ReadBlock { words, from, into } => (read_block(tag, block(from, words), into), Mask::ALL),
            What::WriteBlock { data, from } => (write_block(tag, block(from, count(&data)?), data), Mask::ALL),
            What::RmwBits { and, or } => (Command::RmwBits { tag, address, and, or }, Mask::ALL),
            What::RmwSum { addend } => (Command::RmwSum { tag, address, addend }, Mask::ALL),
        })
    }
}

fn count(data: &[u32]) -> Result<u32, SessionError> {
    u32::try_from(data.len()).map_err(|_| SessionError::TooManyWords { words: data.len() })
}

fn write(tag: u64, word: WriteWord) -> Command {
    match word {
        WriteWord::Word { address, word } => Command::Write { tag, address, word },
        WriteWord::Bits { address, and, or } => Command::RmwBits { tag, address, and, or },
    }
}

fn read_block(tag: u64, Block { address, words, mode }: Block, into: Vec<u32>) -> Command {
    Command::ReadBlock { tag, mode, address, words, into }
}

fn write_block(tag: u64, Block { address, mode, .. }: Block, data: Arc<[u32]>) -> Command {
    Command::WriteBlock { tag, mode, address, data: data.into() }
}

/// The result of an access.
pub trait AccessResult: sealed::Sealed + Sized {
    /// Converts the data that the client received.
    #[doc(hidden)]
    fn of(data: Data, mask: Mask) -> Self;
}

impl AccessResult for u32 {
    fn of(data: Data, mask: Mask) -> Self {
        if let Data::Word(word) = data { mask.value(word) } else { 0 }
    }
}

impl AccessResult for Vec<u32> {
    fn of(data: Data, _mask: Mask) -> Self {
        if let Data::Block(words) = data { words } else { Vec::new() }
    }
}

impl AccessResult for () {
    fn of(_data: Data, _mask: Mask) {}
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for Vec<u32> {}
    impl Sealed for () {}
}
