use super::assembly::{Claim, Known};
use super::{Builder, Member, source};
use crate::Error;
use crate::inbound::{Inbound, Message};
use crate::wire::{FLAG_DUPLICATE, HEADER, Header, Kind, Lacks, SEGMENT, Segment, Token, Verdict};
use hodo_machine::{Instant, Peer};

impl Builder {
    /// Takes a datagram of a source: one segment, or other messages. An unreadable one is counted and dropped.
    pub(super) fn datagram(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        let header = bytes.first_chunk::<HEADER>().map(Header::decode);
        let outcome = match header {
            Some(Ok(Header { kind: Kind::Segment, .. })) => self.segment(now, peer, bytes),
            Some(_) => self.messages(now, peer, bytes),
            None => Err(Error::Truncated),
        };
        if outcome.is_err() {
            self.counters.bad_datagrams += 1;
        }
    }

    fn messages(&mut self, now: Instant, peer: Peer, mut bytes: &[u8]) -> Result<(), Error> {
        if let Some(line) = self.lines.at(peer) {
            line.inbound = Inbound::default();
        }
        while let Some(message) = self.lines.next(now, peer, &mut bytes)? {
            let Some(line) = self.lines.at(peer) else { return Ok(()) };
            match (&line.state, message) {
                // Its answer may have been lost.
                (Member::Source(giver), Message::Hello(hello)) if giver.hello == hello => self.greet(peer),
                // It has started again at the same address.
                (Member::Source(_), Message::Hello(hello)) => self.source_came(now, peer, hello)?,
                // It greets again until it is answered, and nobody has to tell it to come anew.
                (Member::Greeting { .. }, Message::Hello(_)) if !self.assembly.has_runs() => {
                    self.lines.say(peer, &Header::new(Kind::Pong, 0, 0).encode());
                }
                (Member::Greeting { .. }, message @ Message::Hello(_)) => {
                    if let Err(error) = self.message(now, peer, message) {
                        self.end(peer, error);
                    }
                }
                (Member::Source(_), message @ (Message::Ping(_) | Message::Pong | Message::Drain)) => {
                    self.message(now, peer, message)?;
                }
                (_, other) => return Err(Error::Unexpected { kind: other.kind() }),
            }
        }
        let is_whole = self.lines.at(peer).is_none_or(|line| !line.inbound.is_amid());
        is_whole.then_some(()).ok_or(Error::Truncated)
    }

    fn segment(&mut self, now: Instant, peer: Peer, bytes: &[u8]) -> Result<(), Error> {
        let (head, data) = bytes.split_first_chunk::<SEGMENT>().ok_or(Error::Truncated)?;
        let segment = Segment::decode(head)?;
        if data.len() != segment.length as usize || segment.total > self.config.fragment_max {
            return Err(Error::Truncated);
        }
        let Some(line) = self.lines.at(peer) else { return Ok(()) };
        line.heard = now;
        let Member::Source(giver) = &line.state else {
            // It knows a builder that was here before: it is to greet anew.
            self.end(peer, Error::NoGreeting);
            return Err(Error::NoGreeting);
        };
        if giver.hello.number != segment.source {
            return Err(Error::Unexpected { kind: Kind::Segment.code() });
        }
        let Segment { run, event, kind, total, .. } = segment;
        // One without data only asks for what is here.
        let is_fragment = !data.is_empty() || total == 0;
        let claim = Claim { source: segment.source, peer, serial: giver.serial, length: total };
        match self.assembly.knows((run, event), &claim) {
            Known::No => {}
            // The first segment speaks for the others.
            Known::Here | Known::Decided if segment.offset > 0 => return Ok(()),
            Known::Here => {
                self.counters.duplicate_fragments += u64::from(is_fragment);
                self.assembly.claim((run, event), claim);
                self.lines.say(peer, &Lacks::here(run, event).encode());
                return self.lines.check_owed(peer);
            }
            Known::Decided => {
                // Its token was lost, or that of the connection before.
                self.counters.duplicate_fragments += u64::from(is_fragment);
                let token = Token::answer(run, event, Verdict::Rejected, FLAG_DUPLICATE);
                self.lines.say(peer, &token.encode());
                return self.lines.check_owed(peer);
            }
        }
        if !is_fragment {
            let parts = self.segments.lacking(&segment);
            self.lines.say(peer, &Lacks { run, event, parts }.encode());
            return self.lines.check_owed(peer);
        }
        let (credits, window) = (self.config.source_credits, self.config.window());
        let Some(payload) = self.segments.offer(&segment, data, credits, window) else { return Ok(()) };
        let Some(giver) = source(&mut self.lines, peer, claim.serial) else { return Ok(()) };
        let outcome = giver.enter(total).and_then(|()| self.fragment(now, (run, event), claim, kind, payload));
        match outcome {
            Ok(()) if self.assembly.knows((run, event), &claim) == Known::Here => {
                self.lines.say(peer, &Lacks::here(run, event).encode());
            }
            Ok(()) => {}
            Err(Error::OverCredit { .. }) => {
                // It is let go, and comes again.
                if let Some(giver) = source(&mut self.lines, peer, claim.serial) {
                    giver.answered(total);
                }
            }
            // It would come again for ever.
            Err(error) => self.end(peer, error),
        }
        outcome
    }
}
