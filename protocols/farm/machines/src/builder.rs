//! The builder: makes events of the fragments of its sources, and gives each to the controller.
//!
//! A built event is its fragments in the order of their sources' numbers, each behind 8 bytes, little-endian: the
//! number, and the fragment's length.

mod assembly;
mod config;
mod datagrams;
mod ending;
mod intake;
mod memory;
mod recent;
mod segments;
mod sources;

use crate::Error;
use crate::controller::sources::Giver;
use crate::greetings::{Greetings, host};
use crate::inbound::Intake;
use crate::lines::{Gone, Lines, Silence};
use crate::sender::{Sender, SenderConfig, SenderEvent};
use crate::wire::{FLAG_CONFLICT, FLAG_DUPLICATE, Kind, Role, Token, Verdict};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
pub use assembly::FRAGMENT;
use assembly::{Assembly, Claim, Key};
use bytes::Bytes;
pub use config::{BuilderConfig, Command, Counters, Event, Incomplete};
use hodo_machine::{Address, Charges, Input, Instant, Machine, Outbox, Output, Peer, Pool};
use recent::Recent;
use segments::Segments;
pub use sources::SourceCounters;

/// A connected peer, as the builder knows it.
#[derive(Debug)]
enum Member {
    Greeting { host: u64 },
    Source(Giver),
}

/// Makes events of fragments.
#[derive(Debug)]
pub struct Builder {
    config: BuilderConfig,
    lines: Lines<Member>,
    sender: Sender,
    /// Events of the sender that have not been handled yet.
    told: Vec<SenderEvent>,
    assembly: Assembly,
    /// Fragments that come over datagrams and are not whole.
    segments: Segments,
    recent: Recent,
    /// Fragments that were given on because other data has their numbers, and await their tokens.
    conflicts: BTreeMap<Key, VecDeque<Claim>>,
    events: VecDeque<Event>,
    greetings: Greetings,
    /// The connection of each source.
    places: Vec<Option<Peer>>,
    serials: u64,
    counters: Counters,
    /// Since when no fragment is taken in.
    draining: Option<Instant>,
    drained: bool,
    /// Since when the sources are to give nothing but what the others have given.
    stopping: Option<Instant>,
    /// Whether they were told at which number to end.
    has_end: bool,
    /// Since when a source asks at which number to end.
    asked_since: Option<Instant>,
    held_up_since: Option<Instant>,
    /// The time of the last call.
    now: Instant,
}

impl Builder {
    /// Creates a builder that reaches its controller at once.
    #[must_use]
    pub fn new(config: BuilderConfig) -> Self {
        let sender = Sender::new(SenderConfig {
            address: config.controller.clone(),
            role: Role::Builder,
            number: config.number,
            instance: config.instance,
            greeting: config.greeting,
            silence: config.silence,
            datagram: None,
        });
        Builder {
            lines: Lines::over(config.datagrams).charging(Charges::new(config.allowance, Pool::default())),
            segments: Segments::default(),
            recent: Recent::new(2 * config.source_credits as usize),
            sender,
            told: Vec::new(),
            assembly: Assembly::new(config.sources, config.waits(), config.remembered),
            conflicts: BTreeMap::new(),
            events: VecDeque::new(),
            greetings: Greetings::default(),
            places: alloc::vec![None; config.sources as usize],
            serials: 0,
            counters: Counters::default(),
            draining: None,
            drained: false,
            stopping: None,
            has_end: false,
            asked_since: None,
            held_up_since: None,
            now: Instant::ZERO,
            config,
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (open, all) = self.assembly.counts();
        let (held_back_ns, counted_gone) = self.assembly.sources.totals();
        Counters {
            held_back_ns,
            counted_gone,
            events_open: open as u64,
            events_waiting: (all - open) as u64,
            sources: self.places.iter().flatten().count() as u64,
            is_draining: self.draining.is_some(),
            ..self.counters
        }
    }

    /// Returns the numbers of the sources that are not connected.
    #[must_use]
    pub fn absent(&self) -> Vec<u32> {
        (0..).zip(&self.places).filter(|(_, place)| place.is_none()).map(|(number, _)| number).collect()
    }

    /// Returns the counters of each source, in the order of their numbers.
    #[must_use]
    pub fn source_counters(&self) -> Vec<SourceCounters> {
        self.assembly.sources.counters().collect()
    }

    /// Returns the numbers of the sources that have never come although events wait for them.
    #[must_use]
    pub fn awaited(&self) -> Vec<u32> {
        self.assembly.sources.awaited().collect()
    }

    /// Tells whether every event that was given on has its verdict, and no fragment will come. Sources keep their
    /// fragments of events that are not whole, for a builder after this one.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let (open, all) = self.assembly.counts();
        self.draining.is_some() && open == all && self.has_end && self.conflicts.is_empty() && self.has_all()
    }

