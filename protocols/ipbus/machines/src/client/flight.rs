use super::ClientConfig;
use super::queue::Queue;
use crate::Error;
use crate::window::Answer;
use crate::wire::packet::{self, Packet};
use crate::wire::transaction::{self, Header, Info, Kind};
use crate::wire::{Version, Words, legacy};
use alloc::collections::VecDeque;

/// The packets in flight, numbered without gaps, and the transactions in each.
#[derive(Debug)]
pub(super) struct Flight {
    version: Version,
    /// Whether a reply names its packet: one that does not answer it is wrong, and not just another's.
    named: bool,
    /// Whether packets have ids; where they have none, nor have their replies.
    numbered: bool,
    packets: VecDeque<Sent>,
    /// The key of the first packet.
    first: u64,
    transactions: VecDeque<Transaction>,
    /// The number of the first transaction.
    first_transaction: u64,
    /// The id of the transaction with the number 0.
    first_id: u64,
    /// Transactions behind those of the packets: they are in no finished packet yet.
    unsent: usize,
}

#[derive(Debug)]
struct Sent {
    transactions: usize,
    answered: bool,
    /// The error in a reply that came.
    wrong: Option<Error>,
}

/// A part of an operation that a packet carries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transaction {
    /// The operation's number.
    pub(super) asked: u64,
    pub(super) address: u32,
    /// Words of the operation before this part.
    pub(super) offset: u32,
    pub(super) words: u16,
    pub(super) kind: Kind,
}

/// One transaction of a reply, of either version.
struct Answered<'a> {
    id: u16,
    /// The kind; `None` if the transaction only says the byte order.
    kind: Option<Kind>,
    /// The header as it came.
    header: u32,
    /// Words before the one that failed, where one did.
    done: u16,
    info: Info,
    data: Words<'a>,
}

impl Flight {
    pub(super) const fn new(config: &ClientConfig, named: bool, numbered: bool) -> Self {
        Flight {
            version: config.version,
            first_id: match config.seed {
                Some(seed) => seed % transaction::IDS as u64,
                None => 0,
            },
            named,
            numbered,
            packets: VecDeque::new(),
            first: 0,
            transactions: VecDeque::new(),
            first_transaction: 0,
            unsent: 0,
        }
    }

    /// Notes what is to be expected of replies: whether they name their packets, and have ids.
    #[inline]
    pub(super) const fn expect(&mut self, named: bool, numbered: bool) {
        (self.named, self.numbered) = (named, numbered);
    }

    /// Tells whether the packet that was finished last only reads registers and memory, so that it may be done twice.
    pub(super) fn only_reads(&self) -> bool {
        let transactions = self.packets.back().map_or(0, |sent| sent.transactions);
        let last = self.transactions.range(self.transactions.len() - transactions..);
        last.into_iter().all(|part| matches!(part.kind, Kind::Read | Kind::ConfigurationRead))
    }

    /// Adds a transaction to the packet that is being put together; answers its id.
    #[inline]
    pub(super) fn add(&mut self, transaction: Transaction) -> u16 {
        self.transactions.push_back(transaction);
        self.unsent += 1;
        self.id(self.first_transaction + self.transactions.len() as u64 - 1)
    }

    /// Returns the tags of the operations that begin in the packet that is being put together.
    pub(super) fn begun<'a>(&'a self, queue: &'a mut Queue) -> impl Iterator<Item = u64> + 'a {
        let unsent = self.transactions.range(self.transactions.len() - self.unsent..);
        unsent.filter(|transaction| transaction.offset == 0).filter_map(|transaction| queue.tag(transaction.asked))
    }

    /// Finishes the packet that was put together, and returns its key.
    #[inline]
    pub(super) fn send(&mut self) -> u64 {
        let key = self.first + self.packets.len() as u64;
        let transactions = core::mem::take(&mut self.unsent);
        self.packets.push_back(Sent { transactions, answered: false, wrong: None });
        key
    }

    /// Drops the packet that was being put together.
    pub(super) fn forget_unsent(&mut self, error: Error, queue: &mut Queue) {
        let left = self.transactions.len() - core::mem::take(&mut self.unsent);
        for transaction in self.transactions.drain(left..) {
            transaction.fail(error, transaction.address, queue);
        }
    }

