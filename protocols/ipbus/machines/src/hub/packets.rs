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
    /// The client that sent it; [`NONE`] once the client has gone.
    pub(super) client: u32,
    /// The client that sent it, whether it has gone or not: its packets keep their order.
    pub(super) chain: u32,
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
    slab: Slab<Packet>,
    max: usize,
}

impl Packets {
    pub(super) fn new(max: usize) -> Self {
        Packets { slab: Slab::default(), max }
    }

    /// Takes a place for a request; `None` if the bound is reached.
    pub(super) fn take(&mut self, target: SocketAddrV4, client: u32, chunk: u32, request: &[u8]) -> Option<u32> {
        if self.slab.len() >= self.max {
            return None;
        }
        let (stage, code, times) = (Stage::Queued, Code::Done, Times::default());
        let packet = |bytes| Packet { bytes, target, client, chain: client, chunk, stage, code, next: NONE, times };
        let number = self.slab.take(|| packet(Vec::new()));
        let mut bytes = core::mem::take(&mut self[number].bytes);
        bytes.clear();
        bytes.extend_from_slice(request);
        self[number] = packet(bytes);
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.slab.release(number);
    }

    pub(super) fn held(&self) -> usize {
        self.slab.len()
    }

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> usize {
        self.slab.iter().map(|(_, packet)| packet.bytes.capacity()).sum()
    }
}

impl Index<u32> for Packets {
    type Output = Packet;

    #[inline]
    fn index(&self, number: u32) -> &Packet {
        &self.slab[number]
    }
}

impl IndexMut<u32> for Packets {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.slab[number]
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
    /// Takes an empty lane for this client.
    pub(super) fn take(&mut self, client: u32) -> u32 {
        self.0.insert(Lane { client, first: NONE, last: NONE, length: 0 })
    }

    pub(super) fn release(&mut self, number: u32) {
        self.0.release(number);
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

    /// Leaves the lane to nobody: its client has gone.
    pub(super) fn orphan(&mut self, number: u32) {
        self.0[number].client = NONE;
    }
}
