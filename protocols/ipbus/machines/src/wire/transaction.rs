//! The header of a transaction of IPbus 2.0, and how much follows it.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 31..28 | version | 2 |
//! | 27..16 | id | the reply has its request's |
//! | 15..8 | words | of data; 0 is allowed; in a reply, those that were done |
//! | 7..4 | type | [`Kind`] |
//! | 3..0 | info | [`Info`]; 0xF in a request |
//!
//! | type | behind a request's header | behind a reply's |
//! |---|---|---|
//! | read, FIFO read, configuration read | address | data |
//! | write, FIFO write, configuration write | address, data | |
//! | RMW bits | address, AND term, OR term | the word before |
//! | RMW sum | address, addend | the word before |
//!
//! A device that meets an error answers what it did so far, and leaves out the rest of the packet.

use crate::Error;
use core::fmt;
use hodo_machine::codes;

/// Transaction ids are below this: 12 bits.
pub const IDS: u16 = 1 << 12;

codes! {
    /// The kind of a transaction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind: u8 {
        /// Reads words from successive addresses.
        Read = 0,
        /// Writes words to successive addresses.
        Write = 1,
        /// Reads words from one address, as from a FIFO: "non-incrementing".
        FifoRead = 2,
        /// Writes words to one address, as to a FIFO: "non-incrementing".
        FifoWrite = 3,
        /// Makes a word `word & AND | OR`, and answers what it was.
        RmwBits = 4,
        /// Adds to a word, and answers what it was.
        RmwSum = 5,
        /// Reads words of the configuration space.
        ConfigurationRead = 6,
        /// Writes words of the configuration space.
        ConfigurationWrite = 7,
    }
}

impl Kind {
    /// Words of a request for `words` of data, with its header.
    #[must_use]
    #[inline]
    pub const fn request_words(self, words: usize) -> usize {
        match self {
            Kind::Read | Kind::FifoRead | Kind::ConfigurationRead => 2,
            Kind::Write | Kind::FifoWrite | Kind::ConfigurationWrite => 2 + words,
            Kind::RmwBits => 4,
            Kind::RmwSum => 3,
        }
    }

    /// Words of a good reply that tells `words` of data, with its header.
    #[must_use]
    #[inline]
    pub const fn reply_words(self, words: usize) -> usize {
        match self {
            Kind::Read | Kind::FifoRead | Kind::ConfigurationRead => 1 + words,
            Kind::Write | Kind::FifoWrite | Kind::ConfigurationWrite => 1,
            Kind::RmwBits | Kind::RmwSum => 2,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::FifoRead => "FIFO read",
            Kind::FifoWrite => "FIFO write",
            Kind::RmwBits => "RMW bits",
            Kind::RmwSum => "RMW sum",
            Kind::ConfigurationRead => "configuration read",
            Kind::ConfigurationWrite => "configuration write",
        })
    }
}

codes! {
    /// How a transaction ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Info: u8 {
        /// All words were done.
        Done = 0,
        /// The device could not read the request's header.
        BadHeader = 1,
        /// The bus answered an error while reading.
        ReadError = 4,
        /// The bus answered an error while writing.
        WriteError = 5,
        /// The bus did not answer in time while reading.
        ReadTimeout = 6,
        /// The bus did not answer in time while writing.
        WriteTimeout = 7,
        /// It is a request.
        Request = 0xF,
    } else {
        /// A code that is not assigned.
        Other
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Info::Done => "done",
            Info::BadHeader => "bad header: the device does not know this transaction",
            Info::ReadError => "bus error on read: nothing to be read at that address",
            Info::WriteError => "bus error on write: nothing to be written at that address",
            Info::ReadTimeout => "bus timeout on read: the slave behind that address does not answer",
            Info::WriteTimeout => "bus timeout on write: the slave behind that address does not answer",
            Info::Request => "a request where a reply was expected",
            Info::Other(code) => return write!(f, "info code 0x{code:X}, which is not assigned"),
        })
    }
}

