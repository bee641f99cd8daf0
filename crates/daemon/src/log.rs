//! The log of a process: every event of `tracing` becomes a line, which a thread of its own writes.
//!
//! Logging never waits and never panics. A line that cannot be queued or written is lost and counted; `/metrics` shows the
//! count as `hodo_log_lines_lost_total`.

mod event;
mod format;
mod outlet;
mod sink;
#[cfg(test)]
mod tests;

pub use format::Format;
pub use tracing::level_filters::LevelFilter;

use crate::{Error, Exposition};
use event::Subscriber;
use outlet::Outlet;
use sink::Sink;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The longest wait for lines that are still queued when the process ends.
const DRAIN: Duration = Duration::from_millis(200);
/// The longest wait for text on standard output, which may be a pipe that nobody reads.
const PATIENCE: Duration = Duration::from_secs(2);
/// The level that applies without another.
const LEVEL: LevelFilter = LevelFilter::INFO;
/// The environment variable that names the level.
const LEVEL_FROM: &str = "HODO_LOG";
/// The levels by name, the quietest first.
pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How a process logs.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// The least important lines that are written; without it, the level that `HODO_LOG` names, else `info`.
    pub level: Option<LevelFilter>,
    /// The format; without it, journald's where the journal reads standard error, `plain` on another standard error, and
    /// `text` in a file.
    pub format: Option<Format>,
    /// The file that lines are appended to, opened again after SIGHUP; without it, standard error.
    pub file: Option<PathBuf>,
}

struct Log {
    outlet: Arc<Outlet>,
    format: Format,
    in_file: bool,
}

static LOG: OnceLock<Log> = OnceLock::new();
static STDOUT: OnceLock<Outlet> = OnceLock::new();
static PANICS_END: AtomicBool = AtomicBool::new(false);

/// Starts the log of this process, whose plain lines begin with `name`. A second call changes nothing.
///
/// # Errors
/// [`Error::Log`] if the file cannot be opened, standard error cannot be duplicated or SIGHUP cannot be caught;
/// [`Error::LogLevel`] if `HODO_LOG` names no level.
pub fn open(name: &str, options: &LogOptions) -> Result<(), Error> {
    let level = match options.level {
        Some(level) => level,
        None => from_environment()?.unwrap_or(LEVEL),
    };
    let (sink, format) = match &options.file {
        Some(path) => (Sink::file(path)?, Format::Text),
        None => (Sink::stderr()?, if sink::is_journal() { Format::Journald } else { Format::Plain }),
    };
    let format = options.format.unwrap_or(format);
    let outlet = Arc::new(Outlet::new(sink, Some((name.to_owned(), format))));
    let log = Log { outlet: Arc::clone(&outlet), format, in_file: options.file.is_some() };
    if LOG.set(log).is_ok() {
        let subscriber = Subscriber::new(name, level, format, outlet);
        // Only a process that has another log already refuses, as a test does.
        let _ = tracing::subscriber::set_global_default(subscriber);
        std::panic::set_hook(Box::new(|panic| {
            tracing::error!("{panic}");
            if PANICS_END.load(Relaxed) {
                close();
                std::process::abort();
            }
        }));
    }
    Ok(())
}

/// Ends the process when any of its threads panics, as a build does that checks what it computes: a test then sees it.
pub fn end_at_panics() {
    PANICS_END.store(true, Relaxed);
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// Waits until the queued lines are written, for 200 ms at most.
pub fn close() {
    let outlets = STDOUT.get().into_iter().chain(LOG.get().map(|log| &*log.outlet));
    outlets.for_each(|outlet| outlet.drain(DRAIN));
}

/// Prints text on standard output. A reader that has gone away is no error; for one that does not read, the text waits
/// in a queue, and is lost if that is full.
///
/// # Errors
/// [`Error::Output`] if the system refuses the text.
pub fn print(text: &str) -> Result<(), Error> {
    match stdout().and_then(|outlet| outlet.print(text.as_bytes(), PATIENCE)) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output { why: why.to_string() }),
        _ => Ok(()),
    }
}

fn stdout() -> io::Result<&'static Outlet> {
    if let Some(outlet) = STDOUT.get() {
        return Ok(outlet);
    }
    let outlet = Outlet::new(Sink::stdout()?, None);
    Ok(STDOUT.get_or_init(|| outlet))
}

/// Queues text for standard output without waiting; it is lost if the queue is full or the system refuses it.
pub fn queue(text: &str) {
    if let Ok(outlet) = stdout() {
        outlet.send(text.as_bytes().to_owned());
    }
}

/// Logs a line of another process at the level info; in plain format as it is.
pub fn relay(line: &str) {
    match LOG.get() {
        Some(log) if log.format == Format::Plain && tracing::enabled!(tracing::Level::INFO) => {
            log.outlet.send(format!("{line}\n").into_bytes());
        }
        _ => tracing::info!("{line}"),
    }
}

/// Prints a line of a daemon on standard output, such as where it listens. If the system refuses it, the log says so and the
/// daemon goes on.
pub fn announce(text: &str) {
    if let Err(why) = print(text) {
        tracing::warn!("{why}");
    }
}

/// Says why the process fails: on standard error, and in the log if that is in a file or not plain.
pub fn last_words(text: &str) {
    let line = format!("{text}\n");
    let Some(log) = LOG.get() else {
        // Nobody is left to be told.
        let _ = Sink::stderr().map(|mut sink| sink.write(line.as_bytes()));
        return;
    };
    if log.in_file || log.format != Format::Plain {
        tracing::error!("{text}");
    }
    if log.in_file {
        let _ = Sink::stderr().map(|sink| Outlet::new(sink, None).print(line.as_bytes(), DRAIN));
    } else if log.format == Format::Plain {
        log.outlet.send(line.into_bytes());
    }
}

/// Writes the counters of the log, if the process has one.
pub(crate) fn tell(exposition: &mut Exposition) {
    let Some(log) = LOG.get() else { return };
    let (written, lost) = (log.outlet.counts().written.load(Relaxed), log.outlet.counts().lost.load(Relaxed));
    exposition.counter("hodo_log_lines_total", "Lines of the log that were written.", &[], written);
    let help = "Lines of the log that were lost: the queue or the disk was full, or nobody read them.";
    exposition.counter("hodo_log_lines_lost_total", help, &[], lost);
}

fn from_environment() -> Result<Option<LevelFilter>, Error> {
    match std::env::var_os(LEVEL_FROM) {
        Some(name) if !name.is_empty() => {
            let name = name.to_string_lossy().into_owned();
            level(&name).map(Some).ok_or(Error::LogLevel { from: LEVEL_FROM, name })
        }
        _ => Ok(None),
    }
}

/// Returns the level of this name, or `None` if it is not one of [`LEVELS`].
#[must_use]
pub fn level(name: &str) -> Option<LevelFilter> {
    LEVELS.contains(&name).then(|| name.parse().ok()).flatten()
}
