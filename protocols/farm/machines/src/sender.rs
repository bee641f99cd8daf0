mod datagrams;

use crate::Error;
use crate::inbound::{Inbound, Intake, Message};
use crate::lines::{Gone, Lines, Silence};
use crate::wire::{APART, FLAG_COMPARES, FLAG_ENDS, Header, Hello, Kind, Role, Token};
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;
use datagrams::{Amid, Flow, Way};
use hodo_machine::{Address, BackOff, Closed, Input, Instant, Outbox, Output, Peer, Timers};

/// The only peer.
const PEER: Peer = Peer(0);
/// How long to wait before a connection is tried again, at first and at most.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_millis(800);
/// Between two requests to end.
const END_AGAIN: Duration = Duration::from_millis(100);
/// How long another answer to an event may be on its way over datagrams.
const ANSWERED: Duration = Duration::from_secs(1);

/// The giving end of an event link: keeps each event until its token has come, over however many connections.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    lines: Lines<()>,
    state: State,
    kept: VecDeque<Kept>,
    /// Index of the first event that this connection has not carried.
    next: usize,
    /// No event that it has carried, and that has no token, has a higher number; nor has one of `answered`.
    highest: Name,
    /// Over datagrams, events that were answered lately, and when: another answer to one may be on its way.
    answered: VecDeque<(Instant, Name)>,
    /// When the next event may be given at the earliest, as one of its number was answered lately.
    doubled_until: Option<Instant>,
    bytes: u64,
    /// The highest number that has had its verdict, and its run.
    answered_to: Option<(u32, u64)>,
    /// The value of the last RUN.
    run: Option<u64>,
    again: BackOff,
    /// The far end takes nothing new.
    draining: bool,
    /// The far end has its sources end together.
    has_ends: bool,
    /// The number below which all was given, where the far end has been asked for that of all sources.
    asked_end: Option<u64>,
    /// Not to be reached again.
    left: bool,
    /// The event whose segments are being sent.
    amid: Option<Amid>,
    timers: Timers<Timer>,
    flow: Flow,
}

/// The settings of a sender: its far end, and its own role.
#[derive(Debug, Clone)]
pub(crate) struct SenderConfig {
    pub(crate) address: Address,
    pub(crate) role: Role,
    pub(crate) number: u32,
    pub(crate) instance: u64,
    pub(crate) greeting: Duration,
    pub(crate) silence: Duration,
    /// Over datagrams: bytes of a fragment in one.
    pub(crate) datagram: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not connected, until [`Timer::Again`].
    Away,
    /// To be connected.
    ToOpen,
    Opening,
    Greeting,
    Ready {
        credits: u32,
        window: u64,
        event_max: u32,
    },
}

/// A timer of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    /// The connection is tried again.
    Again,
    /// Over datagrams, the greeting is sent again.
    Hello,
    /// The far end is asked again up to which number all sources give.
    End,
}

/// The name of an event in its token: the run, the number, and whether it is a fragment for the quarantine.
type Name = (u32, u64, bool);

#[derive(Debug)]
struct Kept {
    run: u32,
    /// Whether it is a fragment for the quarantine.
    apart: bool,
    event: u64,
    kind: Kind,
    payload: Bytes,
    /// Over datagrams, where it is, and how often it was sent.
    way: Way,
    times: u32,
}

impl Kept {
    fn name(&self) -> Name {
        (self.run, self.event, self.apart)
    }
}

/// An event that a sender reports to its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SenderEvent {
    /// The far end has greeted.
    Joined(Hello),
    /// The connection is gone, or could not be made.
    Left(Error),
    /// The token of an event: its verdict is final and committed.
    Answered(Token),
    /// The far end takes nothing new.
    Draining,
    /// The controller of a builder takes events of this run.
    Opened(u32),
    /// All sources give the events below this number.
    Ends(u64),
    /// An event that the far end would refuse for its size.
    TooLarge { run: u32, event: u64, size: u32, max: u32, apart: bool },
}

impl Sender {
    pub(crate) fn new(config: SenderConfig) -> Self {
        let seed = config.instance ^ u64::from(config.number);
        Sender {
            lines: Lines::over(config.datagram.is_some()),
            flow: Flow::new(config.datagram),
            config,
            state: State::ToOpen,
            kept: VecDeque::new(),
            next: 0,
            highest: Name::default(),
            answered: VecDeque::new(),
            doubled_until: None,
            bytes: 0,
            answered_to: None,
            run: None,
            again: BackOff::new(AGAIN, AGAIN_MAX, seed),
            draining: false,
            has_ends: false,
            asked_end: None,
            left: false,
            amid: None,
            timers: Timers::default(),
        }
    }

