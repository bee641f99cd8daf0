//! One adapter with a queue pair, whose far end is a test that puts packets together by hand.

#![allow(dead_code, reason = "each test uses a part of it")]

use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_roce::icrc::Flow;
use hodo_roce::wire::{
    AckHeader, AtomicHeader, BaseHeader, Extended, HEADERS_MAX, ICRC_LENGTH, NakCode, Opcode, Packet, RdmaHeader,
    Syndrome, padding_of,
};
use hodo_roce::{
    Access, AckTimeout, Adapter, AdapterConfig, Capacity, Completion, Connection, Mtu, Operation, Psn, ReceiveRequest,
    Remote, ScatterEntry, SendRequest,
};
use std::time::Duration;

/// Bytes of the region.
pub const REGION: usize = 1 << 16;
/// The far end's queue pair.
pub const FAR: u32 = 0x77;
/// The first packet that the far end sends, and the first of this side: both wrap soon.
pub const THEIRS: Psn = Psn::new(0xFF_FFFE);
pub const OURS: Psn = Psn::new(0xFF_FFFF);
/// The peer that is opened towards the far end.
pub const HOST: Peer = Peer(0);
pub const MTU: usize = 256;

/// A packet that the adapter sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub base: BaseHeader,
    pub extended: Extended,
    pub payload: Vec<u8>,
}

impl Sent {
    /// Returns opcode and distance from the first packet of this side.
    pub fn request(&self) -> (Opcode, i32) {
        (self.base.opcode, self.base.psn.since(OURS))
    }

    /// Returns opcode, distance from the first packet of the far end, and syndrome.
    pub fn reply(&self) -> (Opcode, i32, Option<Syndrome>) {
        let syndrome = match self.extended {
            Extended::Ack(ack) | Extended::AtomicAck(ack, _) => Some(ack.syndrome),
            _ => None,
        };
        (self.base.opcode, self.base.psn.since(THEIRS), syndrome)
    }
}

pub struct Bare {
    pub adapter: Adapter,
    pub now: Instant,
    pub number: u32,
    pub key: u32,
    pub address: u64,
    pub completions: Vec<Completion>,
    /// The deadline that the adapter told last.
    pub deadline: Option<Instant>,
    pub out: Outbox,
}

pub fn connection() -> Connection {
    Connection {
        address: Address::Node(1),
        queue_pair: FAR,
        receive_psn: THEIRS,
        send_psn: OURS,
        mtu: Mtu::new(MTU as u32).unwrap(),
        timeout: AckTimeout::Fixed(Duration::from_millis(1)),
        retries: 7,
        receiver_not_ready_retries: 7,
        receiver_not_ready_timer: 12,
        reads: 4,
        reads_served: 4,
    }
}

pub const CAPACITY: Capacity =
    Capacity { send_depth: 32, receive_depth: 32, send_entries: 4, receive_entries: 4, inline_bytes: 64 };

impl Bare {
    pub fn new() -> Bare {
        Bare::with(AdapterConfig::default(), |_| {})
    }

    /// Connects a queue pair; `change` may change its attributes.
    pub fn with(config: AdapterConfig, change: impl FnOnce(&mut Connection)) -> Bare {
        let mut adapter = Adapter::new(config);
        let (key, address) = adapter.register(vec![0; REGION], Access::ALL, None).unwrap();
        let number = adapter.create(&CAPACITY).unwrap();
        let mut connection = connection();
        change(&mut connection);
        adapter.connect(number, &connection).unwrap();
        let (now, out) = (Instant::from_nanos(1_000_000), Outbox::new());
        let mut bare = Bare { adapter, now, number, key, address, completions: Vec::new(), deadline: None, out };
        assert!(bare.take().is_empty());
        bare
    }

    pub fn entry(&self, offset: usize, length: usize) -> ScatterEntry {
        ScatterEntry { address: self.address + offset as u64, length: length as u32, key: self.key }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        self.adapter.region_mut(self.key).unwrap()
    }

    /// Returns the header of a write to the region, or of a read from it.
    pub fn rdma(&self, offset: usize, length: usize) -> RdmaHeader {
        RdmaHeader { address: self.address + offset as u64, key: self.key, length: length as u32 }
    }

    pub fn atomic(&self, offset: usize, swap_or_add: u64, compare: u64) -> AtomicHeader {
        AtomicHeader { address: self.address + offset as u64, key: self.key, swap_or_add, compare }
    }

    /// Posts a request for bytes from the beginning of the region on.
    pub fn post(&mut self, id: u64, operation: Operation, length: usize) {
        let entries = [self.entry(0, length)];
        self.adapter.post_send(self.number, &SendRequest::new(id, operation, &entries)).unwrap();
    }

    pub fn post_receive(&mut self, id: u64, offset: usize, length: usize) {
        let entries = [self.entry(offset, length)];
        self.adapter.post_receive(self.number, &ReceiveRequest { id, entries: &entries }).unwrap();
    }

    /// Carries out what the adapter wants, and returns what it sent.
    pub fn take(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(packet) = self.take_one() {
            sent.push(packet);
        }
        sent
    }

