//! `hodo ipbus write`: write registers.

use super::board::{DeviceOptions, open};
use super::forms::Forms;
use super::values::{self, Row, ShowOptions};
use crate::{Error, Outcome};
use clap::Args;
use hodo_ipbus_host::Access;
use hodo_ipbus_host::registers::{Spot, at};
use hodo_measure::units;

/// Writes all in one dispatch, and shows what was written.
pub fn run(options: &WriteOptions) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&options.show.forms)?;
    let pairs = pairs(&options.pairs)?;
    let mut board = open(&options.device)?;
    let labels = pairs.iter().map(|(spot, _)| board.label(spot)).collect::<Result<Vec<_>, _>>()?;
    let queued = board.queue_all(pairs.iter().map(|(spot, value)| Access::write(at(spot), *value)).collect())?;
    board.dispatch()?;
    let rows: Vec<Row> = labels
        .into_iter()
        .zip(&pairs)
        .zip(queued)
        .map(|((label, (_, value)), queued)| Row { label, value: board.session.take(queued).map(|()| *value) })
        .collect();
    values::show(&board, &rows, &options.show, &forms, "")
}

fn pairs(texts: &[String]) -> Result<Vec<(Spot, u32)>, Error> {
    let wrong = |text: &str, why: String| Error::Usage(format!("`{text}`: {why}"));
    let (pairs, rest) = texts.as_chunks::<2>();
    if let Some(spot) = rest.first() {
        return Err(Error::Usage(format!("`{spot}` has no value; write {spot} 0x1")));
    }
    pairs
        .iter()
        .map(|[spot, value]| {
            let parsed = spot.parse().map_err(|why| wrong(spot, why))?;
            Ok((parsed, units::word(value).map_err(|why| wrong(spot, why))?))
        })
        .collect()
}

/// Registers to write.
#[derive(Debug, Args)]
pub struct WriteOptions {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Pairs of a node, by path or address as 0x1000 or some bits as 0x1000/0xF0, and its value; all in one dispatch.
    #[arg(value_names = ["NODE", "VALUE"], required = true, num_args = 2..)]
    pub pairs: Vec<String>,
    /// How the values are shown.
    #[command(flatten)]
    pub show: ShowOptions,
}