/// The first word of every transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The transaction's number in 12 bits.
    pub id: u16,
    /// Words of data.
    pub words: u8,
    /// Kind of the transaction.
    pub kind: Kind,
    /// How it ended.
    pub info: Info,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Error::TransactionHeader`] if the version or the type is not assigned.
    #[inline]
    pub fn decode(word: u32) -> Result<Header, Error> {
        let kind = Kind::from_code((word >> 4 & 0xF) as u8).filter(|_| word >> 28 == 2);
        Ok(Header {
            id: (word >> 16) as u16 & (IDS - 1),
            words: (word >> 8) as u8,
            kind: kind.ok_or(Error::TransactionHeader { header: word })?,
            info: Info::from_code((word & 0xF) as u8),
        })
    }

    /// Encodes the header's word.
    #[must_use]
    #[inline]
    pub const fn encode(self) -> u32 {
        let id = (self.id & (IDS - 1)) as u32;
        2 << 28 | id << 16 | (self.words as u32) << 8 | (self.kind as u32) << 4 | (self.info.code() & 0xF) as u32
    }

    /// Returns the header of the reply, if this many words were done.
    #[must_use]
    #[inline]
    pub const fn answered(self, words: u8, info: Info) -> Header {
        Header { words, info, ..self }
    }

    /// Words of data behind this header in a reply.
    #[must_use]
    #[inline]
    pub fn reply_data(&self) -> usize {
        let told = usize::from(self.words);
        match (self.kind, self.info) {
            (_, Info::BadHeader) => 0,
            (Kind::RmwBits | Kind::RmwSum, Info::Done) => 1,
            // A device that failed before it had read the word tells none.
            (Kind::RmwBits | Kind::RmwSum, _) => told.min(1),
            (kind, _) => kind.reply_words(told) - 1,
        }
    }
}

/// Returns the reply to a header that a device cannot read: the same word with no words done, and the code that says
/// so.
#[must_use]
pub const fn bad_header(word: u32) -> u32 {
    word & !0xFF0F | Info::BadHeader.code() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with words laid out by hand after the table above.
    #[test]
    fn headers_are_these_words() {
        let header = Header { id: 0xABC, words: 0x12, kind: Kind::RmwSum, info: Info::Request };
        assert_eq!(header.encode(), 0x2ABC_125F);
        assert_eq!(Header::decode(0x2ABC_125F), Ok(header));
        assert_eq!(header.answered(1, Info::Done).encode(), 0x2ABC_0150);
        assert_eq!(bad_header(0x2ABC_12EF), 0x2ABC_00E1);
    }

    #[test]
    fn another_version_or_type_is_named_by_its_word() {
        for header in [0x1ABC_120F, 0x2ABC_128F, 0x2ABC_12FF] {
            assert_eq!(Header::decode(header), Err(Error::TransactionHeader { header }));
        }
    }

    #[test]
    fn every_word_decodes_to_itself_or_not_at_all() {
        let mut random = hodo_sim::Random::new(2);
        for _ in 0..100_000 {
            let word = random.bits() as u32;
            for word in [word, word & 0x0FFF_FF7F | 0x2000_0000] {
                if let Ok(header) = Header::decode(word) {
                    assert_eq!(header.encode(), word);
                }
            }
        }
    }

    /// Reads data behind errors: firmware tells in the header how many words it had read when the bus failed; a header
    /// that it could not read has nothing behind it.
    #[test]
    fn an_error_tells_how_much_data_is_there() {
        let data = |kind, words, info| Header { id: 0, words, kind, info }.reply_data();
        assert_eq!(data(Kind::Read, 200, Info::Done), 200);
        assert_eq!(data(Kind::Read, 3, Info::ReadError), 3);
        assert_eq!(data(Kind::Write, 3, Info::WriteTimeout), 0);
        assert_eq!(data(Kind::RmwBits, 1, Info::Done), 1);
        assert_eq!(data(Kind::RmwBits, 0, Info::ReadTimeout), 0);
        assert_eq!(data(Kind::FifoRead, 9, Info::BadHeader), 0);
    }
}
