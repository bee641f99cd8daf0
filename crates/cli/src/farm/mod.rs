//! `hodo farm`: the event farm.

mod run;

use crate::args::{Farm, FarmCommand};
use crate::{Error, Outcome};

/// Does what a farm is asked.
pub fn run(farm: &Farm) -> Result<Outcome, Error> {
    match &farm.command {
        FarmCommand::Run(asked) => run::run(asked),
    }
}
