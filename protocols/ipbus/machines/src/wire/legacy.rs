//! IPbus 1.3: transactions without a packet header; the first says the byte order.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 31..28 | version | 1 |
//! | 27..17 | id | the reply has its request's |
//! | 16..8 | words | of data |
//! | 7..3 | type | [`Kind`] |
//! | 2 | direction | 0 request, 1 reply |
//! | 1..0 | info | 0 done, 1 done in part, 2 failed; 0 in a request |
//!
//! Bodies are those of IPbus 2.0, but that an RMW answers the word after, and that there is no configuration space. A
//! request has 8 words at least: it is filled up with byte-order transactions, and each is answered. There is one
//! packet in flight, and nothing to recover it with.

use super::operation::Operation;
use super::{Data, Order, Reader, Version, WORD, Words, transaction};
use crate::Error;
use alloc::vec::Vec;
use hodo_machine::codes;

/// Transaction ids are below this: 11 bits.
pub const IDS: u16 = 1 << 11;
/// Bytes of a request at least.
pub const REQUEST_MIN: usize = 8 * WORD;

const WORDS: u16 = Version::V1_3.words_max() as u16;
const REPLY: u32 = 1 << 2;

codes! {
    /// The kind of a transaction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind: u8 {
        /// As of IPbus 2.0.
        Read = 0x03,
        /// As of IPbus 2.0.
        Write = 0x04,
        /// As of IPbus 2.0, but answers the word after.
        RmwBits = 0x05,
        /// As of IPbus 2.0, but answers the word after.
        RmwSum = 0x06,
        /// As of IPbus 2.0.
        FifoRead = 0x08,
        /// As of IPbus 2.0.
        FifoWrite = 0x09,
        /// Query of the reserved addresses. A header alone; no client is known to send it.
        ReservedAddress = 0x1E,
        /// Says the byte order, or fills up. A header alone.
        ByteOrder = 0x1F,
    }
}

impl Kind {
    /// Returns the kind of IPbus 2.0 that has the same body; `None` if the header stands alone.
    #[must_use]
    pub const fn current(self) -> Option<transaction::Kind> {
        Some(match self {
            Kind::Read => transaction::Kind::Read,
            Kind::Write => transaction::Kind::Write,
            Kind::RmwBits => transaction::Kind::RmwBits,
            Kind::RmwSum => transaction::Kind::RmwSum,
            Kind::FifoRead => transaction::Kind::FifoRead,
            Kind::FifoWrite => transaction::Kind::FifoWrite,
            Kind::ReservedAddress | Kind::ByteOrder => return None,
        })
    }

    /// Returns the kind that does what this one of IPbus 2.0 does; `None` for the configuration space.
    #[must_use]
    pub fn of(current: transaction::Kind) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| kind.current() == Some(current))
    }
}

codes! {
    /// How a transaction ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Info: u8 {
        /// All words were done; and in every request.
        Done = 0,
        /// Fewer words were done: as many as the header tells.
        Partial = 1,
        /// Nothing was done.
        Failed = 2,
        /// Not assigned.
        Other = 3,
    }
}

/// The word of every transaction that stands in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The transaction's number in 11 bits.
    pub id: u16,
    /// Words of data, in 9 bits.
    pub words: u16,
    /// Kind of the transaction.
    pub kind: Kind,
    /// Whether it is a reply.
    pub reply: bool,
    /// How it ended.
    pub info: Info,
}

impl Header {
    /// Creates a request's header.
    #[must_use]
    pub const fn request(id: u16, kind: Kind, words: u16) -> Header {
        Header { id, words, kind, reply: false, info: Info::Done }
    }

    /// Returns the header of the reply, if this many words were done. A write tells none.
    #[must_use]
    pub const fn answered(self, words: u16, info: Info) -> Header {
        Header { words, reply: true, info, ..self }
    }

    /// Reads a header.
    ///
    /// # Errors
    /// An [`Error`] if it is no packet, or no header, of IPbus 1.3.
    #[inline]
    pub fn decode(word: u32) -> Result<Header, Error> {
        let kind = Kind::from_code((word >> 3 & 0x1F) as u8).filter(|_| word >> 28 == 1);
        Ok(Header {
            id: (word >> 17) as u16 & (IDS - 1),
            words: (word >> 8) as u16 & WORDS,
            kind: kind.ok_or(Error::TransactionHeader { header: word })?,
            reply: word & REPLY != 0,
            info: [Info::Done, Info::Partial, Info::Failed, Info::Other][(word & 3) as usize],
        })
    }

    /// Encodes the header's word.
    #[must_use]
    #[inline]
    pub const fn encode(self) -> u32 {
        let (id, words) = ((self.id & (IDS - 1)) as u32, (self.words & WORDS) as u32);
        let direction = if self.reply { REPLY } else { 0 };
        1 << 28 | id << 17 | words << 8 | (self.kind as u32) << 3 | direction | self.info as u32
    }

