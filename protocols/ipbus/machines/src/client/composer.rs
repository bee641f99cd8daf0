use super::Command;
use super::flight::{Flight, Transaction};
use super::packing::{Packing, Room};
use super::queue::{Queue, QueuedOperation};
use crate::Error;
use crate::wire::operation::{Operation, Request};
use crate::wire::packet::{self, Header};
use crate::wire::transaction::Kind;
use crate::wire::{Order, Version, legacy};
use alloc::vec::Vec;

/// Concatenates operations into packets, and cuts those that are longer than one.
#[derive(Debug)]
pub(super) struct Composer {
    version: Version,
    order: Order,
    packet: Vec<u8>,
    packing: Packing,
    /// The number of the operation that comes next.
    next: u64,
    closed: bool,
}

impl Composer {
    pub(super) const fn new(version: Version, order: Order) -> Self {
        Composer { version, order, packet: Vec::new(), packing: Packing::new(version), next: 0, closed: false }
    }

    /// Has a packet end behind what was asked so far.
    pub(super) fn flush(&mut self, queue: &mut Queue) {
        match queue.last().filter(|asked| !asked.whole) {
            Some(last) => last.ends = true,
            None => self.closed = self.packing.is_begun(),
        }
    }

    /// Goes on with a packet; answers whether one is finished.
    #[inline]
    pub(super) fn compose(&mut self, queue: &mut Queue, flight: &mut Flight, room: Room) -> bool {
        self.next = self.next.max(queue.first());
        while !self.closed {
            let Some(asked) = queue.at(self.next) else { break };
            if asked.whole {
                // It failed before all of it was sent.
                self.pass(asked.ends);
                continue;
            }
            if !self.packing.is_begun() {
                self.begin();
            }
            match self.packing.fit(asked.kind(), asked.words() - asked.cut, room) {
                Some(words) => self.append(asked, words, flight),
                None if self.packing.is_begun() => self.closed = true,
                // Configuration space, which version 1.3 has not.
                None => {
                    let address = asked.address();
                    asked.fail(Error::Unsupported, address);
                }
            }
        }
        if self.closed && self.version == Version::V1_3 {
            legacy::end(&mut self.packet, 0, self.order);
        }
        self.closed
    }

    /// Returns the packet that is finished.
    pub(super) fn packet(&mut self) -> &mut Vec<u8> {
        &mut self.packet
    }

    /// Begins with an empty packet.
    pub(super) fn restart(&mut self) {
        self.packet.clear();
        self.packing = Packing::new(self.version);
        self.closed = false;
    }

    fn begin(&mut self) {
        self.packet.clear();
        match self.version {
            Version::V2_0 => {
                self.order.push(Header { id: 0, kind: packet::Kind::Control }.encode(), &mut self.packet);
            }
            Version::V1_3 => legacy::begin(0, self.order, &mut self.packet),
        }
    }

    /// Passes to the next operation.
    fn pass(&mut self, ends: bool) {
        self.next += 1;
        self.closed = ends && self.packing.is_begun();
    }

    #[inline]
    fn append(&mut self, asked: &mut QueuedOperation, words: u32, flight: &mut Flight) {
        let (kind, offset) = (asked.kind(), asked.cut);
        let address = match kind {
            Kind::FifoRead | Kind::FifoWrite => asked.address(),
            _ => asked.address().wrapping_add(offset),
        };
        let id = flight.add(Transaction { asked: self.next, address, offset, words: words as u16, kind });
        self.encode(id, &asked.command, address, offset as usize, words as usize);
        self.packing.append(kind, words);
        asked.cut += words;
        asked.open += 1;
        if asked.cut >= asked.words() {
            asked.whole = true;
            self.pass(asked.ends);
        }
    }

    #[inline]
    fn encode(&mut self, id: u16, command: &Command, address: u32, offset: usize, words: usize) {
        let read = |mode| Operation::Read { mode, address, words: words as u16 };
        let operation = match command {
            Command::Read { .. } | Command::Flush => read(crate::wire::operation::Mode::Incrementing),
            Command::ReadBlock { mode, .. } => read(*mode),
            Command::Write { word, .. } => {
                let mode = crate::wire::operation::Mode::Incrementing;
                Operation::Write { mode, address, data: core::slice::from_ref(word) }
            }
            Command::WriteBlock { mode, data, .. } => {
                Operation::Write { mode: *mode, address, data: &data[offset..offset + words] }
            }
            Command::RmwBits { and, or, .. } => Operation::RmwBits { address, and: *and, or: *or },
            Command::RmwSum { addend, .. } => Operation::RmwSum { address, addend: *addend },
        };
        match self.version {
            Version::V2_0 => Request::new(id, operation).encode(self.order, &mut self.packet),
            Version::V1_3 => {
                let request = legacy::Request::new(id, operation).expect("looked at before it was fitted in");
                request.encode(self.order, &mut self.packet);
            }
        }
    }
}
