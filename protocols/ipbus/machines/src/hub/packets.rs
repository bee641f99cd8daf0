use super::stages::Times;
use crate::wire::hub::Code;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::ops::{Index, IndexMut};
use hodo_machine::Slab;

/// No packet, no lane, no client: where a number may be missing.
pub(super) const NONE: u32 = u32::MAX;

/// A packet of a client, from when it came until its answer has gone out.
#[derive(Debug)]
pub(super) struct Packet {
    /// The request until it is in flight; then the reply.
    pub(super) bytes: Vec<u8>,
    pub(super) target: SocketAddrV4,
    /// Whose it is; [`NONE`] once the client has gone.
    pub(super) client: u32,
    /// The number of its chunk among the client's.
    pub(super) chunk: u32,
    pub(super) stage: Stage,
    /// How it was answered.
    pub(super) code: Code,
    /// The next in its lane.
    pub(super) next: u32,
    pub(super) times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the lane of its client and its board.
    Queued,
    /// In the board's link.
    InFlight,
    Answered,
}

/// All packets that the hub holds. A place that is free keeps its buffer for the next.
#[derive(Debug)]
pub(super) struct Packets {
    places: Vec<Packet>,
    free: Vec<u32>,
    max: usize,
}

impl Packets {
    pub(super) const fn new(max: usize) -> Self {
        Packets { places: Vec::new(), free: Vec::new(), max }
    }

    /// A place for a request; nothing where the bound is reached.
    pub(super) fn take(&mut self, target: SocketAddrV4, client: u32, chunk: u32, request: &[u8]) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.places.len() >= self.max => return None,
            None => {
                let stage = Stage::Answered;
                let bytes = Vec::new();
                let times = Times::default();
                self.places.push(Packet { bytes, target, client, chunk, stage, code: Code::Done, next: NONE, times });
                (self.places.len() - 1) as u32
            }
        };
        let place = &mut self[number];
        place.bytes.clear();
        place.bytes.extend_from_slice(request);
        (place.target, place.client, place.chunk) = (target, client, chunk);
        (place.stage, place.code, place.next, place.times) = (Stage::Queued, Code::Done, NONE, Times::default());
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    pub(super) fn held(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> usize {
        self.places.iter().map(|place| place.bytes.capacity()).sum()
    }
}

impl Index<u32> for Packets {
    type Output = Packet;

    #[inline]
    fn index(&self, number: u32) -> &Packet {
        &self.places[number as usize]
    }
}

impl IndexMut<u32> for Packets {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.places[number as usize]
    }
}

/// The packets of one client that wait for one board, in order.
#[derive(Debug)]
struct Lane {
    /// [`NONE`] once the client has gone.
    client: u32,
    first: u32,
    last: u32,
    length: u32,
}

/// All lanes that hold packets.
#[derive(Debug, Default)]
pub(super) struct Lanes(Slab<Lane>);

impl Lanes {
    /// A lane for this client, empty.
    pub(super) fn take(&mut self, client: u32) -> u32 {
        self.0.insert(Lane { client, first: NONE, last: NONE, length: 0 })
    }

    pub(super) fn release(&mut self, number: u32) {
        self.0.remove(number);
    }

    pub(super) fn client(&self, number: u32) -> u32 {
        self.0[number].client
    }

    pub(super) fn is_empty(&self, number: u32) -> bool {
        self.0[number].length == 0
    }

    pub(super) fn append(&mut self, number: u32, packet: u32, packets: &mut Packets) {
        let lane = &mut self.0[number];
        if lane.length == 0 {
            lane.first = packet;
        } else {
            packets[lane.last].next = packet;
        }
        lane.last = packet;
        lane.length += 1;
    }

    pub(super) fn pop(&mut self, number: u32, packets: &Packets) -> Option<u32> {
        let lane = &mut self.0[number];
        lane.length = lane.length.checked_sub(1)?;
        let packet = lane.first;
        lane.first = packets[packet].next;
        Some(packet)
    }

    /// The client has gone, and its packets with it; answers how many they were. The lane stays until its turn.
    pub(super) fn abandon(&mut self, number: u32) -> u32 {
        let lane = &mut self.0[number];
        lane.client = NONE;
        core::mem::take(&mut lane.length)
    }
}
