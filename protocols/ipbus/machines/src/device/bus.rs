use super::memory::Memory;
use super::register::{Behaviour, Failure, Register, Registers};
use crate::wire::operation::{Mode, Operation};
use crate::wire::transaction::Info;
use crate::wire::{Order, Version, WORD, Words};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The bus of a device: registers with behaviour, memory everywhere else, and the configuration space.
#[derive(Debug)]
pub(crate) struct Bus {
    memory: Memory,
    slaves: Vec<Slave>,
    configuration: Vec<u32>,
    configuration_at_reset: Vec<u32>,
}

/// A register, and what is in it where it is a FIFO.
#[derive(Debug)]
struct Slave {
    register: Register,
    queue: VecDeque<u32>,
}

/// The outcome of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Words that were done.
    pub(crate) words: usize,
    /// Why it was not all of them.
    pub(crate) failed: Option<(Access, Failure)>,
}

/// Which way a word went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Carried {
    fn all(words: usize) -> Self {
        Carried { words, failed: None }
    }

    fn only(words: usize, access: Access, failure: Failure) -> Self {
        Carried { words, failed: Some((access, failure)) }
    }

    /// Returns the outcome as IPbus 2.0 says it.
    pub(crate) const fn info(&self) -> Info {
        match self.failed {
            None => Info::Done,
            Some((Access::Read, Failure::Error)) => Info::ReadError,
            Some((Access::Write, Failure::Error)) => Info::WriteError,
            Some((Access::Read, Failure::Timeout)) => Info::ReadTimeout,
            Some((Access::Write, Failure::Timeout)) => Info::WriteTimeout,
        }
    }
}

impl Bus {
    /// Creates a bus as after a reset.
    pub(crate) fn new(registers: Registers, configuration: Vec<u32>, memory_bytes_max: usize) -> Self {
        let slaves = registers.into_sorted().into_iter().map(|register| Slave { register, queue: VecDeque::new() });
        let mut bus = Bus {
            memory: Memory::new(memory_bytes_max),
            slaves: slaves.collect(),
            configuration: configuration.clone(),
            configuration_at_reset: configuration,
        };
        bus.reset();
        bus
    }

    /// Forgets all that was written.
    pub(crate) fn reset(&mut self) {
        self.memory.clear();
        self.configuration.copy_from_slice(&self.configuration_at_reset);
        for Slave { register, queue } in &mut self.slaves {
            queue.clear();
            if register.value != 0 {
                // Where the memory ends, the rest stays 0.
                (register.first..=register.last()).all(|address| self.memory.set(address, register.value));
            }
        }
    }

    /// Returns the word at an address, which stays as it is; the oldest of a FIFO.
    pub(crate) fn peek(&self, address: u32) -> u32 {
        match self.span(address, 1).0.map(|index| &self.slaves[index]) {
            Some(Slave { register: Register { behaviour: Behaviour::Fifo { .. }, .. }, queue }) => {
                queue.front().copied().unwrap_or(0)
            }
            _ => self.memory.word(address),
        }
    }

    /// Changes a word from inside, whatever a host may do there; puts it into a FIFO that has room.
    pub(crate) fn poke(&mut self, address: u32, word: u32) {
        match self.span(address, 1).0.map(|index| &mut self.slaves[index]) {
            Some(Slave { register: Register { behaviour: Behaviour::Fifo { depth }, .. }, queue }) => {
                if queue.len() < *depth as usize && self.memory.reserve(WORD) {
                    queue.push_back(word);
                }
            }
            _ => {
                self.memory.set(address, word);
            }
        }
    }

