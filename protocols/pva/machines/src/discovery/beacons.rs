use crate::wire::discovery::Guid;
use alloc::collections::BTreeMap;
use core::time::Duration;
use hodo_machine::{Address, Instant};

/// How long a server is remembered that sends no more beacons: twice their period.
const FORGOTTEN: Duration = Duration::from_secs(360);

/// The servers whose beacons were received.
#[derive(Debug)]
pub(crate) struct Beacons {
    servers: BTreeMap<Guid, (Address, Instant)>,
    most: usize,
    /// When servers are forgotten that send no more.
    sweep_at: Option<Instant>,
}

impl Beacons {
    pub(crate) fn new(most: usize) -> Self {
        Beacons { servers: BTreeMap::new(), most, sweep_at: None }
    }

    /// Notes a beacon; returns whether it is the first of its server, or from another address than before. One more than can be
    /// remembered is not.
    pub(crate) fn note(&mut self, now: Instant, guid: Guid, address: &Address) -> bool {
        if let Some((known, last)) = self.servers.get_mut(&guid) {
            *last = now;
            let is_same = known == address;
            if !is_same {
                *known = address.clone();
            }
            return !is_same;
        }
        if self.servers.len() >= self.most {
            return false;
        }
        self.servers.insert(guid, (address.clone(), now));
        self.sweep_at.get_or_insert(now + FORGOTTEN);
        true
    }

    /// Returns how many servers are remembered.
    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns when to forget the servers that send no more.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Forgets the servers that send no more, and hands each to `gone`.
    pub(crate) fn sweep(&mut self, now: Instant, mut gone: impl FnMut(Guid, Address)) {
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        self.servers.retain(|guid, (address, last)| {
            let is_there = *last + FORGOTTEN > now;
            if !is_there {
                gone(*guid, address.clone());
            }
            is_there
        });
        self.sweep_at = self.servers.values().map(|(_, last)| *last + FORGOTTEN).min();
    }
}
