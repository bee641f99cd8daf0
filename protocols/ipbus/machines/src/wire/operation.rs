//! Bodies of transactions, the same in IPbus 2.0 and 1.3, and the transactions of a packet.

use super::transaction::{Header, Info, Kind};
use super::{Data, Order, Reader, Words};
use crate::Error;
use alloc::vec::Vec;

/// Which space and which addresses a read or a write goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Successive addresses.
    Incrementing,
    /// One address, as a FIFO has.
    Fifo,
    /// Successive addresses of the configuration space.
    Configuration,
}

/// The operation of a request. `D` is the data to be written: [`Words`] once received, `&[u32]` before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<D> {
    /// Read so many words.
    Read {
        /// Over which addresses.
        mode: Mode,
        /// The first, or only, one.
        address: u32,
        /// How many: at most [`Version::words_max`](super::Version::words_max).
        words: u16,
    },
    /// Write words.
    Write {
        /// Over which addresses.
        mode: Mode,
        /// The first, or only, one.
        address: u32,
        /// The words: at most [`Version::words_max`](super::Version::words_max).
        data: D,
    },
    /// Make a word `word & and | or`.
    RmwBits {
        /// Address of the word.
        address: u32,
        /// Bits to be kept.
        and: u32,
        /// Bits to be set.
        or: u32,
    },
    /// Add to a word, going round.
    RmwSum {
        /// Address of the word.
        address: u32,
        /// The number that is added.
        addend: u32,
    },
}

impl<D> Operation<D> {
    /// Returns the kind.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self {
            Operation::Read { mode: Mode::Incrementing, .. } => Kind::Read,
            Operation::Read { mode: Mode::Fifo, .. } => Kind::FifoRead,
            Operation::Read { mode: Mode::Configuration, .. } => Kind::ConfigurationRead,
            Operation::Write { mode: Mode::Incrementing, .. } => Kind::Write,
            Operation::Write { mode: Mode::Fifo, .. } => Kind::FifoWrite,
            Operation::Write { mode: Mode::Configuration, .. } => Kind::ConfigurationWrite,
            Operation::RmwBits { .. } => Kind::RmwBits,
            Operation::RmwSum { .. } => Kind::RmwSum,
        }
    }

    /// Returns the first, or only, address.
    #[must_use]
    #[inline]
    pub const fn address(&self) -> u32 {
        match self {
            Operation::Read { address, .. }
            | Operation::Write { address, .. }
            | Operation::RmwBits { address, .. }
            | Operation::RmwSum { address, .. } => *address,
        }
    }
}

impl<D: Data> Operation<D> {
    /// Words of data, as the header tells them.
    #[must_use]
    #[inline]
    pub fn words(&self) -> usize {
        match self {
            Operation::Read { words, .. } => usize::from(*words),
            Operation::Write { data, .. } => data.count(),
            Operation::RmwBits { .. } | Operation::RmwSum { .. } => 1,
        }
    }

    /// Appends what follows the header.
    #[inline]
    pub(super) fn append_body(&self, order: Order, out: &mut Vec<u8>) {
        order.push(self.address(), out);
        match self {
            Operation::Read { .. } => {}
            Operation::Write { data, .. } => data.append_to(order, out),
            Operation::RmwBits { and, or, .. } => order.append(&[*and, *or], out),
            Operation::RmwSum { addend, .. } => order.push(*addend, out),
        }
    }
}

impl<'a> Operation<Words<'a>> {
    /// Reads what follows a request's header.
    #[inline]
    pub(super) fn decode(kind: Kind, words: u16, body: &mut Reader<'a>) -> Result<Self, Error> {
        let address = body.word()?;
        let read = |mode| Operation::Read { mode, address, words };
        let mut write = |mode| body.words(usize::from(words)).map(|data| Operation::Write { mode, address, data });
        Ok(match kind {
            Kind::Read => read(Mode::Incrementing),
            Kind::FifoRead => read(Mode::Fifo),
            Kind::ConfigurationRead => read(Mode::Configuration),
            Kind::Write => write(Mode::Incrementing)?,
            Kind::FifoWrite => write(Mode::Fifo)?,
            Kind::ConfigurationWrite => write(Mode::Configuration)?,
            Kind::RmwBits => Operation::RmwBits { address, and: body.word()?, or: body.word()? },
            Kind::RmwSum => Operation::RmwSum { address, addend: body.word()? },
        })
    }
}

/// One transaction from a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<D> {
    /// The header.
    pub header: Header,
    /// The operation.
    pub operation: Operation<D>,
}

impl<D: Data> Request<D> {
    /// Creates the request for an operation.
    ///
    /// # Panics
    /// Where the operation has more than 255 words: a longer one is cut into several transactions before.
    #[must_use]
    #[inline]
    pub fn new(id: u16, operation: Operation<D>) -> Self {
        let words = u8::try_from(operation.words()).expect("cut into transactions of 255 words at most");
        Request { header: Header { id, words, kind: operation.kind(), info: Info::Request }, operation }
    }

    /// Appends it to a packet.
    #[inline]
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) {
        order.push(self.header.encode(), out);
        self.operation.append_body(order, out);
    }
}

/// One transaction from a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<D> {
    /// The header.
    pub header: Header,
    /// The words that were read; empty if the transaction writes.
    pub data: D,
}

impl<D: Data> Reply<D> {
    /// Appends it to a packet.
    #[inline]
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) {
        order.push(self.header.encode(), out);
        self.data.append_to(order, out);
    }
}

/// The transactions of a packet from a host, up to the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Requests<'a>(Reader<'a>);

/// The transactions of a packet from a device, up to the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Replies<'a>(Reader<'a>);

impl<'a> Requests<'a> {
    pub(super) const fn new(body: Reader<'a>) -> Self {
        Requests(body)
    }
}

impl<'a> Replies<'a> {
    pub(super) const fn new(body: Reader<'a>) -> Self {
        Replies(body)
    }
}

impl<'a> Iterator for Requests<'a> {
    type Item = Result<Request<Words<'a>>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|body| {
            let word = body.word()?;
            let header = Header::decode(word)?;
            if header.info != Info::Request {
                return Err(Error::TransactionHeader { header: word });
            }
            let operation = Operation::decode(header.kind, u16::from(header.words), body)?;
            Ok(Request { header, operation })
        })
    }
}

impl<'a> Iterator for Replies<'a> {
    type Item = Result<Reply<Words<'a>>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|body| {
            let header = Header::decode(body.word()?)?;
            Ok(Reply { header, data: body.words(header.reply_data())? })
        })
    }
}

#[cfg(test)]
mod tests;
