//! Packet sequence numbers (volume 1, 9.7.1): 24 bits, which wrap.

use core::fmt;

const BITS: u32 = 24;
const MASK: u32 = (1 << BITS) - 1;

/// A packet sequence number. Numbers are compared over the shorter way around the circle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// Returns the number in the low 24 bits.
    #[must_use]
    #[inline]
    pub const fn new(bits: u32) -> Psn {
        Psn(bits & MASK)
    }

    /// Returns the number, below 2^24.
    #[must_use]
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Returns the number that many packets later.
    #[must_use]
    #[inline]
    pub const fn after(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_add(packets))
    }

    /// Returns the number one packet earlier.
    #[must_use]
    #[inline]
    pub const fn before(self) -> Psn {
        Psn::new(self.0.wrapping_sub(1))
    }

    /// Returns how many packets this is behind `earlier`, from -2^23 to 2^23 - 1.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Psn) -> i32 {
        ((self.0.wrapping_sub(earlier.0) << (32 - BITS)) as i32) >> (32 - BITS)
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_are_compared_over_the_shorter_way() {
        let last = Psn::new(0xFFFF_FFFF);
        assert_eq!(last.value(), 0xFF_FFFF);
        assert_eq!((last.after(1), last.after(3).since(last), last.since(last.after(3))), (Psn::new(0), 3, -3));
        assert_eq!(Psn::new(0).before(), last);
        assert_eq!(Psn::new(0x80_0000).since(Psn::new(0)), -(1 << 23));
        assert_eq!(Psn::new(0x7F_FFFF).since(Psn::new(0)), (1 << 23) - 1);
    }
}
