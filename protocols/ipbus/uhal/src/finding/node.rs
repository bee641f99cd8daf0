use super::Place;
use alloc::string::String;
use core::fmt;

/// A problem with an element.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeProblem {
    /// A block without its size.
    NoSize,
    /// A block whose last word is beyond the bus.
    BeyondBus {
        /// The first address, without the parents'.
        address: u32,
        /// Words of the block.
        size: u32,
    },
    /// Nodes in a node that cannot hold any.
    Childless {
        /// The attribute that makes it so.
        because: &'static str,
    },
    /// Nodes lie deeper than the bound.
    TooDeep {
        /// The bound in levels.
        max: usize,
    },
    /// A connection's id is there twice, with different content.
    OtherConnection {
        /// The id.
        id: String,
        /// Where it is first.
        first: Place,
    },
}

impl fmt::Display for NodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeProblem::NoSize => f.write_str("a block needs its size; add size=\"…\", in words"),
            NodeProblem::BeyondBus { address, size: 0 } => {
                write!(f, "the block at 0x{address:08X} has 0 words; write its number of words")
            }
            NodeProblem::BeyondBus { address, size } => {
                write!(f, "{size} words from 0x{address:08X} on reach beyond 0xFFFFFFFF; lower the address or the size")
            }
            NodeProblem::Childless { because } => {
                write!(f, "a node with {because} cannot contain nodes; move them beside it")
            }
            NodeProblem::TooDeep { max } => write!(f, "nodes lie more than {max} levels deep; flatten the tree"),
            NodeProblem::OtherConnection { id, first } => {
                write!(f, "connection `{id}` is already at {first}, with other content; give one of them another id")
            }
        }
    }
}
