//! Broadcast codes: an ESC and a byte, which pass the packets of a network (ECSS-E-ST-50-12C Rev.1, 5.6.4 and 5.6.5).
//!
//! | bits 7 and 6 | bits 5 to 0 | meaning |
//! |---|---|---|
//! | 00 | six bits of time | a time-code |
//! | 10 | 0, and the number of an interrupt | a distributed interrupt |
//! | 10 | 1, and the number of an interrupt | its acknowledgement; without acknowledgements, interrupt 32 to 63 |
//! | 01, 11 | | reserved |
//!
//! The edition of 2008 knows time-codes alone, and reserves the other flags. On the line all of them are alike: an ESC with a byte of data
//! is no time-code by itself.
use core::fmt;

/// The bits of the time, or of an interrupt with its type.
const VALUE: u8 = 0x3F;
/// The bits of the number of an interrupt.
const NUMBER: u8 = 0x1F;
/// The flags of distributed interrupts, as they are in the byte.
const INTERRUPTS: u8 = 0b10 << 6;
/// The bit of an acknowledgement.
const ACKNOWLEDGES: u8 = 0x20;

/// Numbers of interrupts that are acknowledged.
pub const ACKNOWLEDGED_INTERRUPTS: u8 = 32;
/// Numbers of interrupts where none are acknowledged.
pub const EXTENDED_INTERRUPTS: u8 = 64;

/// A broadcast code, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Broadcast {
    /// Six bits of time.
    TimeCode(u8),
    /// A distributed interrupt, 0 to 31.
    Interrupt(u8),
    /// An acknowledgement of interrupt 0 to 31; interrupt 32 to 63 in a network without acknowledgements.
    Acknowledgement(u8),
    /// A code that no edition gives a meaning: the whole byte.
    Reserved(u8),
}

impl Broadcast {
    /// Returns the code of a byte behind an ESC.
    #[must_use]
    pub const fn of(byte: u8) -> Self {
        match (byte & !VALUE, byte & ACKNOWLEDGES) {
            (0, _) => Broadcast::TimeCode(byte),
            (INTERRUPTS, 0) => Broadcast::Interrupt(byte & NUMBER),
            (INTERRUPTS, _) => Broadcast::Acknowledgement(byte & NUMBER),
            _ => Broadcast::Reserved(byte),
        }
    }

    /// Returns the byte behind the ESC.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Broadcast::TimeCode(time) => time & VALUE,
            Broadcast::Interrupt(number) => INTERRUPTS | number & NUMBER,
            Broadcast::Acknowledgement(number) => INTERRUPTS | ACKNOWLEDGES | number & NUMBER,
            Broadcast::Reserved(byte) => byte,
        }
    }

    /// Returns the number of an interrupt in a network without acknowledgements, 0 to 63.
    #[must_use]
    pub const fn extended_interrupt(self) -> Option<u8> {
        match self {
            Broadcast::Interrupt(_) | Broadcast::Acknowledgement(_) => Some(self.byte() & VALUE),
            Broadcast::TimeCode(_) | Broadcast::Reserved(_) => None,
        }
    }
}

impl fmt::Display for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broadcast::TimeCode(time) => write!(f, "time-code {time}"),
            Broadcast::Interrupt(number) => write!(f, "interrupt {number}"),
            Broadcast::Acknowledgement(number) => write!(f, "acknowledgement of interrupt {number}"),
            Broadcast::Reserved(byte) => write!(f, "reserved code {byte:#04x}, flags {:02b}", byte >> 6),
        }
    }
}

/// Broadcast codes by their types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BroadcastCounts {
    /// Time-codes.
    pub time_codes: u64,
    /// Distributed interrupts, 0 to 31.
    pub interrupts: u64,
    /// Acknowledgements; interrupts 32 to 63 in a network without acknowledgements.
    pub acknowledgements: u64,
    /// Codes that no edition gives a meaning.
    pub reserved: u64,
}

impl BroadcastCounts {
    /// Adds `n` codes of one byte.
    pub fn count(&mut self, byte: u8, n: u64) {
        *match Broadcast::of(byte) {
            Broadcast::TimeCode(_) => &mut self.time_codes,
            Broadcast::Interrupt(_) => &mut self.interrupts,
            Broadcast::Acknowledgement(_) => &mut self.acknowledgements,
            Broadcast::Reserved(_) => &mut self.reserved,
        } += n;
    }

    /// Adds the codes of another period.
    pub fn add(&mut self, other: &BroadcastCounts) {
        self.time_codes += other.time_codes;
        self.interrupts += other.interrupts;
        self.acknowledgements += other.acknowledgements;
        self.reserved += other.reserved;
    }

