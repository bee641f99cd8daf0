use super::assembly::{Claim, HELD, Outcome};
use super::{Builder, Event, Member, source};
use crate::Error;
use crate::controller::sources::Giver;
use crate::inbound::{Intake, Message};
use crate::wire::{FLAG_COMPARES, FLAG_DUPLICATE, FLAG_ENDS, FLAG_LATE, Header, Hello, Kind, Role, Verdict};
use bytes::Bytes;
use hodo_machine::{Closed, Instant, Peer};

impl Builder {
    pub(super) fn received(&mut self, now: Instant, peer: Peer, mut bytes: &[u8]) {
        loop {
            let outcome = match self.lines.next(now, peer, &mut bytes) {
                Ok(None) => return,
                Ok(Some(message)) => self.message(now, peer, message),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                return self.end(now, peer, error);
            }
        }
    }

    pub(super) fn message(&mut self, now: Instant, peer: Peer, message: Message) -> Result<(), Error> {
        let Some(line) = self.lines.at(peer) else { return Ok(()) };
        match (&mut line.state, message) {
            (Member::Source(giver), Message::Event { kind, event, length, payload }) => {
                giver.enter(length)?;
                let claim = Claim { source: giver.hello.number, peer, serial: giver.serial, length };
                let key = (giver.run, event);
                self.fragment(now, key, claim, kind, payload.unwrap_or_default())
            }
            (Member::Source(giver), Message::Run(run)) => {
                giver.run = run;
                Ok(())
            }
            (Member::Source(giver), Message::Drain) => {
                giver.drained = giver.told_to_drain;
                Ok(())
            }
            (Member::Source(giver), Message::Ends(below)) => {
                let (number, serial, below) = (giver.hello.number, giver.serial, (giver.run, below));
                self.is_to_end(now, (peer, serial), number, below);
                self.lines.check_owed(peer)
            }
            (Member::Greeting { host }, Message::Hello(hello)) => {
                let host = *host;
                self.source_came(now, peer, hello)?;
                self.greetings.over(host, peer);
                Ok(())
            }
            (Member::Greeting { .. }, _) => Err(Error::NoGreeting),
            (_, Message::Ping(value)) => {
                self.lines.say(peer, &Header::new(Kind::Pong, 0, value).encode());
                self.lines.check_owed(peer)
            }
            (_, Message::Pong) => Ok(()),
            (_, Message::Refused(code)) => Err(Error::RefusedBy { code }),
            (_, other) => Err(Error::Unexpected { kind: other.kind() }),
        }
    }

    /// Takes the greeting of a source, which replaces an earlier connection of the same instance.
    pub(super) fn source_came(&mut self, now: Instant, peer: Peer, hello: Hello) -> Result<(), Error> {
        if hello.role != Role::Source {
            return Err(Error::WrongRole { role: hello.role });
        }
        let (number, sources) = (hello.number, self.config.sources);
        let place = *self.places.get(number as usize).ok_or(Error::NoSuchSource { number, sources })?;
        if let Some(before) = place.filter(|before| *before != peer) {
            // Of two that are there at once, each would give other data under the same numbers.
            let is_another = |there: &Giver| there.hello.instance != hello.instance;
            if matches!(self.lines.at(before).map(|line| &line.state), Some(Member::Source(there)) if is_another(there))
            {
                return Err(Error::Replaced { number });
            }
            self.end(now, before, Error::Replaced { number });
        }
        self.places[number as usize] = Some(peer);
        self.ending.remove(&number);
        self.assembly.streams.joined(now, number, hello.instance, hello.resumes);
        self.serials += 1;
        let (serial, credits, window) = (self.serials, self.config.source_credits, self.config.window());
        let is_draining = self.draining.is_some() || self.sender.is_draining() || !self.assembly.has_runs();
        self.segments.forget(number);
        self.doubtful.forget(number);
        if let Some(line) = self.lines.at(peer) {
            line.intake = Intake { event_max: self.config.fragment_max, data_max: 0, keep: true };
            let giver = Giver { told_to_drain: is_draining, ..Giver::new(hello, serial, 0, credits, window) };
            line.state = Member::Source(giver);
        }
        self.lines.look_by(peer, now + self.config.silence / 4);
        self.greet(peer);
        self.events.push_back(Event::Joined { peer, hello });
        Ok(())
    }

    /// Sends the answer to a source's greeting.
    pub(super) fn greet(&mut self, peer: Peer) {
        let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &line.state) else { return };
        let (credits, window, is_draining) = (giver.credits, giver.window, giver.told_to_drain);
        let answer = Hello {
            role: Role::Builder,
            flags: FLAG_ENDS | if self.config.datagrams { FLAG_COMPARES } else { 0 },
            number: self.config.number,
            credits,
            window,
            event_max: self.config.fragment_max,
            weight: 1,
            instance: self.config.instance,
            resumes: None,
        };
        self.lines.say(peer, &answer.encode());
        if is_draining {
            self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
        }
    }

    pub(super) fn fragment(
        &mut self,
        now: Instant,
        (run, event): (u32, u64),
        claim: Claim,
        kind: Kind,
        payload: Bytes,
    ) -> Result<(), Error> {
        self.counters.fragments += 1;
        self.counters.bytes_in += u64::from(claim.length);
        // A connection has its window, and so may have had the one before it.
        let max = 2 * (self.config.window() + u64::from(self.config.source_credits) * HELD);
        if self.assembly.in_hand(claim.source) + u64::from(claim.length) > max {
            return Err(Error::OverCredit { max });
        }
        if !self.assembly.has_runs() {
            // It was on its way when its source was told to wait, and comes again.
            return Err(Error::Closed(Closed::Finished));
        }
        let outcome = self.assembly.offer(now, (run, event), claim, kind, payload);
        match outcome.inspect_err(|_| self.counters.unexpected_fragments += 1)? {
            Outcome::Waits => {}
            Outcome::Completes => self.give((run, event)),
            Outcome::Late => self.counters.late_fragments += 1,
            Outcome::Duplicate => {
                self.counters.duplicate_fragments += 1;
                let lines = &mut self.lines;
                self.assembly.retain_claims((run, event), |claim| source(lines, claim.peer, claim.serial).is_some());
            }
            Outcome::Decided => {
                self.counters.duplicate_fragments += 1;
                self.tell(&claim, run, event, Verdict::Rejected, FLAG_DUPLICATE);
            }
            Outcome::TooLate => {
                self.counters.late_fragments += 1;
                self.tell(&claim, run, event, Verdict::Incomplete, FLAG_LATE);
            }
            Outcome::Conflict(content, payload) => {
                // It may come again before it has its token, by a new connection.
                if !self.claim_apart((run, event), claim, content) {
                    self.set_apart((run, event), claim, content, &payload);
                }
            }
        }
        self.assembly.streams.gave(now, claim.source, (run, event));
        self.lines.check_owed(claim.peer)
    }
}
