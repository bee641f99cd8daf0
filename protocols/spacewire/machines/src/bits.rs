//! One end of a link clocked to the bit: levels of data and strobe in, levels of data and strobe out.
//!
//! | part | does |
//! |---|---|
//! | encoder | characters with odd parity; each bit changes data or strobe, never both; 10 Mbit/s until Run |
//! | decoder | bits by transitions, the first NULL, parity, escape sequences, disconnection after 850 ns |
//! | [`End`] | the state machine, credit, the choice of what is sent |
//! | host | N-chars to send and received, time-codes, failures |
//!
//! After a failure the packet that was being received ends with an EEP, and the rest of the packet that was being sent is
//! discarded up to its end, even if the host has yet to push it. A packet that was sent whole but not confirmed by the far end's
//! receiver may be lost as well; a [`Failure`] at either end says so.
mod decoder;
mod encoder;
mod host;
mod line;
#[cfg(test)]
mod tests;

use crate::character::{Character, Code};
use crate::end::Statistics;
use crate::end::{
    Arrival, DISCONNECTED, End, Failure, Fault, LinkError, Received, START_UP_RATE, Sent, Settings, State,
};
use crate::time::Picos;
use alloc::collections::VecDeque;
use decoder::Decoder;
use encoder::Encoder;
use host::{Incoming, Outgoing, push_bounded};
pub use line::{Clock, Line};

/// N-chars that the host may push ahead.
const OUTGOING: usize = 65_536;
/// Time-codes and failures that wait for the host; older ones go first.
const WAITING: usize = 64;
/// The length of a bit until Run.
const START_UP_BIT: Picos = Picos(1_000_000_000_000 / START_UP_RATE);

/// Losses by error recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// N-chars to send that were discarded.
    pub discarded: u64,
    /// EEPs that were appended to packets being received.
    pub eeps: u64,
}

/// One end of a link, clocked to the bit.
#[derive(Debug, Clone)]
pub struct BitEnd {
    end: End,
    clock: Clock,
    now: Picos,
    decoder: Decoder,
    encoder: Encoder,
    outgoing: Outgoing,
    incoming: Incoming,
    time_codes: VecDeque<u8>,
    failures: VecDeque<Failure>,
}

