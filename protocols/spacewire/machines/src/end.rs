//! One end of a link above its bits: the state machine, credit and error recovery (ECSS-E-ST-50-12C, clause 8).
//!
//! | state | sends | leaves for |
//! |---|---|---|
//! | ErrorReset | nothing | ErrorWait after 6.4 us |
//! | ErrorWait | nothing | Ready after 12.8 us |
//! | Ready | nothing | Started, once the link is enabled |
//! | Started | NULL | Connecting on a NULL; ErrorReset after 12.8 us |
//! | Connecting | FCT, NULL | Run on an FCT; ErrorReset after 12.8 us |
//! | Run | everything | ErrorReset on an error |
//!
//! A disconnection, an error of parity, escape or credit, and a code that the state does not allow lead to ErrorReset from any state.
//!
//! Whoever drives an end gives it what arrives ([`End::receive`]) and asks for what to send whenever its transmitter is free ([`End::send`]). The
//! buffers of N-chars are the driver's: it reports what it took from the receive buffer ([`End::take`]), and says what it has to send.
mod settings;
mod statistics;
#[cfg(test)]
mod tests;

use crate::character::Code;
use crate::time::Picos;
pub use settings::{Edition, Settings};
pub use statistics::{Counts, Errors, Statistics};

/// N-chars that an FCT makes room for.
pub const CREDIT_OF_FCT: u16 = 8;
/// N-chars that may be outstanding in a direction: seven FCTs.
pub const CREDIT_MAX: u16 = 56;
/// The time that an end stays in ErrorReset (8.4.7).
pub const ERROR_RESET: Picos = Picos::from_nanos(6_400);
/// How long an end waits in ErrorWait, and for an answer in Started and Connecting.
pub const ANSWER: Picos = Picos::from_nanos(12_800);
/// A line without a transition for this long is disconnected (8.11.3).
pub const DISCONNECTED: Picos = Picos::from_nanos(850);
/// The rate until Run, in bit/s.
pub const START_UP_RATE: u64 = 10_000_000;

/// The states of clause 8.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the standard's names")]
pub enum State {
    ErrorReset,
    ErrorWait,
    Ready,
    Started,
    Connecting,
    Run,
}

/// The cause of a link going down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No transition for 850 ns.
    #[error("disconnected: no transition for 850 ns")]
    Disconnect,
    /// A parity bit is wrong.
    #[error("parity error")]
    Parity,
    /// ESC before ESC, EOP or EEP.
    #[error("escape error: ESC before ESC, EOP or EEP")]
    Escape,
    /// An N-char without credit, or an FCT that raises the credit over 56.
    #[error("credit error: an N-char without credit, or credit over 56")]
    Credit,
    /// A code that the state does not allow.
    #[error("a code that the state of the link does not allow")]
    Sequence,
    /// The far end did not answer within 12.8 us.
    #[error("no answer within 12.8 us")]
    Timeout,
    /// The link was disabled here.
    #[error("disabled")]
    Disabled,
}

/// A code or an error that a receiver made of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// A code, whole and of right parity.
    Code(Code),
    /// An error that shows on the line: disconnect, parity or escape.
    Error(LinkError),
}

/// The result of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Nothing for the host.
    Nothing,
    /// An N-char for the receive buffer.
    Nchar(Code),
    /// A time-code.
    TimeCode(u8),
    /// The link went down.
    Failed(Failure),
}

/// A link that went down, and what that leaves to do for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The cause.
    pub error: LinkError,
    /// Whether a packet was being received: append an EEP to the receive buffer (8.10.2).
    pub cut_receiving: bool,
    /// Whether a packet was being sent: discard what is left of it, up to its end (8.10.2).
    pub cut_sending: bool,
}

/// Faults on request, for tests of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The next code has a wrong parity bit.
    Parity,
    /// ESC, ESC.
    Escape,
    /// An FCT that nothing has made room for.
    Fct,
    /// An N-char goes out once the credit is used up.
    WithoutCredit,
    /// The transmitter stops.
    Disconnect,
}

/// A code, or silence, that a transmitter sends at a boundary of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// A code.
    Code(Code),
    /// The N-char that was offered. It counts as taken.
    Offered,
    /// A fault in place of a code: the code with wrong parity for [`Fault::Parity`], ESC ESC for [`Fault::Escape`].
    Fault(Fault, Code),
    /// Nothing: the transmitter is in reset.
    Off,
}

/// One end of a link.
#[derive(Debug, Clone)]
pub struct End {
    settings: Settings,
    state: State,
    /// When the state's time is over.
    timer: Option<Picos>,
    got_null: bool,
    sent_null: bool,
    got_fct: bool,
    sent_fct: bool,
    /// N-chars that this end may send.
    credit: u16,
    /// N-chars that the far end may send.
    promised: u16,
    /// N-chars in the receive buffer.
    filled: u16,
    receiving: bool,
    sending: bool,
    time_code: Option<u8>,
    fault: Option<Fault>,
    statistics: Statistics,
}

