use super::Controller;
use super::nodes::Member;
use crate::Error;
use crate::lines::{OWED, RANGE};
use crate::supply::Supply;
use hodo_machine::{Instant, Over, Peer, Share};

impl<S: Supply> Controller<S> {
    /// Charges a peer for what is retained of it, and all together for what they have left here. Whoever has most is sent away where it is
    /// too much.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, peer: Peer) {
        if let Some(line) = self.lines.at(peer)
            && let Member::Giver(giver) = &line.state
        {
            line.retained = u64::from(giver.outstanding) * OWED;
        }
        let over = self.lines.charge(peer);
        if let Some(over) = over.or_else(|| self.charge_all()) {
            self.relieve(now, over);
        }
    }

    /// Charges all peers together for events in hand, for data of verdicts beyond what the disk may be behind, and for gaps.
    #[inline]
    fn charge_all(&mut self) -> Option<Over> {
        let behind = self.commits.uncommitted.bytes().saturating_sub(self.config.uncommitted_bytes_max);
        let in_hand = self.accounts.in_hand + self.ledger.ranges() as u64 * RANGE;
        self.lines.charge_all(in_hand, behind)
    }

    /// Checks that there is memory for output, which is kept until the disk has it.
    ///
    /// # Errors
    /// [`Error::TooMuchMemory`] if the disk is behind with as much as all peers may have, beyond what it may be behind with. Another node gets the
    /// event, once it has caught up.
    #[inline]
    pub(super) fn check_output(&self, peer: Peer, length: usize) -> Result<(), Error> {
        let bytes = self.commits.uncommitted.bytes() + length as u64;
        let max = self.config.uncommitted_bytes_max.saturating_add(self.lines.charges.allowance().bytes);
        let is_over = length > 0 && bytes > max && self.config.uncommitted_max.is_some();
        if is_over { Err(Error::TooMuchMemory(Over { peer, share: Share::All, bytes, max })) } else { Ok(()) }
    }

    /// Sends away whoever has most until it is not too much any more. Events in hand stay here.
    #[cold]
    fn relieve(&mut self, now: Instant, over: Over) {
        let mut next = Some(over);
        while let Some(over) = next {
            self.end(now, over.peer, Error::TooMuchMemory(over));
            next = self.lines.next_over();
        }
    }
}
