//! The one packet of IPbus 1.3 that may be in flight to a device over UDP.
//!
//! Version 1.3 has no ids of packets and no status, so a lost reply cannot be had again. A packet that only reads
//! successive addresses is sent again when its answer is late; of any other nobody knows whether it was done, and it is
//! given up, never sent twice. Each packet gets an id of its own in its byte-order transaction, which its reply has too:
//! so a late reply is never taken for the next one's.
//!
//! The specification lets a device answer in either byte order, and many answer requests in their processor's alone:
//! the packet that asks whether a device is there goes out in this processor's order first, and then in the other. What
//! a client says in the order that the device did not answer is translated, and so is the reply.

use crate::Error;
use crate::window::{Answer, Cause, Heard, RoundTrip, Step, WindowConfig, WindowCounters};
use crate::wire::legacy::{self, Header, Kind, Packet, Request};
use crate::wire::operation::{Mode, Operation};
use crate::wire::{Order, WORD, Words, swap};
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::Instant;

/// So often the answer to what is harmless has to be late before the device is given up.
const TRIES_MIN: u32 = 3;

/// The one packet in flight to a device of version 1.3, with the methods of a [`Window`](crate::window::Window).
#[derive(Debug)]
pub struct Single {
    patience: Duration,
    state: State,
    key: u64,
    /// The client's header.
    header: Header,
    order: Order,
    /// The device's.
    spoken: Order,
    packet: Vec<u8>,
    /// A reply in its client's order, where the device has another.
    translated: Vec<u8>,
    /// Whether the packet can be sent twice.
    harmless: bool,
    /// The id in flight.
    id: u16,
    to_send: bool,
    sent: Instant,
    begun: Instant,
    tries: u32,
    /// Whether a packet is to be told of as given up.
    failed: bool,
    round_trip: RoundTrip,
    counters: WindowCounters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be told of, or told of already.
    Down {
        told: bool,
    },
    /// A packet that does nothing is in flight: is the device there?
    Opening,
    /// One was sent, and the device is down until its answer comes.
    Probing,
    Open,
    InFlight,
}

impl Single {
    /// Creates one that is down. The bound on packets in flight has no meaning here.
    #[must_use]
    pub fn new(config: WindowConfig) -> Self {
        Single {
            patience: config.patience,
            state: State::Down { told: true },
            key: 0,
            header: Header::request(0, Kind::ByteOrder, 0),
            order: Order::NATIVE,
            spoken: Order::NATIVE,
            packet: Vec::new(),
            translated: Vec::new(),
            harmless: true,
            id: 0,
            to_send: false,
            sent: Instant::ZERO,
            begun: Instant::ZERO,
            tries: 0,
            failed: false,
            round_trip: RoundTrip::new(config.late_min, config.late_max()),
            counters: WindowCounters::default(),
        }
    }

    /// Sends a packet that does nothing, if the device is down: an answer opens it.
    pub fn open(&mut self, now: Instant) {
        if self.is_down() && !self.failed {
            self.ask(now);
        }
    }

    /// Sends a packet that does nothing to a device that is down, once: its answer opens it, whenever it comes. A device
    /// that was never heard is asked in the other byte order each time.
    pub fn probe(&mut self, now: Instant) {
        if self.is_down() && !self.failed {
            if self.state == State::Probing && self.round_trip.smoothed().is_none() {
                self.spoken = self.spoken.other();
            }
            self.ask(now);
            self.state = State::Probing;
        }
    }

    /// Gives up the device, and what is in flight to it.
    pub fn give_up(&mut self) {
        self.failed |= self.state == State::InFlight;
        self.state = State::Down { told: false };
        self.to_send = false;
    }

