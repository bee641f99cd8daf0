use clap::Args;
use hodo_daemon::log::{self, Format, LevelFilter};
use std::path::PathBuf;

/// Options of a daemon's log.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Append the log to this file, and reopen it on SIGHUP [default: standard error].
    #[arg(long, help_heading = "Log", value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log lines of this level and above: off, error, warn, info, debug or trace [default: HODO_LOG, otherwise info].
    #[arg(long, help_heading = "Log", value_name = "LEVEL", value_parser = level)]
    pub log_level: Option<LevelFilter>,
    /// Format of a line: plain, text (with time and level), json or journald [default: journald under the systemd
    /// journal, text in a file, otherwise plain].
    #[arg(long, help_heading = "Log", value_name = "FORMAT", value_parser = format)]
    pub log_format: Option<Format>,
}

impl LogOptions {
    /// Returns `true` if the log is in a file, which SIGHUP opens again.
    pub fn reopens(&self) -> bool {
        self.log.is_some()
    }

    /// Opens the log of a process of this name. `--verbose` is the level debug unless a level is named.
    ///
    /// # Errors
    /// As [`log::open`].
    pub fn open(&self, name: &str, is_verbose: bool) -> Result<(), hodo_daemon::Error> {
        let level = self.log_level.or(is_verbose.then_some(LevelFilter::DEBUG));
        log::open(name, &log::LogOptions { level, format: self.log_format, file: self.log.clone() })
    }
}

fn level(name: &str) -> Result<LevelFilter, String> {
    log::level(name).ok_or_else(|| format!("`{name}` is not one of {}", log::LEVELS.join(", ")))
}

fn format(name: &str) -> Result<Format, String> {
    let names = Format::ALL.map(|(_, name)| name).join(", ");
    Format::named(name).ok_or_else(|| format!("`{name}` is not one of {names}"))
}
