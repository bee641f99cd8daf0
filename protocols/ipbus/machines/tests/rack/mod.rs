//! A rack of boards to try the hub with, and the chunks of a client.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_ipbus::wire::hub::{Code, Replies, Reply, Request};
use hodo_ipbus::wire::operation::{self, Mode, Operation};
use hodo_ipbus::wire::packet::{Header, Kind, Packet, following};
use hodo_ipbus::wire::status::Status;
use hodo_ipbus::wire::transaction::Info;
use hodo_ipbus::wire::{Order, Version, Words, chunk, legacy};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Replies that a board keeps.
const BUFFERS: usize = 16;
/// Bytes of a packet that it takes.
const BUFFER_BYTES: usize = 2040;

/// A board as the protocol wants it, of both versions. What is read is the address times [`FACTOR`], plus its number.
#[derive(Debug)]
pub struct Board {
    number: u32,
    next: u16,
    kept: VecDeque<(u16, Vec<u8>)>,
    /// Every word that was ever written, in order.
    pub written: Vec<u32>,
    /// Whether it takes in nothing.
    pub dead: bool,
    /// Whether it does nothing but tell its status.
    pub ignores: bool,
    /// The bytes to which it cuts its replies to control packets.
    pub cuts: Option<usize>,
}

/// Tells what is read apart from what was asked.
pub const FACTOR: u32 = 0x9E37_79B1;

impl Board {
    pub fn new(number: u32) -> Self {
        Board { number, next: 1, kept: VecDeque::new(), written: Vec::new(), dead: false, ignores: false, cuts: None }
    }

    /// Returns the word at an address.
    pub fn word(number: u32, address: u32) -> u32 {
        address.wrapping_mul(FACTOR).wrapping_add(number)
    }

    /// Begins anew, as after a power cut; what was written stays known.
    pub fn reboot(&mut self) {
        self.next = 1;
        self.kept.clear();
    }

    /// Lets the ids go on from here, as if that many packets had been sent.
    pub fn skip_to(&mut self, next: u16) {
        self.next = next;
    }

    /// Does so many packets of another host, each with the next number.
    pub fn serve_another(&mut self, packets: u32) {
        for _ in 0..packets {
            let wish = Wish { id: self.next, ..Wish::new(self.number, Deed::Read(0, 1)) };
            self.answer(&wish.request()).expect("it has the next number");
        }
    }

    /// Forgets the reply of this number.
    pub fn forget(&mut self, id: u16) {
        self.kept.retain(|(kept, _)| *kept != id);
    }

    /// Returns the answer to a datagram.
    pub fn answer(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        if self.dead {
            return None;
        }
        if Version::of(datagram).is_some_and(|(version, _)| version == Version::V1_3) {
            return self.answer_legacy(datagram);
        }
        let packet = Packet::decode(datagram).expect("the hub sends packets");
        let Header { id, kind } = packet.header;
        match kind {
            Kind::Status => {
                let (buffer_bytes, buffers) = (BUFFER_BYTES as u32, BUFFERS as u32);
                Some(Status { buffer_bytes, buffers, next_id: self.next, ..Status::default() }.encode().to_vec())
            }
            Kind::Resend => self.kept.iter().find(|(kept, _)| *kept == id).map(|(_, reply)| reply.clone()),
            Kind::Control if id == self.next && !self.ignores && datagram.len() <= BUFFER_BYTES => {
                let mut reply = self.execute(&packet);
                reply.truncate(self.cuts.unwrap_or(usize::MAX));
                self.next = following(id);
                if self.kept.len() == BUFFERS {
                    self.kept.pop_front();
                }
                self.kept.push_back((id, reply.clone()));
                Some(reply)
            }
            Kind::Control => {
                assert!(id != 0, "the hub numbers its packets");
                None
            }
        }
    }

    fn execute(&mut self, packet: &Packet<'_>) -> Vec<u8> {
        let mut reply = packet.order.bytes_32(packet.header.encode()).to_vec();
        for request in packet.requests() {
            let request = request.expect("the clients here send whole transactions");
            let data = self.perform(&request.operation);
            let header = request.header.answered(request.header.words, Info::Done);
            operation::Reply { header, data: &data[..] }.encode(packet.order, &mut reply);
        }
        reply
    }