    /// Gives an event on, with what is here of it.
    fn give(&mut self, (run, event): Key) {
        let Some(built) = self.assembly.build((run, event), self.config.incomplete) else { return };
        if built.missing == 0 {
            self.counters.complete += 1;
        } else {
            let missing = built.missing;
            self.counters.incomplete += 1;
            self.counters.lost_fragments += u64::from(missing);
            self.events.push_back(Event::Incomplete { run, event, missing });
        }
        self.sender.give(run, event, built.kind, built.payload);
        for (source, payload) in self.assembly.conflicts((run, event)) {
            self.give_conflict((run, event), source, &payload);
        }
    }

    /// Gives on what was waited for long enough.
    fn give_overdue(&mut self, now: Instant) {
        // What is missing then is with sources that were told to stop: they give it when they may again.
        let stopped = self.draining.is_some() || self.sender.is_draining();
        if stopped && self.assembly.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.assembly.wait_on(now);
        }
        while let Some(key) = self.assembly.overdue(now) {
            self.give(key);
            while let Some(source) = self.assembly.behind() {
                self.counts_as_gone(source);
            }
        }
        for source in self.assembly.sources.starts_without(now) {
            self.events.push_back(Event::StartedWithout { source });
        }
    }

    /// Tells a source that it gave nothing for too long, where it is there.
    fn counts_as_gone(&mut self, source: u32) {
        let within = self.assembly.sources.behind();
        self.events.push_back(Event::Behind { source, within });
        let Some(peer) = self.places[source as usize] else { return };
        if let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &line.state) {
            let instance = giver.hello.instance;
            self.assembly.sources.tell(source, instance);
            self.end(peer, Error::Behind { seconds: within.as_secs() });
        }
    }

    /// Looks at what the sender has told.
    fn hear(&mut self, now: Instant) {
        for told in core::mem::take(&mut self.told) {
            match told {
                SenderEvent::Joined(hello) => {
                    self.events.push_back(Event::Reached(hello));
                    if self.draining.is_none() {
                        // Those that were told to stop could give nothing.
                        self.assembly.sources.excuse(now);
                        self.restart_sources();
                    }
                }
                SenderEvent::Opened(run) => self.opened_run(run),
                SenderEvent::Left(error) => self.events.push_back(Event::Lost(error)),
                SenderEvent::Draining => self.stop_sources(now),
                SenderEvent::TooLarge { run, event, kind: Kind::Conflict, .. } => {
                    if let Some(claim) = self.take_conflict((run, event)) {
                        self.tell(&claim, run, event, Verdict::Incomplete, FLAG_CONFLICT);
                    }
                }
                SenderEvent::TooLarge { run, event, size, max, .. } => {
                    self.events.push_back(Event::TooLarge { run, event, size, max });
                    self.sender.give(run, event, Kind::Skip, Bytes::new());
                }
                SenderEvent::Answered(token) => self.answered(&token),
            }
        }
    }

    /// Takes fragments of a run from now on: until the first one, sources were told to give nothing.
    fn opened_run(&mut self, run: u32) {
        let is_first = !self.assembly.has_runs();
        self.assembly.open(run);
        if is_first && self.draining.is_none() {
            self.restart_sources();
        }
    }

    /// Tells the verdict on an event to the sources of its fragments.
    fn answered(&mut self, token: &Token) {
        let key = (token.run, token.event);
        let is_conflict = token.flags & FLAG_CONFLICT != 0;
        // One that is not flagged was the first under its number there.
        if (is_conflict || !self.assembly.has(key))
            && let Some(claim) = self.take_conflict(key)
        {
            return self.tell(&claim, token.run, token.event, token.verdict, FLAG_CONFLICT);
        }
        self.counters.conflicts += u64::from(is_conflict);
        self.counters.answered += 1;
        let is_duplicate = token.flags & FLAG_DUPLICATE != 0;
        self.counters.duplicates += u64::from(is_duplicate);
        let flags = token.flags & (FLAG_DUPLICATE | FLAG_CONFLICT);
        let claims = self.assembly.decide(key, token.verdict);
        if is_conflict && let Some(claim) = claims.first() {
            self.events.push_back(Event::Conflict { run: token.run, event: token.event, source: claim.source });
        }
        for claim in claims {
            self.tell(&claim, token.run, token.event, token.verdict, flags | claim.flags);
        }
    }

    /// Takes the claim of the first fragment whose number this is and other data has.
    fn take_conflict(&mut self, key: Key) -> Option<Claim> {
        let claims = self.conflicts.get_mut(&key)?;
        let claim = claims.pop_front();
        if claims.is_empty() {
            self.conflicts.remove(&key);
        }
        if let Some(claim) = &claim {
            self.assembly.let_go(claim);
        }
        claim
    }

    fn tell(&mut self, claim: &Claim, run: u32, event: u64, verdict: Verdict, flags: u8) {
        let token = Token::answer(run, event, verdict, flags);
        if let Some(giver) = source(&mut self.lines, claim.peer, claim.serial) {
            giver.answered(claim.length);
            self.lines.say(claim.peer, &token.encode());
        }
        self.look_at_room(claim);
    }

    /// Looks at how much more a source may give.
    fn look_at_room(&mut self, claim: &Claim) {
        let max = u64::from(self.config.fragment_max);
        if let Some(giver) = source(&mut self.lines, claim.peer, claim.serial) {
            let mean = giver.bytes / u64::from(giver.outstanding.max(1));
            let is_full = giver.outstanding >= giver.credits || giver.bytes + mean > giver.window;
            let has_room = !is_full && (giver.bytes == 0 || giver.bytes + max <= giver.window);
            self.assembly.sources.set_room(self.now, claim.source, has_room, is_full);
        }
    }

    /// Sends a source away.
    fn end(&mut self, peer: Peer, error: Error) {
        if let Some(member) = self.lines.end(peer, &error) {
            self.gone(peer, member, error);
        }
    }

    fn gone(&mut self, peer: Peer, member: Member, error: Error) {
        self.counters.misbehaved += u64::from(error.is_misbehaviour());
        self.counters.closed_for_memory += u64::from(matches!(error, Error::TooMuchMemory(_)));
        match member {
            Member::Greeting { host } => {
                self.greetings.over(host, peer);
                self.counters.refused += 1;
                self.events.push_back(Event::Refused(peer, error));
            }
            Member::Source(giver) => {
                if let Some(place) = self.places.get_mut(giver.hello.number as usize)
                    && *place == Some(peer)
                {
                    *place = None;
                    self.segments.forget(giver.hello.number);
                    self.assembly.left(self.now, giver.hello.number, &error);
                    self.end_together(self.now);
                }
                self.events.push_back(Event::Left { peer, hello: giver.hello, error });
            }
        }
    }

    fn elapsed(&mut self, now: Instant) {
        self.give_overdue(now);
        self.end_together(now);
        while let Some(peer) = self.lines.due(now) {
            self.look_at(now, peer);
        }
    }

    /// Ends a source that has not greeted in time, or was silent for too long.
    fn look_at(&mut self, now: Instant, peer: Peer) {
        let Some(line) = self.lines.at(peer) else { return };
        match (&mut line.state, self.stopping) {
            (Member::Greeting { .. }, _) => return self.end(peer, Error::NoGreeting),
            // One that does not answer to DRAIN, and has ceased to give, gives no more all the same.
            (Member::Source(giver), Some(since)) => {
                let since = since.max(self.assembly.sources.progress_at(giver.hello.number));
                giver.drained |= now - since >= self.config.silence;
            }
            (Member::Source(_), None) => {}
        }
        if self.lines.silence(now, peer, self.config.silence) == Silence::Long {
            self.end(peer, Error::Silent);
        }
    }

    fn look_at_all(&mut self, at: Instant) {
        for peer in self.places.iter().flatten() {
            self.lines.look_by(*peer, at);
        }
    }

    fn handle_source(&mut self, now: Instant, peer: Peer, input: &Input<'_, Command>) {
        match *input {
            Input::Opened(_, ends) => self.opened(now, peer, &ends.remote),
            Input::Received(_, bytes) if self.config.datagrams => self.datagram(now, peer, bytes),
            Input::Received(_, bytes) => self.received(now, peer, bytes),
            Input::Landed(_, count) => {
                self.lines.landed(peer, count);
                self.received(now, peer, &[]);
            }
            Input::Closed(_, why) => match self.lines.gone(peer) {
                Gone::Was(member) => self.gone(peer, member, Error::Closed(why)),
                Gone::Ended | Gone::Never => {}
            },
            Input::Blocked(_) => self.lines.set_blocked(peer, true),
            Input::Drained(_) => self.lines.set_blocked(peer, false),
            Input::Command(_) | Input::Elapsed => {}
        }
    }

    fn opened(&mut self, now: Instant, peer: Peer, address: &Address) {
        let host = host(address);
        self.lines.insert(now, (peer, address), Member::Greeting { host }, Intake::NONE, self.config.greeting);
        if let Some((oldest, error)) = self.greetings.begin(host, peer) {
            self.end(oldest, error);
        }
    }

    /// Adds up the time during which built events could not be given on.
    fn account(&mut self, now: Instant) {
        if let Some(since) = self.held_up_since {
            self.counters.dead_time_ns += now.nanos_since(since);
        }
        self.held_up_since = self.sender.is_held_up().then_some(now);
        self.assembly.sources.account(now);
    }
}

