use crate::time::Picos;

/// The levels of the two lines of a direction. Each bit changes exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Line {
    /// The value of the bit.
    pub data: bool,
    /// Changes where the data line does not.
    pub strobe: bool,
}

impl Line {
    /// Returns the levels that send `bit` after these.
    #[must_use]
    pub const fn with(self, bit: bool) -> Line {
        if bit == self.data {
            Line { data: bit, strobe: !self.strobe }
        } else {
            Line { data: bit, strobe: self.strobe }
        }
    }

    /// Returns the bit that these levels send after `earlier` ones, or `None` without a transition. If both lines have
    /// changed there is none: the clock, which is their exclusive or, stands.
    #[must_use]
    pub const fn bit_after(self, earlier: Line) -> Option<bool> {
        if (self.data ^ self.strobe) == (earlier.data ^ earlier.strobe) { None } else { Some(self.data) }
    }
}

/// The clock of an end, and the rate that it gives the transmitter in Run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The period. No bit can be shorter, sent or received.
    pub step: Picos,
    /// Steps for each bit in Run, at least 1.
    pub divider: u32,
}

impl Default for Clock {
    /// Returns a clock of 200 MHz, and 200 Mbit/s.
    fn default() -> Self {
        Clock { step: Picos::from_nanos(5), divider: 1 }
    }
}

impl Clock {
    /// Returns the rate in Run, in bit/s.
    #[must_use]
    pub fn rate_bps(&self) -> f64 {
        1e12 / (self.step.0 as f64 * f64::from(self.divider))
    }

    /// Returns the steps that last for at least `span`, one or more.
    pub(super) fn steps(&self, span: Picos) -> u32 {
        span.0.div_ceil(self.step.0.max(1)).clamp(1, u64::from(u32::MAX)) as u32
    }
}