    /// Takes the reply of a packet; answers whether it is one.
    #[inline]
    pub(super) fn take(&mut self, Answer { key, first, packet, .. }: Answer<'_>, queue: &mut Queue) -> bool {
        let Some((index, start)) = self.place(key) else { return true };
        let outcome = match self.version {
            Version::V2_0 => Packet::decode(packet).and_then(|packet| {
                self.check(packet.header)?;
                let told = packet.replies().map(|reply| reply.map(Answered::from));
                let mut first = first.map(|first| transaction::Header::decode(packet.order.u32(first)));
                let told = told.map(|told| {
                    let first = first.take().transpose()?;
                    told.map(|told| Answered { id: first.map_or(told.id, |first| first.id), ..told })
                });
                self.settle(index, start, told, queue)
            }),
            Version::V1_3 => legacy::Packet::decode(packet).and_then(|packet| {
                let told = packet.replies().map(|reply| reply.map(Answered::from));
                let told = told.filter(|told| told.as_ref().map_or(true, |told| told.kind.is_some()));
                self.settle(index, start, told, queue)
            }),
        };
        self.packets[index].wrong = outcome.err().filter(|_| self.named);
        let taken = outcome.is_ok();
        if taken {
            self.answered(index);
        }
        taken
    }

    /// Checks the header of a reply: a window has found the packet by its id; other replies have the id that all their
    /// requests have.
    fn check(&self, came: packet::Header) -> Result<(), Error> {
        let sent = packet::Header { id: 0, kind: packet::Kind::Control };
        if self.numbered || came == sent {
            return Ok(());
        }
        Err(Error::WrongPacket { sent: sent.encode(), came: came.encode() })
    }

    /// Fails what a packet carries, for what was wrong with its reply, or else for this reason.
    pub(super) fn fail(&mut self, key: u64, error: Error, queue: &mut Queue) -> bool {
        if let Some((index, start)) = self.place(key) {
            let Sent { transactions, wrong, .. } = self.packets[index];
            let error = wrong.unwrap_or(error);
            for transaction in self.transactions.range(start..start + transactions) {
                transaction.fail(error, transaction.address, queue);
            }
            self.answered(index);
        }
        true
    }

    /// Fails every packet in flight.
    pub(super) fn fail_all(&mut self, error: Error, queue: &mut Queue) {
        for key in self.first..self.first + self.packets.len() as u64 {
            self.fail(key, error, queue);
        }
    }

    /// Returns the places of a packet in flight and of its transactions.
    #[inline]
    fn place(&self, key: u64) -> Option<(usize, usize)> {
        let index = usize::try_from(key.checked_sub(self.first)?).ok()?;
        self.packets.get(index).filter(|sent| !sent.answered)?;
        let start = self.packets.range(..index).map(|sent| sent.transactions).sum();
        Some((index, start))
    }

    fn answered(&mut self, index: usize) {
        self.packets[index].answered = true;
        while let Some(Sent { transactions, answered: true, .. }) = self.packets.front() {
            self.first_transaction += *transactions as u64;
            self.transactions.drain(..*transactions);
            self.packets.pop_front();
            self.first += 1;
        }
    }

    #[inline]
    fn id(&self, number: u64) -> u16 {
        let ids = match self.version {
            Version::V2_0 => transaction::IDS,
            Version::V1_3 => legacy::IDS,
        };
        ((self.first_id + number) % u64::from(ids)) as u16
    }

    /// Gives every transaction of a packet what it was told. An error: the reply is another packet's.
    #[inline]
    fn settle<'a>(
        &self,
        index: usize,
        start: usize,
        mut told: impl Iterator<Item = Result<Answered<'a>, Error>>,
        queue: &mut Queue,
    ) -> Result<(), Error> {
        let end = start + self.packets[index].transactions;
        let first = self.first_transaction + start as u64;
        // What is said of the transactions from here on, where nothing more can be read.
        let mut rest = None;
        for (number, transaction) in (first..).zip(self.transactions.range(start..end)) {
            let id = self.id(number);
            let outcome = match told.next() {
                Some(Ok(told)) if told.id == id && told.kind == Some(transaction.kind) => {
                    transaction.settle(id, &told, self.version, queue)
                }
                Some(Ok(told)) => {
                    Err(Error::WrongTransaction { sent: transaction.header(id, self.version), came: told.header })
                }
                Some(Err(error)) => Err(rest.unwrap_or(error)),
                None => Err(rest.unwrap_or(Error::Truncated { need: transaction.reply_bytes(), have: 0 })),
            };
            match outcome {
                Ok(Info::Done) => {}
                // A device leaves out what stands behind an error.
                Ok(_) => rest = Some(Error::LeftOut),
                // Nothing of it is ours, and nobody was told anything.
                Err(error) if number == first => return Err(error),
                Err(error) => {
                    transaction.fail(error, transaction.address, queue);
                    rest = Some(error);
                }
            }
        }
        Ok(())
    }
}

