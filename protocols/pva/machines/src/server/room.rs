//! Room for clients: whose memory and place another one gets.

use crate::Error;
use crate::server::{Server, Shared};
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;
use hodo_machine::{Instant, Output, Over, Peer, Share};

/// How long a client has been silent, at least, that makes room for another one; and how long none is looked for after there was none.
const SILENT_MIN: Duration = Duration::from_secs(5);
const FULL: Duration = Duration::from_millis(100);

/// A put or a call that the application has not answered yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called {
    pub(super) peer: Peer,
    /// The operation, unless its client has cancelled it.
    pub(super) ioid: Option<u32>,
    /// The bytes of memory that it takes.
    pub(super) bytes: u64,
}

impl Called {
    /// Returns whether nobody waits for the answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ioid.is_none()
    }
}

impl Server {
    /// Closes the client that has been silent for longest, of those that have nothing open; returns whether there was one.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        if now < self.full_until {
            return false;
        }
        let silent = self.clients.iter().filter_map(|(peer, client)| Some((client.silent_since()?, peer)));
        let Some((_, peer)) = silent.min().filter(|(heard, _)| *heard + SILENT_MIN <= now) else {
            self.full_until = now + FULL;
            return false;
        };
        let max = self.config.clients_max as u64;
        if let Some(client) = self.clients.at(peer) {
            client.end_for(Error::OverLimit { what: "clients", count: max + 1, max });
        }
        self.forget(peer, None);
        self.closing.push_back(peer);
        true
    }

    /// Forgets a put or a call, for which nothing is retained any more. Returns it if it was not answered yet.
    pub(super) fn settle(&mut self, call: u64) -> Option<Called> {
        let called = self.shared.calls.remove(&call)?;
        if let Some(client) = self.clients.at(called.peer) {
            client.talk.calls_bytes -= called.bytes;
        }
        Some(called)
    }

    /// Closes the next client that is to be closed.
    pub(super) fn close_next<E>(&mut self) -> Option<Output<E>> {
        let peer = self.closing.pop_front()?;
        self.forget(peer, None);
        Some(Output::Close(peer))
    }

    /// Closes clients for which most memory is retained, while it is too much. Each end is among the events.
    pub(super) fn relieve(&mut self) {
        while let Some(over) = self.over() {
            if let Some(client) = self.clients.at(over.peer) {
                client.end_for(Error::TooMuchMemory(over));
            }
            self.forget(over.peer, None);
            self.closing.push_back(over.peer);
        }
    }

    fn over(&mut self) -> Option<Over> {
        let over = self.shared.over.take();
        if over.is_some_and(|over| over.share != Share::All) {
            return over;
        }
        if !core::mem::take(&mut self.shared.has_made) && over.is_none() {
            return None;
        }
        let more = core::mem::take(&mut self.shared.refused_bytes);
        self.shared.charges.set_common(self.shared.made_bytes);
        if self.shared.charges.pooled() + more <= self.config.allowance.bytes {
            return None;
        }
        // What nobody uses is no reason to close anybody.
        self.config.source.trim();
        let over = self.shared.charges.check(&self.shared.parts_of_made(), more).err();
        // What one client leaves may not be enough.
        self.shared.has_made = over.is_some();
        over
    }
}

impl Shared {
    /// Returns the memory of each client in channels that were made for clients. Those that share an array have a part of it each.
    fn parts_of_made(&self) -> BTreeMap<Peer, u64> {
        let mut arrays: BTreeMap<usize, (u64, BTreeSet<Peer>)> = BTreeMap::new();
        let made = self.channels.iter().filter_map(|(_, channel)| channel.as_ref()).filter(|channel| channel.is_made);
        for channel in made {
            for (place, bytes) in channel.value.memory_of_arrays() {
                let (most, peers) = arrays.entry(place).or_default();
                *most = (*most).max(bytes as u64);
                peers.extend(channel.opened_by.iter().map(|(peer, _)| *peer));
            }
        }
        let mut parts: BTreeMap<Peer, u64> = BTreeMap::new();
        for (bytes, peers) in arrays.values() {
            for peer in peers {
                *parts.entry(*peer).or_default() += bytes / peers.len() as u64;
            }
        }
        parts
    }
}
