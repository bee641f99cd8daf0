//! `--stream`: a line of JSON for each interval, while a run goes on.
//!
//! Threads that measure leave their snapshots in a queue and never wait: a thread of its own writes the lines. What a slow reader leaves no
//! room for is counted, and is part of the next line.

mod lines;

pub use lines::row_line;

use crate::{Error, terminal};
use clap::Args;
use hodo_catalog::Uri;
use hodo_measure::units;
use hodo_measure::{Measurement, Plan, Snapshot, SnapshotSettings, State, Verdict};
use lines::Lines;
use serde_json::Value;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time from one snapshot to the next, unless `--every` says otherwise.
pub const EVERY: Duration = Duration::from_secs(1);
/// The shortest one.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// Events that wait to be written. Each may hold the times of all operations, 220 KiB.
const QUEUE: usize = 32;
/// How long a reader may take no line at the end of a run.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval at which that is checked.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How a run is followed by programs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct StreamOptions {
    /// Write a line of JSON when a step begins, for each interval while it runs, and when it ends; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub stream: Option<PathBuf>,
    /// Length of an interval of --stream and of the live line, by the clock of the link [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub every: Option<Duration>,
}

impl StreamOptions {
    /// Returns whether the lines go to standard output.
    pub fn takes_stdout(&self) -> bool {
        self.stream.as_deref() == Some(Path::new("-"))
    }

    /// Opens the stream, if there is to be one. `stop` is set if it cannot be written any more.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be written, or a form of the results goes to standard output, too.
    pub fn open(&self, stdout_is_taken: bool, stop: &Arc<AtomicBool>) -> Result<Option<Stream>, Error> {
        let Some(file) = &self.stream else { return Ok(None) };
        if self.takes_stdout() {
            if stdout_is_taken {
                let text = "--stream - and results on standard output would mix; give one of them a file";
                return Err(Error::Usage(text.to_owned()));
            }
            // Not the locked one, which a reader that takes nothing would keep from all other threads.
            let own = io::stdout().as_fd().try_clone_to_owned();
            let own =
                own.map_err(|why| Error::Failed(format!("--stream -: standard output cannot be written: {why}")))?;
            return Stream::start(Box::new(File::from(own)), self.every(), stop).map(Some);
        }
        let cannot = |why| Error::Usage(format!("--stream {}: this file cannot be written: {why}", file.display()));
        Stream::start(Box::new(File::create(file).map_err(cannot)?), self.every(), stop).map(Some)
    }

    /// Returns the length of an interval.
    pub fn every(&self) -> Duration {
        self.every.unwrap_or(EVERY)
    }
}

/// Parses the length of an interval.
fn interval(text: &str) -> Result<Duration, String> {
    let every = units::duration(text)?;
    if every >= EVERY_MIN { Ok(every) } else { Err(format!("{text} is under 10ms; take a longer one")) }
}

/// A thread that writes the lines of a run.
pub struct Stream {
    every: Duration,
    events: SyncSender<Event>,
    ended: Mutex<Receiver<()>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Events that found the queue full.
    skipped: AtomicU64,
    /// Lines written.
    written: AtomicU64,
    /// Why no line can be written any more.
    broken: Mutex<Option<(ErrorKind, String)>>,
}

enum Event {
    Step(Box<Measurement>),
    Snapshot(Snapshot),
    Result(Box<Measurement>),
}

impl Stream {
    fn start(to: Box<dyn Write + Send>, every: Duration, stop: &Arc<AtomicBool>) -> Result<Stream, Error> {
        let (events, queue) = sync_channel(QUEUE);
        let (end, ended) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let (state, stop) = (Arc::clone(&shared), Arc::clone(stop));
        let thread = std::thread::Builder::new().name("stream".to_owned()).spawn(move || {
            if let Err(why) = write(to, &queue, every, &state) {
                *state.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some((why.kind(), why.to_string()));
                stop.store(true, Relaxed);
            }
            // The run may have stopped waiting.
            let _ = end.send(());
        });
        thread.map_err(|why| Error::Failed(format!("--stream: no thread can be started: {why}")))?;
        Ok(Stream { every, events, ended: Mutex::new(ended), shared })
    }

    /// Returns how a run is to be followed.
    pub fn settings(&self) -> SnapshotSettings {
        SnapshotSettings { every: self.every, with_times: true }
    }

    /// Passes on the beginning of a step.
    pub fn begin(&self, link: &Uri, plan: &Plan) {
        let verdict = Verdict { state: State::Interrupted, text: String::new() };
        self.send(Event::Step(Box::new(plan.unmeasured(link.scheme, &link.to_string(), verdict))));
    }

    /// Passes on a snapshot.
    pub fn snapshot(&self, snapshot: Snapshot) {
        self.send(Event::Snapshot(snapshot));
    }

