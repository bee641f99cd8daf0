//! A node: takes events, decides, and answers each with a token. One machine may be several nodes.

use crate::controller::FarCounters;
use crate::dials::Dials;
use crate::emulation::Decisions;
use crate::inbound::{Intake, Message};
use crate::lines::{Gone, Lines, Silence};
use crate::wire::{FLAG_NO_TOKENS, FLAG_OUTPUT, Header, Hello, Kind, Role, TOKEN, Token, Verdict};
use crate::{Error, emulation};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output, Peer, Random, Timers};

/// How long a greeting may take.
const GREETING: Duration = Duration::from_secs(2);
/// A look at a connection is made this part of its silence earlier where something comes.
const EARLY: u32 = 24;
/// Bytes of tokens and small messages beyond its credits that a controller may leave untaken.
const OWED_MAX: usize = 64 << 10;

/// The settings of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Controllers to reach: a node for each. Whoever connects by itself gets a node as well.
    pub controllers: Vec<Address>,
    /// The number of the first node; the others count up.
    pub number: u32,
    /// Events that it takes at once.
    pub credits: u32,
    /// Share of the node beside others.
    pub weight: u32,
    /// The largest event in bytes.
    pub event_max: u32,
    /// The decider on events.
    pub decide: Decide,
    /// A controller that is silent for this long is gone.
    pub silence: Duration,
    /// Differs each time that the program starts.
    pub instance: u64,
}

impl NodeConfig {
    /// Creates the settings of a node at each of these controllers, numbered from 0, whose application decides.
    #[must_use]
    pub fn new(controllers: Vec<Address>) -> Self {
        let (event_max, silence) = (16 << 20, Duration::from_secs(2));
        let decide = Decide::Application;
        NodeConfig { controllers, number: 0, credits: 2, weight: 1, event_max, decide, silence, instance: 0 }
    }
}

/// The decider on an event.
#[derive(Debug, Clone)]
pub enum Decide {
    /// The application: it is told [`Event::Work`] and answers with [`Command::Decided`].
    Application,
    /// An emulator, one event at a time for each node; the bytes of events are let go.
    Emulated(Decisions),
    /// Nobody: events are counted and let go, and no tokens are sent. Only a controller that measures takes such a node.
    Nobody,
}

/// An event that is with a node, named for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Over which connection it came.
    pub peer: Peer,
    /// Differs for each connection.
    pub serial: u64,
    /// Run of the event.
    pub run: u32,
    /// Number of the event.
    pub event: u64,
    /// When it came.
    pub came: Instant,
}

/// A command of the application to a node.
#[derive(Debug)]
pub enum Command {
    /// The verdict on an event.
    Decided {
        /// Which event.
        job: Job,
        /// The verdict, [`Verdict::Failed`] where there is none.
        verdict: Verdict,
        /// The data to be stored instead of the event; empty for the event itself.
        output: Bytes,
        /// When the decision began.
        began: Instant,
    },
    /// Take nothing new, answer what is here, then end.
    Drain,
    /// The answer to [`Event::ReportAsked`].
    Report {
        /// The peer that asked.
        peer: Peer,
        /// The value of its question.
        value: u64,
        /// The process's session of the counters.
        process: FarCounters,
    },
}

/// An event that a node reports to the application.
#[derive(Debug)]
pub enum Event {
    /// Decide on this.
    Work {
        /// The name of the event for the answer.
        job: Job,
        /// Whether fragments of it are missing.
        partial: bool,
        /// The bytes of the event.
        payload: Bytes,
    },
    /// A controller has greeted.
    Joined(Peer, Hello),
    /// A controller is gone, or cannot be reached; what came from it needs no answer.
    Left(Peer, Error),
    /// A controller wants the counters: answer with [`Command::Report`].
    ReportAsked(Peer, u64),
    /// After [`Command::Drain`]: nothing is here any more.
    Drained,
}

/// The counters of all nodes of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Events that came.
    pub events: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Tokens that were sent.
    pub tokens: u64,
    /// Accepted events among them.
    pub accepted: u64,
}

