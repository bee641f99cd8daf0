//! Room at a far end: what clients and greetings are charged for, and whose memory and places another one gets.

use super::{FarEnd, dismiss};
use crate::link::backend::Backend;
use crate::link::greeting::Wish;
use crate::link::served::{Served, Why};
use hodo_machine::{Instant, Peer};
use std::net::SocketAddr;
use std::time::Duration;

/// Queue pairs of all clients together: as many as the software adapter has.
const PAIRS_MAX: usize = 1 << 14;
/// The time for which nothing of a client has completed, at least, whose channels another one gets.
const IDLE: Duration = Duration::from_secs(10);
/// The remedies for too much memory.
const REMEDIES: &str =
    "lower --sizes, --channels or receive-depth, or raise --memory at the far end if its clients are trusted";

impl<B: Backend> FarEnd<B> {
    /// Checks that this far end can grant a wish to anybody.
    pub(super) fn check(&self, wish: &Wish, from: SocketAddr) -> Result<(), Why> {
        let (size, size_max, channels) = (wish.size, self.settings.size_max, wish.channels);
        if size > size_max.max(16) {
            return Err(format!("operations here have at most {size_max} bytes, {size} are asked for; lower --sizes"));
        }
        if channels as usize > self.settings.channels_max {
            return Err(no_room(channels));
        }
        let (bytes, max) = (Served::retained(wish), self.charges.allowance().bytes);
        if bytes > max {
            let why = format!(
                "operations of {size} bytes over {channels} channels take {bytes} bytes of memory, and {max} are allowed; {REMEDIES}"
            );
            tracing::warn!("{from} is refused: {why}");
            return Err(why);
        }
        Ok(())
    }

    /// Returns the places of the clients that have been idle for longest, as many as have to give up their channels for those of another one.
    pub(super) fn idle_instead(&self, wish: &Wish, now: Instant) -> Result<Vec<usize>, Why> {
        let channels = wish.channels as usize;
        let lacks = |used: usize, more: usize, max: usize| (used + more).saturating_sub(max);
        let channels_lacked = lacks(self.channels, channels, self.settings.channels_max);
        let pairs_lacked = lacks(self.pairs, channels + 1, PAIRS_MAX);
        if channels_lacked == 0 && pairs_lacked == 0 {
            return Ok(Vec::new());
        }
        let clients = self.clients.iter().enumerate();
        let mut idle: Vec<(Instant, usize, usize)> = clients
            .filter_map(|(place, client)| client.as_ref().map(|client| (client, place)))
            .filter(|(client, _)| client.active_at + IDLE <= now)
            .map(|(client, place)| (client.active_at, place, client.channel_count()))
            .collect();
        idle.sort_unstable();
        let mut freed = (0, 0);
        let is_enough = |(channels, pairs): (usize, usize)| channels >= channels_lacked && pairs >= pairs_lacked;
        let count = idle.iter().take_while(|(.., channels)| {
            let is_needed = !is_enough(freed);
            freed = (freed.0 + channels, freed.1 + channels + 1);
            is_needed
        });
        let count = count.count();
        if !is_enough(freed) {
            return Err(no_room(wish.channels));
        }
        Ok(idle[..count].iter().map(|(_, place, _)| *place).collect())
    }

    /// Charges a client or a greeting for memory. While it is too much, whoever has most is ended; if that is this one, it is refused.
    pub(super) fn charge(&mut self, peer: Peer, bytes: u64, from: SocketAddr) -> Result<(), Why> {
        let mut over = self.charges.set(peer, bytes).err();
        while let Some(one) = over {
            let why = format!("{one}; {REMEDIES}");
            if one.peer == peer {
                tracing::warn!("{from} is refused: {why}");
                return Err(why);
            }
            self.end(one.peer, &why);
            over = self.charges.next_over();
        }
        Ok(())
    }

    /// Ends a client or a greeting for the sake of others, and logs why.
    pub(super) fn end(&mut self, peer: Peer, why: &str) {
        let place = peer.index();
        if peer.is_accepted() {
            if let Some(greeted) = self.greetings.remove(peer) {
                tracing::warn!("{} is closed: {why}", greeted.from);
                dismiss(&greeted.stream, why);
                self.release(peer);
            }
        } else if let Some(Some(client)) = self.clients.get(place) {
            tracing::warn!("client {} is closed: {why}", client.from);
            self.leave(place, why);
        }
        // One that is just being greeted is in no list.
        self.charges.close(peer);
    }

    /// Frees the place of a greeting.
    pub(super) fn release(&mut self, peer: Peer) {
        self.charges.close(peer);
        self.greetings.release(peer);
    }

    /// Lets a client go, and tells it why.
    #[cold]
    pub(super) fn leave(&mut self, place: usize, why: &str) {
        let Some(client) = self.clients.get_mut(place).and_then(Option::take) else { return };
        dismiss(&client.stream, why);
        if let Some(device) = &mut self.device {
            client.leave(device);
        }
        self.channels -= client.channel_count();
        self.pairs -= client.channel_count() + 1;
        self.charges.close(Peer(place as u32));
    }
}

fn no_room(channels: u32) -> Why {
    format!("no room for {channels} more channels; raise --peers-max")
}
