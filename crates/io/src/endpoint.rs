#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;

use crate::transport::{Batch, Message};
use crate::{Clock, Transport};
use hodo_machine::{Driver, DriverError, Input, Instant, Machine, Outbox, Output, Wait};
use std::cell::Cell;
use std::io;
use std::time::Duration;

/// The bytes after which gathered messages are sent without waiting for the machine to be idle.
const BATCH_BYTES: usize = 256 << 10;
/// The number of messages after which they are sent without waiting for the machine to be idle.
const BATCH_MESSAGES: usize = 256;

/// The bytes that a machine sends in one turn at most, apart from the last batch.
const TURN_BYTES: usize = 4 << 20;
/// The time that a machine works in one turn at most, apart from the last batch.
const TURN_SPAN: Duration = Duration::from_millis(1);
/// The number of peers opened or closed between two readings of the clock: each may be a system call or two.
const OUTPUTS: u32 = 64;
/// The events after which the application has its turn. What it then asks for leaves before all events are told, so that the
/// peer works meanwhile.
const EVENTS: u32 = 128;

/// A machine on a transport, run inline on the caller's thread.
///
/// The machine is polled until it is idle or has told some events, and only then everything that it sent is written, with one
/// system call per peer. Nothing is allocated per operation once the buffers have grown.
///
/// A turn has a limit of bytes, messages and time. A machine that has more to send continues after the endpoint has
/// checked for input, so that no peer, deadline or command waits for the messages to another peer.
pub struct Endpoint<M: Machine, T: Transport> {
    machine: M,
    transport: T,
    clock: Clock,
    out: Outbox,
    batch: Batch,
    deadline: Option<Instant>,
    now: Cell<Instant>,
    /// Whether the caller has just read the time, so that a command need not read the clock again.
    asked: Cell<bool>,
    idle: bool,
    /// Whether the machine was interrupted, or peers wait for the next round: it continues without a wait.
    goes_on: bool,
    /// Whether the machine was interrupted among its events: it is polled again before anything is received.
    has_events: bool,
    /// Whether the machine has nothing more for the peers that have not had their share.
    round_over: bool,
    /// Whether input came in the last turn.
    has_heard: bool,
}

/// The work of the machine in a turn.
struct Turn {
    began: Instant,
    bytes: usize,
    outputs: u32,
    events: u32,
}

impl<M: Machine, T: Transport> Endpoint<M, T> {
    /// Creates an endpoint that runs on `clock`'s time.
    pub fn new(machine: M, transport: T, clock: Clock) -> Self {
        Endpoint {
            machine,
            transport,
            now: Cell::new(clock.now()),
            asked: Cell::new(true),
            clock,
            out: clock.outbox(),
            batch: Batch::default(),
            deadline: None,
            idle: false,
            goes_on: false,
            has_events: false,
            round_over: false,
            has_heard: false,
        }
    }

    /// Returns when the last turn ended. The time is fresh enough for deadlines, and spares a reading of the clock.
    pub fn last_turn(&self) -> Instant {
        self.now.get()
    }