/// Returns a source while it has the connection with this serial number.
fn source(lines: &mut Lines<Member>, peer: Peer, serial: u64) -> Option<&mut Giver> {
    match &mut lines.at(peer)?.state {
        Member::Source(giver) if giver.serial == serial => Some(giver),
        _ => None,
    }
}

impl Machine for Builder {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        self.now = now;
        match input {
            Input::Command(Command::Drain) => {
                self.draining = self.draining.or(Some(now));
                self.stop_sources(now);
            }
            Input::Opened(peer, _)
            | Input::Received(peer, _)
            | Input::Landed(peer, _)
            | Input::Closed(peer, _)
            | Input::Blocked(peer)
            | Input::Drained(peer)
                if peer.is_accepted() =>
            {
                self.handle_source(now, peer, &input);
            }
            other => {
                let heard = &mut self.told;
                self.sender.handle(now, &other, &mut |told| heard.push(told));
                self.hear(now);
                if matches!(other, Input::Elapsed) {
                    self.elapsed(now);
                }
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(output) = self.lines.poll(out) {
            return output;
        }
        if self.stopping.is_some() && self.has_all() {
            if self.goes_on_to_end() {
                return self.poll(now, out);
            }
            self.sender.finish_drain();
        }
        let heard = &mut self.told;
        if let Some(output) = self.sender.poll(now, out, &mut |told| heard.push(told)) {
            return output;
        }
        if !self.told.is_empty() {
            self.hear(now);
            return self.poll(now, out);
        }
        self.account(now);
        if !self.drained && self.is_drained() {
            self.drained = true;
            return Output::Event(Event::Drained);
        }
        let deadlines = [self.assembly.next_deadline(), self.sender.deadline(), self.lines.next_look(), self.ends_at()];
        Output::Idle(deadlines.into_iter().flatten().min())
    }

    fn charges(&self) -> Option<&Charges> {
        Some(&self.lines.charges)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        if peer.is_accepted() { self.lines.at(peer)?.inbound.landing() } else { self.sender.landing() }
    }
}

#[cfg(test)]
mod tests;
