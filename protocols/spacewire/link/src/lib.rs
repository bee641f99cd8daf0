//! SpaceWire for the tester: packets and RMAP over the ports of bridges, and over a simulated network.

mod arrivals;
mod open;
mod options;
mod pages;
mod ports;
mod protocol;
mod real;
mod simulated;
mod suite;
#[cfg(test)]
mod tests;
mod theory;

use hodo_measure::Mode;
use hodo_spacewire::rmap::Request;
pub use protocol::{SPACEWIRE, Spacewire};

/// The address of packets that go one way, as [`far_end`](hodo_spacewire::far_end) has it.
const ONE_WAY: u8 = hodo_spacewire::far_end::COUNTED;
/// The address of packets that come back.
const ECHO: u8 = hodo_spacewire::far_end::ECHO;
/// Bytes behind the address that number the packets, where there is room.
const NUMBER: usize = 4;

/// Writes the address and, where there is room, the number of a packet.
fn stamp(packet: &mut [u8], address: u8, number: u32) {
    if let Some(first) = packet.first_mut() {
        *first = address;
    }
    if let Some(field) = packet.get_mut(1..=NUMBER) {
        field.copy_from_slice(&number.to_be_bytes());
    }
}

/// Returns the number of a packet, if it has one.
fn number(packet: &[u8]) -> Option<u32> {
    packet.get(1..=NUMBER).and_then(|field| field.try_into().ok()).map(u32::from_be_bytes)
}

/// Returns the request of an operation on a memory: a read of as many bytes as `payload` has, or a write of them.
fn request(mode: Mode, address: u64, payload: &[u8]) -> Request<'_> {
    match mode {
        Mode::Receive => Request::Read { address, length: payload.len() as u32, increment: true },
        _ => Request::Write { address, data: payload, increment: true, verify: false, reply: true },
    }
}

/// Operations under way, in their order.
#[derive(Debug, Default)]
struct Pending {
    tags: std::collections::VecDeque<u64>,
    /// The number of the first one.
    first: u32,
}

impl Pending {
    /// Adds an operation and returns its number.
    fn push(&mut self, tag: u64) -> u32 {
        let number = self.first.wrapping_add(self.tags.len() as u32);
        self.tags.push_back(tag);
        number
    }

    /// Takes the next operation, which is done.
    fn pop(&mut self) -> Option<u64> {
        let tag = self.tags.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(tag)
    }

    /// Takes the operation of a number. Those before it, of which nothing was seen, are passed to `lost`.
    fn take(&mut self, number: Option<u32>, mut lost: impl FnMut(u64)) -> Option<u64> {
        let Some(number) = number else { return self.pop() };
        let before = number.wrapping_sub(self.first) as usize;
        if before >= self.tags.len() {
            return None;
        }
        for _ in 0..before {
            lost(self.pop()?);
        }
        self.pop()
    }
}
