use clap::Args;
use hodo_daemon::log::{self, Format, LevelFilter, LogOptions};
use std::path::PathBuf;

/// Options of a daemon's log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct Logged {
    /// Append the log to this file, and open it again at SIGHUP [default: standard error].
    #[arg(long = "log", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Log lines of this level and above: off, error, warn, info, debug or trace [default: HODO_LOG, else info].
    #[arg(long = "log-level", value_name = "LEVEL", value_parser = level)]
    pub level: Option<LevelFilter>,
    /// Format of a line: plain, text (with time and level), json or journald [default: journald for the journal, text in
    /// a file, else plain].
    #[arg(long = "log-format", value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,
}

impl Logged {
    /// Opens the log of a process of this name. `--verbose` is the level debug unless a level is named.
    pub fn open(&self, name: &str, is_verbose: bool) -> Result<(), hodo_daemon::Error> {
        let level = self.level.or(is_verbose.then_some(LevelFilter::DEBUG));
        log::open(name, &LogOptions { level, format: self.format, file: self.file.clone() })
    }
}

fn level(name: &str) -> Result<LevelFilter, String> {
    log::level(name).ok_or_else(|| format!("`{name}` is not one of {}", log::LEVELS.join(", ")))
}

fn format(name: &str) -> Result<Format, String> {
    let names = Format::ALL.map(|(_, name)| name).join(", ");
    Format::named(name).ok_or_else(|| format!("`{name}` is not one of {names}"))
}
