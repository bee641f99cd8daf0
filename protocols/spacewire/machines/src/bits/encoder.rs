//! From codes to the levels of the lines.
use super::line::Line;
use crate::character::Character;

/// A transmitter: characters with their parity, bit by bit, each for as many steps as the divider says.
#[derive(Debug, Clone, Default)]
pub(super) struct Encoder {
    line: Line,
    /// Steps until the lines may change again.
    wait: u32,
    /// The bits that are left, the next in bit 0.
    bits: u32,
    left: u32,
    /// The parity of the content of the last character.
    before: bool,
}

impl Encoder {
    /// Returns the levels.
    pub(super) fn line(&self) -> Line {
        self.line
    }

    /// Tells whether the next step needs a code.
    pub(super) fn is_free(&self) -> bool {
        self.wait == 0 && self.left == 0
    }

    /// Queues a character, with the wrong parity bit for a test of the far end.
    pub(super) fn queue(&mut self, character: Character, wrong_parity: bool) {
        let bits = u32::from(character.encode(self.before)) ^ u32::from(wrong_parity);
        self.bits |= bits << self.left;
        self.left += character.bits();
        self.before = character.parity();
    }

    /// Sends the next bit if its time has come; `divider` is the length of a bit in steps.
    pub(super) fn step(&mut self, divider: u32) {
        if self.wait > 0 {
            self.wait -= 1;
        } else if self.left > 0 {
            self.line = self.line.with(self.bits & 1 == 1);
            self.bits >>= 1;
            self.left -= 1;
            self.wait = divider.max(1) - 1;
        }
    }

    /// Drops what is left of a code, as a transmitter does that goes into reset.
    pub(super) fn stop(&mut self) {
        (self.bits, self.left, self.before) = (0, 0, false);
    }

    /// Takes the lines low one after the other, `spacing` steps apart, so that they never change together.
    pub(super) fn settle(&mut self, spacing: u32) {
        if self.wait > 0 {
            self.wait -= 1;
        } else if self.line != Line::default() {
            // Strobe first, data second.
            self.line = Line { data: self.line.data && self.line.strobe, strobe: false };
            self.wait = spacing.max(1) - 1;
        }
    }
}
