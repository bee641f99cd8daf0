use super::assembly::{Claim, Key, Known};
use super::{Builder, Member, source};
use crate::Error;
use crate::inbound::{Inbound, Message};
use crate::sums::{Content, Likeness};
use crate::wire::{
    FLAG_COMPARES, FLAG_CONFLICT, FLAG_DUPLICATE, FLAG_LATE, HEADER, Header, Kind, Lacks, SEGMENT, Segment, Token,
    Verdict,
};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;
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
                        self.end(now, peer, error);
                    }
                }
                (
                    Member::Source(_),
                    message @ (Message::Ping(_) | Message::Pong | Message::Drain | Message::Ends(_)),
                ) => {
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
            self.end(now, peer, Error::NoGreeting);
            return Err(Error::NoGreeting);
        };
        if giver.hello.number != segment.source {
            return Err(Error::Unexpected { kind: Kind::Segment.code() });
        }
        let Segment { run, event, kind, total, .. } = segment;
        // One without data only asks for what is here.
        let is_fragment = !data.is_empty() || total == 0;
        let claim = Claim { source: segment.source, peer, serial: giver.serial, length: total };
        let known = self.assembly.knows((run, event), &claim);
        if known != Known::No {
            self.assembly.streams.gave(now, segment.source, (run, event));
            return self.known_segment(known, &segment, data, claim);
        }
        if !is_fragment {
            let parts = self.segments.lacking(&segment);
            return self.say_lacks(&claim, (run, event), parts);
        }
        self.assembly.streams.heard(now, segment.source);
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
            Err(error) => self.end(now, peer, error),
        }
        outcome
    }

    /// Takes a segment of a fragment that is known, or of other data under its number.
    fn known_segment(&mut self, known: Known, segment: &Segment, data: &[u8], claim: Claim) -> Result<(), Error> {
        let key = (segment.run, segment.event);
        let (is_question, says_what) = (data.is_empty() && segment.total > 0, self.says_what(&claim));
        let (content, payload) = if is_question && says_what {
            (Content::Sum(segment.offset), self.doubtful.take_whole(segment))
        } else if is_question {
            // It does not say what it asks for, but what is lacking it gives.
            match self.doubtful.ask(segment) {
                Some(parts) => return self.say_lacks(&claim, key, parts),
                None => (Content::Nothing, None),
            }
        } else {
            // As much as is on its way, and as much that was late.
            let (credits, window) = (2 * self.config.source_credits, 2 * self.config.window());
            let Some(payload) = self.doubtful.insist(segment, data, credits, window) else { return Ok(()) };
            (if segment.kind == Kind::Skip { Content::Nothing } else { Content::of(&payload) }, Some(payload))
        };
        let apart = self.apart_of(key, claim.source, content);
        match self.assembly.compare(key, claim.source, content) {
            _ if apart.is_some() => {}
            Likeness::Other => {}
            Likeness::Late => {
                self.counters.late_fragments += u64::from(!is_question);
                let token = Token::answer(key.0, key.1, Verdict::Incomplete, FLAG_LATE);
                self.lines.say(claim.peer, &token.encode());
                return self.lines.check_owed(claim.peer);
            }
            Likeness::Same | Likeness::Unknown => {
                self.counters.duplicate_fragments += u64::from(!is_question);
                return self.say_known(known, &claim, key);
            }
        }
        match (apart, payload) {
            (Some(Known::Here), _) => self.lines.say(claim.peer, &Lacks::here(key.0, key.1).encode()),
            (Some(_), _) => {
                let token = Token::answer(key.0, key.1, Verdict::Quarantined, FLAG_CONFLICT);
                self.lines.say(claim.peer, &token.encode());
            }
            // Parts of both may be in it: whether it is as it was given, the source says when it asks.
            (None, Some(payload)) if says_what && !is_question => self.doubtful.put_back(segment, payload),
            (None, Some(payload)) if !says_what || Content::of(&payload) == content => {
                return self.other_fragment(key, claim, content, &payload);
            }
            (None, _) => {
                let parts = self.doubtful.lacking(segment);
                return self.say_lacks(&claim, key, parts);
            }
        }
        self.lines.check_owed(claim.peer)
    }

    /// Takes a whole fragment that is not of the event of its number.
    fn other_fragment(&mut self, key: Key, claim: Claim, content: Content, payload: &Bytes) -> Result<(), Error> {
        let Some(giver) = source(&mut self.lines, claim.peer, claim.serial) else { return Ok(()) };
        if let Err(error) = giver.enter(claim.length) {
            // It is let go, and comes again.
            giver.answered(claim.length);
            return Err(error);
        }
        self.counters.fragments += 1;
        self.counters.bytes_in += u64::from(claim.length);
        self.set_apart(key, claim, content, payload);
        self.lines.say(claim.peer, &Lacks::here(key.0, key.1).encode());
        self.lines.check_owed(claim.peer)
    }

    /// Tells whether a source says what it asks for.
    fn says_what(&mut self, claim: &Claim) -> bool {
        source(&mut self.lines, claim.peer, claim.serial).is_some_and(|giver| giver.hello.flags & FLAG_COMPARES != 0)
    }

    fn say_lacks(&mut self, claim: &Claim, (run, event): Key, parts: Vec<Range<u32>>) -> Result<(), Error> {
        self.lines.say(claim.peer, &Lacks { run, event, parts }.encode());
        self.lines.check_owed(claim.peer)
    }

    /// Tells a source that its fragment is known: the token was lost, or is still to come.
    fn say_known(&mut self, known: Known, claim: &Claim, (run, event): Key) -> Result<(), Error> {
        if known == Known::Decided {
            let token = Token::answer(run, event, Verdict::Rejected, FLAG_DUPLICATE);
            self.lines.say(claim.peer, &token.encode());
        } else {
            self.assembly.claim((run, event), *claim);
            self.lines.say(claim.peer, &Lacks::here(run, event).encode());
        }
        self.lines.check_owed(claim.peer)
    }
}
