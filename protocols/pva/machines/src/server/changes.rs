//! Changes of what a server serves, and to whom.

use crate::server::{Event, Ruled, Server};
use alloc::vec::Vec;
use hodo_machine::Peer;

impl Server {
    /// Serves a channel no more: its clients are told.
    pub fn remove(&mut self, name: &str) {
        let Some(number) = self.shared.names.remove(name) else { return };
        let opened_by: Vec<(Peer, u32)> =
            self.shared.channel(number).into_iter().flat_map(|channel| channel.opened_by.iter().copied()).collect();
        for (peer, sid) in opened_by {
            if let Some(client) = self.clients.at(peer) {
                client.removed(sid, &mut self.shared);
                self.wake(peer);
            }
        }
        self.discovery.changed();
        self.shared.events.retain(
            |event| !matches!(event, Event::Put { channel, .. } | Event::Call { channel, .. } if *channel == number),
        );
        // Nobody refers to the number any more. One that was made for its clients has gone with them.
        if self.shared.channels[number].take().is_some() {
            self.shared.channels.release(number);
        }
    }

    /// Goes by other rules from now on. Whoever loses a right to an open channel is told that the channel is gone, and may open it again
    /// with the rights that are left.
    pub fn rule(&mut self, rules: Ruled) {
        self.config.rules = rules;
        let peers: Vec<Peer> = self.clients.iter().map(|(peer, _)| peer).collect();
        for peer in peers {
            if self.clients.at(peer).is_some_and(|client| client.judge(&mut self.shared, &self.config.rules)) {
                self.wake(peer);
            }
        }
    }
}
