//! `hodo ipbus read`: what do registers hold?

use super::board::open;
use super::forms::Forms;
use super::values::{self, Row};
use crate::{Error, Outcome, args};
use hodo_ipbus_host::At;
use hodo_ipbus_host::registers::{Label, at};

/// Reads all in one dispatch.
pub fn run(asked: &args::Read) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&asked.show.forms)?;
    let mut board = open(&asked.device)?;
    let labels = asked.spots.iter().map(|spot| board.label(spot)).collect::<Result<Vec<Label>, _>>()?;
    let places: Vec<At<'_>> = asked.spots.iter().map(at).collect();
    let found = board.read(&places)?;
    let rows: Vec<Row> = labels.into_iter().zip(found).map(|(label, value)| Row { label, value }).collect();
    values::show(&board, &rows, &asked.show, &forms, "")
}
