//! The pages of a controller, and the thread that follows its progress.

use super::control::OrderDispatch;
use super::snapshot::ControllerSnapshot;
use super::status::{self, Moment, Status};
use super::timeline::Timeline;
use super::{metrics, shares};
use hodo_daemon::{Control, Daemon, Error, Options, Reply};
use hodo_farm::Policy;
use hodo_io::{Bell, Snapshot};
use std::sync::Arc;
use std::time::Duration;

/// How long a page waits for the threads of a controller.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The snapshots of a controller's threads.
pub type Snapshots = Vec<Arc<Snapshot<ControllerSnapshot>>>;

/// Reads the status of a controller in this process.
#[derive(Clone)]
pub struct StatusReader {
    threads: Arc<Snapshots>,
    policy: Policy,
    timeline: Arc<Timeline>,
}

impl StatusReader {
    pub(super) fn new(threads: usize, policy: Policy, bell: &Bell) -> Self {
        let threads = Arc::new((0..threads).map(|_| Arc::new(Snapshot::with_bell(bell))).collect());
        StatusReader { threads, policy, timeline: Arc::default() }
    }

    pub(super) fn thread(&self, index: usize) -> Arc<Snapshot<ControllerSnapshot>> {
        Arc::clone(&self.threads[index])
    }

    /// Returns the status, or `None` if the controller has not begun, or is stuck.
    #[must_use]
    pub fn read(&self) -> Option<Status> {
        snapshot(&self.threads).map(|now| Status::new(&now, self.policy, &self.timeline.moments()))
    }

    /// Notes the progress of the farm, from time to time, for ever.
    fn follow(&self) {
        loop {
            let Some(now) = snapshot(&self.threads) else { continue };
            let (at_s, decided) = (now.now.as_nanos() as f64 * 1e-9, now.counts.decided());
            let spacing_s = self.timeline.note(Moment { at_s, decided, bytes_in: now.counters.bytes_in });
            hodo_io::sleep(Duration::from_secs_f64(spacing_s));
        }
    }
}

/// Starts pages, signals and the messages to the service manager.
pub fn start(
    options: &Options,
    control: Control,
    reader: &StatusReader,
    orders: &OrderDispatch,
) -> Result<Daemon, Error> {
    let daemon = Daemon::start(options, |pages| {
        let show = |reply: fn(&Status) -> Reply| {
            let reader = reader.clone();
            move || match reader.read() {
                Some(status) => reply(&status),
                None => Reply::text(503, "the controller has not begun, or is stuck\n"),
            }
        };
        let state = show(|status| Reply::json(status.json()));
        let nodes = show(|status| Reply::text(200, shares::text(status)));
        let pages = pages.controlled_by(control).with(status::PATH, state).with(shares::PATH, nodes);
        let threads = Arc::clone(&reader.threads);
        orders.actions(pages, move || snapshot(&threads))
    })?;
    let told = reader.clone();
    daemon.registry().source(move |exposition| {
        if let Some(status) = told.read() {
            metrics::write(&status, exposition);
        }
    });
    if daemon.site().is_some() {
        let (reader, pulse) = (reader.clone(), daemon.health().pulse("timeline"));
        let thread = std::thread::Builder::new().name("timeline".to_owned()).spawn(move || {
            pulse.rest();
            reader.follow();
        });
        let what = "the thread of the time line".to_owned();
        thread.map_err(|why| Error::Start { what, why: why.to_string() })?;
    }
    Ok(daemon)
}

/// Returns the snapshots of all threads added up, or `None` if one of them does not answer.
#[must_use]
pub fn snapshot(threads: &[Arc<Snapshot<ControllerSnapshot>>]) -> Option<ControllerSnapshot> {
    let mut together: Option<ControllerSnapshot> = None;
    for thread in threads {
        let latest = thread.ask(PATIENCE)?;
        together = Some(match together {
            None => (*latest).clone(),
            Some(others) => others.plus(&latest),
        });
    }
    together
}
