//! The controller: takes events in, hands each to one node, and tells the verdict on each exactly once.

mod config;
mod dispatch;
mod even;
mod nodes;
mod quarantine;
mod report;
pub(crate) mod sources;
mod stages;
mod verdicts;

use crate::dials::Dials;
use crate::greetings::{Greetings, host};
use crate::inbound::{Intake, Message};
use crate::ledger::Ledger;
use crate::lines::{Gone, Lines, Silence};
use crate::recent::Recent;
use crate::sums::Content;
use crate::supply::Supply;
use crate::wire::{FLAG_NO_TOKENS, Header, Hello, Kind, Role};
use crate::{Counts, Error};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
pub use config::{Command, ControllerConfig, Event, Final, Owner, Policy};
use core::time::Duration;
use even::Even;
pub use even::Pace;
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer, Spans, Stamp, Stamps};
pub use nodes::NodeShare;
use nodes::{Dispatched, Member, NodeLine, Origin, PendingEvent, Queue};
use quarantine::APART_MAX;
pub use report::{Counters, FarCounters, State};
use sources::Giver;
use stages::Stages;
pub use stages::{AWAY, DECIDE, QUEUE, SEND, WAIT};
use verdicts::Commits;

/// A peer that has sent an event which is in hand: its connection, the bytes that it sent, and the sources whose fragments
/// among them are late.
#[derive(Debug)]
struct Claim {
    peer: Peer,
    serial: u64,
    length: u32,
    late: u64,
}

/// The accounts of sources and builders, those that are gone included.
#[derive(Debug, Default)]
struct Accounts {
    /// Peers that have sent an event again while it is in hand.
    claims: BTreeMap<(u32, u64), Vec<Claim>>,
    serials: u64,
    /// The last data in quarantine whose numbers are those of others.
    apart: Recent<(u32, u64, Content), APART_MAX>,
    /// Sources and builders that are connected.
    givers: u32,
    /// Bytes of events in hand whose givers are gone.
    orphaned: u64,
    /// Windows that the givers have.
    granted: u64,
}

/// The supply of events that are made here.
#[derive(Debug)]
struct Feed<S> {
    supply: S,
    /// No event comes before this.
    at: Instant,
    ended: bool,
}

/// Hands each event to one node, and tells each verdict once.
#[derive(Debug)]
pub struct Controller<S> {
    config: ControllerConfig,
    feed: Feed<S>,
    lines: Lines<Member>,
    queue: Queue,
    even: Even,
    /// Events that wait for a token.
    waiting: VecDeque<PendingEvent>,
    /// Events over which a node failed or died: each is given to a node that has nothing else.
    suspects: VecDeque<PendingEvent>,
    ledger: Ledger,
    commits: Commits,
    accounts: Accounts,
    events: VecDeque<Event>,
    dials: Dials,
    greetings: Greetings,
    run: u32,
    state: State,
    /// Since when none is taken in.
    draining_since: Instant,
    drained: bool,
    /// Whether a suspect may have found its node since this was last looked at.
    suspects_due: bool,
    counters: Counters,
    stages: Stages,
    /// How long events were away, from when they were given until their token.
    answers: Spans,
    idle_since: Option<Instant>,
}

impl<S: Supply> Controller<S> {
    /// Creates a controller that goes on where the ledger ends.
    #[must_use]
    pub fn new(config: ControllerConfig, supply: S, mut ledger: Ledger) -> Self {
        for run in config.open.iter().chain([&config.run]) {
            // Where that fails the run is over, and every event of it is refused.
            let _ = ledger.open(*run);
        }
        Controller {
            feed: Feed { supply, at: Instant::ZERO, ended: false },
            lines: Lines::with_arriving(config.output_bytes),
            queue: Queue::new(config.policy),
            even: Even::new(config.ahead_max.filter(|_| config.policy == Policy::TokenFifo), config.pace.clone()),
            waiting: VecDeque::new(),
            suspects: VecDeque::new(),
            ledger,
            commits: Commits::default(),
            accounts: Accounts::default(),
            events: VecDeque::new(),
            dials: Dials::first(config.nodes.len(), config.instance),
            greetings: Greetings::default(),
            run: config.run,
            state: if config.configured { State::Configured } else { State::Running },
            draining_since: Instant::ZERO,
            drained: false,
            suspects_due: false,
            counters: Counters::default(),
            stages: Stages::default(),
            answers: Spans::new(),
            idle_since: None,
            config,
        }
    }

