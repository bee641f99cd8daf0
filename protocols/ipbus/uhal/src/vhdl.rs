//! The address decoder of a table as a VHDL package, for the `ipbus_fabric_sel` of IPbus firmware.
//!
//! | name in the package of the table `board` | |
//! |---|---|
//! | `ipbus_decode_board` | the package |
//! | `ipbus_sel_board(addr)` | the function from 32 address bits to the number of a slave, or `N_SLAVES` |
//! | `ipbus_sel_t`, `IPBUS_SEL_WIDTH` | the result, and its number of bits |
//! | `N_SLV_DAQ_LINK0` | the number of the slave `daq.link0` |
//! | `N_SLAVES` | the number of slaves |
//!
//! Names, types and numbers are those of the packages that uHAL's `gen_ipbus_addr_decode` writes, so that a design can have
//! either. Different on purpose: all bits below the width of the decoder are compared, so that addresses between the slaves
//! select none; there is no time in the text.

use crate::table::{Decoder, Endpoint, Node};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// Names that would make the function `ipbus_sel_…` another name of the package.
const RESERVED: [&str; 2] = ["t", "width"];

/// How a package is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// The name of the table in the names of package and function.
    pub name: &'a str,
    /// The file of the table, for the first comment.
    pub file: &'a str,
    /// How many address bits are compared; those of the decoder if `None`.
    pub width: Option<u8>,
}

/// The reason why there is no package for a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VhdlError {
    /// The `fwinfo` of the table describes no decoder.
    #[error("no address decoder can follow an fwinfo with errors; fix them first")]
    Undecodable,
    /// No node is an endpoint.
    #[error("no node is an endpoint; write fwinfo=\"endpoint;width=N\" for each slave, which has 2^N words")]
    NoEndpoints,
    /// A register is in no endpoint.
    #[error(
        "`{node}` (0x{address:08X}) is in no endpoint, so that no slave would be selected; write fwinfo=\"endpoint;width=N\" \
         there, or for a node around{}",
        if *more == 0 { String::new() } else { format!(" (and {more} more)") }
    )]
    Outside {
        /// Path of the first register.
        node: String,
        /// Address of the first register.
        address: u32,
        /// How many more there are.
        more: usize,
    },
    /// The name of the table cannot be part of the names of package and function.
    #[error("`{name}` cannot be part of a name in VHDL: {why}")]
    BadName {
        /// The name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The path of a slave makes no name of a constant.
    #[error("`{node}` cannot be part of a name in VHDL: {NAMES}; rename the node")]
    BadSlave {
        /// Path of the node.
        node: String,
    },
    /// Two slaves have one name.
    #[error("`{first}` and `{second}` are both `{constant}` in VHDL; rename one of the nodes")]
    SameSlave {
        /// Path of the first one.
        first: String,
        /// Path of the second one.
        second: String,
        /// The name of both.
        constant: String,
    },
    /// The slaves need more address bits than are to be compared.
    #[error("{width} address bits are not enough for the slaves; write {needed} to 32")]
    Narrow {
        /// The requested width.
        width: u8,
        /// Width of the decoder.
        needed: u8,
    },
}

const NAMES: &str = "letters, digits and single underscores between them are";

/// Returns the text of the package.
///
/// # Errors
/// The first reason why there is none.
pub fn package(decoder: &Decoder<'_>, options: &Options<'_>) -> Result<String, VhdlError> {
    let Options { name, file, width } = *options;
    if !is_name(name) {
        return Err(VhdlError::BadName { name: name.into(), why: NAMES });
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(VhdlError::BadName { name: name.into(), why: "the package has another `ipbus_sel_` of this name" });
    }
    check(decoder)?;
    let width = match width {
        Some(width) if !(decoder.width..=32).contains(&width) => {
            return Err(VhdlError::Narrow { width, needed: decoder.width });
        }
        width => width.unwrap_or(decoder.width),
    };
    let slaves = Slave::all(decoder)?;
    Ok(format!("{}\n{}\n{}", head(file, width), declaration(name, &slaves), body(name, &slaves, width)))
}

fn check(decoder: &Decoder<'_>) -> Result<(), VhdlError> {
    if decoder.has_errors() {
        return Err(VhdlError::Undecodable);
    }
    if let Some(first) = decoder.outside.first() {
        let (node, address, more) = (first.path(), first.address(), decoder.outside.len() - 1);
        return Err(VhdlError::Outside { node, address, more });
    }
    let table_is_empty = decoder.root.children().next().is_none();
    if decoder.slaves.is_empty() && !table_is_empty { Err(VhdlError::NoEndpoints) } else { Ok(()) }
}