    /// Passes on the result of a step.
    pub fn end(&self, found: &Measurement) {
        self.send(Event::Result(Box::new(found.clone())));
    }

    fn send(&self, event: Event) {
        // A thread that has ended says why at the end of the run.
        if let Err(TrySendError::Full(_)) = self.events.try_send(event) {
            self.shared.skipped.fetch_add(1, Relaxed);
        }
    }

    /// Waits until all lines are written, as long as a reader takes any.
    ///
    /// # Errors
    /// [`Error::Failed`] if not all could be written.
    pub fn finish(self) -> Result<(), Error> {
        let Stream { events, ended, shared, .. } = self;
        drop(events);
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut written, mut waited) = (0, Duration::ZERO);
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_UP) {
            let so_far = shared.written.load(Relaxed);
            waited = if so_far == written { waited + LOOK_UP } else { Duration::ZERO };
            written = so_far;
            if waited >= PATIENCE {
                let text = "--stream: its reader takes no more lines, so the last ones are missing";
                return Err(Error::Failed(text.to_owned()));
            }
        }
        match shared.broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(()),
            Some((ErrorKind::BrokenPipe, _)) => {
                let text = "--stream: its reader has closed it, so the run ended; what had been measured is kept";
                Err(Error::Failed(text.to_owned()))
            }
            Some((_, why)) => Err(Error::Failed(format!("--stream cannot be written: {why}; the run ended with it"))),
        }
    }
}

/// Writes the lines of events as they come, and the last line.
fn write(mut to: impl Write, queue: &Receiver<Event>, every: Duration, shared: &Shared) -> io::Result<()> {
    let mut lines = Lines::new(every);
    let mut print = |line: &Value| -> io::Result<()> {
        let text = terminal::printable(&line.to_string()).into_owned();
        to.write_all(format!("{text}\n").as_bytes())?;
        to.flush()?;
        shared.written.fetch_add(1, Relaxed);
        Ok(())
    };
    for event in queue {
        let line = match event {
            Event::Step(unmeasured) => Some(lines.step(&unmeasured)),
            Event::Snapshot(snapshot) => lines.interval(snapshot),
            Event::Result(found) => Some(lines.result(&found)),
        };
        line.as_ref().map_or(Ok(()), &mut print)?;
    }
    print(&lines::end(shared.written.load(Relaxed), shared.skipped.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// A writer that waits for a permit before each line.
    struct Slow(Receiver<()>, Sender<String>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            self.1.send(String::from_utf8_lossy(bytes).into_owned()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn snapshot(number: u32) -> Snapshot {
        Snapshot { t_s: f64::from(number), operations: 10 * u64::from(number), ..Snapshot::default() }
    }

    #[test]
    fn a_slow_reader_loses_lines_and_no_operations() {
        let ((permit, permits), (to, written)) = (channel(), channel());
        let stop = Arc::new(AtomicBool::new(false));
        let stream = Stream::start(Box::new(Slow(permits, to)), EVERY, &stop).expect("a thread");
        (0..100).for_each(|number| stream.snapshot(snapshot(number)));
        let skipped = stream.shared.skipped.load(Relaxed);
        assert!(skipped >= 100 - QUEUE as u64 - 3, "{skipped}");
        (0..100).for_each(|_| permit.send(()).expect("it waits"));
        // The queue takes the next one once a line of it is written.
        let first: Value = serde_json::from_str(&written.recv().expect("a line")).expect("JSON");
        assert_eq!(first["operations"], 10);
        let mut sum = 10;
        while sum < 10 * (QUEUE as u64 - 2) {
            let line: Value = serde_json::from_str(&written.recv().expect("a line")).expect("JSON");
            sum += line["operations"].as_u64().expect("a count");
        }
        while stream.shared.written.load(Relaxed) < QUEUE as u64 - 2 {}
        stream.snapshot(snapshot(200));
        stream.finish().expect("all is written");
        let rest: Vec<Value> = written.iter().map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        let last = rest.last().expect("the end");
        assert_eq!((&last["event"], &last["skipped"]), (&Value::from("end"), &Value::from(skipped)));
        assert_eq!(sum + rest.iter().filter_map(|line| line["operations"].as_u64()).sum::<u64>(), 2000);
        assert!(!stop.load(Relaxed));
    }

    #[test]
    fn a_reader_that_has_gone_ends_the_run() {
        let ((permit, permits), (to, written)) = (channel(), channel());
        let stop = Arc::new(AtomicBool::new(false));
        let stream = Stream::start(Box::new(Slow(permits, to)), EVERY, &stop).expect("a thread");
        drop((permit, written));
        stream.snapshot(snapshot(1));
        while !stop.load(Relaxed) {}
        assert!(matches!(stream.finish(), Err(Error::Failed(why)) if why.contains("closed it")));
    }
}