    /// Returns the balance of events.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// Returns how many events of the run have a verdict, those of earlier processes included.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.ledger.decided(self.run).map_or(0, hodo_machine::Ranges::count)
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> State {
        if self.state == State::Draining && self.is_drained() { State::Drained } else { self.state }
    }

    /// Tells whether everything that was to be made here has its verdict, and nobody else gives events.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.feed.ended && self.accounts.givers == 0 && self.is_drained()
    }

    /// Returns all counters but the balance of events.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            events_waiting: (self.waiting.len() + self.suspects.len()) as u64,
            tokens_waiting: self.nodes().map(|node| u64::from(node.credits)).sum(),
            uncommitted: self.commits.told - self.commits.committed.min(self.commits.told),
            uncommitted_bytes: self.commits.uncommitted.bytes(),
            nodes: self.queue.nodes().len() as u64,
            sources: u64::from(self.accounts.givers),
            threads: 1,
            state: self.state(),
            run: self.run,
            ..self.counters
        }
    }

    /// Returns the share of each node, in the order in which the nodes came.
    #[must_use]
    pub fn shares(&self) -> Vec<NodeShare> {
        self.nodes().map(|node| NodeShare { in_flight: node.given.len() as u32, ..node.share }).collect()
    }

    /// Returns how long events were away, from when each was given to a node until its token came.
    #[must_use]
    pub const fn answers(&self) -> &Spans {
        &self.answers
    }

    /// Returns the stages of the events that were to be stamped: their tags are the events' numbers.
    pub fn stamps(&mut self) -> &mut Stamps {
        &mut self.stages.stamps
    }

    /// Returns how long the nodes' stages of these events took, by name and in order.
    #[must_use]
    pub fn far_stages(&self) -> [(&'static str, &Spans); 2] {
        self.stages.far()
    }

    fn nodes(&self) -> impl Iterator<Item = &NodeLine> {
        self.queue.nodes().iter().filter_map(|peer| match &self.lines.peers.get(*peer)?.state {
            Member::Node(node) => Some(node),
            Member::Greeting { .. } | Member::Giver(_) => None,
        })
    }

    /// Tells whether nothing is in hand, nothing waits to be committed, and nothing more is made here.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.ledger.counts().in_hand() == 0
            && self.commits.owed.is_empty()
            && (self.config.uncommitted_max.is_none() || self.commits.told <= self.commits.committed)
            && match self.state {
                State::Draining | State::Drained => self.givers().all(|giver| giver.drained),
                State::Configured | State::Running | State::Paused => self.feed.ended && self.accounts.givers == 0,
            }
    }

    fn givers(&self) -> impl Iterator<Item = &Giver> {
        self.lines.peers.iter().filter_map(|(_, line)| match &line.state {
            Member::Giver(giver) => Some(giver),
            _ => None,
        })
    }

    fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Event { number, payload, stamped } => {
                self.made(now, number, payload, Kind::Event, stamped);
            }
            Command::Committed(count) => self.commit(count),
            Command::Compared(likeness) => self.compared(likeness),
            Command::Pause if self.state == State::Running => self.state = State::Paused,
            Command::Resume => self.resume(now),
            Command::Pause => {}
            Command::Run(run) => self.begin_run(run),
            Command::Drain => {
                if self.state == State::Draining {
                    return;
                }
                (self.state, self.draining_since, self.drained) = (State::Draining, now, false);
                let givers = self.giver_peers();
                for peer in givers {
                    self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
                    self.lines.look_by(peer, now + self.config.silence);
                }
            }
            Command::Report => {
                for index in 0..self.queue.nodes().len() {
                    self.lines.say(self.queue.nodes()[index], &Header::new(Kind::Report, 0, 0).encode());
                }
            }
        }
    }

    fn giver_peers(&self) -> Vec<Peer> {
        let givers = self.lines.peers.iter().filter(|(_, line)| matches!(line.state, Member::Giver(_)));
        givers.map(|(peer, _)| peer).collect()
    }

    fn resume(&mut self, now: Instant) {
        if core::mem::replace(&mut self.state, State::Running) == State::Draining {
            self.drained = false;
            // Who was told to give no more cannot be told to go on: it begins anew, with a new connection.
            for peer in self.giver_peers() {
                self.end(now, peer, Error::Closed(Closed::Finished));
            }
        }
    }

    /// Takes in an event that was made in this process.
    fn made(&mut self, now: Instant, number: u64, payload: Bytes, kind: Kind, stamped: bool) {
        let run = self.run;
        if self.ledger.offer_own(run, number) != Ok(true) {
            self.counters.not_taken += 1;
            return;
        }
        self.counters.bytes_in += payload.len() as u64;
        let (event, origin, content, deaths) = (number, Origin::Here, Content::Unknown, 0);
        let held = PendingEvent { run, event, kind, deaths, stamped, payload, content, origin, came: now };
        self.waiting.push_back(held);
    }

    fn opened(&mut self, now: Instant, peer: Peer, address: &Address) {
        let host = host(address);
        self.lines.insert(now, peer, Member::Greeting { host }, Intake::NONE, self.config.greeting);
        if !peer.is_accepted() {
            // Who opens a connection to a node speaks first.
            let hello = self.hello(0, 0);
            return self.lines.say(peer, &hello.encode());
        }
        if let Some((oldest, error)) = self.greetings.begin(host, peer) {
            self.end(now, oldest, error);
        }
    }

    fn hello(&self, credits: u32, window: u64) -> Hello {
        Hello {
            role: Role::Controller,
            flags: 0,
            number: 0,
            credits,
            window,
            event_max: self.config.event_max,
            weight: 1,
            instance: self.config.instance,
            resumes: None,
        }
    }

    fn received(&mut self, now: Instant, peer: Peer, mut bytes: &[u8]) {
        let first = bytes;
        loop {
            match self.lines.next(now, peer, &mut bytes) {
                Ok(Some(message)) => {
                    if let Err(error) = self.message(now, peer, message) {
                        return self.end(now, peer, error);
                    }
                }
                Ok(None) => return,
                Err(error @ Error::OverData { .. }) => match self.lines.greediest() {
                    Some(greedy) if greedy != peer => self.end(now, greedy, error),
                    _ => return self.end(now, peer, error),
                },
                Err(error) => {
                    let is_stranger =
                        self.lines.at(peer).is_some_and(|line| matches!(line.state, Member::Greeting { .. }));
                    return self.end(now, peer, if is_stranger { error.of_stranger(first) } else { error });
                }
            }
        }
    }

    #[inline]
    fn message(&mut self, now: Instant, peer: Peer, message: Message) -> Result<(), Error> {
        let Some(line) = self.lines.at(peer) else { return Ok(()) };
        match (&mut line.state, message) {
            (Member::Node(_), Message::Token(token, data)) => self.token(now, peer, &token, data),
            (Member::Node(node), Message::Begins(token)) => {
                let outcome = node.position(&token).map(drop);
                self.counters.unasked += u64::from(outcome.is_err());
                outcome
            }
            (Member::Giver(giver), Message::Event { kind, event, length, payload }) => {
                giver.enter(length)?;
                let (from, run, payload) = ((peer, giver.serial), giver.run, payload.unwrap_or_default());
                if giver.is_apart {
                    return self.given_apart(now, from, run, event, &payload);
                }
                self.given(now, from, run, event, kind, payload)
            }
            (Member::Giver(giver), Message::Run(run)) => giver.begins(run, false),
            (Member::Giver(giver), Message::Apart(run)) => giver.begins(run, true),
            (Member::Greeting { host }, Message::Hello(hello)) => {
                let host = *host;
                self.hello_came(now, peer, hello)?;
                if peer.is_accepted() {
                    self.greetings.over(host, peer);
                }
                Ok(())
            }
            (Member::Greeting { .. }, _) => Err(Error::NoGreeting),
            (_, Message::Ping(value)) => {
                self.lines.say(peer, &Header::new(Kind::Pong, 0, value).encode());
                self.lines.check_owed(peer)
            }
            (_, Message::Pong) => Ok(()),
            (Member::Node(node), Message::Drain) => {
                node.draining = true;
                self.suspects.extend(node.reserved.take());
                self.suspects_due = true;
                // Nothing is on its way to it behind this.
                self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
                Ok(())
            }
            (Member::Giver(giver), Message::Drain) => {
                giver.drained = true;
                Ok(())
            }
            (Member::Node(node), Message::Counters(body)) => {
                let counters = FarCounters::decode(&body)?;
                if !node.answers() {
                    node.share.answered = counters.events;
                }
                self.events.push_back(Event::Counters(peer, counters));
                Ok(())
            }
            (_, Message::Refused(code)) => Err(Error::RefusedBy { code }),
            (_, other) => Err(Error::Unexpected { kind: other.kind() }),
        }
    }

    fn hello_came(&mut self, now: Instant, peer: Peer, hello: Hello) -> Result<(), Error> {
        match hello.role {
            Role::Node => {
                let max = self.config.nodes_max;
                if self.queue.nodes().len() as u32 >= max {
                    let useless = self.queue.of_no_use(&mut self.lines).ok_or(Error::Full { max })?;
                    self.end(now, useless, Error::NoCredits { max });
                }
                if hello.flags & FLAG_NO_TOKENS != 0 && !self.config.without_tokens {
                    return Err(Error::NoTokens);
                }
                if peer.is_accepted() {
                    let answer = self.hello(0, 0);
                    self.lines.say(peer, &answer.encode());
                }
                let credits = hello.credits.min(self.config.credits_max);
                if let Some(line) = self.lines.at(peer) {
                    line.state = Member::Node(NodeLine::new(hello, credits, now));
                    line.intake = Intake { event_max: 0, data_max: self.config.event_max, keep: true };
                }
                let served = self.even.start(&self.queue, &mut self.lines);
                if let Some((_, node)) = nodes::node(&mut self.lines, peer) {
                    node.served = served;
                }
                self.queue.join(&mut self.lines, peer);
                self.dials.reached(peer);
                self.suspects_due = true;
            }
            Role::Source | Role::Builder if peer.is_accepted() => self.giver_came(now, peer, hello)?,
            Role::Source | Role::Builder | Role::Controller => return Err(Error::WrongRole { role: hello.role }),
        }
        self.events.push_back(Event::Joined { peer, hello });
        let look = self.config.deadline.unwrap_or(Duration::MAX).min(self.config.silence / 4);
        self.lines.look_by(peer, now + look);
        Ok(())
    }

    /// Sends a peer away; what it had is given to others.
    fn end(&mut self, now: Instant, peer: Peer, error: Error) {
        let Some(member) = self.lines.end(peer, &error) else { return };
        self.gone(peer, member, error);
        self.dials.again(now, peer);
    }

    fn gone(&mut self, peer: Peer, member: Member, error: Error) {
        if let Some(count) = self.counters.ended.get_mut(error.code() as usize) {
            *count += 1;
        }
        if error.is_misbehaviour() {
            self.counters.misbehaved += 1;
        }
        let (hello, taken_back, share) = match member {
            Member::Greeting { host } => {
                if peer.is_accepted() {
                    self.greetings.over(host, peer);
                }
                self.counters.refused += 1;
                return self.events.push_back(Event::Refused(peer, error));
            }
            Member::Giver(giver) => {
                self.accounts.givers -= 1;
                self.accounts.granted -= giver.window;
                self.accounts.orphaned += giver.in_hand;
                (giver.hello, 0, None)
            }
            Member::Node(node) => {
                self.queue.leave(&mut self.lines, peer);
                self.even.forget(peer);
                self.counters.nodes_lost += 1;
                let taken_back = node.given.len() as u32;
                let number = node.hello.number;
                for Dispatched { held, .. } in node.given {
                    self.failed(held, number);
                }
                self.suspects.extend(node.reserved);
                self.suspects_due = true;
                (node.hello, taken_back, Some(node.share))
            }
        };
        self.events.push_back(Event::Left { peer, hello, error, taken_back, share });
    }

    /// Ends a peer that has not greeted in time, was silent for too long, or took too long for an event.
    fn look_at(&mut self, now: Instant, peer: Peer) {
        let Some(line) = self.lines.at(peer) else { return };
        let mut next = None;
        let wrong = match &mut line.state {
            Member::Greeting { .. } => Some(Error::NoGreeting),
            Member::Giver(giver) if self.state == State::Draining => {
                // One that does not answer to it has what is in hand of it, and gives no more.
                let until = self.draining_since + self.config.silence;
                giver.drained |= until <= now;
                next = (!giver.drained).then_some(until);
                None
            }
            Member::Giver(_) => None,
            Member::Node(node) => self.config.deadline.and_then(|deadline| {
                // It takes one after the other.
                let given = node.given.front();
                let until = given.map_or(now, |given| given.at.max(node.answered_at)) + deadline;
                next = Some(until);
                given.filter(|_| until <= now).map(|given| Error::Overdue { event: given.held.event })
            }),
        };
        let silent = || (self.lines.silence(now, peer, self.config.silence) == Silence::Long).then_some(Error::Silent);
        match (wrong.or_else(silent), next) {
            (Some(error), _) => self.end(now, peer, error),
            (None, Some(at)) => self.lines.look_by(peer, at),
            (None, None) => {}
        }
    }
}