/// A slave and the constant that is its number.
struct Slave<'t> {
    endpoint: Endpoint<'t>,
    constant: String,
}

impl<'t> Slave<'t> {
    fn all(decoder: &Decoder<'t>) -> Result<Vec<Self>, VhdlError> {
        let mut known: BTreeMap<String, Node<'t>> = BTreeMap::new();
        let mut slaves = Vec::new();
        for endpoint in &decoder.slaves {
            let path = endpoint.node.path();
            let name = path.replace('.', "_");
            if !is_name(&name) {
                return Err(VhdlError::BadSlave { node: path });
            }
            let constant = format!("N_SLV_{}", name.to_ascii_uppercase());
            if let Some(first) = known.insert(constant.clone(), endpoint.node) {
                return Err(VhdlError::SameSlave { first: first.path(), second: path, constant });
            }
            slaves.push(Slave { endpoint: *endpoint, constant });
        }
        Ok(slaves)
    }

    /// Returns the addresses of the slave among the lowest bits of an address; a `-` stands for either bit.
    fn pattern(&self, width: u8) -> String {
        let Endpoint { node, width: own } = self.endpoint;
        let bit = |bit: u8| match node.address() >> bit & 1 {
            _ if bit < own || bit >= width => '-',
            0 => '0',
            _ => '1',
        };
        (0..32).rev().map(bit).collect()
    }

    fn range(&self) -> String {
        format!("0x{:08X} to 0x{:08X}", self.endpoint.node.address(), self.endpoint.last_address())
    }
}

/// Tells whether the text can follow an underscore in a name of VHDL.
fn is_name(text: &str) -> bool {
    text.split('_').all(|part| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_alphanumeric()))
}

fn head(file: &str, width: u8) -> String {
    let plain = |letter: char| if letter == ' ' || letter.is_ascii_graphic() { letter } else { '?' };
    let file: String = file.chars().map(plain).collect();
    let bits = match width {
        32 => "-- All bits of an address are compared.".into(),
        _ => format!(
            "-- The lowest {width} bits of an address are compared: those above are for the decoders around this one."
        ),
    };
    format!(
        "-- Address decoder of the IPbus address table {file}, written by `hodo ipbus vhdl`: change the table, not this file.\n\
         --\n{bits}\n\nlibrary ieee;\nuse ieee.std_logic_1164.all;\nuse ieee.numeric_std.all;\n"
    )
}

fn declaration(name: &str, slaves: &[Slave<'_>]) -> String {
    let mut text = format!("package ipbus_decode_{name} is\n\n");
    for (number, slave) in slaves.iter().enumerate() {
        text += &format!("  constant {}: integer := {number}; -- {}\n", slave.constant, slave.range());
    }
    // The number behind the last slave is one of the values.
    let bits = (usize::BITS - slaves.len().leading_zeros()).max(1);
    text += &format!(
        "  constant N_SLAVES: integer := {};\n\n  \
           constant IPBUS_SEL_WIDTH: positive := {bits};\n  \
           subtype ipbus_sel_t is std_logic_vector(IPBUS_SEL_WIDTH - 1 downto 0);\n\n  \
           -- The number of the slave at an address; N_SLAVES if no slave is there.\n  \
           {};\n\nend package ipbus_decode_{name};\n",
        slaves.len(),
        function(name),
    );
    text
}

fn function(name: &str) -> String {
    format!("function ipbus_sel_{name}(addr: in std_logic_vector(31 downto 0)) return ipbus_sel_t")
}

fn body(name: &str, slaves: &[Slave<'_>], width: u8) -> String {
    let mut text = format!(
        "package body ipbus_decode_{name} is\n\n  {} is\n    variable slave: integer range 0 to N_SLAVES := N_SLAVES;\n  begin\n",
        function(name)
    );
    for (number, slave) in slaves.iter().enumerate() {
        let when = if number == 0 { "if" } else { "elsif" };
        let (pattern, constant) = (slave.pattern(width), &slave.constant);
        text += &format!("    {when} std_match(addr, \"{pattern}\") then\n      slave := {constant};\n");
    }
    if !slaves.is_empty() {
        text += "    end if;\n";
    }
    text += &format!(
        "    return ipbus_sel_t(to_unsigned(slave, IPBUS_SEL_WIDTH));\n  \
           end function ipbus_sel_{name};\n\nend package body ipbus_decode_{name};\n"
    );
    text
}

#[cfg(test)]
mod tests;