impl End {
    /// Creates an end in ErrorReset at `now`.
    #[must_use]
    pub fn new(settings: Settings, now: Picos) -> Self {
        End {
            settings,
            state: State::ErrorReset,
            timer: Some(now + ERROR_RESET),
            got_null: false,
            sent_null: false,
            got_fct: false,
            sent_fct: false,
            credit: 0,
            promised: 0,
            filled: 0,
            receiving: false,
            sending: false,
            time_code: None,
            fault: None,
            statistics: Statistics::default(),
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns how it behaves.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what it has counted.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the N-chars that this end may send now.
    #[must_use]
    pub fn credit(&self) -> u16 {
        self.credit
    }

    /// Returns the N-chars that the far end may send before it gets another FCT.
    #[must_use]
    pub fn promised(&self) -> u16 {
        self.promised
    }

    /// Returns the N-chars in the receive buffer.
    #[must_use]
    pub fn filled(&self) -> u16 {
        self.filled
    }

    /// Tells whether the transmitter sends at all.
    #[must_use]
    pub fn transmits(&self) -> bool {
        matches!(self.state, State::Started | State::Connecting | State::Run)
    }

    /// Tells whether the receiver listens: an end in ErrorReset does not.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.state != State::ErrorReset
    }

    /// Returns when [`elapsed`](Self::elapsed) is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Picos> {
        self.timer
    }

    /// Changes whether the link is enabled. A link that is disabled in Run goes down.
    pub fn configure(&mut self, change: impl FnOnce(&mut Settings), now: Picos) -> Option<Failure> {
        change(&mut self.settings);
        if self.settings.disabled && self.state == State::Run {
            return Some(self.fail(LinkError::Disabled, now));
        }
        self.start(now);
        None
    }

    /// Moves on when the state's time is over.
    pub fn elapsed(&mut self, now: Picos) -> Option<Failure> {
        if self.timer.is_none_or(|due| due > now) {
            return None;
        }
        match self.state {
            State::ErrorReset => self.enter(State::ErrorWait, Some(now + ANSWER)),
            State::ErrorWait => {
                self.enter(State::Ready, None);
                self.start(now);
            }
            State::Started | State::Connecting => return Some(self.fail(LinkError::Timeout, now)),
            State::Ready | State::Run => self.timer = None,
        }
        None
    }

    /// Takes what arrived.
    pub fn receive(&mut self, arrival: Arrival, now: Picos) -> Received {
        if !self.listens() {
            return Received::Nothing;
        }
        match arrival {
            Arrival::Code(code) => self.receive_code(code, now),
            // Before the first NULL a receiver is not in step with the line: only a disconnection counts (8.5.3).
            Arrival::Error(LinkError::Parity | LinkError::Escape) if !self.got_null => Received::Nothing,
            Arrival::Error(error) => Received::Failed(self.fail(error, now)),
        }
    }

    fn receive_code(&mut self, code: Code, now: Picos) -> Received {
        if code == Code::Null {
            self.statistics.received.nulls += 1;
            if !self.got_null {
                self.got_null = true;
                self.start(now);
                self.advance(now);
            }
            return Received::Nothing;
        }
        if !self.got_null {
            return Received::Nothing;
        }
        self.statistics.received.count(code, 1);
        match (self.state, code) {
            (State::Run | State::Connecting, Code::Fct) => {
                self.credit += CREDIT_OF_FCT;
                if self.credit > CREDIT_MAX {
                    return Received::Failed(self.fail(LinkError::Credit, now));
                }
                self.got_fct = true;
                self.advance(now);
                Received::Nothing
            }
            (State::Run, Code::TimeCode(code)) => Received::TimeCode(code),
            (State::Run, nchar) if nchar.is_nchar() => {
                if self.promised == 0 {
                    return Received::Failed(self.fail(LinkError::Credit, now));
                }
                self.promised -= 1;
                self.filled += 1;
                self.receiving = matches!(nchar, Code::Data(_));
                Received::Nchar(nchar)
            }
            _ => Received::Failed(self.fail(LinkError::Sequence, now)),
        }
    }

    /// Chooses what is sent now that the transmitter is free: time-codes before FCTs before N-chars before NULLs (8.4.2).
    ///
    /// `offered` is the next N-char that there is to send. After [`Sent::Offered`] it is gone.
    pub fn send(&mut self, offered: Option<Code>, now: Picos) -> Sent {
        if !self.transmits() {
            return Sent::Off;
        }
        if self.state == State::Run {
            if let Some(sent) = self.send_fault(offered) {
                return sent;
            }
            if let Some(code) = self.time_code.take() {
                return self.sent(Code::TimeCode(code));
            }
        }
        if self.fct_is_due() {
            self.promised += CREDIT_OF_FCT;
            self.sent_fct = true;
            let sent = self.sent(Code::Fct);
            self.advance(now);
            return sent;
        }
        match offered {
            Some(nchar) if self.state == State::Run && self.credit > 0 => {
                self.credit -= 1;
                self.sending = matches!(nchar, Code::Data(_));
                self.statistics.sent.count(nchar, 1);
                Sent::Offered
            }
            _ => {
                self.sent_null = true;
                let sent = self.sent(Code::Null);
                self.advance(now);
                sent
            }
        }
    }

