//! Transactions for reading and writing a node.
//!
//! | node | read | write |
//! |---|---|---|
//! | whole register, block, port | read one word | write one word |
//! | masked, `rw` | read, shift down by the mask's lowest bit | RMW bits: A is the mask's complement, B the value shifted up |
//! | masked, `w` | refused | refused: RMW would read |
//!
//! | bulk transfer | transactions | words |
//! |---|---|---|
//! | block | incrementing | up to the size, where that is not 1 |
//! | port | non-incrementing | up to the size, where that is not 1 |
//! | register, also masked | non-incrementing, the mask ignored | exactly 1 |
//! | node without a register | non-incrementing | any |
//!
//! An offset is for blocks only (and for a node without a register, where it is 0 or ends it). All of it is as uHAL 2.8
//! does it on the wire.

use super::{MASK_ALL, Mode, Node};
use alloc::string::String;
use core::fmt;
use hodo_ipbus::wire::operation;
use thiserror::Error;

/// The bits of a register that a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask(pub u32);

impl Mask {
    /// The whole register.
    pub const ALL: Mask = Mask(MASK_ALL);

    /// Returns how far the lowest bit of the mask is from the register's.
    #[must_use]
    pub fn shift(self) -> u32 {
        // A mask without bits has nothing to shift.
        self.0.trailing_zeros() % u32::BITS
    }

    /// Returns the value of a node whose register holds `word`. Holes in the mask stay in it, as zeros.
    #[must_use]
    pub fn value(self, word: u32) -> u32 {
        (word & self.0) >> self.shift()
    }

    /// Returns the bits of the register for a value; `None` if the value has bits that the mask has not.
    #[must_use]
    pub fn bits(self, value: u32) -> Option<u32> {
        let bits = value << self.shift();
        (bits >> self.shift() == value && bits & !self.0 == 0).then_some(bits)
    }

    /// Returns how to write a value into these bits of a register; `None` if the value has bits that the mask has not.
    #[must_use]
    pub fn write(self, address: u32, value: u32) -> Option<WriteWord> {
        if self == Mask::ALL {
            return Some(WriteWord::Word { address, word: value });
        }
        self.bits(value).map(|or| WriteWord::Bits { address, and: !self.0, or })
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}", self.0)
    }
}

/// Read one word, and take the value out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadWord {
    /// Where.
    pub address: u32,
    /// [`Mask::value`] of it is the node's.
    pub mask: Mask,
}

/// Write one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteWord {
    /// All of it.
    Word {
        /// Where.
        address: u32,
        /// The word.
        word: u32,
    },
    /// Some bits, by a read-modify-write-bits transaction: `(word & and) | or`.
    Bits {
        /// Where.
        address: u32,
        /// The term A: the bits to keep.
        and: u32,
        /// The term B: the bits to set.
        or: u32,
    },
}

/// Read or write several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where the first one is.
    pub address: u32,
    /// How many.
    pub words: u32,
    /// Whether each is at the next address, or all are at the same one.
    pub mode: operation::Mode,
}

/// Why a node cannot be used in this way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// It may not be read.
    #[error("node `{node}` may not be read; its permission in the address table is `w`")]
    ReadDenied {
        /// The node.
        node: String,
    },
    /// It may not be written.
    #[error("node `{node}` may not be written; its permission in the address table is `r`")]
    WriteDenied {
        /// The node.
        node: String,
    },
    /// The bits cannot be written without reading the register, which is not permitted.
    #[error(
        "node `{node}` is some bits of a register that may not be read, so they cannot be written alone; write the whole word to its address"
    )]
    MaskedWriteDenied {
        /// The node.
        node: String,
    },
    /// The value has bits that the mask does not.
    #[error("0x{value:X} does not fit node `{node}`, whose mask is {mask}; the largest value is 0x{:X}", mask.value(u32::MAX))]
    OutsideMask {
        /// The node.
        node: String,
        /// The value.
        value: u32,
        /// The mask.
        mask: Mask,
    },
    /// A bulk transfer of other than one word to a register.
    #[error(
        "node `{node}` is one register, and {words} words were requested; for a block, add mode=\"block\" and its size to the address table"
    )]
    SingleRegister {
        /// The node.
        node: String,
        /// The words asked for.
        words: u32,
    },
    /// More words than there are.
    #[error("node `{node}` has {size} word{}, and {words} were requested, including any offset; request fewer", if *size == 1 { "" } else { "s" })]
    TooManyWords {
        /// The node.
        node: String,
        /// The words asked for, the offset included.
        words: u64,
        /// The words there are.
        size: u32,
    },
    /// An offset into what is no block.
    #[error("node `{node}` is {mode}, and only blocks have offsets")]
    NoOffset {
        /// The node.
        node: String,
        /// Mode of the node.
        mode: Mode,
    },
}

