use crate::transport::{Batch, Message};
use crate::{Clock, Transport};
use hodo_machine::{Driver, DriverError, Input, Instant, Machine, Outbox, Output, Wait};
use std::cell::Cell;
use std::io;

/// Bytes after which gathered messages are sent without waiting for the machine to be idle.
const BATCH_BYTES: usize = 256 << 10;
/// Messages after which they are.
const BATCH_MESSAGES: usize = 256;

/// Runs a machine on a transport, inline on the caller's thread.
///
/// The machine is polled until it is idle, and only then is everything that it sent written, with one system call a
/// peer. Nothing is allocated per operation once the buffers have grown.
pub struct Endpoint<M: Machine, T: Transport> {
    machine: M,
    transport: T,
    clock: Clock,
    out: Outbox,
    batch: Batch,
    deadline: Option<Instant>,
    now: Cell<Instant>,
    /// Whether the caller has just asked for the time, so that a command need not read the clock again.
    asked: Cell<bool>,
    idle: bool,
}

impl<M: Machine, T: Transport> Endpoint<M, T> {
    /// An endpoint on `clock`'s time.
    pub fn new(machine: M, transport: T, clock: Clock) -> Self {
        Endpoint {
            machine,
            transport,
            now: Cell::new(clock.now()),
            asked: Cell::new(true),
            clock,
            out: Outbox::new(),
            batch: Batch::default(),
            deadline: None,
            idle: false,
        }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// When the last turn ended: fresh enough for deadlines, and spares a reading of the clock.
    pub fn last_turn(&self) -> Instant {
        self.now.get()
    }

    /// The transport.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// When the machine wants a turn, whatever comes until then.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Carries out what the machine wants until it is idle. Answers whether the application was told something.
    #[inline]
    fn pump(&mut self, told: &mut dyn FnMut(M::Event)) -> io::Result<bool> {
        let mut any = false;
        let now = self.now.get();
        let mut previous_length = self.out.len();
        loop {
            match self.machine.poll(now, &mut self.out) {
                Output::Send(peer) => {
                    let length = self.out.len() - previous_length;
                    previous_length = self.out.len();
                    self.batch.messages.push(Message { peer, pieces_end: self.out.seal(), length });
                    if previous_length >= BATCH_BYTES || self.batch.messages.len() >= BATCH_MESSAGES {
                        self.flush()?;
                        previous_length = 0;
                    }
                }
                Output::Event(event) => {
                    any = true;
                    told(event);
                }
                Output::Open(peer, address) => {
                    if let Err(why) = self.transport.open(peer, &address) {
                        self.machine.handle(now, Input::Closed(peer, why));
                    }
                }
                Output::Close(peer) => {
                    self.flush()?;
                    previous_length = 0;
                    self.transport.close(peer);
                }
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    // One that has to hold back may want something else instead.
                    if !self.flush()? {
                        break;
                    }
                    previous_length = 0;
                }
            }
        }
        self.idle = true;
        Ok(any)
    }

    /// Sends what is gathered. Answers whether the machine was told to hold back.
    #[inline]
    fn flush(&mut self) -> io::Result<bool> {
        if self.batch.messages.is_empty() {
            if self.out.has_marks() {
                self.stamp(self.now.get(), self.now.get());
            }
            return Ok(false);
        }
        let sending = self.out.has_marks().then(|| self.clock.now());
        self.transport.send(&self.batch, &self.out)?;
        if let Some(sending) = sending {
            self.stamp(sending, self.clock.now());
        }
        self.batch.messages.clear();
        self.out.clear();
        Ok(self.transport.announce(self.now.get(), &mut self.machine))
    }

    /// Stamps the marks made since the last time, when what the machine sent meanwhile was written between these two.
    #[cold]
    fn stamp(&mut self, sending: Instant, sent: Instant) {
        for mark in self.out.drain_marks() {
            self.machine.stamped(mark.stamp(sending, sent));
        }
    }

    /// One turn, with the operating system's own errors. See [`Driver::turn`].
    pub fn step(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(M::Event)) -> io::Result<()> {
        let mut wait = wait;
        self.asked.set(false);
        if !self.idle && self.pump(told)? {
            wait = Wait::Never;
        }
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        match self.transport.receive(wait, until, &self.clock, &mut self.machine)? {
            Some(now) => self.now.set(now),
            None => {
                let now = self.clock.now();
                self.now.set(now);
                if self.deadline.is_none_or(|deadline| now < deadline) {
                    return Ok(());
                }
                self.machine.handle(now, Input::Elapsed);
            }
        }
        self.pump(told)?;
        Ok(())
    }
}

impl<M: Machine, T: Transport> Driver for Endpoint<M, T> {
    type Machine = M;

    fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    #[inline]
    fn command(&mut self, command: M::Command) {
        if self.idle {
            self.idle = false;
            if !self.asked.get() {
                self.now.set(self.clock.now());
            }
        }
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