    /// Iterates over the words in the FIFO at an address, oldest first.
    pub(crate) fn fifo(&self, address: u32) -> impl Iterator<Item = u32> + '_ {
        self.span(address, 1).0.into_iter().flat_map(|index| self.slaves[index].queue.iter().copied())
    }

    /// Carries an operation out, and appends what it reads. A read-modify-write answers the word that IPbus of this
    /// version answers.
    #[inline]
    pub(crate) fn carry_out(
        &mut self,
        operation: &Operation<Words<'_>>,
        version: Version,
        order: Order,
        out: &mut Vec<u8>,
    ) -> Carried {
        match *operation {
            Operation::Read { mode, address, words } => self.read(mode, address, usize::from(words), order, out),
            Operation::Write { mode, address, data } => self.write(mode, address, data),
            Operation::RmwBits { address, and, or } => {
                self.modify(address, version, order, out, |word| word & and | or)
            }
            Operation::RmwSum { address, addend } => {
                self.modify(address, version, order, out, |word| word.wrapping_add(addend))
            }
        }
    }

    fn read(&mut self, mode: Mode, address: u32, words: usize, order: Order, out: &mut Vec<u8>) -> Carried {
        match mode {
            Mode::Incrementing => self.read_block(address, words, order, out),
            Mode::Fifo => self.each(words, Access::Read, |bus, _| {
                let word = bus.read_word(address)?;
                order.push(word, out);
                Ok(())
            }),
            Mode::Configuration => self.each(words, Access::Read, |bus, index| {
                let word = bus.configuration.get((address as usize).saturating_add(index)).ok_or(Failure::Error)?;
                order.push(*word, out);
                Ok(())
            }),
        }
    }

    fn write(&mut self, mode: Mode, address: u32, data: Words<'_>) -> Carried {
        let mut words = data.iter();
        let mut next = || words.next().expect("as many words as the operation says");
        match mode {
            Mode::Incrementing => self.write_block(address, data),
            Mode::Fifo => self.each(data.len(), Access::Write, |bus, _| bus.write_word(address, next())),
            Mode::Configuration => self.each(data.len(), Access::Write, |bus, index| {
                let place =
                    bus.configuration.get_mut((address as usize).saturating_add(index)).ok_or(Failure::Error)?;
                *place = next();
                Ok(())
            }),
        }
    }

    /// Does something for each word up to the first that fails.
    fn each(
        &mut self,
        words: usize,
        access: Access,
        mut one: impl FnMut(&mut Self, usize) -> Result<(), Failure>,
    ) -> Carried {
        for index in 0..words {
            if let Err(failure) = one(self, index) {
                return Carried::only(index, access, failure);
            }
        }
        Carried::all(words)
    }

    /// Reads a block in runs that are all memory, or all of one register.
    fn read_block(&mut self, address: u32, words: usize, order: Order, out: &mut Vec<u8>) -> Carried {
        let mut done = 0;
        while done < words {
            let at = address.wrapping_add(done as u32);
            let (slave, here) = self.span(at, words - done);
            if slave.is_none_or(|index| self.slaves[index].is_memory(Access::Read)) {
                self.memory.read(at, here, order, out);
            } else {
                let carried = self.each(here, Access::Read, |bus, index| {
                    order.push(bus.read_word(at + index as u32)?, out);
                    Ok(())
                });
                if carried.failed.is_some() {
                    return Carried { words: done + carried.words, ..carried };
                }
            }
            done += here;
        }
        Carried::all(words)
    }

    fn write_block(&mut self, address: u32, data: Words<'_>) -> Carried {
        let mut done = 0;
        while done < data.len() {
            let at = address.wrapping_add(done as u32);
            let (slave, here) = self.span(at, data.len() - done);
            let run = Words::new(&data.bytes()[done * WORD..(done + here) * WORD], data.order());
            let carried = if slave.is_none_or(|index| self.slaves[index].is_memory(Access::Write)) {
                match self.memory.write(at, run) {
                    written if written == here => Carried::all(here),
                    written => Carried::only(written, Access::Write, Failure::Error),
                }
            } else {
                let mut words = run.iter();
                self.each(here, Access::Write, |bus, index| {
                    let word = words.next().expect("the run has as many words");
                    bus.write_word(at + index as u32, word)
                })
            };
            done += carried.words;
            if carried.failed.is_some() {
                return Carried { words: done, ..carried };
            }
        }
        Carried::all(done)
    }

    fn modify(
        &mut self,
        address: u32,
        version: Version,
        order: Order,
        out: &mut Vec<u8>,
        change: impl Fn(u32) -> u32,
    ) -> Carried {
        let before = match self.read_word(address) {
            Ok(word) => word,
            Err(failure) => return Carried::only(0, Access::Read, failure),
        };
        let after = change(before);
        let written = self.write_word(address, after);
        order.push(if version == Version::V1_3 { after } else { before }, out);
        match written {
            Ok(()) => Carried::all(1),
            Err(failure) => Carried::only(1, Access::Write, failure),
        }
    }

    fn read_word(&mut self, address: u32) -> Result<u32, Failure> {
        let Some(index) = self.span(address, 1).0 else { return Ok(self.memory.word(address)) };
        let Slave { register, queue } = &mut self.slaves[index];
        if register.readable == 0 {
            return Err(Failure::Error);
        }
        let word = match register.behaviour {
            Behaviour::Fail(failure) => return Err(failure),
            Behaviour::Fifo { .. } => {
                let word = queue.pop_front().ok_or(Failure::Error)?;
                self.memory.release(WORD);
                word
            }
            Behaviour::Keep => self.memory.word(address),
            Behaviour::Count => {
                let word = self.memory.word(address);
                self.memory.set(address, word.wrapping_add(1));
                word
            }
        };
        Ok(word & register.readable)
    }

    fn write_word(&mut self, address: u32, word: u32) -> Result<(), Failure> {
        let mut word = word;
        if let Some(index) = self.span(address, 1).0 {
            let Slave { register, queue } = &mut self.slaves[index];
            if register.writable == 0 {
                return Err(Failure::Error);
            }
            match register.behaviour {
                Behaviour::Fail(failure) => return Err(failure),
                Behaviour::Fifo { depth } => {
                    if queue.len() >= depth as usize || !self.memory.reserve(WORD) {
                        return Err(Failure::Error);
                    }
                    queue.push_back(word & register.writable);
                    return Ok(());
                }
                Behaviour::Keep | Behaviour::Count => {
                    word = self.memory.word(address) & !register.writable | word & register.writable;
                }
            }
        }
        if self.memory.set(address, word) { Ok(()) } else { Err(Failure::Error) }
    }

    /// Returns the register at an address, if any, and how many of `words` words from there on are alike.
    #[inline]
    fn span(&self, address: u32, words: usize) -> (Option<usize>, usize) {
        let next = self.slaves.partition_point(|slave| slave.register.last() < address);
        let (index, last) = match self.slaves.get(next).map(|slave| &slave.register) {
            Some(register) if register.first <= address => (Some(next), register.last()),
            Some(register) => (None, register.first - 1),
            None => (None, u32::MAX),
        };
        (index, words.min(((last - address) as usize).saturating_add(1)))
    }
}

impl Slave {
    /// Tells whether words can be read, or written, as those of memory are.
    #[inline]
    fn is_memory(&self, access: Access) -> bool {
        let mask = match access {
            Access::Read => self.register.readable,
            Access::Write => self.register.writable,
        };
        self.register.behaviour == Behaviour::Keep && mask == u32::MAX
    }
}

#[cfg(test)]
mod tests;
