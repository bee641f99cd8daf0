//! A source: gives fragments to a builder, or whole events to a controller, and keeps each until its token has come.

use crate::Error;
use crate::sender::{Sender, SenderConfig, SenderEvent};
use crate::supply::{Next, Supply};
use crate::wire::{FLAG_CONFLICT, FLAG_DUPLICATE, FLAG_LATE, Hello, Kind, Role, Token, Verdict};
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};

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
    /// Make no more events than the other sources of a builder have, and tell [`Event::Ended`] when they have their verdict.
    End,
    /// End the connection.
    Leave,
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
        /// Whether its number is that of another event, for which it is in quarantine.
        conflict: bool,
        /// Whether the event went on without this fragment of it, which came too late.
        late: bool,
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

/// How a source is to end before its supply does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    /// The builder is to say how far the others have come.
    Asked,
    /// It gives the events below this number, as all sources do.
    Below(u64),
}

/// Gives events, and keeps each until its token has come.
#[derive(Debug)]
pub struct Source<S> {
    supply: S,
    supply_at: Instant,
    supply_ended: bool,
    /// The time for the supply when it is made to end.
    supply_at_end: Instant,
    ending: Ending,
    ended: bool,
    sender: Sender,
    run: u32,
    /// The number below which all events of the run were given.
    given_below: u64,
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
            supply_at_end: Instant::ZERO,
            ending: Ending::Not,
            ended: false,
            run: config.run,
            given_below: 0,
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

    /// Tells whether no more events are made, and each has its verdict.
    #[must_use]
    pub fn has_ended(&self) -> bool {
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

    fn tell(events: &mut VecDeque<Event>, answered: &mut u64, ending: &mut Ending, told: SenderEvent) {
        events.push_back(match told {
            SenderEvent::Joined(hello) => Event::Joined(hello),
            SenderEvent::Left(error) => Event::Left(error),
            SenderEvent::Ends(below) => {
                *ending = Ending::Below(below);
                return;
            }
            SenderEvent::Draining | SenderEvent::Opened(_) => return,
            SenderEvent::TooLarge { event, size, max, .. } => Event::TooLarge { event, size, max },
            SenderEvent::Answered(token) => {
                *answered += 1;
                let Token { run, event, verdict, flags, .. } = token;
                let conflict = flags & FLAG_CONFLICT != 0;
                let duplicate = flags & FLAG_DUPLICATE != 0 && !conflict;
                let late = flags & FLAG_LATE != 0;
                Event::Answered { run, event, verdict, duplicate, conflict, late }
            }
        });
    }

    /// Makes no more events than the others have.
    fn end(&mut self, now: Instant) {
        if self.ending == Ending::Not {
            let asks = !self.supply_ended && self.sender.ask_end(now, self.given_below);
            self.ending = if asks { Ending::Asked } else { Ending::Below(0) };
        }
    }

    fn pull(&mut self, now: Instant) {
        let below = match self.ending {
            Ending::Not => u64::MAX,
            Ending::Asked => return,
            Ending::Below(below) => below,
        };
        self.supply_ended |= self.given_below >= below;
        let is_due = now >= self.supply_at || below < u64::MAX;
        while !self.supply_ended && is_due && self.sender.has_room() {
            match self.supply.next(now.max(self.supply_at_end)) {
                Next::Event(event) => {
                    let run = self.supply.run().unwrap_or(self.run);
                    if event.number >= below || run != self.run && below < u64::MAX {
                        self.supply_ended = true;
                        break;
                    }
                    self.begin_run(run);
                    let kind = if event.partial { Kind::Partial } else { Kind::Event };
                    self.give(event.number, kind, event.payload);
                    // One at a time, so that what is kept stays what is on its way.
                    break;
                }
                // What the others have is made at once.
                Next::Later(at) if below < u64::MAX && at < Instant::MAX => self.supply_at_end = at,
                Next::Later(at) => {
                    self.supply_at = at;
                    break;
                }
                Next::Ended => self.supply_ended = true,
            }
        }
        let held_up = !self.supply_ended && now >= self.supply_at && !self.sender.has_room();
        if let Some(since) = self.held_up_since {
            self.dead_ns += now.nanos_since(since);
        }
        self.held_up_since = held_up.then_some(now);
    }

    fn begin_run(&mut self, run: u32) {
        if run != self.run {
            (self.run, self.given_below) = (run, 0);
        }
    }

    fn give(&mut self, number: u64, kind: Kind, payload: Bytes) {
        self.given += 1;
        self.given_below = self.given_below.max(number.saturating_add(1));
        self.sender.give(self.run, number, kind, payload);
    }
}

impl<S: Supply> Machine for Source<S> {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        match input {
            Input::Command(Command::Event { number, payload }) => self.give(number, Kind::Event, payload),
            Input::Command(Command::Run(run)) => self.begin_run(run),
            Input::Command(Command::End) => self.end(now),
            Input::Command(Command::Leave) => self.sender.leave(),
            other => {
                let (events, answered, ending) = (&mut self.events, &mut self.answered, &mut self.ending);
                self.sender.handle(now, &other, &mut |told| Self::tell(events, answered, ending, told));
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        self.pull(now);
        let (events, answered, ending) = (&mut self.events, &mut self.answered, &mut self.ending);
        if let Some(output) = self.sender.poll(now, out, &mut |told| Self::tell(events, answered, ending, told)) {
            return output;
        }
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if self.has_ended() && !core::mem::replace(&mut self.ended, true) {
            return Output::Event(Event::Ended);
        }
        let supply =
            (!self.supply_ended && self.supply_at > now && self.supply_at < Instant::MAX).then_some(self.supply_at);
        Output::Idle([supply, self.sender.deadline()].into_iter().flatten().min())
    }

    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        self.sender.landing()
    }
}

#[cfg(test)]
mod tests;