#[derive(Debug)]
struct Session {
    serial: u64,
    since: Instant,
    greeted: bool,
    run: u32,
    draining: bool,
    /// Whether the controller has answered to that: nothing is on its way any more.
    far_drained: bool,
    done: Done,
    /// Events that came; the front one is being decided, where an emulator takes its time.
    queue: VecDeque<Job>,
    /// Until when the front one is.
    until: Option<Instant>,
    began: Instant,
    /// Events that the application has not answered.
    with_application: u32,
}

/// Takes events and answers each with a token.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    lines: Lines<Session>,
    events: VecDeque<Event>,
    dials: Dials,
    /// When the decision of each node that makes one is over.
    busy: Timers<Peer>,
    random: Random,
    serials: u64,
    done: Done,
    draining: bool,
    drained: bool,
}

impl Node {
    /// Nodes that reach their controllers at once.
    #[must_use]
    pub fn new(config: NodeConfig) -> Self {
        let seed = match &config.decide {
            Decide::Application | Decide::Nobody => 0,
            Decide::Emulated(decisions) => decisions.seed,
        };
        Node {
            lines: Lines::default(),
            events: VecDeque::new(),
            dials: Dials::first(config.controllers.len(), config.instance ^ u64::from(config.number)),
            busy: Timers::default(),
            random: Random::for_purpose(seed, u64::from(config.number)),
            serials: 0,
            done: Done::default(),
            draining: false,
            drained: false,
            config,
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn done(&self) -> Done {
        self.done
    }

    fn opened(&mut self, now: Instant, peer: Peer) {
        self.serials += 1;
        let number = self.config.number + (peer.0 & !Peer::FIRST_ACCEPTED);
        let session = Session {
            serial: self.serials,
            since: now,
            greeted: false,
            run: 0,
            draining: false,
            far_drained: false,
            done: Done::default(),
            queue: VecDeque::new(),
            until: None,
            began: now,
            with_application: 0,
        };
        let keep = matches!(self.config.decide, Decide::Application);
        let intake = Intake { event_max: self.config.event_max, data_max: 0, keep };
        self.lines.insert(now, peer, session, intake, GREETING);
        if self.drained {
            self.lines.end(peer, &Error::Closed(Closed::Finished));
            return;
        }
        let hello = Hello {
            role: Role::Node,
            flags: if matches!(self.config.decide, Decide::Nobody) { FLAG_NO_TOKENS } else { 0 },
            number,
            credits: self.config.credits,
            window: 0,
            event_max: self.config.event_max,
            weight: self.config.weight,
            instance: self.config.instance,
            resumes: None,
        };
        self.lines.say(peer, &hello.encode());
        if self.draining {
            self.drain(peer);
        }
    }

    fn received(&mut self, now: Instant, peer: Peer, mut bytes: &[u8]) {
        loop {
            let outcome = match self.lines.next(now, peer, &mut bytes) {
                Ok(None) => break,
                Ok(Some(message)) => self.message(now, peer, message),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                return self.end(now, peer, error);
            }
        }
        // A controller has its credits back with the tokens that it reads: no more of them can be owed.
        let max = self.config.credits as usize * TOKEN + OWED_MAX;
        if self.lines.owes_too_much(peer, max) {
            self.end(now, peer, Error::OverCredit { max: u64::from(self.config.credits) });
        }
    }

    fn end(&mut self, now: Instant, peer: Peer, error: Error) {
        self.lines.end(peer, &error);
        self.left(now, peer, error);
    }

    #[inline]
    fn message(&mut self, now: Instant, peer: Peer, message: Message) -> Result<(), Error> {
        let Some(line) = self.lines.at(peer) else { return Ok(()) };
        let session = &mut line.state;
        match message {
            Message::Event { kind, event, length, payload } if session.greeted && kind != Kind::Skip => {
                session.done.events += 1;
                session.done.bytes += u64::from(length);
                self.done.events += 1;
                self.done.bytes += u64::from(length);
                let job = Job { peer, serial: session.serial, run: session.run, event, came: now };
                if session.queue.len() as u32 + session.with_application >= self.config.credits {
                    return Err(Error::OverCredit { max: u64::from(self.config.credits) });
                }
                match &self.config.decide {
                    Decide::Application => {
                        session.with_application += 1;
                        self.events.push_back(Event::Work {
                            job,
                            partial: kind == Kind::Partial,
                            payload: payload.unwrap_or_default(),
                        });
                    }
                    Decide::Emulated(decisions) if decisions.time == emulation::Spread::Fixed(0) => {
                        let verdict = decisions.verdict(event);
                        self.answer(now, &job, verdict, now);
                    }
                    Decide::Nobody => {}
                    Decide::Emulated(_) => {
                        session.queue.push_back(job);
                        self.begin(now, peer);
                    }
                }
                Ok(())
            }
            Message::Run(run) => {
                session.run = run;
                Ok(())
            }
            Message::Hello(hello) if !session.greeted => {
                if hello.role != Role::Controller {
                    return Err(Error::WrongRole { role: hello.role });
                }
                session.greeted = true;
                self.dials.reached(peer);
                self.lines.look_by(peer, now + self.config.silence / 4);
                self.events.push_back(Event::Joined(peer, hello));
                Ok(())
            }
            Message::Ping(value) => {
                self.lines.say(peer, &Header::new(Kind::Pong, 0, value).encode());
                Ok(())
            }
            Message::Report(value) => {
                self.events.push_back(Event::ReportAsked(peer, value));
                Ok(())
            }
            Message::Pong => Ok(()),
            Message::Drain => {
                session.far_drained = session.draining;
                Ok(())
            }
            Message::Refused(code) => Err(Error::RefusedBy { code }),
            other => Err(Error::Unexpected { kind: other.kind() }),
        }
    }

    /// Begins the decision on the front event, where none is under way.
    fn begin(&mut self, now: Instant, peer: Peer) {
        let Decide::Emulated(decisions) = &self.config.decide else { return };
        let Some(line) = self.lines.at(peer) else { return };
        if line.state.until.is_none() && !line.state.queue.is_empty() {
            let until = now + Duration::from_nanos(decisions.time.draw(&mut self.random));
            (line.state.until, line.state.began) = (Some(until), now);
            self.busy.arm(peer, until);
        }
    }

    /// Ends the decisions whose time is over.
    fn finish(&mut self, now: Instant) {
        while let Some(peer) = self.busy.pop_due(now) {
            let Some(line) = self.lines.at(peer) else { continue };
            let Some(until) = line.state.until.take() else { continue };
            let began = line.state.began;
            if let Some(job) = line.state.queue.pop_front()
                && let Decide::Emulated(decisions) = &self.config.decide
            {
                let verdict = decisions.verdict(job.event);
                self.answer(now, &job, verdict, began);
            }
            // The next decision began when this one was over, however late that was noticed.
            self.begin(until, peer);
        }
    }

    /// Owes a token for an event.
    #[inline]
    fn answer(&mut self, now: Instant, job: &Job, verdict: Verdict, began: Instant) {
        let Some(line) = self.lines.at(job.peer) else { return };
        if line.state.serial != job.serial {
            return;
        }
        let output = match &self.config.decide {
            Decide::Emulated(decisions) if verdict == Verdict::Accepted => Some(decisions.output.clone()),
            _ => None,
        };
        let token = token(now, job, verdict, began, output.as_ref().map_or(0, |output| output.len() as u32));
        line.state.done.tokens += 1;
        self.done.tokens += 1;
        if verdict == Verdict::Accepted {
            self.done.accepted += 1;
        }
        self.lines.say_with(job.peer, &token.encode(), output);
    }

    fn decided(&mut self, now: Instant, job: &Job, verdict: Verdict, output: Bytes, began: Instant) {
        let Some(line) = self.lines.at(job.peer) else { return };
        if line.state.serial != job.serial {
            return;
        }
        line.state.with_application = line.state.with_application.saturating_sub(1);
        line.state.done.tokens += 1;
        self.done.tokens += 1;
        if verdict == Verdict::Accepted {
            self.done.accepted += 1;
        }
        let token = token(now, job, verdict, began, output.len() as u32);
        self.lines.say_with(job.peer, &token.encode(), Some(output));
    }

    fn drain(&mut self, peer: Peer) {
        if let Some(line) = self.lines.at(peer)
            && !core::mem::replace(&mut line.state.draining, true)
        {
            self.lines.say(peer, &Header::new(Kind::Drain, 0, 0).encode());
        }
    }

    fn left(&mut self, now: Instant, peer: Peer, error: Error) {
        self.events.push_back(Event::Left(peer, error));
        if !self.draining {
            self.dials.again(now, peer);
        }
    }

    /// Ends a controller that has not greeted in time, or was silent for too long.
    fn look_at(&mut self, now: Instant, peer: Peer) {
        let Some(line) = self.lines.at(peer) else { return };
        let greeting = line.state.since + GREETING;
        if !line.state.greeted && now < greeting {
            self.lines.look_by(peer, greeting);
        } else if !line.state.greeted {
            self.end(now, peer, Error::NoGreeting);
        } else if self.lines.silence(now, peer, self.config.silence) == Silence::Long {
            self.end(now, peer, Error::Silent);
        }
    }

    /// Tells whether nothing is here after a [`Command::Drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let mut lines = self.lines.peers.iter();
        let is_done =
            |session: &Session| session.far_drained && session.queue.is_empty() && session.with_application == 0;
        self.draining && lines.all(|(_, line)| is_done(&line.state))
    }
}

#[inline]
fn token(now: Instant, job: &Job, verdict: Verdict, began: Instant, length: u32) -> Token {
    let micros = |from: Instant, to: Instant| u32::try_from(to.nanos_since(from) / 1000).unwrap_or(u32::MAX);
    Token {
        event: job.event,
        verdict,
        credits: 1,
        flags: if length > 0 { FLAG_OUTPUT } else { 0 },
        run: job.run,
        waited_us: micros(job.came, began),
        decided_us: micros(began, now),
        length,
    }
}

impl Machine for Node {
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
            Input::Opened(peer, _) => self.opened(now, peer),
            Input::Closed(peer, why) => {
                if !matches!(self.lines.gone(peer), Gone::Ended) {
                    self.left(now, peer, Error::Closed(why));
                }
            }
            Input::Command(Command::Decided { job, verdict, output, began }) => {
                self.decided(now, &job, verdict, output, began);
            }
            Input::Command(Command::Drain) => {
                self.draining = true;
                self.dials.stop();
                let peers: Vec<Peer> = self.lines.peers.iter().map(|(peer, _)| peer).collect();
                peers.into_iter().for_each(|peer| self.drain(peer));
            }
            Input::Command(Command::Report { peer, value, process }) => {
                let Some(line) = self.lines.at(peer) else { return };
                let done = line.state.done;
                let counters = FarCounters { events: done.events, bytes: done.bytes, tokens: done.tokens, ..process };
                let body = counters.encode();
                self.lines.say(peer, &Header::new(Kind::Counters, body.len() as u32, value).encode());
                self.lines.say(peer, &body);
            }
            Input::Blocked(peer) => self.lines.set_blocked(peer, true),
            Input::Drained(peer) => self.lines.set_blocked(peer, false),
            Input::Elapsed => {
                self.finish(now);
                while let Some(peer) = self.lines.due(now) {
                    self.look_at(now, peer);
                }
            }
        }
        // A look that is due soon is made with what came: a busy connection is then always read without a poller.
        if let Some(peer) = self.lines.due(now + self.config.silence / EARLY) {
            self.look_at(now, peer);
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
            return Output::Open(Peer(number), self.config.controllers[number as usize].clone());
        }
        if !self.drained && self.is_drained() {
            self.drained = true;
            let peers: Vec<Peer> = self.lines.peers.iter().map(|(peer, _)| peer).collect();
            for peer in peers {
                self.lines.end(peer, &Error::Closed(Closed::Finished));
            }
            return Output::Event(Event::Drained);
        }
        let deadlines = [self.busy.next(), self.dials.deadline(), self.lines.next_look()];
        Output::Idle(deadlines.into_iter().flatten().min())
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.lines.at(peer)?.inbound.landing()
    }
}

#[cfg(test)]
mod tests;