    /// Tells whether nothing can be pushed before [`Single::open`].
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. } | State::Probing)
    }

    /// Returns how many packets can be pushed now.
    #[must_use]
    pub fn room(&self) -> usize {
        usize::from(self.state == State::Open && !self.failed)
    }

    /// Packets in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.state == State::InFlight || self.failed)
    }

    /// Tells whether none is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the estimate of the round-trip.
    #[must_use]
    pub const fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> WindowCounters {
        self.counters
    }

    /// Takes a request, in either byte order. `fill` puts it into an empty buffer, or another buffer in its place. The
    /// `key` comes back with the reply or the failure.
    ///
    /// # Panics
    /// Where there is no [`Single::room`], or the packet does not begin with a byte-order transaction.
    pub fn push(&mut self, now: Instant, key: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.room() > 0, "pushed without room");
        self.packet.clear();
        fill(&mut self.packet);
        let packet = Packet::decode(&self.packet).expect("a packet begins with its byte order");
        (self.order, self.harmless) = (packet.order, packet.requests().all(is_harmless));
        let (first, _) = self.packet.split_first_chunk_mut::<WORD>().expect("it was decoded");
        self.header = Header::decode(self.order.u32(*first)).expect("it was decoded");
        self.key = key;
        self.state = State::InFlight;
        self.begin(now);
        let (first, _) = self.packet.split_first_chunk_mut::<WORD>().expect("it was decoded");
        *first = self.order.bytes_32(Header { id: self.id, ..self.header }.encode());
        if self.order != self.spoken {
            swap(&mut self.packet);
        }
        self.counters.packets += 1;
    }

    /// Takes in a datagram from the device. `take` is handed a reply, with the header that its client is due, and says
    /// whether it answers what was asked.
    pub fn received(&mut self, now: Instant, bytes: &[u8], take: impl FnOnce(Answer<'_>) -> bool) -> Heard {
        let asks = matches!(self.state, State::Opening | State::Probing);
        let waits = (asks || self.state == State::InFlight) && !self.to_send;
        let packet = match Packet::decode(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                self.refused(now, waits);
                return Heard::Malformed(error);
            }
        };
        let header = packet.bytes.first_chunk().and_then(|first| Header::decode(packet.order.u32(*first)).ok());
        let Some(header) = header.filter(|header| header.reply && header.id == self.id && waits) else {
            self.refused(now, waits);
            self.counters.strays += 1;
            return Heard::Stray;
        };
        if asks {
            self.spoken = packet.order;
        } else {
            let due = self.order.bytes_32(Header { id: self.header.id, ..header }.encode());
            let bytes = if packet.order == self.order {
                bytes
            } else {
                self.translated.clear();
                self.translated.extend_from_slice(bytes);
                swap(&mut self.translated);
                &self.translated
            };
            if !take(Answer { key: self.key, header: due, first: None, packet: bytes }) {
                return Heard::NotTaken;
            }
        }
        if self.tries == 0 {
            self.round_trip.answered_after(now.nanos_since(self.sent));
        }
        let heard = if asks { Heard::Status } else { Heard::Reply };
        self.state = State::Open;
        heard
    }

    /// Says the next thing to be done. To be called until it answers [`Step::Idle`], whatever has happened.
    pub fn poll(&mut self, now: Instant) -> Step<'_> {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.late(now);
        }
        if core::mem::take(&mut self.failed) {
            let cause = if self.is_down() { Cause::Silent } else { Cause::Ignored };
            return Step::Failed { key: self.key, cause };
        }
        if self.state == (State::Down { told: false }) {
            self.state = State::Down { told: true };
            return Step::Down(Cause::Silent);
        }
        if core::mem::take(&mut self.to_send) {
            self.sent = now;
            self.counters.statuses += u64::from(self.state != State::InFlight);
            return Step::Send(&self.packet);
        }
        Step::Idle(self.deadline())
    }

    fn begin(&mut self, now: Instant) {
        self.id = (self.id + 1) % legacy::IDS;
        (self.to_send, self.sent, self.begun, self.tries) = (true, now, now, 0);
    }

    /// Sends what does nothing, and is answered.
    fn ask(&mut self, now: Instant) {
        self.state = State::Opening;
        self.begin(now);
        self.packet.clear();
        legacy::begin(self.id, self.spoken, &mut self.packet);
        legacy::end(&mut self.packet, 0, self.spoken);
    }

    /// Takes in that something else came than what was waited for: a device that is asked for the first time may not
    /// have understood the order of the bytes, and is asked in the other.
    fn refused(&mut self, now: Instant, waits: bool) {
        if self.state != State::InFlight && waits && self.tries == 0 {
            self.tries = 1;
            self.send_again(now);
        }
    }

    /// Sends the packet again; the one that asks whether the device is there goes out in the other byte order.
    fn send_again(&mut self, now: Instant) {
        if self.state != State::InFlight {
            swap(&mut self.packet);
        }
        (self.to_send, self.sent) = (true, now);
    }

    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Down { .. } | State::Probing | State::Open => None,
            State::InFlight if !self.harmless => Some(self.begun + self.patience),
            State::Opening | State::InFlight => Some(self.sent + self.round_trip.late()),
        }
    }

    fn late(&mut self, now: Instant) {
        self.counters.late += 1;
        self.tries += 1;
        let is_over = now.nanos_since(self.begun) >= self.patience.as_nanos() as u64;
        match self.state {
            State::Opening if is_over && self.tries >= TRIES_MIN => self.give_up(),
            State::InFlight if is_over && (self.tries >= TRIES_MIN || !self.harmless) => {
                // Nobody knows whether the device is there: it is asked before the next.
                self.failed = true;
                self.ask(now);
            }
            _ => {
                self.round_trip.was_late();
                self.counters.requests_lost += u64::from(self.state == State::InFlight);
                self.send_again(now);
            }
        }
    }
}

/// Tells whether a transaction may be done twice.
fn is_harmless(request: Result<Request<Words<'_>>, Error>) -> bool {
    matches!(request, Ok(Request { operation: None | Some(Operation::Read { mode: Mode::Incrementing, .. }), .. }))
}

#[cfg(test)]
mod tests;
