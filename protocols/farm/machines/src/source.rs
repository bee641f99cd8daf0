//! A source: gives fragments to a builder, or whole events to a controller, and keeps each until its token has come.

use crate::Error;
use crate::sender::{Sender, SenderConfig, SenderEvent};
use crate::supply::{EventData, Next, Supply};
use crate::wire::{FLAG_CONFLICT, FLAG_DUPLICATE, FLAG_WITHOUT, Hello, Kind, Role, Verdict};
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};

/// How long a source that is to end waits for the number at which to do so; its builder waits half as long for the others.
pub(crate) const ASKS_FOR: Duration = Duration::from_secs(4);

/// The settings of a source.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// The builder or the controller.
    pub address: Address,
    /// Which source it is.
    pub number: u32,
    /// The run of its events.
    pub run: u32,
    /// How long a greeting may take.
    pub greeting: Duration,
    /// A far end that is silent for this long is gone, and is reached anew.
    pub silence: Duration,
    /// Differs each time that the program starts.
    pub instance: u64,
    /// Over datagrams to a builder that takes them: bytes of a fragment in one.
    pub datagram: Option<u32>,
}

impl SourceConfig {
    /// Creates the settings of a source of a run.
    #[must_use]
    pub const fn new(address: Address, number: u32, run: u32) -> Self {
        let (greeting, silence) = (Duration::from_secs(2), Duration::from_secs(2));
        SourceConfig { address, number, run, greeting, silence, instance: 0, datagram: None }
    }
}

/// A command of the application to a source.
#[derive(Debug)]
pub enum Command {
    /// Give this event.
    Event {
        /// Number of the event.
        number: u64,
        /// Bytes of the event.
        payload: Bytes,
    },
    /// The run of the events from now on.
    Run(u32),
    /// End the connection.
    Leave,
    /// End the supply: at a builder at the number at which all its sources end, else at once.
    End,
}

/// An event that a source reports to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The far end takes events.
    Joined(Hello),
    /// The far end is gone, or cannot be reached; it is tried again.
    Left(Error),
    /// An event has its final verdict, which will survive whatever happens.
    Answered {
        /// Run of the event.
        run: u32,
        /// Number of the event.
        event: u64,
        /// The verdict; of no meaning for a duplicate.
        verdict: Verdict,
        /// Whether it had been given before.
        duplicate: bool,
        /// Whether other data has its number: it was kept apart.
        conflict: bool,
        /// Whether it came too late, and the event went on without it.
        without: bool,
    },
    /// An event that the far end does not take because of its size: it is not given.
    TooLarge {
        /// Number of the event.
        event: u64,
        /// Bytes of the event.
        size: u32,
        /// The far end's bound.
        max: u32,
    },
    /// The supply has ended and every event has its verdict.
    Ended,
}

/// Gives events, and keeps each until its token has come.
#[derive(Debug)]
pub struct Source<S> {
    supply: S,
    supply_at: Instant,
    supply_ended: bool,
    /// An event behind the end of what the far end takes.
    set_aside: Option<EventData>,
    /// Whether the supply was told to hurry.
    is_hurried: bool,
    /// It is to end, and asks until this instant at which number.
    ending: Option<Instant>,
    ended: bool,
    sender: Sender,
    run: u32,
    events: VecDeque<Event>,
    given: u64,
    answered: u64,
    /// Nanoseconds during which the far end took nothing although there was something.
    dead_ns: u64,
    held_up_since: Option<Instant>,
}

impl<S: Supply> Source<S> {
    /// Creates a source that reaches its far end at once.
    #[must_use]
    pub fn new(config: SourceConfig, supply: S) -> Self {
        Source {
            sender: Sender::new(SenderConfig {
                address: config.address,
                role: Role::Source,
                number: config.number,
                instance: config.instance,
                greeting: config.greeting,
                silence: config.silence,
                datagram: config.datagram,
            }),
            supply,
            supply_at: Instant::ZERO,
            supply_ended: false,
            set_aside: None,
            is_hurried: false,
            ending: None,
            ended: false,
            run: config.run,
            events: VecDeque::new(),
            given: 0,
            answered: 0,
            dead_ns: 0,
            held_up_since: None,
        }
    }

