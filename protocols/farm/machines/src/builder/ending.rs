use super::assembly::Key;
use super::{Builder, source};
use crate::controller::sources::FAR;
use crate::wire::{Header, Kind};
use hodo_machine::{Instant, Peer};

/// A source that is to end before its events do.
#[derive(Debug)]
pub(super) struct Ending {
    peer: Peer,
    serial: u64,
    /// The run of what it has given, 0 where it has not said which, and the number below which it has given all.
    below: Key,
    /// The number below which it was told to give.
    told: Option<u64>,
}

impl Builder {
    /// Takes the word of a source that is to end, and has given all below a number: where all are to end, each gives what the
    /// others have.
    pub(super) fn is_to_end(&mut self, now: Instant, (peer, serial): (Peer, u64), number: u32, below: Key) {
        let told = match self.ending.get(&number).filter(|ending| ending.serial == serial) {
            // The answer was lost, or both were on their way.
            Some(ending) => ending.told,
            // It can give no more.
            None => (self.draining.is_some() || self.sender.is_draining()).then_some(below.1),
        };
        if let Some(told) = told {
            return self.lines.say(peer, &Header::new(Kind::Drain, 0, told).encode());
        }
        self.ending.insert(number, Ending { peer, serial, below, told });
        self.assembly.streams.end_later(now);
        self.end_together(false);
    }

    /// Tells the sources that are to end up to which number they give: once all that events wait for are to, or were waited for
    /// long enough.
    pub(super) fn end_together(&mut self, is_due: bool) {
        let goes_on = |source: u32| self.assembly.streams.waits_for(source) && !self.ending.contains_key(&source);
        if !is_due && (0..self.config.sources).any(goes_on) {
            return;
        }
        let newest = self.ending.values().map(|ending| ending.below.0).max().unwrap_or_default();
        let of_newest = |ending: &&Ending| [0, newest].contains(&ending.below.0);
        let last = self.ending.values().filter(of_newest).map(|ending| ending.below.1).max().unwrap_or_default();
        // Nobody has come so much farther than all others.
        let last = last.min(self.assembly.streams.farthest().saturating_add(FAR));
        for ending in self.ending.values_mut().filter(|ending| ending.told.is_none()) {
            let told = if of_newest(&&*ending) { last } else { ending.below.1 };
            ending.told = Some(told);
            if source(&mut self.lines, ending.peer, ending.serial).is_some() {
                self.lines.say(ending.peer, &Header::new(Kind::Drain, 0, told).encode());
            }
        }
        self.assembly.streams.has_ended();
    }
}
