//! `hodo ipbus read`: what do registers hold?

use super::board::{Board, Label, at, failed};
use super::forms::Forms;
use super::values::{self, Row};
use crate::{Error, Outcome, args};
use hodo_catalog::ipbus::{self, Access, At, SessionError};

/// Reads all in one dispatch.
pub fn run(asked: &args::Read) -> Result<Outcome, Error> {
    let forms = Forms::prepare(&asked.show.forms)?;
    let mut board = Board::open(&asked.device)?;
    let labels = asked.spots.iter().map(|spot| board.label(spot)).collect::<Result<Vec<Label>, _>>()?;
    let places: Vec<At<'_>> = asked.spots.iter().map(at).collect();
    let found = read(&mut board, &places)?;
    let rows: Vec<Row> = labels.into_iter().zip(found).map(|(label, value)| Row { label, value }).collect();
    values::show(&board, &rows, &asked.show, &forms, "")
}

/// The values of registers. What a device leaves out, because it met an error earlier in the packet, is read again.
pub fn read(board: &mut Board, places: &[At<'_>]) -> Result<Vec<Result<u32, SessionError>>, Error> {
    let mut found: Vec<Option<Result<u32, SessionError>>> = places.iter().map(|_| None).collect();
    let mut left: Vec<usize> = (0..places.len()).collect();
    while !left.is_empty() {
        let queued = board.queue_all(left.iter().map(|index| Access::read(places[*index])).collect())?;
        board.dispatch()?;
        let before = left.len();
        let mut again = Vec::new();
        for (index, queued) in left.into_iter().zip(queued) {
            let value = board.session.take(queued);
            if value.as_ref().is_err_and(is_left_out) {
                again.push(index);
            }
            found[index] = Some(value);
        }
        // A device that answers nothing else would be asked for ever.
        left = if again.len() < before { again } else { Vec::new() };
    }
    found.into_iter().map(|value| value.ok_or_else(|| failed(SessionError::NotDone))).collect()
}

fn is_left_out(error: &SessionError) -> bool {
    matches!(error, SessionError::Failed(failure) if failure.error == ipbus::Error::LeftOut)
}
