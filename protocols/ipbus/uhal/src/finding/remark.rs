use alloc::string::String;
use core::fmt;

/// A remark: it keeps nothing from being used, and uHAL takes it too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The outermost node has an id, which uHAL puts before every path.
    RootId {
        /// The id.
        id: String,
    },
    /// The node is of a user's class, which only the program that has it can use.
    Class {
        /// The class.
        class: String,
    },
    /// A size without a mode.
    SizeAlone,
    /// A size of no words.
    NoWords,
    /// A mask without a bit.
    EmptyMask,
    /// A node and its parent have bits of the address in common.
    ParentBits {
        /// The node's own address.
        address: u32,
        /// The absolute address of its parent.
        parent: u32,
    },
    /// A module's own address and the one given to it have bits in common.
    ModuleBits {
        /// The address given to it.
        address: u32,
        /// The address of its outermost node.
        module: u32,
    },
    /// A node passes the end of the bus and begins at its start again.
    Wraps {
        /// The absolute address, after it wrapped.
        address: u32,
    },
    /// Two nodes of one name.
    SameId {
        /// The id.
        id: String,
        /// The line of the first of them.
        line: u32,
    },
    /// The rest of the parameters is not taken.
    ParametersEnd {
        /// The rest.
        rest: String,
    },
    /// Firmware information without a type.
    NoFirmwareType,
    /// An element that nothing is made of.
    UnknownElement {
        /// Name of the attribute.
        name: String,
    },
    /// Nodes inside one that is a module's.
    BesideModule,
    /// Bytes that are not UTF-8, without a declaration that says what they are.
    Encoding {
        /// The first of them.
        byte: u8,
    },
    /// A NUL, at which the file ends for uHAL.
    Nul {
        /// How many characters follow it.
        characters: usize,
    },
    /// Text before or behind the outermost element.
    TextOutside {
        /// Beginning of the text.
        found: String,
    },
    /// An element before or behind the one that counts.
    ElementOutside {
        /// Name of the element.
        name: String,
    },
    /// An attribute that its element has already.
    SameAttribute {
        /// Name of the attribute.
        name: String,
    },
    /// From here on errors, or warnings, are not kept.
    More {
        /// How many are.
        max: usize,
    },
    /// A connection that is not complete, and so left out.
    IncompleteConnection {
        /// The attribute that it lacks.
        missing: &'static str,
    },
    /// A file without connections.
    NoConnections {
        /// Name of the outermost element.
        found: String,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::RootId { id } => {
                write!(f, "uHAL puts the outermost node's id `{id}` before every path; remove it")
            }
            Remark::Class { class } => {
                write!(f, "class `{class}` belongs to a user's program; the node is a plain one here")
            }
            Remark::SizeAlone => f.write_str("a size without a mode has no effect; add a mode, or remove it"),
            Remark::NoWords => f.write_str("size 0 is room for no words; write how many there are"),
            Remark::EmptyMask => f.write_str("mask 0 selects no bit; the node reads as 0 and takes nothing but 0"),
            Remark::ParentBits { address, parent } => write!(
                f,
                "address 0x{address:X} has bits in common with its parent's 0x{parent:08X}; the two are added, and firmware \
                 that decodes bits sees another address"
            ),
            Remark::ModuleBits { address, module } => write!(
                f,
                "address 0x{address:X} has bits in common with the module's own 0x{module:X}; the two are joined by OR, not \
                 added"
            ),
            Remark::Wraps { address } => {
                write!(f, "the address passes 0xFFFFFFFF and is 0x{address:08X}; check it and its parents'")
            }
            Remark::SameId { id, line } => write!(
                f,
                "`{id}` is on line {line} already; only the one at the lower address is found by its name: rename one"
            ),
            Remark::ParametersEnd { rest } => {
                write!(f, "parameters are not taken from `{rest}` on; write name=value;… of letters, digits and _ only")
            }
            Remark::NoFirmwareType => f.write_str("fwinfo has no type; write it as `endpoint;width=4`"),
            Remark::UnknownElement { name } => write!(f, "element `{name}` has no effect; nodes are `node`"),
            Remark::BesideModule => {
                f.write_str("nodes inside a node with `module` have no effect; move them into the module's file")
            }
            Remark::Encoding { byte } => {
                write!(f, "byte 0x{byte:02X} is not UTF-8, and is read as ISO-8859-1; save the file as UTF-8")
            }
            Remark::Nul { characters: 0 } => f.write_str("a NUL ends the file; remove it"),
            Remark::Nul { characters } => {
                write!(f, "a NUL ends the file, and {characters} characters behind it are not read; remove it")
            }
            Remark::TextOutside { found } => {
                write!(f, "the text {found:?} outside the outermost element has no effect; remove it")
            }
            Remark::ElementOutside { name } => {
                write!(
                    f,
                    "element `{name}` has no effect here, because the table is another outermost element; remove it"
                )
            }
            Remark::SameAttribute { name } => {
                write!(f, "the element has `{name}` already, and its first value counts; remove this one")
            }
            Remark::More { max } => {
                write!(f, "there are more than {max} of them, and the rest is not listed; fix these first")
            }
            Remark::IncompleteConnection { missing } => {
                write!(f, "the connection is ignored, because it has no `{missing}`; add it")
            }
            Remark::NoConnections { found } => {
                write!(f, "the outermost element is `{found}`, and not `connections`: the file has no connections")
            }
        }
    }
}
