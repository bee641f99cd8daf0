use super::nodes::{Member, Origin, PendingEvent};
use super::{Claim, Controller, State};
use crate::Error;
use crate::inbound::Intake;
use crate::ledger::Standing;
use crate::lines::Lines;
use crate::sums::Data;
use crate::supply::Supply;
use crate::wire::{FLAG_DUPLICATE, FLAG_LATE, HEADER, Header, Hello, Kind, Role, Token, Verdict};
use bytes::Bytes;
use hodo_machine::{Instant, Peer};

/// Bytes that an event takes beside its payload.
pub(super) const HELD: u64 = 128;

/// A number that is so much below one before it was not kept.
pub(crate) const FAR: u64 = 1 << 20;

/// A source or a builder, as the controller sees it.
#[derive(Debug)]
pub(crate) struct Giver {
    pub(crate) hello: Hello,
    /// Differs for each connection.
    pub(crate) serial: u64,
    /// The run that its next event belongs to.
    pub(crate) run: u32,
    /// Whether what it gives are fragments for the quarantine.
    pub(crate) is_apart: bool,
    /// Events that it may have unanswered.
    pub(crate) credits: u32,
    pub(crate) window: u64,
    /// Events and bytes without a token.
    pub(crate) outstanding: u32,
    pub(crate) bytes: u64,
    /// Bytes of events without a verdict.
    pub(crate) in_hand: u64,
    /// Whether it was told to give no more, and whether it has said that it does so.
    pub(crate) told_to_drain: bool,
    pub(crate) drained: bool,
    /// When its last event came, or it.
    pub(crate) active: Instant,
    /// Whether it has given any event.
    pub(crate) has_given: bool,
    /// The highest number that it has given by this connection, and its run.
    pub(crate) highest: (u32, u64),
}

impl Giver {
    pub(crate) fn new(hello: Hello, serial: u64, run: u32, credits: u32, window: u64) -> Self {
        Giver {
            hello,
            serial,
            run,
            is_apart: false,
            credits,
            window,
            outstanding: 0,
            bytes: 0,
            in_hand: 0,
            told_to_drain: false,
            drained: false,
            active: Instant::ZERO,
            has_given: false,
            highest: (run, 0),
        }
    }

    /// Notes that it has given something, and returns its role and its number.
    pub(super) fn gives(&mut self, now: Instant) -> (Role, u32) {
        (self.active, self.has_given) = (now, true);
        (self.hello.role, self.hello.number)
    }

    /// Notes a number, and tells whether it is so far below one that was given before that its count has begun anew: whoever
    /// gives again what it kept has only the last ones.
    #[inline]
    fn counts_anew(&mut self, run: u32, event: u64) -> bool {
        let (its_run, highest) = self.highest;
        if run != its_run || event > highest {
            self.highest = (run, event);
            return false;
        }
        highest - event >= FAR
    }

    /// Enters an event that has come.
    #[inline]
    pub(crate) fn enter(&mut self, length: u32) -> Result<(), Error> {
        self.outstanding += 1;
        self.bytes += u64::from(length);
        if self.outstanding > self.credits {
            return Err(Error::OverCredit { max: u64::from(self.credits) });
        }
        if self.bytes > self.window {
            return Err(Error::OverCredit { max: self.window });
        }
        Ok(())
    }

    /// Begins a run, or with what of it is for the quarantine: that only builders give.
    pub(crate) fn begins(&mut self, run: u32, is_apart: bool) -> Result<(), Error> {
        if is_apart && self.hello.role != Role::Builder {
            return Err(Error::Unexpected { kind: Kind::Run.code() });
        }
        (self.run, self.is_apart) = (run, is_apart);
        Ok(())
    }

    /// Counts an event of this length as answered.
    #[inline]
    pub(crate) fn answered(&mut self, length: u32) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(length));
    }
}

impl<S: Supply> Controller<S> {
    /// Takes the greeting of a source or a builder.
    pub(super) fn giver_came(&mut self, now: Instant, peer: Peer, hello: Hello) -> Result<(), Error> {
        // Two that are there at once would give different events under the same numbers, of which one is taken for a duplicate.
        let is_there = |giver: &Giver| {
            (giver.hello.role, giver.hello.number) == (hello.role, hello.number)
                && giver.hello.instance != hello.instance
        };
        if self.givers().any(is_there) {
            return Err(Error::Replaced { number: hello.number });
        }
        if self.accounts.givers >= self.config.sources_max {
            self.make_room(now);
        }
        let Controller { config, .. } = self;
        let (max, credits) = (config.sources_max, config.source_credits);
        let window = (config.pool_bytes / u64::from(max.max(1))).max(u64::from(config.event_max));
        // What earlier connections have left in hand counts too, or one that comes again and again would fill memory.
        if self.accounts.givers >= max
            || self.accounts.granted + self.accounts.orphaned + window > window * u64::from(max)
        {
            return Err(Error::Full { max });
        }
        self.accounts.givers += 1;
        self.accounts.granted += window;
        self.accounts.serials += 1;
        let (serial, run) = (self.accounts.serials, self.run);
        let begun = self.ledger.newest_begun().filter(|_| hello.role == Role::Builder);
        let answer = Hello { resumes: begun.map(|run| (run, 0)), ..self.hello(credits, window) };
        self.lines.say(peer, &answer.encode());
        if hello.role == Role::Builder {
            for run in self.ledger.runs() {
                self.lines.say(peer, &opened(run));
            }
        }
        if let Some(line) = self.lines.at(peer) {
            line.intake = Intake { event_max: self.config.event_max, data_max: 0, keep: true };
            line.state = Member::Giver(Giver { active: now, ..Giver::new(hello, serial, run, credits, window) });
        }
        if self.state == State::Draining {
            self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
        }
        Ok(())
    }

