//! The command `hodo`: how fast a link is, how fast it could be, and what binds.

mod announce;
mod args;
mod bench;
mod compare;
mod demo;
mod documents;
mod error;
mod farm;
mod hub;
mod interrupt;
mod ipbus;
mod limits;
mod output_file;
mod report;
mod serve;
mod terminal;
mod trace;

use args::{Cli, Command};
use clap::Parser;
use error::{Error, Outcome};
use hodo_daemon::log;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = match run(cli) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            log::last_words(&format!("hodo: {error}"));
            error.exit_code()
        }
    };
    log::close();
    code
}

fn run(cli: Cli) -> Result<Outcome, Error> {
    match cli.command {
        None => demo::run(&cli.demo),
        Some(Command::Bench(bench)) => bench::run(&bench),
        Some(Command::Serve(serve)) => serve::run(&serve),
        Some(Command::Hub(hub)) => hub::run(&hub),
        Some(Command::Farm(farm)) => farm::run(&farm),
        Some(Command::Limits(limits)) => limits::run(&limits),
        Some(Command::Report(report)) => report::run(&report),
        Some(Command::Compare(compare)) => compare::run(&compare),
        Some(Command::Ipbus(ipbus)) => ipbus::run(&ipbus),
    }
}
