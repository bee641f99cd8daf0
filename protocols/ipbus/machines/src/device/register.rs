use alloc::vec::Vec;
use core::ops::RangeInclusive;
use thiserror::Error;

/// A register, or a block of them, that is more than plain memory.
///
/// Every address that no register covers is memory that can be read and written.
///
/// ```
/// use hodo_ipbus::device::{Register, Registers};
/// let registers = Registers::new([
///     Register::word(0x0).holding(0xCAFE_0001).read_only(),
///     Register::word(0x1).writable(0x0000_00FF),
///     Register::fifo(0x100, 1024),
///     Register::word(0x200).counting(),
/// ]);
/// assert!(registers.is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// The address of the first word.
    pub first: u32,
    /// Words at successive addresses, from the first on.
    pub words: u32,
    /// The bits that can be read; the others are read as 0.
    pub readable: u32,
    /// The bits that can be written; the others stay.
    pub writable: u32,
    /// The word after a reset, at each of the addresses.
    pub value: u32,
    /// The behaviour beside keeping what was written.
    pub behaviour: Behaviour,
}

/// The behaviour of a register beside keeping what was written.
///
/// The later ones are stronger, where several nodes of a table share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// Nothing.
    Keep,
    /// Each read leaves a word that is one more.
    Count,
    /// Writing puts a word in, reading takes the oldest out.
    Fifo {
        /// The most words in it.
        depth: u32,
    },
    /// The bus fails there.
    Fail(Failure),
}

/// How the bus fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// It answers an error: nobody is at that address, or who is there refuses.
    Error,
    /// It does not answer in time.
    Timeout,
}

impl Register {
    /// Creates one word that can be read and written, and is 0 after a reset.
    #[must_use]
    pub const fn word(address: u32) -> Register {
        Register::block(address, 1)
    }

    /// Creates `words` words at successive addresses.
    #[must_use]
    pub const fn block(address: u32, words: u32) -> Register {
        let behaviour = Behaviour::Keep;
        Register { first: address, words, readable: u32::MAX, writable: u32::MAX, value: 0, behaviour }
    }

    /// Creates a FIFO of `depth` words at one address: a write to a full one and a read of an empty one are bus errors.
    #[must_use]
    pub const fn fifo(address: u32, depth: u32) -> Register {
        Register { behaviour: Behaviour::Fifo { depth }, ..Register::word(address) }
    }

    /// Makes each read answer the word and leave one more than it.
    #[must_use]
    pub const fn counting(self) -> Register {
        Register { behaviour: Behaviour::Count, ..self }
    }

    /// Makes the bus fail there, whatever is done.
    #[must_use]
    pub const fn failing(self, failure: Failure) -> Register {
        Register { behaviour: Behaviour::Fail(failure), ..self }
    }

    /// Holds this word, each of a block, after a reset.
    #[must_use]
    pub const fn holding(self, value: u32) -> Register {
        Register { value, ..self }
    }

    /// Makes only these bits readable, the others are read as 0; without any, a read is a bus error.
    #[must_use]
    pub const fn readable(self, mask: u32) -> Register {
        Register { readable: mask, ..self }
    }

    /// Makes only these bits writable, the others stay; without any, a write is a bus error.
    #[must_use]
    pub const fn writable(self, mask: u32) -> Register {
        Register { writable: mask, ..self }
    }

    /// Makes a write a bus error.
    #[must_use]
    pub const fn read_only(self) -> Register {
        self.writable(0)
    }

    /// Makes a read a bus error.
    #[must_use]
    pub const fn write_only(self) -> Register {
        self.readable(0)
    }

    /// Returns the last address of a register that has a word and ends within the space.
    pub(super) const fn last(&self) -> u32 {
        self.first + (self.words - 1)
    }
}

/// The registers of a device, none of which overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registers(Vec<Register>);

impl Registers {
    /// Puts registers at their places.
    ///
    /// # Errors
    /// [`RegisterError`] if two registers overlap, or one leaves the space of addresses.
    pub fn new(registers: impl IntoIterator<Item = Register>) -> Result<Registers, RegisterError> {
        let mut registers: Vec<Register> = registers.into_iter().collect();
        for register in &registers {
            let (address, words) = (register.first, register.words);
            if words == 0 || address.checked_add(words - 1).is_none() {
                return Err(RegisterError::OutOfSpace { address, words });
            }
        }
        registers.sort_by_key(|register| register.first);
        match registers.windows(2).find(|pair| pair[0].last() >= pair[1].first) {
            Some(pair) => Err(RegisterError::Overlap { first: pair[0].first, second: pair[1].first }),
            None => Ok(Registers(registers)),
        }
    }

