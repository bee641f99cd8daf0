use super::assembly::Key;
use super::{Builder, source};
use crate::wire::{Header, Kind};
use hodo_machine::{Instant, Peer};

impl Builder {
    /// Takes the word of a source that is to end, and has given all below a number: where all are to end, each gives what the
    /// others have.
    pub(super) fn is_to_end(&mut self, now: Instant, (peer, serial): (Peer, u64), number: u32, below: Key) {
        if self.draining.is_some() || self.sender.is_draining() {
            // It can give no more.
            return self.lines.say(peer, &Header::new(Kind::Drain, 0, below.1).encode());
        }
        self.ending.insert(number, (peer, serial, below));
        self.assembly.streams.end_later(now);
        self.end_together(false);
    }

    /// Tells the sources that are to end up to which number they give: once all that events wait for are to, or were waited for
    /// long enough.
    pub(super) fn end_together(&mut self, is_due: bool) {
        let goes_on = |source: &u32| self.assembly.streams.waits_for(*source) && !self.ending.contains_key(source);
        if !is_due && (0..self.config.sources).any(|source| goes_on(&source)) {
            return;
        }
        let last = self.ending.values().map(|(.., below)| *below).max().unwrap_or_default();
        for (peer, serial, (run, below)) in self.ending.values().copied() {
            // One that has given nothing has not said of which run.
            let below = if [0, last.0].contains(&run) { last.1 } else { below };
            if source(&mut self.lines, peer, serial).is_some() {
                self.lines.say(peer, &Header::new(Kind::Drain, 0, below).encode());
            }
        }
        self.assembly.streams.has_ended();
    }
}
