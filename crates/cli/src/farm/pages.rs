//! The pages of a controller, and what goes on behind them.

use super::reading::Reading;
use super::seen::Seen;
use super::timeline::{Moment, Timeline};
use super::{control, metrics, page, shares};
use crate::Error;
use crate::args::FarmController;
use hodo_catalog::farm::Policy;
use hodo_daemon::{Daemon, Options, Reply, Snapshot};
use hodo_io::usage::ProcessUsage;
use std::sync::Arc;
use std::time::Duration;

/// How long a page waits for what it shows.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// What each thread has seen.
pub type All = Arc<Vec<Arc<Snapshot<Seen>>>>;

/// Pages, signals, and the manager of services.
pub fn start(asked: &FarmController, all: &All, control: &control::Desk) -> Result<Daemon, Error> {
    let http = (!asked.no_metrics).then_some(asked.metrics);
    let options = Options { http, pid_file: asked.pid_file.clone() };
    let (policy, timeline) = (policy_name(asked.policy.into()), Arc::new(Timeline::default()));
    let daemon = Daemon::start(&options, |pages| {
        let show = |reply: fn(&Seen, &str, &[Moment]) -> Reply| {
            let (all, timeline) = (Arc::clone(all), Arc::clone(&timeline));
            move || match look(&all) {
                Some(seen) => reply(&seen, policy, &timeline.moments()),
                None => Reply::text(503, "the controller has not begun, or is stuck\n"),
            }
        };
        let state = show(|seen, policy, timeline| Reply::json(format!("{:#}\n", page::page(seen, policy, timeline))));
        let nodes = show(|seen, policy, _| {
            let reading = Reading::of(&page::page(seen, policy, &[])).unwrap_or_default();
            Reply::text(200, shares::text(&reading))
        });
        let pages = pages.controlled_by(asked.control.into()).with(page::PATH, state).with(shares::PATH, nodes);
        let asked = Arc::clone(all);
        control.actions(pages, move || look(&asked))
    })?;
    let told = Arc::clone(all);
    daemon.registry().source(move |exposition| {
        if let Some(seen) = look(&told) {
            metrics::tell(&seen, exposition);
        }
    });
    if daemon.site().is_some() {
        let all = Arc::clone(all);
        std::thread::spawn(move || follow(&all, &timeline));
    }
    Ok(daemon)
}

/// Notes how far the farm has come, from time to time.
fn follow(all: &All, timeline: &Timeline) {
    hodo_io::affinity::leave_descriptors();
    loop {
        let Some(seen) = look(all) else { continue };
        let (at_s, decided) = (seen.now.as_nanos() as f64 * 1e-9, seen.counts.taken_in - seen.counts.in_hand());
        let spacing_s = timeline.note(Moment { at_s, decided, bytes_in: seen.counters.bytes_in });
        std::thread::sleep(Duration::from_secs_f64(spacing_s));
    }
}

/// What all threads have seen, together.
pub fn look(all: &[Arc<Snapshot<Seen>>]) -> Option<Seen> {
    let mut together: Option<Seen> = None;
    for thread in all {
        let seen = thread.ask(PATIENCE)?;
        together = Some(match together {
            None => (*seen).clone(),
            Some(others) => others.add(&seen),
        });
    }
    together.map(|seen| Seen { usage: Some(ProcessUsage::of_process()), ..seen })
}

fn policy_name(policy: Policy) -> &'static str {
    policy.name()
}
