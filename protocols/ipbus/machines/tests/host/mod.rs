//! Hosts as simple as can be, to show what a device does.

use hodo_ipbus::wire::packet::{self, Kind, Packet, following, resend};
use hodo_ipbus::wire::status::{self, Status};
use hodo_ipbus::wire::{Order, WORD};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

const DEVICE: Peer = Peer(0);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(60);
/// Questions without an answer after which everything is given up.
const TRIES: u32 = 400;
/// The number after a reset.
const FIRST: u16 = 1;

/// Sends what it is told, and tells what comes.
#[derive(Default)]
pub struct Plain {
    asked: bool,
    opened: bool,
    unsent: VecDeque<Vec<u8>>,
    came: VecDeque<Vec<u8>>,
}

impl Machine for Plain {
    type Command = Vec<u8>;
    type Event = Vec<u8>;

    fn handle(&mut self, _now: Instant, input: Input<'_, Vec<u8>>) {
        match input {
            Input::Opened(..) => self.opened = true,
            Input::Received(_, bytes) => self.came.push_back(bytes.to_vec()),
            Input::Command(packet) => self.unsent.push_back(packet),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<Vec<u8>> {
        if let Some(packet) = self.came.pop_front() {
            return Output::Event(packet);
        }
        if !mem::replace(&mut self.asked, true) {
            return Output::Open(DEVICE, Address::Node(1));
        }
        match self.opened.then(|| self.unsent.pop_front()).flatten() {
            Some(packet) => {
                out.copy(&packet);
                Output::Send(DEVICE)
            }
            None => Output::Idle(None),
        }
    }
}

/// How a packet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was answered.
    Done,
    /// The device has forgotten it, or does not answer: it was done or not.
    Unknown,
}

/// Keeps to the rules: one packet in flight; where no answer comes it asks for the status, and then sends the request
/// again if that was lost, or asks for the reply again if that was.
///
/// The packet with the first number holds no transactions: after a reboot that number cannot be told from a request
/// that was lost, so that it is sent again.
pub struct Careful {
    asked: bool,
    /// The transactions of the packets that are left.
    packets: VecDeque<Vec<u32>>,
    next_id: Option<u16>,
    in_flight: Option<Vec<u8>>,
    unsent: VecDeque<Vec<u8>>,
    deadline: Instant,
    tries: u32,
    ends: VecDeque<Ended>,
}

impl Careful {
    pub fn new(packets: Vec<Vec<u32>>) -> Self {
        Careful {
            asked: false,
            packets: packets.into(),
            next_id: None,
            in_flight: None,
            unsent: VecDeque::new(),
            deadline: Instant::MAX,
            tries: 0,
            ends: VecDeque::new(),
        }
    }

    fn send(&mut self, now: Instant, packet: Vec<u8>) {
        self.unsent.push_back(packet);
        self.deadline = now + PATIENCE;
    }

    /// Sends the next packet where none is in flight and the device's number is known.
    fn go_on(&mut self, now: Instant) {
        let (Some(id), None) = (self.next_id, &self.in_flight) else { return };
        let transactions = if id == FIRST { Some(Vec::new()) } else { self.packets.pop_front() };
        let Some(transactions) = transactions else {
            self.deadline = Instant::MAX;
            return;
        };
        let mut packet = header(id).encode().to_be_bytes().to_vec();
        Order::Big.append(&transactions, &mut packet);
        self.in_flight = Some(packet.clone());
        self.tries = 0;
        self.send(now, packet);
    }

    fn end(&mut self, end: Ended) {
        if self.in_flight.take().is_some_and(|packet| packet.len() > WORD) {
            self.ends.push_back(end);
        }
    }

    fn received(&mut self, now: Instant, bytes: &[u8]) {
        if let Ok(status) = Status::decode(bytes) {
            self.learned(now, status.next_id);
        } else if let (Ok(packet), Some(id), Some(_)) = (Packet::decode(bytes), self.next_id, &self.in_flight)
            && packet.header == header(id)
        {
            self.next_id = Some(following(id));
            self.end(Ended::Done);
        }
        self.go_on(now);
    }

    /// Notes which number the device awaits.
    fn learned(&mut self, now: Instant, next: u16) {
        match (self.next_id, &self.in_flight) {
            (None, _) => self.next_id = Some(next),
            (Some(id), Some(packet)) if id == next => {
                let again = packet.clone();
                self.send(now, again);
            }
            (Some(id), Some(_)) if following(id) == next => self.send(now, resend(id).to_vec()),
            // Only after a reboot; a status that is older than this packet came before anything was asked again.
            (Some(_), Some(_)) if next == FIRST && self.tries > 0 => {
                self.next_id = Some(next);
                self.end(Ended::Unknown);
            }
            _ => {}
        }
    }

    fn elapsed(&mut self, now: Instant) {
        if now < self.deadline {
            return;
        }
        self.tries += 1;
        if self.tries > TRIES {
            self.deadline = Instant::MAX;
            self.end(Ended::Unknown);
            self.ends.extend(self.packets.drain(..).map(|_| Ended::Unknown));
            return;
        }
        self.send(now, status::REQUEST.to_vec());
    }
}

impl Machine for Careful {
    type Command = ();
    type Event = Ended;

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) => self.send(now, status::REQUEST.to_vec()),
            Input::Received(_, bytes) => self.received(now, bytes),
            _ => {}
        }
        self.elapsed(now);
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<Ended> {
        if let Some(end) = self.ends.pop_front() {
            return Output::Event(end);
        }
        if !mem::replace(&mut self.asked, true) {
            return Output::Open(DEVICE, Address::Node(1));
        }
        match self.unsent.pop_front() {
            Some(packet) => {
                out.copy(&packet);
                Output::Send(DEVICE)
            }
            None => Output::Idle((self.deadline < Instant::MAX).then_some(self.deadline)),
        }
    }
}

fn header(id: u16) -> packet::Header {
    packet::Header { id, kind: Kind::Control }
}