    /// Opens a run, and begins it where that can be done: the pages say which run goes on.
    pub(super) fn begin_run(&mut self, run: u32) {
        if self.ledger.open(run).is_err() {
            return;
        }
        self.run = run;
        for peer in self.giver_peers() {
            if matches!(self.lines.at(peer).map(|line| &line.state), Some(Member::Giver(giver)) if giver.hello.role == Role::Builder)
            {
                self.lines.say(peer, &opened(run));
            }
        }
    }

    /// Ends the source that has been idle longest, if it was so for long enough: those that never gave an event come first.
    fn make_room(&mut self, now: Instant) {
        let max = self.config.sources_max;
        let givers = self.lines.peers.iter().filter_map(|(peer, line)| match &line.state {
            Member::Giver(giver) => Some((peer, giver)),
            _ => None,
        });
        let has_nothing = |giver: &Giver| giver.outstanding == 0 && giver.in_hand == 0;
        let idle = givers.filter(|(_, giver)| has_nothing(giver) && now - giver.active >= self.config.source_idle);
        let longest = idle.min_by_key(|(_, giver)| (giver.has_given, giver.active));
        if let Some(peer) = longest.map(|(peer, _)| peer) {
            self.end(now, peer, Error::Idle { max });
        }
    }

    /// Takes in an event of a source or a builder.
    pub(super) fn given(
        &mut self,
        now: Instant,
        (peer, serial): (Peer, u64),
        run: u32,
        event: u64,
        kind: Kind,
        payload: Bytes,
    ) -> Result<(), Error> {
        let length = payload.len() as u32;
        let Some(from) = giver(&mut self.lines, peer, serial) else { return Ok(()) };
        let ((role, number), anew) = (from.gives(now), from.counts_anew(run, event));
        let data = match (role, kind) {
            (Role::Builder, Kind::Skip) => Data::GivenUp,
            (Role::Builder, _) => Data::Fragments(&payload, kind == Kind::Event),
            (_, Kind::Skip) => Data::Nothing,
            _ => Data::Event(&payload),
        };
        let (standing, content) = self.ledger.offer(number, run, event, data)?;
        let standing = match standing {
            Standing::Doubtful => self.doubtful(run, event, &payload, (content, anew)),
            clear => clear,
        };
        // Of what a builder gives that was started again, fragments may be late.
        let is_again = matches!(standing, Standing::InHand | Standing::Decided) && role == Role::Builder;
        let late = if is_again { self.ledger.late(run, event, &payload) } else { 0 };
        match standing {
            Standing::New => {
                self.counters.bytes_in += u64::from(length);
                if let Some(giver) = giver(&mut self.lines, peer, serial) {
                    giver.in_hand += u64::from(length) + HELD;
                }
                let origin = Origin::Peer(peer, serial);
                let (deaths, stamped, came) = (0, false, now);
                let held = PendingEvent { run, event, kind, deaths, stamped, payload, content, origin, came };
                if kind == Kind::Skip {
                    self.decide(held, Verdict::Incomplete, (0, 0), Bytes::new());
                } else {
                    self.waiting.push_back(held);
                }
            }
            // It gets its token together with who had sent it before.
            Standing::InHand => {
                let claims = self.accounts.claims.entry((run, event)).or_default();
                let lines = &mut self.lines;
                claims.retain(|claim| giver(lines, claim.peer, claim.serial).is_some());
                claims.push(Claim { peer, serial, length, late });
            }
            Standing::Decided => self.owe((peer, serial), again(run, event, Verdict::Rejected, late), length),
            Standing::Conflict if role == Role::Builder => {
                self.quarantine_built((peer, serial), (run, event), number, &payload);
            }
            Standing::Conflict => self.quarantine((peer, serial), (run, event), (role, number, 0), payload, length),
            Standing::Doubtful => self.doubt((peer, serial), (run, event), (role, number), (content, anew), payload),
        }
        self.lines.check_owed(peer)
    }
}

/// Returns the token of an event that was given again, of which the fragments of these sources were late.
pub(super) fn again(run: u32, event: u64, verdict: Verdict, late: u64) -> Token {
    let flags = if late == 0 { FLAG_DUPLICATE } else { FLAG_DUPLICATE | FLAG_LATE };
    Token::answer(run, event, verdict, flags).with_sources(late)
}

/// Returns the message that tells a builder of an open run.
fn opened(run: u32) -> [u8; HEADER] {
    Header::new(Kind::Run, 0, u64::from(run)).encode()
}

/// Returns a giver while it has the connection with this serial number.
pub(super) fn giver(lines: &mut Lines<Member>, peer: Peer, serial: u64) -> Option<&mut Giver> {
    match &mut lines.at(peer)?.state {
        Member::Giver(giver) if giver.serial == serial => Some(giver),
        _ => None,
    }
}
