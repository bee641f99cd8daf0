use super::{Builder, Member};
use crate::Error;
use crate::source::ASKS_FOR;
use crate::wire::{Header, Kind};
use core::time::Duration;
use hodo_machine::{Closed, Instant, Peer};

/// How long a source that is to end waits for the others to be told so, too.
const TOGETHER: Duration = Duration::from_millis(ASKS_FOR.as_millis() as u64 / 2);

impl Builder {
    /// Takes a source's DRAIN: it asks at which number to end, or has given its last event. The value is the number behind that.
    pub(super) fn source_drains(&mut self, now: Instant, peer: Peer, value: u64) {
        let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &mut line.state) else { return };
        let number = giver.hello.number;
        giver.gave_to = value;
        if giver.told_to_drain {
            giver.drained = true;
            if giver.asks_for_end && value < giver.ends_at {
                // It asks again: the answer was lost.
                giver.drained = false;
                let end = giver.ends_at;
                self.lines.say(peer, &Header::new(Kind::Drain, 0, end).encode());
            } else if giver.asks_for_end {
                self.assembly.ended(now, number);
            }
        } else if value > 0 {
            giver.asks_for_end = true;
            self.asked_since.get_or_insert(now);
            self.end_together(now);
        }
    }

    /// Tells the sources that are to end the number at which they do, once all have asked for it, or some have waited long enough.
    pub(super) fn end_together(&mut self, now: Instant) {
        let Some(since) = self.asked_since else { return };
        let mut asking = alloc::vec::Vec::new();
        let mut all_ask = true;
        for peer in self.places.iter().flatten() {
            if let Some(Member::Source(giver)) = self.lines.at(*peer).map(|line| &line.state)
                && !giver.told_to_drain
            {
                all_ask &= giver.asks_for_end;
                asking.extend(giver.asks_for_end.then_some(*peer));
            }
        }
        if all_ask || now >= since + TOGETHER {
            self.asked_since = None;
            self.end_at(&asking);
        }
    }

    /// Has sources give up to where any has come.
    fn end_at(&mut self, peers: &[Peer]) {
        let mut end = 0;
        for peer in self.places.iter().flatten() {
            if let Some(Member::Source(giver)) = self.lines.at(*peer).map(|line| &line.state) {
                end = end.max(giver.gave_to).max(self.assembly.sources.end(giver.run));
            }
        }
        for peer in peers {
            let Some(Member::Source(giver)) = self.lines.at(*peer).map(|line| &mut line.state) else { continue };
            // Those of an earlier version say nothing of their last event, and give no more.
            if giver.gave_to > 0 && (giver.gave_to < end || giver.asks_for_end) {
                (giver.told_to_drain, giver.drained, giver.ends_at) = (true, false, end);
                self.assembly.sources.told_end(giver.run, end);
                self.lines.say(*peer, &Header::new(Kind::Drain, 0, end).encode());
            }
        }
    }

    /// Has sources that have stopped go on to where any has come, once all have stopped. Returns whether any does.
    pub(super) fn goes_on_to_end(&mut self) -> bool {
        if core::mem::replace(&mut self.has_end, true) {
            return false;
        }
        let peers = self.places.iter().flatten().copied().collect::<alloc::vec::Vec<_>>();
        self.end_at(&peers);
        !self.has_all()
    }

    /// Returns when sources have waited for the others to end long enough.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.asked_since.map(|since| since + TOGETHER)
    }

    /// Has all sources stop while nothing new is taken; then those that are behind give up to where any has come.
    pub(super) fn stop_sources(&mut self, now: Instant) {
        self.stopping = self.stopping.or(Some(now));
        self.look_at_all(now + self.config.silence);
        let places = self.places.clone();
        for peer in places.into_iter().flatten() {
            if let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &mut line.state)
                && !core::mem::replace(&mut giver.told_to_drain, true)
            {
                self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
            }
        }
    }

    /// Has the sources that were stopped come anew.
    pub(super) fn restart_sources(&mut self) {
        (self.stopping, self.has_end) = (None, false);
        let places = self.places.clone();
        for peer in places.into_iter().flatten() {
            if let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &line.state)
                && giver.told_to_drain
            {
                self.end(peer, Error::Closed(Closed::Finished));
            }
        }
    }

    /// Tells whether no fragment will come.
    pub(super) fn has_all(&self) -> bool {
        let drained = |member: &Member| !matches!(member, Member::Source(giver) if !giver.drained);
        self.lines.peers.iter().all(|(_, line)| drained(&line.state))
    }
}
