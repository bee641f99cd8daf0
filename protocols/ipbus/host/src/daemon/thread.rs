use super::allow_list;
use super::snapshot::HubSnapshot;
use super::trace_log::TraceLog;
use hodo_daemon::Rounds;
use hodo_io::{Attendant, Snapshot};
use hodo_ipbus::hub::{Ended, Hub, HubCommand, HubEvent};
use hodo_machine::Instant;
use std::path::PathBuf;
use std::sync::Arc;

/// The thread of a hub: logs its events, passes its counters to the pages, and reads the allow-list again.
pub struct HubThread {
    rounds: Rounds,
    snapshot: Arc<Snapshot<HubSnapshot>>,
    allow: Option<PathBuf>,
    trace: TraceLog,
}

impl HubThread {
    pub fn new(rounds: Rounds, snapshot: Arc<Snapshot<HubSnapshot>>, allow: Option<PathBuf>, trace: TraceLog) -> Self {
        HubThread { rounds, snapshot, allow, trace }
    }

    /// Logs an error that the trace's packets show as well.
    fn warn(&self, line: &str) {
        self.trace.note(line);
        tracing::warn!("{line}");
    }

    /// Reads the allow-list again. One that cannot be read changes nothing.
    fn reload(&mut self) -> Option<HubCommand> {
        let list = allow_list(self.allow.as_deref());
        let status = match &list {
            Ok(_) => "the allow-list was reread".to_owned(),
            Err(why) => format!("{why}; the previous list stays in force"),
        };
        tracing::info!("{status}");
        self.rounds.reloaded(&status);
        list.ok().map(HubCommand::Allow)
    }
}

impl Attendant for HubThread {
    type Machine = Hub;

    fn told(&mut self, event: HubEvent) -> Option<HubCommand> {
        match event {
            HubEvent::Came(address) => tracing::debug!("{address} has connected"),
            HubEvent::Ended(address, why) if is_wrong(why) => self.warn(&format!("{address} is gone: {why}")),
            HubEvent::Ended(address, why) if tracing::enabled!(tracing::Level::DEBUG) => {
                let line = format!("{address} is gone: {why}");
                self.trace.note(&line);
                tracing::debug!("{line}");
            }
            HubEvent::Alive(board, version) => {
                let line = format!("{board} answers, in version {version}");
                self.trace.note(&line);
                tracing::info!("{line}");
            }
            HubEvent::Dead(board, version, code) => self.warn(&format!("{board}, in version {version}: {code}")),
            HubEvent::Restarted(board) => self.warn(&format!(
                "{board} has forgotten what was in flight: it has restarted, or somebody else uses its ids; the \
                 clients were told"
            )),
            _ => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, hub: &Hub) -> Option<HubCommand> {
        self.snapshot.offer(|| HubSnapshot::of(now, hub, self.trace.counters()));
        let is_switched = self.rounds.is_switched();
        if let Some(line) = self.trace.look_in(is_switched) {
            tracing::info!("{line}");
        }
        if self.rounds.look_in(now) { self.reload() } else { None }
    }

    fn drain(&mut self) -> Option<HubCommand> {
        self.rounds.draining("answering what is under way");
        Some(HubCommand::Drain)
    }

    fn is_drained(&self, hub: &Hub) -> bool {
        hub.is_drained()
    }
}

/// Returns whether a client's end is worth a line.
fn is_wrong(why: Ended) -> bool {
    !matches!(why, Ended::Finished | Ended::Broken | Ended::Drained)
}
