use super::allow_list;
use super::seen::Seen;
use super::tracing::Tracing;
use hodo_catalog::ipbus::hub::{Ended, Hub, HubCommand, HubEvent};
use hodo_daemon::{Rounds, Snapshot};
use hodo_io::Attendant;
use hodo_machine::Instant;
use std::path::PathBuf;
use std::sync::Arc;

/// Lines between two looks at the hub; what goes beyond is counted. A terminal that is slow must not hold up the hub.
const LINES_MAX: u32 = 20;

/// What is between the hub and the rest of the process.
pub struct Attending {
    rounds: Rounds,
    seen: Arc<Snapshot<Seen>>,
    allow: Option<PathBuf>,
    verbose: bool,
    tracing: Tracing,
    lines: u32,
}

impl Attending {
    pub fn new(
        rounds: Rounds,
        seen: Arc<Snapshot<Seen>>,
        allow: Option<PathBuf>,
        verbose: bool,
        tracing: Tracing,
    ) -> Self {
        Attending { rounds, seen, allow, verbose, tracing, lines: 0 }
    }

    /// Says one line of something that its packets show as well.
    fn say_of_packets(&mut self, line: &str) {
        self.tracing.note(line);
        self.say(line);
    }

    /// Says one line, where there were not too many already.
    fn say(&mut self, line: &str) {
        self.lines += 1;
        if self.lines <= LINES_MAX {
            eprintln!("hodo hub: {line}");
        }
    }

    /// Reads the allow-list again. One that cannot be read changes nothing.
    fn reload(&mut self) -> Option<HubCommand> {
        let list = allow_list(self.allow.as_deref());
        let status = match &list {
            Ok(_) => "the allow-list was read again".to_owned(),
            Err(why) => format!("{why}; the list before it stays"),
        };
        self.say(&status);
        self.rounds.reloaded(&status);
        list.ok().map(HubCommand::Allow)
    }
}

impl Attendant for Attending {
    type Machine = Hub;

    fn told(&mut self, event: HubEvent) -> Option<HubCommand> {
        match event {
            HubEvent::Came(address) if self.verbose => self.say(&format!("{address} has connected")),
            HubEvent::Ended(address, why) if self.verbose || is_wrong(why) => {
                self.say_of_packets(&format!("{address} is gone: {why}"));
            }
            HubEvent::Alive(board, version) => {
                self.say_of_packets(&format!("{board} answers, in version {version}"));
            }
            HubEvent::Dead(board, version, code) => {
                self.say_of_packets(&format!("{board}, in version {version}: {code}"));
            }
            HubEvent::Restarted(board) => self.say_of_packets(&format!(
                "{board} has forgotten what was in flight: it has restarted, or somebody else uses its ids; the \
                 clients were told"
            )),
            _ => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, hub: &Hub) -> Option<HubCommand> {
        if let Some(more @ 1..) = self.lines.checked_sub(LINES_MAX) {
            eprintln!("hodo hub: and {more} lines more");
        }
        self.lines = 0;
        self.seen.offer(|| Seen::of(now, hub, self.tracing.counters()));
        let is_switched = self.rounds.is_switched();
        if let Some(line) = self.tracing.look_in(is_switched) {
            self.say(&line);
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