    /// Carries out what the adapter wants up to its next packet.
    pub fn take_one(&mut self) -> Option<Sent> {
        for _ in 0..100_000 {
            match self.adapter.poll(self.now, &mut self.out) {
                Output::Send(peer) => {
                    assert_eq!(peer, HOST);
                    let bytes: Vec<u8> =
                        self.out.pieces().iter().flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    assert!(flow(0, 1).verify(&bytes));
                    let Packet { base, extended, payload } = Packet::decode(&bytes).unwrap();
                    return Some(Sent { base, extended, payload: payload.to_vec() });
                }
                Output::Event(completion) => self.completions.push(completion),
                Output::Open(peer, address) => {
                    self.adapter.handle(self.now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Close(_) => {}
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    return None;
                }
            }
        }
        panic!("the adapter does not become idle");
    }

    /// Hands the adapter a packet, `psn` packets behind the first one of the far end.
    pub fn hand(&mut self, opcode: Opcode, psn: i32, extended: Extended, payload: &[u8]) {
        let mut base = BaseHeader::new(opcode, self.number, THEIRS.after(psn as u32));
        base.asks_ack = true;
        self.hand_packet(&base, &extended, payload);
    }

    pub fn hand_packet(&mut self, base: &BaseHeader, extended: &Extended, payload: &[u8]) {
        let bytes = packet(flow(1, 0), base, extended, payload);
        self.adapter.handle(self.now, Input::Received(HOST, &bytes));
    }

    /// Hands the adapter a request, and returns the replies.
    pub fn ask(
        &mut self,
        opcode: Opcode,
        psn: i32,
        extended: Extended,
        payload: &[u8],
    ) -> Vec<(Opcode, i32, Option<Syndrome>)> {
        self.hand(opcode, psn, extended, payload);
        self.take().iter().map(Sent::reply).collect()
    }

    /// Hands the adapter a response to packet `psn` of this side.
    pub fn respond(&mut self, opcode: Opcode, psn: i32, extended: Extended, payload: &[u8]) {
        let base = BaseHeader::new(opcode, self.number, OURS.after(psn as u32));
        self.hand_packet(&base, &extended, payload);
    }

    /// Acknowledges packet `psn` of this side, and those before it.
    pub fn acknowledge(&mut self, psn: i32, syndrome: Syndrome) {
        self.respond(Opcode::Acknowledge, psn, Extended::Ack(AckHeader { syndrome, messages: 1 }), &[]);
    }

    /// Lets time pass, and tells the adapter that its deadline is over if it is.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        if self.deadline.is_some_and(|deadline| self.now >= deadline) {
            self.adapter.handle(self.now, Input::Elapsed);
        }
    }

    /// Lets time pass up to the adapter's deadline, and returns how much that was.
    pub fn pass_to_deadline(&mut self) -> Duration {
        let span = self.deadline.expect("the adapter waits for something") - self.now;
        self.pass(span);
        span
    }

    /// Takes the completions so far: the numbers and the outcomes.
    pub fn outcomes(&mut self) -> Vec<(u64, hodo_roce::Status)> {
        self.completions.drain(..).map(|completion| (completion.id, completion.status)).collect()
    }
}

/// Returns the acknowledgement of packet `psn` of the far end, as [`Sent::reply`] has it.
pub fn ack(psn: i32) -> (Opcode, i32, Option<Syndrome>) {
    (Opcode::Acknowledge, psn, Some(Syndrome::ACK))
}

/// Returns the refusal of packet `psn` of the far end, as [`Sent::reply`] has it.
pub fn nak(psn: i32, code: NakCode) -> (Opcode, i32, Option<Syndrome>) {
    (Opcode::Acknowledge, psn, Some(Syndrome::Nak(code)))
}

/// Returns "receiver not ready" for packet `psn` of the far end, as [`Sent::reply`] has it.
pub fn not_ready(psn: i32) -> (Opcode, i32, Option<Syndrome>) {
    (Opcode::Acknowledge, psn, Some(Syndrome::ReceiverNotReady(12)))
}

/// Returns the header of a positive acknowledgement.
pub fn ack_header() -> Extended {
    Extended::Ack(AckHeader { syndrome: Syndrome::ACK, messages: 1 })
}

/// Returns a place in the memory of the far end.
pub fn remote(offset: u64) -> Remote {
    Remote { address: 0x1000 + offset, key: 0xABCD }
}

/// Returns the flow from one node to another.
pub fn flow(from: u32, to: u32) -> Flow {
    Flow::new(&Address::Node(from), &Address::Node(to))
}

/// Returns the bytes of a packet.
pub fn packet(mut flow: Flow, base: &BaseHeader, extended: &Extended, payload: &[u8]) -> Vec<u8> {
    let mut room = [0; HEADERS_MAX];
    let length = Packet::encode_headers(base, extended, payload.len(), &mut room);
    let mut bytes = room[..length].to_vec();
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len() + padding_of(payload.len()), 0);
    let mut checksum = flow.start(bytes.len() + ICRC_LENGTH, &bytes[..length]);
    checksum.update(&bytes[length..]);
    bytes.extend(checksum.finish().to_le_bytes());
    bytes
}
