//! The builder: makes events of the fragments of its sources, and gives each to the controller.
//!
//! A built event is its fragments in the order of their sources' numbers, each behind 8 bytes, little-endian: the
//! number, and the fragment's length.

mod assembly;
mod config;
mod datagrams;
mod ending;
mod intake;
mod segments;
mod streams;

use crate::Error;
use crate::controller::sources::Giver;
use crate::greetings::{Greetings, host};
use crate::inbound::Intake;
use crate::lines::{Gone, Line, Lines, Silence};
use crate::recent::Recent;
use crate::sender::{Sender, SenderConfig, SenderEvent};
use crate::sums::Content;
use crate::wire::{FLAG_CONFLICT, FLAG_DUPLICATE, FLAG_LATE, Header, Kind, Role, Token, Verdict};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
pub use assembly::FRAGMENT;
use assembly::{Assembly, Claim, Key, Known};
use bytes::Bytes;
pub use config::{BuilderConfig, Command, Counters, Event, Incomplete};
use ending::Ending;
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer};
use segments::Segments;
use streams::{Due, Streams, Waits};

/// Fragments in the quarantine that are remembered, to answer again.
const APART_MAX: usize = 1024;

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
    /// Fragments under numbers of their sources that are taken, on their way to the quarantine: who is to be told.
    apart: BTreeMap<Key, VecDeque<(Claim, Content)>>,
    /// The sources and the numbers of the last that are there.
    apart_before: Recent<(u32, Key, Content), APART_MAX>,
    /// Segments that may be of such fragments.
    doubtful: Segments,
    /// Fragments that come over datagrams and are not whole.
    segments: Segments,
    events: VecDeque<Event>,
    greetings: Greetings,
    /// The connection of each source.
    places: Vec<Option<Peer>>,
    /// The sources that are to end, by their numbers.
    ending: BTreeMap<u32, Ending>,
    serials: u64,
    counters: Counters,
    /// Since when no fragment is taken in.
    draining: Option<Instant>,
    drained: bool,
    held_up_since: Option<Instant>,
    held_back_since: Option<Instant>,
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
        let waits = Waits::new(config.patience, config.behind, config.datagrams);
        Builder {
            lines: Lines::over(config.datagrams),
            segments: Segments::default(),
            sender,
            told: Vec::new(),
            assembly: Assembly::new(config.sources, Streams::new(config.sources, waits, config.starts_without)),
            apart: BTreeMap::new(),
            apart_before: Recent::default(),
            doubtful: Segments::default(),
            events: VecDeque::new(),
            greetings: Greetings::default(),
            places: alloc::vec![None; config.sources as usize],
            ending: BTreeMap::new(),
            serials: 0,
            counters: Counters::default(),
            draining: None,
            drained: false,
            held_up_since: None,
            held_back_since: None,
            config,
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (open, all) = self.assembly.counts();
        Counters {
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

    /// Returns the sources for which the first event waits that lacks fragments, and whether each has been here before.
    #[must_use]
    pub fn waited_for(&self) -> (Vec<u32>, bool) {
        let waited_for = self.assembly.waited_for();
        let has_begun = !waited_for.iter().any(|source| self.assembly.streams.is_awaited(*source));
        (waited_for, has_begun)
    }

    /// Tells whether every event that was given on has its verdict, and no fragment will come. Sources keep their
    /// fragments of events that are not whole, for a builder after this one.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let silent = |line: &Line<Member>| !matches!(&line.state, Member::Source(giver) if !giver.drained);
        let (open, all) = self.assembly.counts();
        self.draining.is_some()
            && open == all
            && self.apart.is_empty()
            && self.lines.peers.iter().all(|(_, line)| silent(line))
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
    }

    /// Gives on what was waited for long enough.
    fn give_overdue(&mut self, now: Instant) {
        // What is missing then is with sources that were told to stop: they give it when they may again.
        let stopped = self.draining.is_some() || self.sender.is_draining();
        if stopped && self.assembly.streams.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.assembly.streams.stop(now);
        }
        while let Some(due) = self.assembly.streams.due(now) {
            match due {
                Due::Passed(key) if self.assembly.is_passed(key) => self.give(key),
                Due::Passed(_) => {}
                Due::Gone(source) => {
                    self.events.push_back(Event::Gone { source });
                    self.give_released();
                    self.end_together(false);
                }
                Due::Look => self.look_for_late(now),
                Due::End => self.end_together(true),
            }
        }
    }

    /// Gives on what has waited only for sources that are not waited for any more.
    fn give_released(&mut self) {
        self.assembly.released().into_iter().for_each(|key| self.give(key));
    }

    /// Looks for sources that are there and have given nothing for long although others wait.
    fn look_for_late(&mut self, now: Instant) {
        for source in 0..self.config.sources {
            let peer = self.places.get(source as usize).copied().flatten();
            let is_amid = |line: &&mut Line<Member>| !self.config.datagrams && line.inbound.is_amid();
            let amid = peer.and_then(|peer| self.lines.at(peer)).filter(is_amid).map(|line| line.heard);
            // One may give no more, or gives something large.
            if let Some(heard) = amid.or_else(|| self.is_full(source).then_some(now)) {
                self.assembly.streams.heard(heard, source);
            }
            if self.assembly.streams.is_behind(now, source) {
                self.counters.behind += 1;
                self.events.push_back(Event::Behind { source });
                if let Some(peer) = peer {
                    self.end(now, peer, Error::Behind);
                }
                self.give_released();
            }
        }
        self.assembly.streams.look_again(now);
    }

    /// Looks at what the sender has told.
    fn hear(&mut self, now: Instant) {
        for told in core::mem::take(&mut self.told) {
            match told {
                SenderEvent::Joined(hello) => {
                    self.events.push_back(Event::Reached(hello));
                    if let Some((run, _)) = hello.resumes {
                        self.assembly.streams.begun(now, run);
                    }
                    if self.draining.is_none() {
                        self.assembly.streams.wait_on(now);
                        self.drain_sources(now, false);
                    }
                }
                SenderEvent::Opened(run) => self.opened_run(now, run),
                SenderEvent::Left(error) => self.events.push_back(Event::Lost(error)),
                SenderEvent::Draining => self.drain_sources(now, true),
                SenderEvent::TooLarge { run, event, size, max, apart } => {
                    self.events.push_back(Event::TooLarge { run, event, size, max });
                    if apart {
                        self.apart_is_over((run, event), Verdict::Incomplete);
                    } else {
                        self.sender.give(run, event, Kind::Skip, Bytes::new());
                    }
                }
                SenderEvent::Answered(token) => self.answered(&token),
                SenderEvent::Ends(_) => {}
            }
        }
    }

    /// Takes fragments of a run from now on: until the first one, sources were told to give nothing.
    fn opened_run(&mut self, now: Instant, run: u32) {
        let is_first = !self.assembly.has_runs();
        self.assembly.open(run);
        if is_first && self.draining.is_none() {
            self.drain_sources(now, false);
        }
    }

    /// Sources give nothing while the controller takes nothing. One that takes events again has them come anew.
    fn drain_sources(&mut self, now: Instant, drain: bool) {
        let places = self.places.clone();
        for peer in places.into_iter().flatten() {
            let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &mut line.state) else { continue };
            if drain && !core::mem::replace(&mut giver.told_to_drain, true) {
                self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
            } else if !drain && giver.told_to_drain {
                self.end(now, peer, Error::Closed(Closed::Finished));
            }
        }
    }

    /// Tells the verdict on an event to the sources of its fragments.
    fn answered(&mut self, token: &Token) {
        let Token { run, event, verdict, flags, .. } = *token;
        if token.is_apart() {
            return self.apart_is_over((run, event), verdict);
        }
        self.counters.answered += 1;
        self.counters.duplicates += u64::from(flags & FLAG_DUPLICATE != 0);
        self.counters.conflicts += u64::from(flags & FLAG_CONFLICT != 0);
        for (claim, was_late) in self.assembly.decide((run, event), verdict) {
            // The event went on without it here, or at a builder before this one.
            if was_late || flags & FLAG_LATE != 0 && token.is_of_source(claim.source) {
                self.assembly.was_late((run, event), claim.source);
                self.tell(&claim, run, event, Verdict::Incomplete, FLAG_LATE);
            } else if flags & FLAG_CONFLICT == 0 {
                self.tell(&claim, run, event, verdict, flags & FLAG_DUPLICATE);
            } else if token.is_of_source(claim.source) {
                // The controller knows what it gave before, and compares what it gives again.
                let content = self.assembly.forget((run, event), claim.source);
                self.apart_before.insert((claim.source, (run, event), content));
                self.tell(&claim, run, event, verdict, FLAG_CONFLICT);
            } else {
                self.tell(&claim, run, event, Verdict::Rejected, FLAG_DUPLICATE);
            }
        }
    }

    /// Gives a fragment on that is not of the event of its number: the controller has it stored, and its source is told then.
    fn set_apart(&mut self, (run, event): Key, claim: Claim, content: Content, payload: &Bytes) {
        self.counters.conflicts += 1;
        self.assembly.set_apart(&claim);
        self.events.push_back(Event::Conflict { run, event, source: claim.source });
        self.apart.entry((run, event)).or_default().push_back((claim, content));
        self.sender.give_apart(run, event, assembly::alone(claim.source, payload));
    }

    /// Returns whether such a fragment of a source is on its way, or was stored lately.
    fn apart_of(&self, key: Key, source: u32, content: Content) -> Option<Known> {
        let is_it = |of: u32, is: Content| of == source && content == is;
        if self.apart.get(&key).into_iter().flatten().any(|(claim, is)| is_it(claim.source, *is)) {
            return Some(Known::Here);
        }
        self.apart_before.contains(&(source, key, content)).then_some(Known::Decided)
    }

    /// Has the token of such a fragment go to a new connection of its source; returns whether there is one.
    fn claim_apart(&mut self, key: Key, claim: Claim, content: Content) -> bool {
        let mut apart = self.apart.get_mut(&key).into_iter().flatten();
        let is_it =
            |there: &Claim, is: Content| there.source == claim.source && there.serial != claim.serial && is == content;
        let Some((there, _)) = apart.find(|(there, is)| is_it(there, *is)) else { return false };
        *there = claim;
        self.counters.duplicate_fragments += 1;
        true
    }

    /// Tells a source that such a fragment of its is stored, or thrown away.
    fn apart_is_over(&mut self, key: Key, verdict: Verdict) {
        let Some(claims) = self.apart.get_mut(&key) else { return };
        let first = claims.pop_front();
        if claims.is_empty() {
            self.apart.remove(&key);
        }
        if let Some((claim, content)) = first {
            self.assembly.apart_is_over(&claim);
            self.apart_before.insert((claim.source, key, content));
            self.tell(&claim, key.0, key.1, verdict, FLAG_CONFLICT);
        }
    }

    fn tell(&mut self, claim: &Claim, run: u32, event: u64, verdict: Verdict, flags: u8) {
        let token = Token::answer(run, event, verdict, flags);
        if let Some(giver) = source(&mut self.lines, claim.peer, claim.serial) {
            giver.answered(claim.length);
            self.lines.say(claim.peer, &token.encode());
        }
    }

    /// Sends a source away.
    fn end(&mut self, now: Instant, peer: Peer, error: Error) {
        if let Some(member) = self.lines.end(peer, &error) {
            self.gone(now, peer, member, error);
        }
    }

    fn gone(&mut self, now: Instant, peer: Peer, member: Member, error: Error) {
        if error.is_misbehaviour() {
            self.counters.misbehaved += 1;
        }
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
                    self.assembly.streams.left(now, giver.hello.number);
                }
                self.events.push_back(Event::Left { peer, hello: giver.hello, error });
            }
        }
    }

    fn elapsed(&mut self, now: Instant) {
        self.give_overdue(now);
        while let Some(peer) = self.lines.due(now) {
            self.look_at(now, peer);
        }
    }

    /// Ends a source that has not greeted in time, or was silent for too long.
    fn look_at(&mut self, now: Instant, peer: Peer) {
        let Some(line) = self.lines.at(peer) else { return };
        match (&mut line.state, self.draining) {
            (Member::Greeting { .. }, _) => return self.end(now, peer, Error::NoGreeting),
            // One that does not answer to DRAIN gives no more all the same.
            (Member::Source(giver), Some(since)) => giver.drained |= now - since >= self.config.silence,
            (Member::Source(_), None) => {}
        }
        if self.lines.silence(now, peer, self.config.silence) == Silence::Long {
            self.end(now, peer, Error::Silent);
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
                Gone::Was(member) => self.gone(now, peer, member, Error::Closed(why)),
                Gone::Ended | Gone::Never => {}
            },
            Input::Blocked(_) => self.lines.set_blocked(peer, true),
            Input::Drained(_) => self.lines.set_blocked(peer, false),
            Input::Command(_) | Input::Elapsed => {}
        }
    }

    fn opened(&mut self, now: Instant, peer: Peer, address: &Address) {
        let host = host(address);
        self.lines.insert(now, peer, Member::Greeting { host }, Intake::NONE, self.config.greeting);
        if let Some((oldest, error)) = self.greetings.begin(host, peer) {
            self.end(now, oldest, error);
        }
    }

    /// Adds up the time during which built events could not be given on.
    fn account(&mut self, now: Instant) {
        if let Some(since) = self.held_up_since {
            self.counters.dead_time_ns += now.nanos_since(since);
        }
        self.held_up_since = self.sender.is_held_up().then_some(now);
        if let Some(since) = self.held_back_since {
            self.counters.held_back_ns += now.nanos_since(since);
        }
        self.held_back_since = self.is_held_back().then_some(now);
    }

    /// Tells whether a source can give no more because others are behind, rather than the controller.
    fn is_held_back(&mut self) -> bool {
        let (open, all) = self.assembly.counts();
        2 * open > all && (0..self.config.sources).any(|source| self.is_full(source))
    }

    /// Tells whether a source has so much unanswered that it may give no more.
    fn is_full(&mut self, source: u32) -> bool {
        let Some(peer) = self.places.get(source as usize).copied().flatten() else { return false };
        let Some(Member::Source(giver)) = self.lines.at(peer).map(|line| &line.state) else { return false };
        giver.outstanding >= giver.credits || giver.bytes + u64::from(self.config.fragment_max) > giver.window
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
        match input {
            Input::Command(Command::Drain) => {
                self.draining = self.draining.or(Some(now));
                self.look_at_all(now + self.config.silence);
                self.drain_sources(now, true);
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
        let deadlines = [self.assembly.streams.next_deadline(), self.sender.deadline(), self.lines.next_look()];
        Output::Idle(deadlines.into_iter().flatten().min())
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        if peer.is_accepted() { self.lines.at(peer)?.inbound.landing() } else { self.sender.landing() }
    }
}

#[cfg(test)]
mod tests;
