//! The command `hodo`: how fast a link is, how fast it could be, and what binds.

mod address;
#[cfg(any(feature = "ipbus", feature = "farm", feature = "pva", feature = "spacewire"))]
mod announce;
mod bench;
mod command_line;
mod compare;
mod completions;
mod demo;
mod doctor;
mod documents;
mod error;
#[cfg(feature = "farm")]
mod farm;
mod help;
#[cfg(feature = "ipbus")]
mod hub;
mod input;
mod interrupt;
#[cfg(feature = "ipbus")]
mod ipbus;
mod limits;
mod link;
mod logging;
mod manual;
mod output;
#[cfg(feature = "roce")]
mod pingpong;
#[cfg(feature = "pva")]
mod pva;
mod realtime;
mod report;
#[cfg(any(feature = "farm", feature = "pva"))]
mod screen;
mod serve;
mod slips;
mod sockets;
#[cfg(feature = "spacewire")]
mod spacewire;
mod terminal;
mod trace;
mod version;
mod watch;
mod why;

use clap::Parser;
use command_line::{Cli, Command};
use error::{Error, Outcome};
use hodo_daemon::log;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        log::end_at_panics();
    }
    if completions::answer() {
        return ExitCode::SUCCESS;
    }
    let arguments = arguments();
    let ran = match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(cli),
        Err(said) => return usage(&slips::answered(help::by_size(said, &arguments), &arguments)),
    };
    let code = match ran {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            log::last_words(&terminal::printable(&format!("hodo: {error}")));
            error.exit_code()
        }
    };
    log::close();
    code
}

/// Returns the arguments: those that a link of another name stands for come first.
fn arguments() -> Vec<std::ffi::OsString> {
    let given = std::env::args_os();
    #[cfg(feature = "pva")]
    let given = pva::arguments(given);
    given.into_iter().collect()
}

/// Prints a help text, the version, or the mistake in a command line.
fn usage(said: &clap::Error) -> ExitCode {
    let printed = said.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(why) if !said.use_stderr() && why.kind() != io::ErrorKind::BrokenPipe => {
            log::last_words(&format!("hodo: standard output cannot be written: {why}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(said.exit_code() as u8),
    }
}

fn run(cli: Cli) -> Result<Outcome, Error> {
    match cli.command {
        None => demo::run(&cli.demo),
        Some(Command::Bench(bench)) => bench::run(&bench),
        Some(Command::Why(options)) => why::run(&options),
        Some(Command::Watch(options)) => watch::run(&options),
        Some(Command::Serve(serve)) => serve::run(&serve),
        #[cfg(feature = "ipbus")]
        Some(Command::Hub(hub)) => hub::run(&hub),
        #[cfg(feature = "farm")]
        Some(Command::Farm(farm)) => farm::run(&farm),
        #[cfg(feature = "roce")]
        Some(Command::Pingpong(pingpong)) => pingpong::run(&pingpong),
        Some(Command::Doctor(doctor)) => doctor::run(&doctor),
        Some(Command::Limits(limits)) => limits::run(&limits),
        Some(Command::Report(report)) => report::run(&report),
        Some(Command::Compare(compare)) => compare::run(&compare),
        #[cfg(feature = "ipbus")]
        Some(Command::Ipbus(ipbus)) => ipbus::run(&ipbus),
        #[cfg(feature = "pva")]
        Some(Command::Pva(pva)) => pva::run(&pva),
        #[cfg(feature = "spacewire")]
        Some(Command::Spacewire(spacewire)) => spacewire::run(&spacewire),
        Some(Command::Completions(options)) => completions::run(&options),
        Some(Command::Man(options)) => manual::run(&options),
    }
}
