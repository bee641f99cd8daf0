//! `hodo farm`: the event farm, a file for each command.

mod export;
mod verify;

use crate::{Error, Outcome, args};

/// Does what is asked of a farm.
pub fn run(asked: &args::Farm) -> Result<Outcome, Error> {
    match &asked.command {
        args::FarmCommand::Export(export) => export::run(export),
        args::FarmCommand::Verify(verify) => verify::run(verify),
    }
}
