//! Events under numbers that other data has: told in the log, on the page of health, and by the status at the end.

use crate::Error;
use hodo_daemon::Health;
use hodo_farm::wire::Role;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sources whose conflicts are told each by itself; those of further ones count together.
const TOLD_MAX: usize = 64;

/// The first conflict of a daemon, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    events: u64,
    role: Role,
    source: u32,
    key: (u32, u64),
}

/// The conflicts of all threads of a daemon.
pub type All = Arc<Mutex<Option<Found>>>;

/// The conflicts that one thread sees.
#[derive(Debug)]
pub struct Conflicts {
    health: Arc<Health>,
    all: All,
    by_source: BTreeMap<(u8, u32), u64>,
}

impl Conflicts {
    /// Creates those of a thread, which adds them to all.
    pub fn new(health: &Arc<Health>, all: &All) -> Self {
        Conflicts { health: Arc::clone(health), all: Arc::clone(all), by_source: BTreeMap::new() }
    }

    /// Adds one: a run, and the number of an event in it.
    pub fn add(&mut self, role: Role, source: u32, (run, event): (u32, u64)) {
        let key = (role.code(), source);
        let is_known = self.by_source.len() < TOLD_MAX || self.by_source.contains_key(&key);
        let count = self.by_source.entry(if is_known { key } else { (0, u32::MAX) }).or_default();
        *count += 1;
        if is_told(*count) {
            let role = role.name();
            tracing::error!(
                "{count} events of {role} {source} came under numbers that other data has, now event {event} of run {run}"
            );
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get_or_insert(Found { events: 0, role, source, key: (run, event) });
        found.events += 1;
        if found.events == 1 {
            let role = role.name();
            self.health.add_wrong(&format!(
                "events come under numbers that other data has, first event {event} of run {run} from {role} {source}; they are kept apart"
            ));
        }
    }
}

/// Tells whether the one with this number, from 1, is in the log: the first, the tenth and so on. The others are counted, for there may be many.
pub(crate) const fn is_told(count: u64) -> bool {
    10_u64.pow(count.ilog10()) == count
}

impl Found {
    /// Checks that there are none.
    ///
    /// # Errors
    /// [`Error::Conflicts`] with their number, and the first.
    pub fn check(found: Option<Found>) -> Result<(), Error> {
        match found {
            None => Ok(()),
            Some(Found { events, role, source: source_number, key: (run, event) }) => {
                Err(Error::Conflicts { events, run, event, role: role.name(), source_number })
            }
        }
    }
}
