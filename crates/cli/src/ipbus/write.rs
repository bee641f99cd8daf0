//! `hodo ipbus write`: write registers.

use super::board::open;
use super::forms::Forms;
use super::values::{self, Row};
use crate::args::{self, units};
use crate::{Error, Outcome};
use hodo_ipbus_host::Access;
use hodo_ipbus_host::registers::{Spot, at};

/// Writes all in one dispatch, and shows what was written.
pub fn run(asked: &args::Write) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&asked.show.forms)?;
    let pairs = pairs(&asked.pairs)?;
    let mut board = open(&asked.device)?;
    let labels = pairs.iter().map(|(spot, _)| board.label(spot)).collect::<Result<Vec<_>, _>>()?;
    let queued = board.queue_all(pairs.iter().map(|(spot, value)| Access::write(at(spot), *value)).collect())?;
    board.dispatch()?;
    let rows: Vec<Row> = labels
        .into_iter()
        .zip(&pairs)
        .zip(queued)
        .map(|((label, (_, value)), queued)| Row { label, value: board.session.take(queued).map(|()| *value) })
        .collect();
    values::show(&board, &rows, &asked.show, &forms, "")
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