impl Transaction {
    /// Puts what was read into its place; answers how it ended.
    #[inline]
    fn settle(&self, id: u16, told: &Answered<'_>, version: Version, queue: &mut Queue) -> Result<Info, Error> {
        if told.info != Info::Done {
            let address = match self.kind {
                Kind::FifoRead | Kind::FifoWrite => self.address,
                _ => self.address.wrapping_add(u32::from(told.done)),
            };
            let taken = told.data.first(usize::from(told.done.min(self.words)));
            self.fail_after(Some(taken), Error::Transaction { info: told.info, done: told.done }, address, queue);
            return Ok(told.info);
        }
        if told.data.len() != self.kind.reply_words(usize::from(self.words)) - 1 {
            return Err(Error::WrongTransaction { sent: self.header(id, version), came: told.header });
        }
        if let Some(asked) = queue.at(self.asked) {
            asked.open = asked.open.saturating_sub(1);
            if !told.data.is_empty() {
                asked.put(self.offset, told.data);
            }
        }
        Ok(Info::Done)
    }

    fn fail(&self, error: Error, address: u32, queue: &mut Queue) {
        self.fail_after(None, error, address, queue);
    }

    /// Fails it, but for the words that it took out of a FIFO.
    fn fail_after(&self, taken: Option<Words<'_>>, error: Error, address: u32, queue: &mut Queue) {
        if let Some(asked) = queue.at(self.asked) {
            asked.open = asked.open.saturating_sub(1);
            if self.kind == Kind::FifoRead {
                let count = taken.map_or(0, |taken| taken.len() as u32);
                taken.into_iter().for_each(|taken| asked.put(self.offset, taken));
                asked.gaps.push(self.offset + count..self.offset + u32::from(self.words));
            }
            asked.fail(error, address);
        }
    }

    fn reply_bytes(&self) -> usize {
        self.kind.reply_words(usize::from(self.words)) * crate::wire::WORD
    }

    /// Returns the header that the transaction was sent with.
    fn header(&self, id: u16, version: Version) -> u32 {
        match version {
            Version::V2_0 => Header { id, words: self.words as u8, kind: self.kind, info: Info::Request }.encode(),
            Version::V1_3 => {
                legacy::Kind::of(self.kind).map_or(0, |kind| legacy::Header::request(id, kind, self.words).encode())
            }
        }
    }
}

impl<'a> From<crate::wire::operation::Reply<Words<'a>>> for Answered<'a> {
    #[inline]
    fn from(reply: crate::wire::operation::Reply<Words<'a>>) -> Self {
        let header = reply.header;
        // Firmware counts the word at which the bus answered an error, and not the one at which it did not answer.
        let counted = matches!(header.info, Info::ReadError | Info::WriteError);
        Answered {
            id: header.id,
            kind: Some(header.kind),
            header: header.encode(),
            done: u16::from(header.words).saturating_sub(u16::from(counted)),
            info: header.info,
            data: reply.data,
        }
    }
}

impl<'a> From<legacy::Reply<Words<'a>>> for Answered<'a> {
    fn from(reply: legacy::Reply<Words<'a>>) -> Self {
        let header = reply.header;
        let kind = header.kind.current();
        let info = match (header.info, kind) {
            (legacy::Info::Done, _) => Info::Done,
            (_, Some(Kind::Write | Kind::FifoWrite)) => Info::WriteError,
            _ => Info::ReadError,
        };
        Answered { id: header.id, kind, header: header.encode(), done: header.words, info, data: reply.data }
    }
}
