//! `hodo ipbus rmw`: modify a register in one transaction.

use super::board::{DeviceOptions, document, failed, open};
use super::forms::{FormOptions, Forms};
use super::grid::Grid;
use super::values::number;
use crate::{Error, Outcome, terminal};
use clap::{Args, Subcommand};
use hodo_ipbus_host::Access;
use hodo_ipbus_host::registers::{Spot, at};
use hodo_ipbus_host::table::Mask;
use hodo_ipbus_host::wire::Version;
use hodo_measure::units;
use serde_json::json;

/// Does it, and shows the register before and after, as far as the protocol's version tells.
pub fn run(options: &Rmw) -> Result<Outcome, Error> {
    match options {
        Rmw::Bits(RmwBitsOptions { device, spot, and, or, decimal, forms }) => {
            let change = Change {
                access: Access::rmw_bits(at(spot), *and, *or),
                after: &|before| before & and | or,
                before: &|_| None,
            };
            modify(device, spot, change, *decimal, forms)
        }
        Rmw::Sum(RmwSumOptions { device, spot, addend, decimal, forms }) => {
            let change = Change {
                access: Access::rmw_sum(at(spot), *addend),
                after: &|before| before.wrapping_add(*addend),
                before: &|after| Some(after.wrapping_sub(*addend)),
            };
            modify(device, spot, change, *decimal, forms)
        }
    }
}

/// A read-modify-write access, with the functions that compute the word after from the one before, and vice versa.
struct Change<'a> {
    access: Access<'a, u32>,
    after: &'a dyn Fn(u32) -> u32,
    before: &'a dyn Fn(u32) -> Option<u32>,
}

fn modify(
    device: &DeviceOptions,
    spot: &Spot,
    change: Change<'_>,
    decimal: bool,
    forms: &FormOptions,
) -> Result<Outcome, Error> {
    if let Spot::Bits(..) = spot {
        return Err(Error::Usage("a mask has no effect on read-modify-write; write the address alone".to_owned()));
    }
    let forms = Forms::prepare(forms)?;
    let mut board = open(device)?;
    let label = board.label(spot)?;
    if label.mask != Mask::ALL {
        return Err(Error::Usage(format!(
            "node `{}` covers the bits {} of a register, and read-modify-write changes the whole register; name the \
             register's node, or its address 0x{:08X}",
            label.node, label.mask, label.address
        )));
    }
    let told = board.session.call(change.access).map_err(failed)?;
    let (before, after) = match board.session.version() {
        Version::V2_0 => (Some(told), (change.after)(told)),
        Version::V1_3 => ((change.before)(told), told),
    };
    let text = |value: Option<u32>| value.map_or_else(String::new, |value| number(value, Mask::ALL, decimal));
    let mut grid = Grid::new(&["device", "node", "address", "before", "after"]);
    let address = format!("0x{:08X}", label.address);
    grid.row([board.called().to_owned(), label.node.clone(), address, text(before), text(Some(after))]);
    forms.write(
        || grid.tsv(),
        || {
            json!({
                "schema": "hodo.ipbus-rmw/1",
                "device": document(&board),
                "node": label.node_or_null(),
                "address": label.address,
                "before": before,
                "after": after,
            })
        },
    )?;
    terminal::tell(&grid.without("device").table(), forms.take_stdout())?;
    Ok(Outcome::Done)
}

/// How a register is modified.
#[derive(Debug, Subcommand)]
pub enum Rmw {
    /// Keep the bits in AND, and set those in OR.
    Bits(RmwBitsOptions),
    /// Add to a register, modulo 2^32.
    Sum(RmwSumOptions),
}

/// The terms of a read-modify-write-bits transaction.
#[derive(Debug, Args)]
pub struct RmwBitsOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// A node by its path, or an address as 0x1000: a whole register.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// Bits to keep.
    #[arg(value_name = "AND", value_parser = units::word)]
    pub and: u32,
    /// Bits to set.
    #[arg(value_name = "OR", value_parser = units::word)]
    pub or: u32,
    /// Show values as decimal numbers.
    #[arg(long, help_heading = "Results")]
    pub decimal: bool,
    /// Where the result goes.
    #[command(flatten)]
    pub forms: FormOptions,
}

/// The term of a read-modify-write-sum transaction.
#[derive(Debug, Args)]
pub struct RmwSumOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// A node by its path, or an address as 0x1000: a whole register.
    #[arg(value_name = "NODE")]
    pub spot: Spot,
    /// Number to add; it may be negative.
    #[arg(value_name = "ADDEND", value_parser = units::signed_word, allow_hyphen_values = true)]
    pub addend: u32,
    /// Show values as decimal numbers.
    #[arg(long, help_heading = "Results")]
    pub decimal: bool,
    /// Where the result goes.
    #[command(flatten)]
    pub forms: FormOptions,
}