    /// Words of data behind this header in a reply.
    #[must_use]
    #[inline]
    pub fn reply_data(&self) -> usize {
        let told = usize::from(self.words);
        match (self.kind.current(), self.info) {
            (None, _) => told,
            (Some(transaction::Kind::RmwBits | transaction::Kind::RmwSum), Info::Done) => 1,
            (Some(transaction::Kind::RmwBits | transaction::Kind::RmwSum), _) => told.min(1),
            (Some(kind), _) => kind.reply_words(told) - 1,
        }
    }
}

/// Returns the reply to a header that a device cannot read: the same word as a failed reply, with no words done.
#[must_use]
pub const fn bad_header(word: u32) -> u32 {
    word & !((WORDS as u32) << 8 | 7) | REPLY | Info::Failed as u32
}

/// Tells whether a word, in the right byte order, is a byte-order transaction, of a request or a reply.
#[must_use]
#[inline]
pub const fn is_byte_order(word: u32) -> bool {
    word & 0xF000_00F8 == 0x1000_00F8
}

/// Begins a request: the transaction that says its byte order.
#[inline]
pub fn begin(id: u16, order: Order, out: &mut Vec<u8>) {
    order.push(Header::request(id, Kind::ByteOrder, 0).encode(), out);
}

/// Ends a request that began at this place of `out`: fills it up to 8 words.
pub fn end(out: &mut Vec<u8>, begun: usize, order: Order) {
    while out.len() - begun < REQUEST_MIN {
        begin(0, order, out);
    }
}

/// One transaction from a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<D> {
    /// The header.
    pub header: Header,
    /// The operation; `None` if the header stands alone.
    pub operation: Option<Operation<D>>,
}

impl<D: Data> Request<D> {
    /// Creates the request for an operation; `None` for the configuration space, which IPbus 1.3 has not.
    ///
    /// # Panics
    /// Where the operation has more than 511 words: a longer one is cut into several transactions before.
    #[must_use]
    pub fn new(id: u16, operation: Operation<D>) -> Option<Self> {
        let words = u16::try_from(operation.words()).ok().filter(|words| *words <= WORDS);
        let words = words.expect("cut into transactions of 511 words at most");
        let header = Header::request(id, Kind::of(operation.kind())?, words);
        Some(Request { header, operation: Some(operation) })
    }

    /// Appends it to a packet.
    #[inline]
    pub fn encode(&self, order: Order, out: &mut Vec<u8>) {
        order.push(self.header.encode(), out);
        if let Some(operation) = &self.operation {
            operation.append_body(order, out);
        }
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

/// A packet whose byte order is known.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// The byte order of its words.
    pub order: Order,
    /// All of it.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Finds the byte order by the first transaction.
    ///
    /// # Errors
    /// An [`Error`] if it is no packet, or no header, of IPbus 1.3.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let first = *bytes.first_chunk::<WORD>().ok_or(Error::Truncated { need: WORD, have: bytes.len() })?;
        let found = Order::BOTH.into_iter().find(|order| is_byte_order(order.u32(first)));
        let order = found.ok_or(Error::NotIpbus { first: u32::from_be_bytes(first) })?;
        Ok(Packet { order, bytes })
    }

    /// Iterates over the transactions of a packet from a host, with those that say the byte order or fill up.
    #[must_use]
    pub const fn requests(&self) -> Requests<'a> {
        Requests(Reader::new(self.bytes, self.order))
    }

    /// Iterates over the transactions of a packet from a device, with the answers to those.
    #[must_use]
    pub const fn replies(&self) -> Replies<'a> {
        Replies(Reader::new(self.bytes, self.order))
    }
}

/// The transactions of a packet from a host, up to the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Requests<'a>(Reader<'a>);

/// The transactions of a packet from a device, up to the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Replies<'a>(Reader<'a>);

impl<'a> Iterator for Requests<'a> {
    type Item = Result<Request<Words<'a>>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|rest| {
            let header = header_of(rest, false)?;
            let operation = header.kind.current().map(|kind| Operation::decode(kind, header.words, rest));
            Ok(Request { header, operation: operation.transpose()? })
        })
    }
}

impl<'a> Iterator for Replies<'a> {
    type Item = Result<Reply<Words<'a>>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|rest| {
            let header = header_of(rest, true)?;
            Ok(Reply { header, data: rest.words(header.reply_data())? })
        })
    }
}

/// Reads a header of the direction that is due; a request has no info.
#[inline]
fn header_of(rest: &mut Reader<'_>, reply: bool) -> Result<Header, Error> {
    let word = rest.word()?;
    let header = Header::decode(word)?;
    let wrong = header.reply != reply || !reply && header.info != Info::Done;
    if wrong { Err(Error::TransactionHeader { header: word }) } else { Ok(header) }
}

#[cfg(test)]
mod tests;