    /// Returns these registers, but with a bus that fails at these addresses.
    #[must_use]
    pub fn failing_at(self, addresses: RangeInclusive<u32>, failure: Failure) -> Registers {
        let (start, end) = addresses.into_inner();
        let mut all = Vec::with_capacity(self.0.len() + 3);
        for register in self.0 {
            let (first, last) = (register.first, register.last());
            if first < start {
                all.push(Register { words: last.min(start - 1) - first + 1, ..register.clone() });
            }
            if last > end {
                let first = first.max(end + 1);
                all.push(Register { first, words: last - first + 1, ..register });
            }
        }
        all.extend(failing(start, end, failure));
        all.sort_by_key(|register| register.first);
        Registers(all)
    }

    /// Returns these registers, and a bus that fails at all other addresses.
    #[must_use]
    pub fn alone(self, failure: Failure) -> Registers {
        let mut all = Vec::with_capacity(2 * self.0.len() + 2);
        let mut free = Some(0);
        for register in self.0 {
            if let Some(first) = free.filter(|first| *first < register.first) {
                all.extend(failing(first, register.first - 1, failure));
            }
            free = register.last().checked_add(1);
            all.push(register);
        }
        all.extend(free.into_iter().flat_map(|first| failing(first, u32::MAX, failure)));
        Registers(all)
    }

    /// Returns them in the order of their addresses.
    #[must_use]
    pub fn into_sorted(self) -> Vec<Register> {
        self.0
    }
}

/// Creates a bus that fails from the first to the last address: two registers, because the whole space has more words
/// than one.
fn failing(first: u32, last: u32, failure: Failure) -> impl Iterator<Item = Register> {
    let most = last.saturating_sub(first);
    let block = (most > 0).then(|| Register::block(first, most));
    block.into_iter().chain((first <= last).then(|| Register::word(last))).map(move |one| one.failing(failure))
}

/// Why registers do not make a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A block without a word, or one that goes on behind the last address.
    #[error("{words} words at 0x{address:08X} reach beyond the 32-bit address space")]
    OutOfSpace {
        /// Where it begins.
        address: u32,
        /// Words of the register.
        words: u32,
    },
    /// Two cover one address.
    #[error("the registers at 0x{first:08X} and 0x{second:08X} overlap")]
    Overlap {
        /// Where the one begins.
        first: u32,
        /// Where the other begins.
        second: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn registers_that_overlap_or_leave_the_space_are_refused() {
        let refused = |registers: &[Register]| Registers::new(registers.to_vec()).expect_err("it is wrong").to_string();
        let overlap = refused(&[Register::word(0x12), Register::block(0x10, 3)]);
        assert_eq!(overlap, "the registers at 0x00000010 and 0x00000012 overlap");
        assert!(refused(&[Register::block(0xFFFF_FFFF, 2)]).contains("2 words at 0xFFFFFFFF"));
        assert!(refused(&[Register::block(7, 0)]).contains("0 words"));
        let whole = [Register::block(0, u32::MAX), Register::word(u32::MAX)];
        assert!(Registers::new(whole).is_ok());
    }

    #[test]
    fn what_is_left_can_fail() {
        let alone = |registers: &[Register]| {
            let all = Registers::new(registers.to_vec()).expect("they are apart").alone(Failure::Timeout).into_sorted();
            all.into_iter().map(|one| (one.first, one.last(), one.behaviour == Behaviour::Keep)).collect::<Vec<_>>()
        };
        let end = u32::MAX;
        assert_eq!(alone(&[]), [(0, end - 1, false), (end, end, false)]);
        let two = [Register::block(1, 2), Register::word(3)];
        assert_eq!(alone(&two), [(0, 0, false), (1, 2, true), (3, 3, true), (4, end - 1, false), (end, end, false)]);
        let last = alone(&[Register::word(end)]);
        assert_eq!(last, [(0, end - 2, false), (end - 1, end - 1, false), (end, end, true)]);
    }

    #[test]
    fn a_part_of_the_bus_can_fail_whatever_was_there() {
        let left = |addresses: RangeInclusive<u32>| {
            let registers = [Register::block(2, 4), Register::fifo(7, 9), Register::block(10, 2)];
            let all = Registers::new(registers).expect("they are apart").failing_at(addresses, Failure::Error);
            let all = all.into_sorted();
            assert!(Registers::new(all.clone()).is_ok(), "they do not overlap");
            let failing = |one: &Register| one.behaviour == Behaviour::Fail(Failure::Error);
            let words = all.iter().filter(|one| failing(one)).map(|one| u64::from(one.words)).sum::<u64>();
            let others = all.into_iter().filter(|one| !failing(one)).map(|one| (one.first, one.last()));
            (words, others.collect::<Vec<_>>())
        };
        assert_eq!(left(4..=10), (7, alloc::vec![(2, 3), (11, 11)]));
        assert_eq!(left(3..=3), (1, alloc::vec![(2, 2), (4, 5), (7, 7), (10, 11)]));
        assert_eq!(left(0..=u32::MAX), (1 << 32, alloc::vec![]));
        assert_eq!(left(100..=u32::MAX).1.len(), 3);
        assert_eq!(left(0..=0).1.len(), 3);
    }
}