    /// Events given over to the link, and those of them with a verdict.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.given, self.answered)
    }

    /// Events without a verdict.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.sender.kept()
    }

    /// Tells whether the supply has ended, and every event has its verdict.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.supply_ended && self.sender.is_empty()
    }

    /// Events that were given again over datagrams because they were lost, each time counted.
    #[must_use]
    pub const fn sent_again(&self) -> u64 {
        self.sender.sent_again()
    }

    /// Nanoseconds during which the far end took nothing more.
    #[must_use]
    pub const fn dead_time_ns(&self) -> u64 {
        self.dead_ns
    }

    fn tell(events: &mut VecDeque<Event>, answered: &mut u64, told: SenderEvent) {
        events.push_back(match told {
            SenderEvent::Joined(hello) => Event::Joined(hello),
            SenderEvent::Left(error) => Event::Left(error),
            SenderEvent::Draining | SenderEvent::Opened(_) => return,
            SenderEvent::TooLarge { event, size, max, .. } => Event::TooLarge { event, size, max },
            SenderEvent::Answered(token) => {
                *answered += 1;
                let duplicate = token.flags & FLAG_DUPLICATE != 0;
                let (conflict, without) = (token.flags & FLAG_CONFLICT != 0, token.flags & FLAG_WITHOUT != 0);
                let (run, event, verdict) = (token.run, token.event, token.verdict);
                Event::Answered { run, event, verdict, duplicate, conflict, without }
            }
        });
    }

    fn pull(&mut self, now: Instant) {
        self.look_at_end(now);
        // One that asks at which number to end gives nothing more until it is told.
        let asks = self.ending.is_some() && !self.sender.is_draining();
        while !self.supply_ended && !asks && now >= self.supply_at && self.sender.has_room() {
            match self.set_aside.take().map_or_else(|| self.supply.next(now), Next::Event) {
                Next::Event(event) if self.sender.end().is_some_and(|end| event.number >= end) => {
                    self.sender.finish_drain();
                    self.supply_ended = self.ending.is_some();
                    self.set_aside = Some(event);
                    break;
                }
                Next::Event(event) => {
                    self.run = self.supply.run().unwrap_or(self.run);
                    let kind = if event.partial { Kind::Partial } else { Kind::Event };
                    self.give(event.number, kind, event.payload);
                    // One at a time, so that what is kept stays what is on its way.
                    break;
                }
                Next::Later(at) => self.supply_at = at,
                Next::Ended => self.supply_ended = true,
            }
        }
        if self.supply_ended {
            self.set_aside = None;
            self.sender.finish_drain();
        }
        let held_up = !self.supply_ended && now >= self.supply_at && !self.sender.has_room();
        if let Some(since) = self.held_up_since {
            self.dead_ns += now.nanos_since(since);
        }
        self.held_up_since = held_up.then_some(now);
    }

    /// Ends the supply where it is to end, and the far end does not tell at which number; has it hurry up to that number.
    fn look_at_end(&mut self, now: Instant) {
        let end = self.sender.end();
        if let Some(until) = self.ending {
            self.supply_ended |= end.is_none() && (until <= now || self.sender.is_draining());
        }
        if self.is_hurried != end.is_some() {
            self.is_hurried = end.is_some();
            self.supply.hurry(self.is_hurried);
            self.supply_at = now;
        }
    }

    /// Ends the supply: at once, or at the number at which all sources of a builder end.
    fn end(&mut self, now: Instant) {
        let until = if self.sender.ask_for_end(now) { now + ASKS_FOR } else { now };
        self.ending.get_or_insert(until);
    }

    fn give(&mut self, number: u64, kind: Kind, payload: Bytes) {
        self.given += 1;
        self.sender.give(self.run, number, kind, payload);
    }
}

impl<S: Supply> Machine for Source<S> {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Command(Command::Event { number, payload }) => self.give(number, Kind::Event, payload),
            Input::Command(Command::Run(run)) => self.run = run,
            Input::Command(Command::Leave) => self.sender.leave(),
            Input::Command(Command::End) => self.end(now),
            other => {
                let (events, answered) = (&mut self.events, &mut self.answered);
                self.sender.handle(now, &other, &mut |told| Self::tell(events, answered, told));
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        self.pull(now);
        let (events, answered) = (&mut self.events, &mut self.answered);
        if let Some(output) = self.sender.poll(now, out, &mut |told| Self::tell(events, answered, told)) {
            return output;
        }
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if self.supply_ended && self.sender.is_empty() && !core::mem::replace(&mut self.ended, true) {
            return Output::Event(Event::Ended);
        }
        let supply =
            (!self.supply_ended && self.supply_at > now && self.supply_at < Instant::MAX).then_some(self.supply_at);
        let ending = self.ending.filter(|until| !self.supply_ended && *until > now);
        Output::Idle([supply, ending, self.sender.deadline()].into_iter().flatten().min())
    }

    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        self.sender.landing()
    }
}

#[cfg(test)]
mod tests;
