use super::{Builder, Member};
use crate::Error;
use crate::lines::{OWED, RANGE};
use hodo_machine::{Over, Peer};

impl Builder {
    /// Charges a source for what is retained of it, and all together for fragments that are here. Whoever has most is sent away where it is
    /// too much.
    pub(super) fn charge(&mut self, peer: Peer) {
        if let Some(line) = self.lines.at(peer)
            && let Member::Source(giver) = &line.state
        {
            line.retained = u64::from(giver.outstanding) * OWED + self.segments.bytes(giver.hello.number);
        }
        let over = self.lines.charge(peer);
        if let Some(over) = over.or_else(|| self.charge_all()) {
            self.relieve(over);
        }
    }

    /// Charges all sources together for fragments and gaps.
    fn charge_all(&mut self) -> Option<Over> {
        let bytes = self.assembly.bytes() + self.assembly.ranges() as u64 * RANGE;
        self.lines.charge_all(bytes, 0)
    }

    /// Sends away whoever has most until it is not too much any more. Fragments that are whole stay here.
    #[cold]
    fn relieve(&mut self, over: Over) {
        let mut next = Some(over);
        while let Some(over) = next {
            self.end(over.peer, Error::TooMuchMemory(over));
            next = self.lines.next_over();
        }
    }
}
