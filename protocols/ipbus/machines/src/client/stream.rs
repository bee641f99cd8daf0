use super::carrier::{Move, OnReply};
use crate::Error;
use crate::window::Answer;
use crate::wire::packet::HEADER;
use crate::wire::{chunk, hub};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;
use hodo_machine::{Instant, Outbox};

/// Packets that uHAL puts into one chunk to the hub at most.
const CHUNK_PACKETS: usize = 3;

/// Packets over TCP: nothing is lost, and replies come in order.
#[derive(Debug)]
pub(super) struct Stream {
    /// The device behind the hub, where there is a hub.
    target: Option<SocketAddrV4>,
    in_flight: usize,
    timeout: Duration,
    payload_max: usize,
    /// The keys of the packets that have not been answered.
    keys: VecDeque<u64>,
    chunks: chunk::Chunks,
    /// Bytes to be sent: whole chunks, and one that more may be put into.
    out: Vec<u8>,
    /// Where the last chunk begins, and how many packets it has; none is open where it has none.
    begun: usize,
    in_chunk: usize,
    /// Since when the oldest answer is waited for.
    waiting: Instant,
    blocked: bool,
    packets: u64,
}

impl Stream {
    pub(super) fn new(target: Option<SocketAddrV4>, in_flight: usize, timeout: Duration, payload_max: usize) -> Self {
        Stream {
            target,
            in_flight: in_flight.max(1),
            timeout,
            payload_max,
            keys: VecDeque::new(),
            chunks: chunks(in_flight, payload_max),
            out: Vec::new(),
            begun: 0,
            in_chunk: 0,
            waiting: Instant::ZERO,
            blocked: false,
            packets: 0,
        }
    }

    pub(super) fn room(&self) -> usize {
        if self.blocked { 0 } else { self.in_flight.saturating_sub(self.keys.len()) }
    }

    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    pub(super) fn push(&mut self, now: Instant, key: u64, packet: &[u8]) {
        if self.keys.is_empty() {
            self.waiting = now;
        }
        self.keys.push_back(key);
        self.packets += 1;
        if self.in_chunk == 0 {
            self.begun = chunk::begin(&mut self.out);
        }
        match self.target {
            Some(target) => hub::Request { target, packet }.encode(&mut self.out),
            None => self.out.extend_from_slice(packet),
        }
        self.in_chunk += 1;
        let most = if self.target.is_some() { CHUNK_PACKETS } else { 1 };
        if self.in_chunk == most {
            self.end_chunk();
        }
    }

    fn end_chunk(&mut self) {
        if self.in_chunk > 0 {
            chunk::end(&mut self.out, self.begun);
            self.in_chunk = 0;
        }
    }

    pub(super) fn received(&mut self, now: Instant, mut bytes: &[u8], told: OnReply<'_>) -> Result<(), Error> {
        let Stream { chunks, keys, target, waiting, .. } = self;
        let mut answer = |reply: Result<&[u8], Error>| {
            let key = keys.pop_front().ok_or(Error::Unasked)?;
            *waiting = now;
            // What is wrong with a reply that is not taken is known where it was looked at.
            let answer = reply.map(|packet| Answer { key, header: [0; HEADER], first: None, packet });
            if told(key, answer) { Ok(()) } else { Err(Error::Unasked) }
        };
        while let Some(chunk) = chunks.next(&mut bytes)? {
            match *target {
                None => answer(Ok(chunk))?,
                Some(asked) => {
                    for reply in hub::Replies::new(chunk) {
                        let hub::Reply { target: came, code, packet } = reply?;
                        if came != asked {
                            return Err(Error::WrongTarget { asked, came });
                        }
                        answer(if code == hub::Code::Done { Ok(packet) } else { Err(Error::Hub(code)) })?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Move {
        self.end_chunk();
        if !self.out.is_empty() {
            out.copy(&self.out);
            self.out.clear();
            return Move::Send;
        }
        let given_up = self.waiting + self.timeout;
        match self.keys.is_empty() {
            true => Move::Idle(None),
            false if now < given_up => Move::Idle(Some(given_up)),
            false => Move::Down(Error::NoAnswer),
        }
    }

    /// Begins with a connection on which nothing was sent.
    pub(super) fn reset(&mut self) {
        self.keys.clear();
        self.out.clear();
        self.in_chunk = 0;
        self.chunks = chunks(self.in_flight, self.payload_max);
    }
}

/// Creates the reader of chunks: a hub may answer all that is in flight at once; a device may have a larger buffer than
/// we fill.
fn chunks(in_flight: usize, payload_max: usize) -> chunk::Chunks {
    chunk::Chunks::new((in_flight + 1) * (payload_max.max(1 << 16) + hub::REPLY_HEADER))
}