impl BitEnd {
    /// Creates an end in ErrorReset at time zero.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock) -> Self {
        BitEnd {
            end: End::new(settings, Picos::ZERO),
            clock,
            now: Picos::ZERO,
            decoder: Decoder::new(clock.steps(DISCONNECTED)),
            encoder: Encoder::default(),
            outgoing: Outgoing::new(OUTGOING),
            incoming: Incoming::default(),
            time_codes: VecDeque::new(),
            failures: VecDeque::new(),
        }
    }

    /// Takes the levels that arrive and returns those that leave, one clock step after the last call.
    pub fn step(&mut self, arrived: Line) -> Line {
        self.now = self.now + self.clock.step;
        if let Some(failure) = self.end.elapsed(self.now) {
            self.recover(failure);
        }
        self.receive(arrived);
        self.transmit();
        self.encoder.line()
    }

    fn receive(&mut self, line: Line) {
        if !self.end.listens() {
            return self.decoder.reset(line);
        }
        let Some(arrival) = self.decoder.step(line) else { return };
        match self.end.receive(arrival, self.now) {
            Received::Nothing => {}
            Received::Nchar(nchar) => self.incoming.push(nchar),
            Received::TimeCode(code) => push_bounded(&mut self.time_codes, code, WAITING),
            Received::Failed(failure) => self.recover(failure),
        }
    }

    fn transmit(&mut self) {
        let start_up = self.clock.steps(START_UP_BIT);
        if !self.end.transmits() {
            return self.encoder.settle(start_up);
        }
        if self.encoder.is_free() {
            self.load();
        }
        self.encoder.step(if self.end.state() == State::Run { self.clock.divider } else { start_up });
    }

    /// Gives the encoder the next code. It stays free for a fault that stops the transmitter.
    fn load(&mut self) {
        let code = match self.end.send(self.outgoing.front(), self.now) {
            Sent::Code(code) => Some(code),
            Sent::Offered => self.outgoing.pop(),
            Sent::Fault(fault, code) => return self.load_fault(fault, code),
            Sent::Off => None,
        };
        if let Some(code) = code {
            let (escape, character) = code.characters();
            if let Some(escape) = escape {
                self.encoder.queue(escape, false);
            }
            self.encoder.queue(character, false);
        }
    }

    fn load_fault(&mut self, fault: Fault, code: Code) {
        let (escape, character) = code.characters();
        match (fault, escape) {
            (Fault::Escape, _) => {
                self.encoder.queue(Character::Esc, false);
                self.encoder.queue(Character::Esc, false);
            }
            (_, Some(escape)) => {
                self.encoder.queue(escape, fault == Fault::Parity);
                self.encoder.queue(character, false);
            }
            (_, None) => self.encoder.queue(character, fault == Fault::Parity),
        }
    }

    fn recover(&mut self, failure: Failure) {
        self.encoder.stop();
        if failure.cut_receiving {
            self.incoming.cut();
        }
        if failure.cut_sending {
            self.outgoing.cut();
        }
        push_bounded(&mut self.failures, failure, WAITING);
    }

    /// Queues an N-char to send. Returns `false` if it is none, or the queue is full.
    pub fn push(&mut self, nchar: Code) -> bool {
        self.outgoing.push(nchar)
    }

    /// Queues a packet with its EOP. Returns `false`, and queues nothing, if there is no room for all of it.
    pub fn push_packet(&mut self, packet: &[u8]) -> bool {
        if self.outgoing.room() <= packet.len() {
            return false;
        }
        let data = packet.iter().map(|byte| Code::Data(*byte));
        data.chain([Code::Eop]).all(|nchar| self.outgoing.push(nchar))
    }

    /// Returns how many N-chars wait to be sent.
    #[must_use]
    pub fn to_send(&self) -> usize {
        self.outgoing.len()
    }

    /// Returns the next N-char that was received.
    pub fn pop(&mut self) -> Option<Code> {
        let (nchar, took_credit) = self.incoming.pop()?;
        self.end.take(u16::from(took_credit));
        Some(nchar)
    }

    /// Returns how many N-chars wait for [`pop`](Self::pop).
    #[must_use]
    pub fn received(&self) -> usize {
        self.incoming.len()
    }

    /// Sends a time-code at the next boundary. One that still waits is replaced.
    pub fn send_time_code(&mut self, code: u8) {
        self.end.send_time_code(code);
    }

    /// Returns the next time-code that was received, of at most 64 that wait.
    pub fn pop_time_code(&mut self) -> Option<u8> {
        self.time_codes.pop_front()
    }

    /// Returns the next failure of the link, of at most 64 that wait.
    pub fn pop_failure(&mut self) -> Option<Failure> {
        self.failures.pop_front()
    }

    /// Makes a mistake at the next boundary in Run, for a test of the far end. An EEP is no mistake: [`push`](Self::push) it.
    pub fn inject(&mut self, fault: Fault) {
        self.end.inject(fault);
    }

    /// Sends `byte` without an end whenever the host has nothing to send, until told otherwise.
    pub fn babble(&mut self, byte: Option<u8>) {
        self.outgoing.babble = byte;
    }

    /// Changes the settings. A link that is disabled in Run goes down.
    pub fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        if let Some(failure) = self.end.configure(change, self.now) {
            self.recover(failure);
        }
    }

    /// Changes the length of a bit in Run, from the next bit on.
    pub fn set_divider(&mut self, divider: u32) {
        self.clock.divider = divider;
    }

    /// Takes the link down, as if `error` had been found on the line.
    pub fn fail(&mut self, error: LinkError) {
        if let Received::Failed(failure) = self.end.receive(Arrival::Error(error), self.now) {
            self.recover(failure);
        }
    }

    /// Returns the link above its bits: its state, credit and settings.
    #[must_use]
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Returns the counts of codes and errors.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        self.end.statistics()
    }

    /// Returns the losses by error recovery.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        Recovered { discarded: self.outgoing.discarded, eeps: self.incoming.eeps }
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn now(&self) -> Picos {
        self.now
    }
}
