//! A channel, with those who have it open and those who are told of its changes.

use crate::data::Value;
use crate::server::Access;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::net::IpAddr;
use hodo_machine::{Charges, Peer, Slab};

/// A channel that is served.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) access: Access,
    /// Subscribed clients, and their operations.
    pub(super) subscribers: Slab<Option<(Peer, u32)>>,
    /// The number of them by host.
    by_host: BTreeMap<Option<IpAddr>, u32>,
    /// The clients that have it open, each with its number for it.
    pub(super) opened_by: BTreeSet<(Peer, u32)>,
    /// Whether it was made for them, and goes with the last one.
    pub(super) is_made: bool,
    /// Bytes of what was put to it, if it was made.
    pub(super) put_bytes: u64,
}

impl Channel {
    pub(super) fn new(name: String, mut value: Value, access: Access, is_made: bool) -> Self {
        value.unmark();
        Channel {
            name,
            value,
            access,
            subscribers: Slab::default(),
            by_host: BTreeMap::new(),
            opened_by: BTreeSet::new(),
            is_made,
            put_bytes: 0,
        }
    }

    /// Returns the subscriptions of all clients of a host.
    pub(super) fn subscriptions_of(&self, host: Option<IpAddr>) -> u32 {
        self.by_host.get(&host).copied().unwrap_or(0)
    }

    /// Adds a client's operation to the subscribers, and returns its place among them.
    pub(super) fn subscribe(&mut self, peer: Peer, ioid: u32, charges: &Charges) -> u32 {
        *self.by_host.entry(charges.host(peer)).or_default() += 1;
        self.subscribers.insert(Some((peer, ioid)))
    }

    /// Removes a subscriber from its place.
    pub(super) fn unsubscribe(&mut self, place: u32, charges: &Charges) {
        if let Some((peer, _)) = self.subscribers[place].take()
            && let Some(count) = self.by_host.get_mut(&charges.host(peer))
        {
            *count -= 1;
        }
        self.subscribers.release(place);
        if self.subscribers.is_empty() {
            self.subscribers = Slab::default();
            self.by_host.clear();
        }
    }
}