    fn sent(&mut self, code: Code) -> Sent {
        self.statistics.sent.count(code, 1);
        Sent::Code(code)
    }

    fn send_fault(&mut self, offered: Option<Code>) -> Option<Sent> {
        match self.fault? {
            Fault::WithoutCredit => {
                let nchar = offered.filter(|_| self.credit == 0)?;
                self.fault = None;
                self.sending = matches!(nchar, Code::Data(_));
                self.statistics.sent.count(nchar, 1);
                Some(Sent::Offered)
            }
            Fault::Disconnect => Some(Sent::Off),
            fault => {
                self.fault = None;
                let code = if fault == Fault::Fct { Code::Fct } else { Code::Null };
                self.statistics.sent.count(code, 1);
                Some(Sent::Fault(fault, code))
            }
        }
    }

    /// Counts `n` NULLs that an idle transmitter sent, so that a driver need not ask for each.
    pub fn sent_nulls(&mut self, n: u64) {
        self.statistics.sent.nulls += n;
    }

    /// Counts `n` NULLs that arrived in a row while the link runs.
    pub fn received_nulls(&mut self, n: u64) {
        self.statistics.received.nulls += n;
    }

    /// Tells whether nothing but N-chars, FCTs and NULLs is asked of the transmitter.
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        self.state == State::Run && self.fault.is_none() && self.time_code.is_none()
    }

    /// Takes note of codes that left and arrived while the link ran undisturbed, and whether that was within a packet each way.
    pub fn progressed(&mut self, sent: &Counts, received: &Counts, sending: bool, receiving: bool) {
        debug_assert!(self.is_undisturbed());
        self.credit = (u64::from(self.credit) + u64::from(CREDIT_OF_FCT) * received.fcts - sent.nchars()) as u16;
        self.promised = (u64::from(self.promised) + u64::from(CREDIT_OF_FCT) * sent.fcts - received.nchars()) as u16;
        self.statistics.sent.add(sent);
        self.statistics.received.add(received);
        (self.sending, self.receiving) = (sending, receiving);
    }

    /// Takes note that the host took `n` N-chars from the receive buffer.
    pub fn take(&mut self, n: u16) {
        self.filled = self.filled.saturating_sub(n);
    }

    /// Takes note that there are `n` N-chars in the receive buffer.
    pub fn fill(&mut self, n: u16) {
        self.filled = n;
    }

    /// Tells whether a packet is being sent.
    #[must_use]
    pub fn sends_packet(&self) -> bool {
        self.sending
    }

    /// Puts `n` N-chars back into the receive buffer, or counts them there.
    pub fn hold(&mut self, n: u16) {
        self.filled += n;
    }

    /// Tells whether an FCT may be sent now: eight free places that are not promised yet, and no more than 56 outstanding.
    #[must_use]
    pub fn fct_is_due(&self) -> bool {
        // A NULL comes first in any edition: the far end takes no FCT before it.
        matches!(self.state, State::Connecting | State::Run)
            && self.sent_null
            && self.promised + CREDIT_OF_FCT <= CREDIT_MAX
            && self.promised.saturating_add(self.filled).saturating_add(CREDIT_OF_FCT) <= self.settings.buffer
    }

    /// Sends a time-code at the next boundary. One that still waits is replaced.
    pub fn send_time_code(&mut self, code: u8) {
        self.time_code = Some(code);
    }

    /// Sends a fault at the next boundary in Run. [`Fault::Disconnect`] stays until the link has failed.
    pub fn inject(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    /// Takes the link down for `error`, as every error of the line does.
    pub fn fail(&mut self, error: LinkError, now: Picos) -> Failure {
        let failure = Failure { error, cut_receiving: self.receiving, cut_sending: self.sending };
        if self.state == State::Run {
            self.statistics.errors.count(error);
        }
        self.enter(State::ErrorReset, Some(now + ERROR_RESET));
        (self.got_null, self.sent_null, self.got_fct, self.sent_fct) = (false, false, false, false);
        (self.credit, self.promised) = (0, 0);
        (self.receiving, self.sending) = (false, false);
        self.time_code = None;
        self.fault = None;
        failure
    }

    /// Leaves Ready if the link is enabled.
    fn start(&mut self, now: Picos) {
        let Settings { disabled, link_start, auto_start, .. } = self.settings;
        if self.state == State::Ready && !disabled && (link_start || (auto_start && self.got_null)) {
            self.enter(State::Started, Some(now + ANSWER));
            self.advance(now);
        }
    }

    /// Leaves Started and Connecting when what the edition asks for has come and gone.
    fn advance(&mut self, now: Picos) {
        let also_sent = self.settings.edition == Edition::Rev1;
        if self.state == State::Started && self.got_null && (self.sent_null || !also_sent) {
            self.enter(State::Connecting, Some(now + ANSWER));
        }
        if self.state == State::Connecting && self.got_fct && (self.sent_fct || !also_sent) {
            self.enter(State::Run, None);
            self.statistics.starts += 1;
        }
    }

    fn enter(&mut self, state: State, timer: Option<Picos>) {
        self.state = state;
        self.timer = timer;
    }
}