impl<S: Supply> Machine for Controller<S> {
    type Command = Command;
    type Event = Event;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Received(peer, bytes) => self.received(now, peer, bytes),
            Input::Landed(peer, count) => {
                self.lines.landed(peer, count);
                self.received(now, peer, &[]);
            }
            Input::Command(command) => self.command(now, command),
            Input::Opened(peer, ends) => self.opened(now, peer, &ends.remote),
            Input::Closed(peer, why) => {
                match self.lines.gone(peer) {
                    Gone::Was(member) => self.gone(peer, member, Error::Closed(why)),
                    Gone::Never => self.events.push_back(Event::Refused(peer, Error::Closed(why))),
                    Gone::Ended => return,
                }
                self.dials.again(now, peer);
            }
            Input::Blocked(peer) => self.lines.set_blocked(peer, true),
            Input::Drained(peer) => {
                self.lines.set_blocked(peer, false);
                self.suspects_due = true;
                self.queue.unpark(&mut self.lines, peer);
            }
            Input::Elapsed => {
                while let Some(peer) = self.lines.due(now) {
                    self.look_at(now, peer);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(output) = self.lines.poll(out) {
            return output;
        }
        if let Some(number) = self.dials.due(now) {
            return Output::Open(Peer(number), self.config.nodes[number as usize].clone());
        }
        self.even.look_in(&self.queue, &mut self.lines);
        loop {
            if let Some(peer) = self.dispatch(now, out) {
                return Output::Send(peer);
            }
            if !self.even.release(now, &mut self.queue, &mut self.lines) {
                break;
            }
        }
        if let Some(event) = self.after_dispatch(now) {
            return Output::Event(event);
        }
        let supply = (!self.feed.ended && self.feed.at > now && self.feed.at < Instant::MAX).then_some(self.feed.at);
        let deadlines = [self.dials.deadline(), supply, self.lines.next_look(), self.even.deadline()];
        Output::Idle(deadlines.into_iter().flatten().min())
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stages.stamps.keep(stamp);
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.lines.at(peer)?.inbound.landing()
    }
}

#[cfg(test)]
mod tests;