impl Node<'_> {
    /// Returns how to read the node's value.
    ///
    /// # Errors
    /// Where it may not be read.
    pub fn read(self) -> Result<ReadWord, AccessError> {
        self.may_read()?;
        Ok(ReadWord { address: self.address(), mask: self.mask() })
    }

    /// Returns how to write a value.
    ///
    /// # Errors
    /// Where it may not be written, nor its register read for a masked one, or the mask lacks bits of the value.
    pub fn write(self, value: u32) -> Result<WriteWord, AccessError> {
        self.may_write()?;
        let (address, mask) = (self.address(), self.mask());
        if mask != Mask::ALL && !self.permission().reads() {
            return Err(AccessError::MaskedWriteDenied { node: self.path() });
        }
        mask.write(address, value).ok_or_else(|| AccessError::OutsideMask { node: self.path(), value, mask })
    }

    /// Returns the address for read-modify-write transactions with terms of one's own; the mask plays no part.
    ///
    /// # Errors
    /// Where it may not be both read and written.
    pub fn modify(self) -> Result<u32, AccessError> {
        self.may_read()?;
        self.may_write()?;
        Ok(self.address())
    }

    /// Returns how to read words from the start.
    ///
    /// # Errors
    /// Where it may not be read, has not as many, or is a register and not exactly one is asked for.
    pub fn read_block(self, words: u32) -> Result<Block, AccessError> {
        let block = self.block(words)?;
        self.may_read().map(|()| block)
    }

    /// Returns how to write words from the start.
    ///
    /// # Errors
    /// As [`Self::read_block`], for writing.
    pub fn write_block(self, words: u32) -> Result<Block, AccessError> {
        let block = self.block(words)?;
        self.may_write().map(|()| block)
    }

    /// Returns how to read words from an offset on.
    ///
    /// # Errors
    /// Where it may not be read, has not as many, or is no block.
    pub fn read_block_at(self, offset: u32, words: u32) -> Result<Block, AccessError> {
        let block = self.block_at(offset, words)?;
        self.may_read().map(|()| block)
    }

    /// Returns how to write words from an offset on.
    ///
    /// # Errors
    /// As [`Self::read_block_at`], for writing.
    pub fn write_block_at(self, offset: u32, words: u32) -> Result<Block, AccessError> {
        let block = self.block_at(offset, words)?;
        self.may_write().map(|()| block)
    }

    fn block(self, words: u32) -> Result<Block, AccessError> {
        if self.mode() == Mode::Single && words != 1 {
            return Err(AccessError::SingleRegister { node: self.path(), words });
        }
        // A size of 1 is that of a port without one: any number of words.
        if self.size() != 1 && words > self.size() {
            return Err(self.too_many(words.into()));
        }
        Ok(Block { address: self.address(), words, mode: self.wire_mode() })
    }

    fn block_at(self, offset: u32, words: u32) -> Result<Block, AccessError> {
        if matches!(self.mode(), Mode::Single | Mode::NonIncremental) {
            return Err(AccessError::NoOffset { node: self.path(), mode: self.mode() });
        }
        let end = u64::from(offset) + u64::from(words);
        if end > self.size().into() {
            return Err(self.too_many(end));
        }
        let address = self.address().wrapping_add(offset);
        Ok(Block { address, words, mode: self.wire_mode() })
    }

    fn wire_mode(self) -> operation::Mode {
        if self.mode() == Mode::Incremental { operation::Mode::Incrementing } else { operation::Mode::Fifo }
    }

    fn too_many(self, words: u64) -> AccessError {
        AccessError::TooManyWords { node: self.path(), words, size: self.size() }
    }

    fn may_read(self) -> Result<(), AccessError> {
        let may = self.permission().reads();
        if may { Ok(()) } else { Err(AccessError::ReadDenied { node: self.path() }) }
    }

    fn may_write(self) -> Result<(), AccessError> {
        let may = self.permission().writes();
        if may { Ok(()) } else { Err(AccessError::WriteDenied { node: self.path() }) }
    }
}

#[cfg(test)]
mod tests;