    fn answer_legacy(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let packet = legacy::Packet::decode(datagram).ok()?;
        let mut reply = Vec::new();
        for request in packet.requests() {
            let request = request.ok()?;
            let data = request.operation.map_or(Vec::new(), |operation| self.perform(&operation));
            let header = request.header.answered(request.header.words, legacy::Info::Done);
            legacy::Reply { header, data: &data[..] }.encode(packet.order, &mut reply);
        }
        Some(reply)
    }

    fn perform(&mut self, operation: &Operation<Words<'_>>) -> Vec<u32> {
        match operation {
            Operation::Read { address, words, .. } => {
                (0..u32::from(*words)).map(|place| Self::word(self.number, address + place)).collect()
            }
            Operation::Write { data, .. } => {
                self.written.extend(*data);
                Vec::new()
            }
            Operation::RmwBits { .. } | Operation::RmwSum { .. } => vec![0],
        }
    }
}

/// Returns a board's address.
pub fn target(board: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, board as u8), 50001)
}

/// A client's request of a board in one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    pub board: u32,
    pub version: Version,
    pub order: Order,
    pub id: u16,
    pub deed: Deed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Reads this many words from this address.
    Read(u32, u16),
    /// This word.
    Write(u32),
}

impl Wish {
    pub fn new(board: u32, deed: Deed) -> Self {
        Wish { board, version: Version::V2_0, order: Order::Little, id: 0, deed }
    }

    fn operation<'a>(&self, word: &'a mut u32) -> Operation<&'a [u32]> {
        let mode = Mode::Incrementing;
        match self.deed {
            Deed::Read(address, words) => Operation::Read { mode, address, words },
            Deed::Write(value) => {
                *word = value;
                Operation::Write { mode, address: 0x1000, data: std::slice::from_ref(word) }
            }
        }
    }

    /// Encodes the packet, as a client sends it.
    pub fn request(&self) -> Vec<u8> {
        let (mut out, mut word) = (Vec::new(), 0);
        let operation = self.operation(&mut word);
        match self.version {
            Version::V2_0 => {
                self.order.push(Header { id: self.id, kind: Kind::Control }.encode(), &mut out);
                operation::Request::new(self.id % 0x1000, operation).encode(self.order, &mut out);
            }
            Version::V1_3 => {
                legacy::begin(self.id % legacy::IDS, self.order, &mut out);
                let request = legacy::Request::new(self.id % legacy::IDS, operation).expect("1.3 has it");
                request.encode(self.order, &mut out);
                legacy::end(&mut out, 0, self.order);
            }
        }
        out
    }

    /// Returns the reply that a client is due.
    pub fn reply(&self) -> Vec<u8> {
        let mut board = Board::new(self.board);
        let request = self.request();
        match self.version {
            Version::V2_0 => board.execute(&Packet::decode(&request).expect("it is a packet")),
            Version::V1_3 => board.answer_legacy(&request).expect("it is a packet"),
        }
    }
}

/// Encodes a chunk of these wishes.
pub fn chunk_of(wishes: &[Wish]) -> Vec<u8> {
    chunk_of_packets(wishes.iter().map(|wish| (wish.board, wish.request())))
}

/// Packets, each with its board, as a client sends them.
pub fn chunk_of_packets(packets: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Vec::new();
    let begun = chunk::begin(&mut out);
    for (board, packet) in packets {
        Request { target: target(board), packet: &packet }.encode(&mut out);
    }
    chunk::end(&mut out, begun);
    out
}

/// Checks the chunk that answers these wishes, without its length; answers the code of each.
pub fn codes_of(wishes: &[Wish], chunk: &[u8]) -> Vec<Code> {
    let replies: Vec<Reply<'_>> = Replies::new(chunk).map(|reply| reply.expect("a whole entry")).collect();
    assert_eq!(replies.len(), wishes.len(), "an answer to each packet");
    let check = |(wish, reply): (&Wish, &Reply<'_>)| {
        assert_eq!(reply.target, target(wish.board));
        let expected = if reply.code == Code::Done { wish.reply() } else { Vec::new() };
        assert_eq!(reply.packet, expected, "{wish:?}: {:?}", reply.code);
        reply.code
    };
    wishes.iter().zip(&replies).map(check).collect()
}
