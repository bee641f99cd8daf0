use crate::rmap::memory::MODIFY_MAX;
use crate::rmap::packet::{ADDRESS_MAX, DEFAULT_LOGICAL_ADDRESS, LENGTH_MAX};
use crate::rmap::{Command, CommandHeader, Crc, Instruction, ReplyAddress};
use alloc::vec::Vec;
use thiserror::Error;

/// A target and the ways there and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The ports of the routers on the way to the target.
    pub path: Vec<u8>,
    /// The ports of the routers on the way back.
    pub reply_address: ReplyAddress,
    /// The target logical address.
    pub logical_address: u8,
    /// The key.
    pub key: u8,
    /// The draft of the standard that the target's CRCs follow.
    pub crc: Crc,
}

impl Default for Destination {
    /// Returns a target behind no router, at the default logical address with the key 0.
    fn default() -> Self {
        Destination {
            path: Vec::new(),
            reply_address: ReplyAddress::default(),
            logical_address: DEFAULT_LOGICAL_ADDRESS,
            key: 0,
            crc: Crc::Standard,
        }
    }
}

/// A request to a target. Addresses have 40 bits, the extended address first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// A read.
    Read {
        /// The address of the first byte.
        address: u64,
        /// Bytes to be read.
        length: u32,
        /// Whether the address advances with the data.
        increment: bool,
    },
    /// A write.
    Write {
        /// The address of the first byte.
        address: u64,
        /// The bytes to be written.
        data: &'a [u8],
        /// Whether the address advances with the data.
        increment: bool,
        /// Whether the target checks the data before it writes any of it.
        verify: bool,
        /// Whether the target replies. Without a reply there is no completion.
        reply: bool,
    },
    /// A read, and a write of the bits under a mask.
    ReadModifyWrite {
        /// The address of the first byte.
        address: u64,
        /// The bits to be written; at most four bytes.
        data: &'a [u8],
        /// Ones where `data` is written, in as many bytes.
        mask: &'a [u8],
    },
}

/// The reason that a request cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// As many transactions are outstanding as may be.
    #[error("{0} transactions outstanding: wait for one to complete")]
    Full(u16),
    /// The address has more than 40 bits.
    #[error("address {0:#x} has more than 40 bits")]
    Address(u64),
    /// The length has more than 24 bits.
    #[error("{0} bytes in one command, at most 16777215: split the transfer")]
    Length(usize),
    /// Data and mask differ in length, or have more than four bytes.
    #[error("{data} bytes of data and {mask} of mask: a read-modify-write has up to 4 of each, and as many")]
    Mask {
        /// Bytes of the data.
        data: usize,
        /// Bytes of the mask.
        mask: usize,
    },
}

impl Request<'_> {
    /// Checks that a command expresses the request.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        let length = match *self {
            Request::Read { length, .. } => length as usize,
            Request::Write { data, .. } => data.len(),
            Request::ReadModifyWrite { data, mask, .. } => {
                let (data, mask) = (data.len(), mask.len());
                if data != mask || data > MODIFY_MAX {
                    return Err(RequestError::Mask { data, mask });
                }
                data
            }
        };
        if length > LENGTH_MAX as usize {
            return Err(RequestError::Length(length));
        }
        if self.address() > ADDRESS_MAX { Err(RequestError::Address(self.address())) } else { Ok(()) }
    }

    /// Appends the command of a request that was checked, and returns its header.
    pub(super) fn encode(&self, to: &Destination, initiator: u8, transaction: u16, out: &mut Vec<u8>) -> CommandHeader {
        let mut halves = [0; 2 * MODIFY_MAX];
        let (instruction, data, length): (_, &[u8], _) = match *self {
            Request::Read { length, increment, .. } => (Instruction::read(increment), &[], length),
            Request::Write { data, increment, verify, reply, .. } => {
                (Instruction::write(verify, reply, increment), data, data.len() as u32)
            }
            Request::ReadModifyWrite { data, mask, .. } => {
                let (front, back) = halves[..2 * data.len()].split_at_mut(data.len());
                front.copy_from_slice(data);
                back.copy_from_slice(mask);
                (Instruction::read_modify_write(), &halves[..2 * data.len()], 2 * data.len() as u32)
            }
        };
        let header = CommandHeader {
            target: to.logical_address,
            instruction: instruction.with_reply_address(&to.reply_address),
            key: to.key,
            reply_address: to.reply_address,
            initiator,
            transaction,
            address: self.address(),
            length,
        };
        out.extend_from_slice(&to.path);
        Command { header, data }.encode(to.crc, out);
        header
    }

    /// Returns the bytes of data in a reply without an error.
    pub(super) fn reply_length(&self) -> u32 {
        match *self {
            Request::Read { length, .. } => length,
            Request::Write { .. } => 0,
            Request::ReadModifyWrite { data, .. } => data.len() as u32,
        }
    }

    fn address(&self) -> u64 {
        match *self {
            Request::Read { address, .. }
            | Request::Write { address, .. }
            | Request::ReadModifyWrite { address, .. } => address,
        }
    }
}
