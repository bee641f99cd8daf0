//! `hodo ipbus read`: what do registers hold?

use super::board::{DeviceOptions, open};
use super::forms::Forms;
use super::values::{self, Row, ShowOptions};
use crate::{Error, Outcome};
use clap::Args;
use hodo_ipbus_host::At;
use hodo_ipbus_host::registers::{Label, Spot, at};

/// Reads all in one dispatch.
pub fn run(options: &ReadOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.show.forms)?;
    let mut board = open(&options.device)?;
    let labels = options.spots.iter().map(|spot| board.label(spot)).collect::<Result<Vec<Label>, _>>()?;
    let places: Vec<At<'_>> = options.spots.iter().map(at).collect();
    let found = board.read(&places)?;
    let rows: Vec<Row> = labels.into_iter().zip(found).map(|(label, value)| Row { label, value }).collect();
    values::show(&board, &rows, &options.show, &forms, "")
}

/// Registers to read.
#[derive(Debug, Args)]
pub struct ReadOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Nodes by path, or addresses as 0x1000, or some bits as 0x1000/0xF0; all in one dispatch.
    #[arg(value_name = "NODE", required = true)]
    pub spots: Vec<Spot>,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
