use super::Error;
use super::board::{Board, Label, at};
use super::spot::Spot;
use super::words::WORDS_MAX;
use crate::Access;
use hodo_uhal::table::Mode;

/// How the words of a command lie in a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// At consecutive addresses, unless a node says something else.
    Block,
    /// All at one address.
    Fifo,
}

/// Many words of a device: where they are, and how they lie.
pub struct Block {
    /// The name and the first address.
    pub label: Label,
    offset: Option<u32>,
    layout: Layout,
    /// The number of words, if the table has it.
    pub size: Option<u32>,
}

/// The way in which words lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Apart,
    Together,
    Configured,
}

impl Block {
    /// Finds the words that begin at a register, `offset` words after the start of a block, or in the configuration space.
    ///
    /// # Errors
    /// [`Error::Usage`] if these do not go together.
    pub fn of(
        board: &Board,
        spot: &Spot,
        (offset, configuration): (Option<u32>, bool),
        kind: Kind,
    ) -> Result<Self, Error> {
        let wrong = |why: &str| Err(Error::Usage(why.to_owned()));
        let label = board.label(spot)?;
        let layout = if kind == Kind::Fifo { Layout::Together } else { Layout::Apart };
        let span = Block { label, offset, layout, size: None };
        match spot {
            Spot::Bits(..) => wrong("a mask has no effect on many words; write the address alone"),
            Spot::Node(_) if configuration => wrong("the configuration space has no nodes; write an address, as 0x0"),
            Spot::Node(path) => {
                let node = board.node(path)?;
                match (node.mode(), kind) {
                    (Mode::Incremental, Kind::Fifo) => {
                        wrong(&format!("node `{path}` is a block; use `hodo ipbus block`"))
                    }
                    (Mode::Incremental, Kind::Block) => match node.size().saturating_sub(offset.unwrap_or(0)) {
                        0 => wrong(&format!("node `{path}` has {} words; choose an --offset below that", node.size())),
                        size => Ok(Block { size: Some(size.min(WORDS_MAX)), ..span }),
                    },
                    (mode, _) => {
                        Ok(Block { layout: Layout::Together, size: (mode == Mode::Single).then_some(1), ..span })
                    }
                }
            }
            Spot::Address(_) if kind == Kind::Fifo && (configuration || offset.is_some()) => {
                wrong("a FIFO has one address; use --offset and --configuration with `hodo ipbus block`")
            }
            Spot::Address(_) if configuration => Ok(Block { layout: Layout::Configured, ..span }),
            Spot::Address(_) => Ok(span),
        }
    }

    /// Returns the access that reads this many words.
    #[must_use]
    pub fn read<'a>(&self, spot: &'a Spot, words: u32) -> Access<'a, Vec<u32>> {
        match (self.layout, self.offset) {
            (_, Some(offset)) => Access::read_block_at(at(spot), offset, words),
            (Layout::Configured, None) => Access::read_configuration(self.label.address, words),
            (Layout::Together, None) => Access::read_fifo(at(spot), words),
            (Layout::Apart, None) => Access::read_block(at(spot), words),
        }
    }

    /// Returns the access that writes these words.
    #[must_use]
    pub fn write<'a>(&self, spot: &'a Spot, data: Vec<u32>) -> Access<'a, ()> {
        match (self.layout, self.offset) {
            (_, Some(offset)) => Access::write_block_at(at(spot), offset, data),
            (Layout::Configured, None) => Access::write_configuration(self.label.address, data),
            (Layout::Together, None) => Access::write_fifo(at(spot), data),
            (Layout::Apart, None) => Access::write_block(at(spot), data),
        }
    }

    /// Returns the address of a word.
    #[must_use]
    pub fn address(&self, index: usize) -> u32 {
        let first = self.label.address.wrapping_add(self.offset.unwrap_or(0));
        if self.layout == Layout::Together { first } else { first.wrapping_add(index as u32) }
    }

    /// Returns what stands before a line: the address of a word, or its number if all have one address.
    #[must_use]
    pub fn place(&self, index: usize) -> String {
        if self.layout == Layout::Together { format!("{index:>10}") } else { format!("0x{:08X}", self.address(index)) }
    }

    /// Returns the mode, as a document has it.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self.layout {
            Layout::Apart => "incremental",
            Layout::Together => "non-incremental",
            Layout::Configured => "configuration",
        }
    }
}