    /// Returns the transport.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns whether input came in the last turn.
    pub(crate) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Returns whether the machine was interrupted in the last turn, which is limited: it may have more to tell or to send.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.has_events || self.goes_on
    }

    /// Tells all events that the machine has, and sends what it has to send; nothing is received.
    pub(crate) fn tell_all(&mut self, told: &mut dyn FnMut(M::Event)) -> io::Result<()> {
        loop {
            self.pump(told)?;
            if !self.has_events {
                return Ok(());
            }
        }
    }

    /// Has an idle machine polled again, at the time that it is now.
    #[inline]
    fn wake(&mut self) {
        if self.idle {
            self.idle = false;
            if !self.asked.get() {
                self.now.set(self.clock.now());
            }
        }
    }

    /// Returns the machine to an attendant, which changes it by commands only.
    pub(crate) fn attended(&mut self) -> &mut M {
        &mut self.machine
    }

    pub(crate) fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Carries out the outputs of the machine until it is idle or the turn is over. Returns whether the application
    /// received an event.
    #[inline]
    fn pump(&mut self, told: &mut dyn FnMut(M::Event)) -> io::Result<bool> {
        let mut any = false;
        let now = self.now.get();
        let mut turn = Turn { began: now, bytes: 0, outputs: 0, events: 0 };
        let mut previous_length = self.out.len();
        self.goes_on = false;
        self.has_events = false;
        if std::mem::take(&mut self.round_over) {
            self.transport.release(now, &mut self.machine);
        }
        loop {
            match self.machine.poll(now, &mut self.out) {
                Output::Send(peer) => {
                    let length = self.out.len() - previous_length;
                    previous_length = self.out.len();
                    self.batch.messages.push(Message { peer, pieces_end: self.out.seal(), length });
                    let is_full = previous_length >= BATCH_BYTES || self.batch.messages.len() >= BATCH_MESSAGES;
                    if !is_full && !self.out.is_urgent() {
                        continue;
                    }
                    turn.bytes += std::mem::take(&mut previous_length);
                    turn.outputs = OUTPUTS;
                }
                // If more were received before they are all delivered, they would pile up where they come faster than they are
                // taken.
                Output::Event(event) => {
                    any = true;
                    told(event);
                    turn.events += 1;
                    if self.out.take_pause() || turn.events == EVENTS {
                        self.has_events = true;
                        self.idle = false;
                        self.flush()?;
                        return Ok(true);
                    }
                }
                Output::Open(peer, address) => {
                    turn.outputs += 1;
                    if let Err(why) = self.transport.open(peer, &address) {
                        self.machine.handle(now, Input::Closed(peer, why));
                    }
                }
                Output::Close(peer) => {
                    turn.outputs += 1;
                    self.send()?;
                    previous_length = 0;
                    self.transport.close(peer);
                    // After the peer is closed, of which nothing more is told.
                    self.transport.announce(now, &mut self.machine);
                }
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    // A machine that has to hold back may do something else instead.
                    if !self.flush()? {
                        break;
                    }
                    previous_length = 0;
                }
            }
            if turn.outputs >= OUTPUTS {
                turn.outputs = 0;
                self.flush()?;
                previous_length = 0;
                if turn.bytes >= TURN_BYTES || self.clock.now() - turn.began >= TURN_SPAN {
                    self.goes_on = true;
                    return Ok(any);
                }
            }
        }
        self.idle = true;
        self.round_over = self.transport.has_held();
        self.goes_on = self.round_over;
        Ok(any)
    }

    /// Sends the gathered messages. Returns whether the machine was notified to hold back.
    #[inline]
    fn flush(&mut self) -> io::Result<bool> {
        Ok(self.send()? && self.transport.announce(self.now.get(), &mut self.machine))
    }

    /// Sends the gathered messages, and returns whether there were any.
    #[inline]
    fn send(&mut self) -> io::Result<bool> {
        if self.batch.messages.is_empty() {
            if self.out.has_marks() {
                self.stamp(self.now.get(), self.now.get());
            }
            return Ok(false);
        }
        let sending = self.out.has_marks().then(|| self.clock.now());
        self.transport.send(&self.batch, &mut self.out)?;
        if let Some(sending) = sending {
            self.stamp(sending, self.clock.now());
        }
        self.batch.messages.clear();
        self.out.clear();
        Ok(true)
    }

    /// Stamps the marks made since the last call; the messages that the machine sent meanwhile were written between
    /// `sending` and `sent`.
    #[cold]
    fn stamp(&mut self, sending: Instant, sent: Instant) {
        for mark in self.out.drain_marks() {
            self.machine.stamped(mark.stamp(sending, sent));
        }
    }

    /// Runs one turn, with the operating system's own errors. See [`Driver::turn`].
    ///
    /// # Errors
    /// Returns the operating system's error if the transport cannot send or receive; the failure of a single peer is an
    /// input of the machine instead.
    pub fn step(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(M::Event)) -> io::Result<()> {
        self.asked.set(false);
        let told_some = !self.goes_on && !self.idle && self.pump(told)?;
        if self.has_events {
            return Ok(());
        }
        let wait = if told_some || self.goes_on { Wait::Never } else { wait };
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        let received = self.transport.receive(wait, until, &self.clock, &mut self.machine)?;
        self.has_heard = received.is_some();
        let now = received.unwrap_or_else(|| self.clock.now());
        self.now.set(now);
        if received.is_some() || self.goes_on {
            self.pump(told)?;
            if self.has_events {
                return Ok(());
            }
        }
        // After the input, which may have moved the deadline, as in the simulation.
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.machine.handle(now, Input::Elapsed);
            self.pump(told)?;
        }
        Ok(())
    }
}

impl<M: Machine, T: Transport> Driver for Endpoint<M, T> {
    type Machine = M;

    fn machine(&self) -> &M {
        &self.machine
    }

    fn machine_mut(&mut self) -> &mut M {
        self.wake();
        &mut self.machine
    }

    #[inline]
    fn command(&mut self, command: M::Command) {
        self.wake();
        self.machine.handle(self.now.get(), Input::Command(command));
    }

    fn turn(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(M::Event)) -> Result<(), DriverError> {
        self.step(wait, until, told).map_err(|error| DriverError::System(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    #[inline]
    fn now(&self) -> Instant {
        let now = self.clock.now();
        self.now.set(now);
        self.asked.set(true);
        now
    }
}