    /// Events without a token.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Tells whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Tells whether one more event could be sent at once.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let State::Ready { credits, window, .. } = self.state else { return false };
        self.next == self.kept.len() && self.next < credits as usize && self.bytes < window && !self.draining
    }

    /// Tells whether the far end takes nothing new.
    pub(crate) const fn is_draining(&self) -> bool {
        self.draining
    }

    /// Tells whether an event waits to be sent.
    pub(crate) fn is_held_up(&self) -> bool {
        self.next < self.kept.len()
    }

    /// Takes an event over.
    pub(crate) fn give(&mut self, run: u32, event: u64, kind: Kind, payload: Bytes) {
        self.kept.push_back(Kept { run, apart: false, event, kind, payload, way: Way::Kept, times: 0 });
    }

    /// Takes a fragment over whose number is another's, to be given for the quarantine.
    pub(crate) fn give_apart(&mut self, run: u32, event: u64, payload: Bytes) {
        self.kept.push_back(Kept { run, apart: true, event, kind: Kind::Event, payload, way: Way::Kept, times: 0 });
    }

    /// Handles an input for the connection.
    pub(crate) fn handle<C>(&mut self, now: Instant, input: &Input<'_, C>, told: &mut impl FnMut(SenderEvent)) {
        match *input {
            Input::Opened(_, _) => {
                let intake = Intake { event_max: 0, data_max: 0, keep: false };
                self.lines.insert(now, PEER, (), intake, self.config.greeting);
                if self.left {
                    return self.leave();
                }
                self.say_hello(now);
                self.state = State::Greeting;
            }
            Input::Received(_, bytes) => self.received(now, bytes, told),
            Input::Closed(_, why) => {
                if !matches!(self.lines.gone(PEER), Gone::Ended) && !self.left {
                    self.away(now, Error::Closed(why), told);
                }
            }
            Input::Blocked(_) => self.lines.set_blocked(PEER, true),
            Input::Drained(_) => self.lines.set_blocked(PEER, false),
            Input::Elapsed => self.elapsed(now, told),
            Input::Landed(..) | Input::Command(_) => {}
        }
    }

    fn say_hello(&mut self, now: Instant) {
        let hello = Hello {
            role: self.config.role,
            flags: if self.config.datagram.is_some() { FLAG_COMPARES } else { 0 },
            number: self.config.number,
            credits: 0,
            window: 0,
            event_max: 0,
            weight: 1,
            instance: self.config.instance,
            resumes: self.resumes(),
        };
        self.lines.say(PEER, &hello.encode());
        if self.config.datagram.is_some() {
            self.timers.arm(Timer::Hello, now + AGAIN);
        }
    }

    /// Returns the run and the lowest number of an event that may still be given, where any has had its verdict.
    fn resumes(&self) -> Option<(u32, u64)> {
        let (run, last) = self.answered_to.filter(|_| self.config.role == Role::Source)?;
        let kept = self.kept.iter().filter(|kept| !kept.apart && kept.run == run).map(|kept| kept.event);
        kept.min().or_else(|| last.checked_add(1)).map(|from| (run, from))
    }

    /// Sends the number below which this one has given all, as it is to end: the far end knows up to which number all give. Where it
    /// is not there and something was given, that is sent when it is. Returns whether there is an answer to come.
    pub(crate) fn ask_end(&mut self, now: Instant, below: u64) -> bool {
        let asks = match self.state {
            State::Ready { .. } => self.has_ends && !self.draining,
            _ => !self.is_empty() || self.answered_to.is_some(),
        };
        if asks {
            self.asked_end = Some(below.max(1));
            self.say_end(now);
        }
        asks
    }

    fn say_end(&mut self, now: Instant) {
        if let (Some(below), State::Ready { .. }) = (self.asked_end, self.state) {
            self.lines.say(PEER, &Header::new(Kind::Drain, 0, below).encode());
            self.timers.arm(Timer::End, now + END_AGAIN);
        }
    }

    fn received(&mut self, now: Instant, mut bytes: &[u8], told: &mut impl FnMut(SenderEvent)) {
        if self.config.datagram.is_some()
            && let Some(line) = self.lines.at(PEER)
        {
            line.inbound = Inbound::default();
        }
        loop {
            let outcome = match self.lines.next(now, PEER, &mut bytes) {
                Ok(None) => return,
                Ok(Some(message)) => self.message(now, message, told),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                if self.config.datagram.is_some() && !matches!(error, Error::RefusedBy { .. } | Error::WrongRole { .. })
                {
                    // Half a datagram, or one from long ago.
                    return;
                }
                self.lines.end(PEER, &error);
                return self.away(now, error, told);
            }
        }
    }

    fn message(&mut self, now: Instant, message: Message, told: &mut impl FnMut(SenderEvent)) -> Result<(), Error> {
        match message {
            Message::Token(token, _) => self.token(now, token, told),
            Message::Hello(hello) if self.state == State::Greeting => {
                if !matches!(hello.role, Role::Builder | Role::Controller) || hello.credits == 0 {
                    return Err(Error::WrongRole { role: hello.role });
                }
                let window = if hello.window == 0 { u64::MAX } else { hello.window };
                self.state = State::Ready { credits: hello.credits, window, event_max: hello.event_max };
                self.timers.cancel(Timer::Hello);
                self.lines.look_by(PEER, now + self.config.silence / 4);
                self.again.succeeded();
                self.draining = false;
                self.flow.says_what = hello.flags & FLAG_COMPARES != 0;
                self.has_ends = hello.flags & FLAG_ENDS != 0;
                told(SenderEvent::Joined(hello));
                if let Some(below) = self.asked_end.take().filter(|below| !self.ask_end(now, *below)) {
                    told(SenderEvent::Ends(below));
                }
                Ok(())
            }
            Message::Ping(value) => {
                self.lines.say(PEER, &Header::new(Kind::Pong, 0, value).encode());
                Ok(())
            }
            Message::Pong => Ok(()),
            Message::Drain => {
                // So that the far end knows that no event is on its way any more.
                if !core::mem::replace(&mut self.draining, true) {
                    self.lines.say(PEER, &Header::new(Kind::Drain, 0, 0).encode());
                    told(SenderEvent::Draining);
                }
                Ok(())
            }
            Message::Ends(below) if self.asked_end.take().is_some() => {
                self.timers.cancel(Timer::End);
                told(SenderEvent::Ends(below));
                Ok(())
            }
            // It was asked more than once.
            Message::Ends(_) if self.has_ends => Ok(()),
            Message::Lacks(run, event, parts) => {
                if let Some(index) = self.sent(run, event, false) {
                    self.lacks(now, index, parts);
                }
                Ok(())
            }
            Message::Here(run, event) if self.config.datagram.is_some() => {
                if let Some(index) = self.sent(run, event, false) {
                    self.arrived(now, index);
                }
                Ok(())
            }
            Message::Run(run) if self.config.role == Role::Builder => {
                told(SenderEvent::Opened(run));
                Ok(())
            }
            Message::Refused(code) => Err(Error::RefusedBy { code }),
            other => Err(Error::Unexpected { kind: other.kind() }),
        }
    }

    /// Returns the place of an event that was sent over this connection.
    fn sent(&self, run: u32, event: u64, apart: bool) -> Option<usize> {
        self.kept.iter().take(self.next).position(|kept| kept.name() == (run, event, apart))
    }

    fn token(&mut self, now: Instant, token: Token, told: &mut impl FnMut(SenderEvent)) -> Result<(), Error> {
        let index = match (self.sent(token.run, token.event, token.is_apart()), self.config.datagram) {
            (Some(index), None) => index,
            (Some(index), Some(_)) => {
                self.arrived(now, index);
                index
            }
            // A token may come twice.
            (None, Some(_)) => return Ok(()),
            (None, None) => return Err(Error::Unasked { event: token.event }),
        };
        let Some(kept) = self.kept.remove(index) else { return Ok(()) };
        if self.config.datagram.is_some() {
            self.answered.push_back((now, kept.name()));
        }
        self.next -= 1;
        if let Some(amid) = &mut self.amid
            && amid.index > index
        {
            amid.index -= 1;
        }
        self.bytes -= kept.payload.len() as u64;
        self.answered_to = self.answered_to.max(Some((kept.run, kept.event)));
        told(SenderEvent::Answered(token));
        Ok(())
    }

    fn away(&mut self, now: Instant, error: Error, told: &mut impl FnMut(SenderEvent)) {
        self.state = State::Away;
        self.has_ends = false;
        self.timers.clear();
        self.timers.arm(Timer::Again, now + self.again.failed());
        (self.next, self.bytes, self.run, self.amid) = (0, 0, None, None);
        self.flow.restart(self.config.datagram);
        self.kept.iter_mut().for_each(|kept| (kept.way, kept.times) = (Way::Kept, 0));
        told(SenderEvent::Left(error));
    }

    fn elapsed(&mut self, now: Instant, told: &mut impl FnMut(SenderEvent)) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Again => self.state = State::ToOpen,
                Timer::Hello => self.say_hello(now),
                Timer::End => self.say_end(now),
            }
        }
        while self.lines.due(now).is_some() {
            let error = match self.state {
                State::Greeting => Error::NoGreeting,
                _ if self.lines.silence(now, PEER, self.config.silence) == Silence::Long => Error::Silent,
                _ => continue,
            };
            self.lines.end(PEER, &error);
            self.away(now, error, told);
        }
    }

    /// Returns the next thing to be done; `None` if the connection is idle.
    pub(crate) fn poll<E>(
        &mut self,
        now: Instant,
        out: &mut Outbox,
        told: &mut impl FnMut(SenderEvent),
    ) -> Option<Output<E>> {
        self.doubled_until = None;
        if let Some(output) = self.lines.poll(out) {
            return Some(output);
        }
        match self.state {
            State::ToOpen => {
                self.state = State::Opening;
                Some(Output::Open(PEER, self.config.address.clone()))
            }
            State::Ready { credits, window, event_max } => self.send(now, credits, window, event_max, out, told),
            State::Away | State::Opening | State::Greeting => None,
        }
    }

    fn send<E>(
        &mut self,
        now: Instant,
        credits: u32,
        window: u64,
        event_max: u32,
        out: &mut Outbox,
        told: &mut impl FnMut(SenderEvent),
    ) -> Option<Output<E>> {
        if self.config.datagram.is_some() && self.segment(now, out) {
            return Some(Output::Send(PEER));
        }
        if self.lines.at(PEER)?.blocked || self.draining {
            return None;
        }
        let max = u32::try_from(window).unwrap_or(u32::MAX).min(event_max);
        loop {
            let kept = self.kept.get(self.next)?;
            let size = kept.payload.len() as u32;
            if size <= max {
                if self.next >= credits as usize || self.bytes + u64::from(size) > window {
                    return None;
                }
                break;
            }
            // It would end the connection each time that it is tried.
            let Kept { run, event, apart, .. } = *kept;
            told(SenderEvent::TooLarge { run, event, size, max, apart });
            self.kept.remove(self.next);
        }
        if self.is_doubled(now) {
            self.doubled_until = self.answered.front().map(|(at, _)| *at + ANSWERED);
            return None;
        }
        if self.config.datagram.is_some() {
            if self.amid.is_some() || !self.may_begin(self.next) {
                return None;
            }
            self.bytes += self.kept[self.next].payload.len() as u64;
            self.begin(self.next);
            self.next += 1;
            return self.segment(now, out).then_some(Output::Send(PEER));
        }
        let kept = &self.kept[self.next];
        let run = u64::from(kept.run) | if kept.apart { APART } else { 0 };
        if self.run != Some(run) {
            self.run = Some(run);
            out.copy(&Header::new(Kind::Run, 0, run).encode());
        }
        out.copy(&Header::new(kept.kind, kept.payload.len() as u32, kept.event).encode());
        out.share(kept.payload.clone());
        self.bytes += kept.payload.len() as u64;
        self.next += 1;
        Some(Output::Send(PEER))
    }

    /// Tells whether an event with the number of the next one is without its token: which of the two a token is for could not
    /// be told.
    fn is_doubled(&mut self, now: Instant) -> bool {
        while self.answered.front().is_some_and(|(at, _)| *at + ANSWERED <= now) {
            self.answered.pop_front();
        }
        let name = self.kept[self.next].name();
        if name > self.highest || (self.next == 0 && self.answered.is_empty()) {
            self.highest = name;
            return false;
        }
        let sent = self.kept.iter().take(self.next).map(Kept::name);
        let known = sent.chain(self.answered.iter().map(|(_, name)| *name));
        self.highest = known.clone().max().unwrap_or_default().max(name);
        known.clone().any(|other| other == name)
    }

    /// Returns when there is something to be done without any input.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let datagrams = matches!(self.state, State::Ready { .. }).then(|| self.datagrams_due()).flatten();
        [self.timers.next(), self.lines.next_look(), datagrams, self.doubled_until].into_iter().flatten().min()
    }

    /// Ends the connection in order.
    pub(crate) fn leave(&mut self) {
        self.left = true;
        self.lines.end(PEER, &Error::Closed(Closed::Finished));
        self.state = State::Away;
        self.timers.clear();
    }

    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        self.lines.at(PEER)?.inbound.landing()
    }
}
