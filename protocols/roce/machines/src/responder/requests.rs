//! The far end's requests.

use super::replies::{Reading, Reply};
use super::{Executed, Inbound, Message, Responder};
use crate::memory::{Memory, Use};
use crate::requester::{Completions, MESSAGE_MAX};
use crate::wire::{AtomicHeader, Extended, NakCode, Opcode, Packet, Position, RdmaHeader, Syndrome};
use crate::{Completed, Psn, Status};

/// A request that the queue pair does not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The code that the far end gets.
    pub(crate) code: NakCode,
    /// How the receive request fails that the message had taken, if it had.
    pub(crate) status: Option<Status>,
}

impl Fault {
    const INVALID: Fault = Fault { code: NakCode::InvalidRequest, status: None };
    const ACCESS: Fault = Fault { code: NakCode::RemoteAccess, status: None };
}

impl Responder {
    /// Takes a request.
    ///
    /// # Errors
    /// Returns the fault with which the queue pair fails; the far end is told of it.
    #[inline]
    pub(crate) fn requested(
        &mut self,
        packet: &Packet<'_>,
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<(), Fault> {
        let psn = packet.base.psn;
        let behind = psn.since(self.expected);
        if behind < 0 {
            self.duplicates += 1;
            self.repeated(packet, memory);
            return Ok(());
        }
        if behind > 0 {
            self.out_of_order += 1;
            if !self.has_refused {
                self.refuse(Syndrome::Nak(NakCode::SequenceError));
            }
            return Ok(());
        }
        self.has_refused = false;
        let outcome = self.execute(packet, memory, completions);
        if let Err(fault) = outcome {
            self.refuse(Syndrome::Nak(fault.code));
            if let Some(status) = fault.status {
                let failed = Message::new(status, Completed::Receive, 0, packet);
                self.complete(&failed, completions);
            }
        }
        outcome
    }

    /// Carries out the request that is expected.
    #[inline]
    fn execute(
        &mut self,
        packet: &Packet<'_>,
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<(), Fault> {
        let opcode = packet.base.opcode;
        self.check_sequence(opcode, packet.payload.len())?;
        let is_done = if opcode.is_send() {
            self.send(packet, memory, completions)?
        } else if opcode.is_write() {
            self.write(packet, memory, completions)?
        } else {
            return match (opcode, packet.extended) {
                (Opcode::ReadRequest, Extended::Rdma(header)) => self.read_request(packet, header, memory),
                (Opcode::CompareSwap | Opcode::FetchAdd, Extended::Atomic(header)) => {
                    self.atomic(packet, header, memory)
                }
                _ => Err(Fault::INVALID),
            };
        };
        if !is_done {
            self.not_ready += 1;
            self.refuse(Syndrome::ReceiverNotReady(self.not_ready_timer));
            return Ok(());
        }
        if opcode.position().ends() {
            self.inbound = Inbound::None;
            self.count_message();
        }
        self.expected = packet.base.psn.after(1);
        if packet.base.asks_ack {
            self.acknowledge(packet.base.psn);
        }
        Ok(())
    }

    /// Checks that a packet may follow those before it (9.7.4.1.4, table 41), and its length (9.7.4.1.6).
    #[inline]
    fn check_sequence(&self, opcode: Opcode, length: usize) -> Result<(), Fault> {
        let (position, mtu) = (opcode.position(), self.mtu.bytes() as usize);
        let may_follow = match self.inbound {
            Inbound::None => position.begins(),
            Inbound::Send(_) => opcode.is_send() && !position.begins(),
            Inbound::Write { .. } => opcode.is_write() && !position.begins(),
        };
        let fits = match position {
            Position::First | Position::Middle => length == mtu,
            Position::Last => (1..=mtu).contains(&length),
            Position::Only => length <= mtu,
        };
        if may_follow && fits { Ok(()) } else { Err(Fault::INVALID) }
    }

    /// Takes a packet of a send. Returns `false` if no receive request is there for it.
    #[inline]
    fn send(
        &mut self,
        packet: &Packet<'_>,
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<bool, Fault> {
        let number = self.receives.head();
        let Some(receive) = self.receives.get(number).copied() else { return Ok(false) };
        let here = match self.inbound {
            Inbound::Send(here) => here,
            _ => 0,
        };
        let length = here + packet.payload.len() as u64;
        if length > receive.length {
            return Err(Fault { code: NakCode::InvalidRequest, status: Some(Status::LocalLength) });
        }
        let entries = &self.receives.entries(number)[..receive.entries as usize];
        memory
            .scatter(entries, here as usize, packet.payload)
            .map_err(|_| Fault { code: NakCode::RemoteOperation, status: Some(Status::LocalProtection) })?;
        self.inbound = Inbound::Send(length);
        if packet.base.opcode.position().ends() {
            if let Extended::Invalidate(key) = packet.extended
                && !memory.invalidate(key)
            {
                return Err(Fault { code: NakCode::RemoteAccess, status: Some(Status::LocalAccess) });
            }
            let message = Message::new(Status::Success, Completed::Receive, length as u32, packet);
            self.complete(&message, completions);
        }
        Ok(true)
    }

    /// Takes a packet of a write. Returns `false` if it is to complete a receive request, and none is there.
    #[inline]
    fn write(
        &mut self,
        packet: &Packet<'_>,
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<bool, Fault> {
        let opcode = packet.base.opcode;
        let (key, address, left, length) = match (packet.extended, self.inbound) {
            (Extended::Rdma(to) | Extended::RdmaImmediate(to, _), _) => (to.key, to.address, to.length, to.length),
            (_, Inbound::Write { key, address, left, length }) => (key, address, left, length),
            _ => return Err(Fault::INVALID),
        };
        let count = packet.payload.len() as u32;
        let is_whole = opcode.position().ends();
        if length > MESSAGE_MAX || count > left || is_whole != (count == left) {
            return Err(Fault::INVALID);
        }
        let completes = matches!(opcode, Opcode::WriteLastImmediate | Opcode::WriteOnlyImmediate);
        if completes && self.receives.is_empty() {
            return Ok(false);
        }
        // A write of nothing needs no key (9.7.4.1.5); the whole of any other is checked with its first packet.
        if opcode.position().begins() && length > 0 {
            memory.get(key, address, length as usize, Use::RemoteWrite).map_err(|_| Fault::ACCESS)?;
        }
        if count > 0 {
            let room = memory.at(key, address, count as usize, Use::RemoteWrite).map_err(|_| Fault::ACCESS)?;
            room.copy_from_slice(packet.payload);
        }
        self.inbound =
            Inbound::Write { key, address: address.wrapping_add(u64::from(count)), left: left - count, length };
        if completes {
            let message = Message::new(Status::Success, Completed::ReceiveWrite, length, packet);
            self.complete(&message, completions);
        }
        Ok(true)
    }

    fn read_request(&mut self, packet: &Packet<'_>, header: RdmaHeader, memory: &Memory) -> Result<(), Fault> {
        let reading = self.reading(packet.base.psn, header, memory)?;
        self.count_message();
        self.expected = packet.base.psn.after(reading.packets);
        self.read(Reading { messages: self.messages, ..reading });
        Ok(())
    }

    /// Checks a request to read.
    fn reading(&self, psn: Psn, header: RdmaHeader, memory: &Memory) -> Result<Reading, Fault> {
        let RdmaHeader { address, key, length } = header;
        if self.reads_max == 0 || length > MESSAGE_MAX {
            return Err(Fault::INVALID);
        }
        if length > 0 {
            memory.get(key, address, length as usize, Use::RemoteRead).map_err(|_| Fault::ACCESS)?;
        }
        let packets = self.mtu.packets(length);
        Ok(Reading { psn, next: 0, packets, key, address, length, messages: self.messages })
    }

    fn atomic(&mut self, packet: &Packet<'_>, header: AtomicHeader, memory: &mut Memory) -> Result<(), Fault> {
        let AtomicHeader { address, key, swap_or_add, compare } = header;
        if self.reads_max == 0 || !address.is_multiple_of(8) {
            return Err(Fault::INVALID);
        }
        let place = memory.at(key, address, 8, Use::RemoteAtomic).map_err(|_| Fault::ACCESS)?;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(place);
        let original = u64::from_ne_bytes(bytes);
        let value = match packet.base.opcode {
            Opcode::FetchAdd => original.wrapping_add(swap_or_add),
            _ if original == compare => swap_or_add,
            _ => original,
        };
        place.copy_from_slice(&value.to_ne_bytes());
        let psn = packet.base.psn;
        if self.executed.len() >= self.reads_max {
            self.executed.pop_front();
        }
        self.executed.push_back(Executed { psn, original });
        self.count_message();
        self.expected = psn.after(1);
        self.reply(Reply::Atomic { psn, original, messages: self.messages });
        Ok(())
    }

    /// Replies to a request that was carried out before (9.7.4.1.3): data is read again, an atomic operation is not.
    fn repeated(&mut self, packet: &Packet<'_>, memory: &Memory) {
        let psn = packet.base.psn;
        match (packet.base.opcode, packet.extended) {
            (Opcode::ReadRequest, Extended::Rdma(header)) => {
                if let Ok(reading) = self.reading(psn, header, memory)
                    && psn.after(reading.packets).since(self.expected) <= 0
                {
                    self.read(reading);
                }
            }
            (Opcode::CompareSwap | Opcode::FetchAdd, _) => {
                let executed = self.executed.iter().rev().find(|executed| executed.psn == psn);
                if let Some(Executed { original, .. }) = executed {
                    self.reply(Reply::Atomic { psn, original: *original, messages: self.messages });
                }
            }
            _ => self.acknowledge(self.expected.before()),
        }
    }

    #[inline]
    fn count_message(&mut self) {
        self.messages = (self.messages + 1) & 0xFF_FFFF;
    }
}

impl Message {
    #[inline]
    fn new(status: Status, kind: Completed, length: u32, packet: &Packet<'_>) -> Self {
        let (immediate, invalidated) = match packet.extended {
            Extended::Immediate(word) | Extended::RdmaImmediate(_, word) => (Some(word), None),
            Extended::Invalidate(key) => (None, Some(key)),
            _ => (None, None),
        };
        Message { status, kind, length, immediate, invalidated, is_solicited: packet.base.is_solicited }
    }
}
