use super::{Command, Data, Event};
use crate::Error;
use crate::wire::operation::Mode;
use crate::wire::transaction::Kind;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// The operations that were asked for and have not ended, in order, numbered without gaps.
#[derive(Debug, Default)]
pub(super) struct Queue {
    asked: VecDeque<QueuedOperation>,
    /// The number of the first.
    first: u64,
}

/// One operation.
#[derive(Debug)]
pub(super) struct QueuedOperation {
    pub(super) command: Command,
    /// Words that have been put into packets.
    pub(super) cut: u32,
    /// Whether all of it has been put into packets, or the rest never will be.
    pub(super) whole: bool,
    /// Whether a packet ends behind it.
    pub(super) ends: bool,
    /// Transactions of it that have not been answered.
    pub(super) open: u32,
    /// Places of the words that a FIFO read did not take out.
    pub(super) gaps: Vec<Range<u32>>,
    word: u32,
    failure: Option<(Error, u32)>,
}

impl Queue {
    pub(super) fn push(&mut self, mut command: Command) {
        if let Command::ReadBlock { into, words, .. } = &mut command {
            into.resize(*words as usize, 0);
        }
        self.asked.push_back(QueuedOperation {
            command,
            cut: 0,
            whole: false,
            ends: false,
            open: 0,
            gaps: Vec::new(),
            word: 0,
            failure: None,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Returns the operation with this number.
    #[inline]
    pub(super) fn at(&mut self, number: u64) -> Option<&mut QueuedOperation> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.asked.get_mut(index)
    }

    /// Returns the tag of the operation with this number.
    pub(super) fn tag(&mut self, number: u64) -> Option<u64> {
        self.at(number).map(|asked| asked.command.tag())
    }

    pub(super) fn last(&mut self) -> Option<&mut QueuedOperation> {
        self.asked.back_mut()
    }

    /// Returns the number of the first operation that has not ended.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Tells whether an operation has not ended.
    pub(super) fn has_open(&self) -> bool {
        self.asked.back().is_some_and(|asked| !asked.has_ended())
    }

    /// Fails what has not ended.
    pub(super) fn fail_all(&mut self, error: Error) {
        for asked in &mut self.asked {
            let address = asked.address();
            asked.open = 0;
            asked.fail(error, address);
        }
    }

    pub(super) fn has_event(&self) -> bool {
        self.asked.front().is_some_and(QueuedOperation::has_ended)
    }

    /// Returns the event of the first operation, once it has ended.
    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Event> {
        if !self.has_event() {
            return None;
        }
        self.first += 1;
        let QueuedOperation { command, word, failure, gaps, cut, .. } = self.asked.pop_front()?;
        let tag = command.tag();
        Some(match (failure, command) {
            (Some((error, address)), command) => {
                let taken = match command {
                    Command::ReadBlock { mode: Mode::Fifo, into, .. } => without(into, cut, gaps),
                    _ => Vec::new(),
                };
                Event::Failed { tag, address, error, taken }
            }
            (None, Command::ReadBlock { into, .. }) => Event::Done { tag, data: Data::Block(into) },
            (None, Command::Write { .. } | Command::WriteBlock { .. }) => Event::Done { tag, data: Data::Written },
            (None, _) => Event::Done { tag, data: Data::Word(word) },
        })
    }
}

/// Returns the first words of a read that were in packets, without those that did not come.
fn without(mut words: Vec<u32>, cut: u32, mut gaps: Vec<Range<u32>>) -> Vec<u32> {
    words.truncate(cut as usize);
    gaps.sort_by_key(|gap| gap.start);
    for gap in gaps.into_iter().rev() {
        words.drain(gap.start as usize..gap.end as usize);
    }
    words
}

impl QueuedOperation {
    const fn has_ended(&self) -> bool {
        self.whole && self.open == 0
    }

    /// Returns the first, or only, address.
    pub(super) const fn address(&self) -> u32 {
        match self.command {
            Command::Read { address, .. }
            | Command::Write { address, .. }
            | Command::ReadBlock { address, .. }
            | Command::WriteBlock { address, .. }
            | Command::RmwBits { address, .. }
            | Command::RmwSum { address, .. } => address,
            Command::Flush => 0,
        }
    }

    /// Returns the kind of its transactions.
    pub(super) const fn kind(&self) -> Kind {
        match self.command {
            Command::Read { .. } | Command::Flush => Kind::Read,
            Command::Write { .. } => Kind::Write,
            Command::ReadBlock { mode, .. } => match mode {
                Mode::Incrementing => Kind::Read,
                Mode::Fifo => Kind::FifoRead,
                Mode::Configuration => Kind::ConfigurationRead,
            },
            Command::WriteBlock { mode, .. } => match mode {
                Mode::Incrementing => Kind::Write,
                Mode::Fifo => Kind::FifoWrite,
                Mode::Configuration => Kind::ConfigurationWrite,
            },
            Command::RmwBits { .. } => Kind::RmwBits,
            Command::RmwSum { .. } => Kind::RmwSum,
        }
    }

    /// Words of data, all together.
    pub(super) fn words(&self) -> u32 {
        match &self.command {
            Command::ReadBlock { words, .. } => *words,
            Command::WriteBlock { data, .. } => u32::try_from(data.len()).unwrap_or(u32::MAX),
            _ => 1,
        }
    }

    /// Puts the words that a transaction has read, from this place of the operation on.
    #[inline]
    pub(super) fn put(&mut self, offset: u32, words: crate::wire::Words<'_>) {
        match &mut self.command {
            Command::ReadBlock { into, .. } => {
                if let Some(places) = into.get_mut(offset as usize..) {
                    words.read(places);
                }
            }
            _ => self.word = words.at(0).unwrap_or(0),
        }
    }

    /// Fails it, where it has not failed before. No more of it is sent.
    pub(super) fn fail(&mut self, error: Error, address: u32) {
        self.failure.get_or_insert((error, address));
        self.whole = true;
    }
}

impl Command {
    /// Returns the application's tag.
    const fn tag(&self) -> u64 {
        match *self {
            Command::Read { tag, .. }
            | Command::Write { tag, .. }
            | Command::ReadBlock { tag, .. }
            | Command::WriteBlock { tag, .. }
            | Command::RmwBits { tag, .. }
            | Command::RmwSum { tag, .. } => tag,
            Command::Flush => 0,
        }
    }
}