    /// Returns how many codes there are of any type.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.time_codes + self.interrupts + self.acknowledgements + self.reserved
    }

    /// Returns each type with its count, for tables.
    #[must_use]
    pub fn by_type(&self) -> [(&'static str, u64); 4] {
        [
            ("time-code", self.time_codes),
            ("interrupt", self.interrupts),
            ("acknowledgement", self.acknowledgements),
            ("reserved", self.reserved),
        ]
    }
}

/// Broadcast codes that wait for a transmitter: the newest time-code, and every interrupt.
///
/// Time-codes go first, then interrupts before acknowledgements, the numbers of either in turn (as in the GR740, which has the router of the
/// GR718B: RTR.RTRCFG.IP and IS are 0 after its reset).
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingBroadcasts {
    time: Option<u8>,
    /// Interrupts and acknowledgements, one in each bit.
    interrupts: u64,
    /// The last one of either that left.
    last: u8,
    /// Codes with the flags 01 and 11.
    reserved: [Option<u8>; 2],
}

impl WaitingBroadcasts {
    /// Adds a code. A time-code or reserved code with the same flags that still waits is replaced.
    pub(crate) fn push(&mut self, byte: u8) {
        match Broadcast::of(byte) {
            Broadcast::TimeCode(_) => self.time = Some(byte),
            Broadcast::Reserved(_) => self.reserved[usize::from(byte >> 7)] = Some(byte),
            Broadcast::Interrupt(_) | Broadcast::Acknowledgement(_) => self.interrupts |= 1 << (byte & VALUE),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<u8> {
        if let Some(time) = self.time.take() {
            return Some(time);
        }
        if self.interrupts == 0 {
            return self.reserved.iter_mut().find_map(Option::take);
        }
        let first = if self.interrupts & u64::from(u32::MAX) != 0 { 0 } else { ACKNOWLEDGED_INTERRUPTS };
        let behind_last = (1..=ACKNOWLEDGED_INTERRUPTS).map(|step| first + ((self.last + step) & NUMBER));
        let value = behind_last.into_iter().find(|value| self.interrupts >> value & 1 != 0)?;
        self.interrupts &= !(1 << value);
        self.last = value & NUMBER;
        Some(INTERRUPTS | value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.time.is_none() && self.interrupts == 0 && self.reserved == [None; 2]
    }

    /// Returns whether one of these interrupts or acknowledgements waits, which are one in each bit.
    pub(crate) fn has_interrupt(&self, any_of: u64) -> bool {
        self.interrupts & any_of != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn every_byte_is_one_code_and_back() {
        for byte in 0..=255 {
            assert_eq!(Broadcast::of(byte).byte(), byte);
        }
        assert_eq!(Broadcast::of(0x3F), Broadcast::TimeCode(63));
        assert_eq!(Broadcast::of(0x83), Broadcast::Interrupt(3));
        assert_eq!(Broadcast::of(0xA3), Broadcast::Acknowledgement(3));
        assert_eq!(Broadcast::of(0xA3).extended_interrupt(), Some(35));
        assert_eq!((Broadcast::of(0x41), Broadcast::of(0xC1)), (Broadcast::Reserved(0x41), Broadcast::Reserved(0xC1)));
        let names = [0x05, 0x9F, 0xBF, 0x41].map(|byte| Broadcast::of(byte).to_string());
        assert_eq!(
            names,
            ["time-code 5", "interrupt 31", "acknowledgement of interrupt 31", "reserved code 0x41, flags 01"]
        );
    }

    #[test]
    fn counts_are_by_type() {
        let mut counts = BroadcastCounts::default();
        (0..=255).for_each(|byte| counts.count(byte, 1));
        assert_eq!(counts.by_type().map(|(_, count)| count), [64, 32, 32, 128]);
        assert_eq!(counts.all(), 256);
    }

    #[test]
    fn time_codes_go_before_interrupts_before_acknowledgements_each_number_in_turn() {
        let mut waiting = WaitingBroadcasts::default();
        let all = |waiting: &mut WaitingBroadcasts| core::iter::from_fn(|| waiting.pop()).collect::<Vec<_>>();
        for byte in [0xC1, 0xA1, 0x85, 0x81, 0x07, 0x08, 0x41, 0x81] {
            waiting.push(byte);
        }
        assert!(waiting.has_interrupt(1 << 5) && !waiting.has_interrupt(1 << 6));
        assert_eq!(all(&mut waiting), [0x08, 0x81, 0x85, 0xA1, 0x41, 0xC1]);
        assert!(waiting.is_empty());
        // Behind 9, 12 is next, although 2 is lower.
        waiting.push(0x89);
        assert_eq!(waiting.pop(), Some(0x89));
        for byte in [0x82, 0x8C, 0xA9] {
            waiting.push(byte);
        }
        assert_eq!(all(&mut waiting), [0x8C, 0x82, 0xA9]);
    }
}
