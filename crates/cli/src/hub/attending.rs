use super::allow_list;
use super::seen::Seen;
use super::tracing::Tracing;
use hodo_catalog::ipbus::hub::{Ended, Hub, HubCommand, HubEvent};
use hodo_daemon::{Rounds, Snapshot};
use hodo_io::Attendant;
use hodo_machine::Instant;
use std::path::PathBuf;
use std::sync::Arc;

/// What is between the hub and the rest of the process.
pub struct Attending {
    rounds: Rounds,
    seen: Arc<Snapshot<Seen>>,
    allow: Option<PathBuf>,
    tracing: Tracing,
}

impl Attending {
    pub fn new(rounds: Rounds, seen: Arc<Snapshot<Seen>>, allow: Option<PathBuf>, tracing: Tracing) -> Self {
        Attending { rounds, seen, allow, tracing }
    }

    /// Logs an error that the trace's packets show as well.
    fn warn(&self, line: &str) {
        self.tracing.note(line);
        tracing::warn!("{line}");
    }

    /// Reads the allow-list again. One that cannot be read changes nothing.
    fn reload(&mut self) -> Option<HubCommand> {
        let list = allow_list(self.allow.as_deref());
        let status = match &list {
            Ok(_) => "the allow-list was read again".to_owned(),
            Err(why) => format!("{why}; the list before it stays"),
        };
        tracing::info!("{status}");
        self.rounds.reloaded(&status);
        list.ok().map(HubCommand::Allow)
    }
}

impl Attendant for Attending {
    type Machine = Hub;

    fn told(&mut self, event: HubEvent) -> Option<HubCommand> {
        match event {
            HubEvent::Came(address) => tracing::debug!("{address} has connected"),
            HubEvent::Ended(address, why) if is_wrong(why) => self.warn(&format!("{address} is gone: {why}")),
            HubEvent::Ended(address, why) if tracing::enabled!(tracing::Level::DEBUG) => {
                let line = format!("{address} is gone: {why}");
                self.tracing.note(&line);
                tracing::debug!("{line}");
            }
            HubEvent::Alive(board, version) => {
                let line = format!("{board} answers, in version {version}");
                self.tracing.note(&line);
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
        self.seen.offer(|| Seen::of(now, hub, self.tracing.counters()));
        let is_switched = self.rounds.is_switched();
        if let Some(line) = self.tracing.look_in(is_switched) {
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

/// Whether a client's end is worth a line.
fn is_wrong(why: Ended) -> bool {
    !matches!(why, Ended::Finished | Ended::Broken | Ended::Drained)
}
