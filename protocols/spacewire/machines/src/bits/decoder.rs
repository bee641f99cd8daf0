//! From the levels of the lines to codes.
use super::line::Line;
use crate::character::{Character, Code};
use crate::end::{Arrival, LinkError};

/// The bits of the first NULL, the first in bit 7.
const NULL: u16 = 0b0111_0100;

/// A receiver: bits by the transitions of data or strobe, then characters, then codes.
///
/// It finds its place in the stream by the first NULL. A code is handed on only after the parity bit in the header of the next
/// character has confirmed it, two bits later: with one wrong bit, no code is handed on for another.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    line: Line,
    /// Steps since the last transition, or `None` before the first.
    quiet: Option<u32>,
    /// Steps without a transition that make a disconnection.
    quiet_max: u32,
    in_step: bool,
    /// The character so far, its first bit in bit 0; out of step, the last eight bits, the latest in bit 0.
    bits: u16,
    count: u32,
    /// The parity of the content of the character before.
    before: bool,
    escaped: bool,
    unconfirmed: Option<Arrival>,
}

impl Decoder {
    /// Creates a receiver that takes `quiet_max` steps without a transition for a disconnection.
    pub(super) fn new(quiet_max: u32) -> Self {
        Decoder {
            line: Line::default(),
            quiet: None,
            quiet_max,
            in_step: false,
            bits: 0,
            count: 0,
            before: false,
            escaped: false,
            unconfirmed: None,
        }
    }

    /// Forgets everything but the levels of the lines.
    pub(super) fn reset(&mut self, line: Line) {
        *self = Decoder { line, ..Decoder::new(self.quiet_max) };
    }

    /// Takes the levels of one step.
    pub(super) fn step(&mut self, line: Line) -> Option<Arrival> {
        let bit = line.bit_after(self.line);
        self.line = line;
        if let Some(bit) = bit {
            self.quiet = Some(0);
            return self.take(bit);
        }
        let quiet = self.quiet.as_mut()?;
        *quiet += 1;
        if *quiet < self.quiet_max {
            return None;
        }
        self.reset(line);
        Some(Arrival::Error(LinkError::Disconnect))
    }

    fn take(&mut self, bit: bool) -> Option<Arrival> {
        if !self.in_step {
            return self.search(bit);
        }
        self.bits |= u16::from(bit) << self.count;
        self.count += 1;
        if self.count == 2 {
            return self.header();
        }
        let flag = self.bits >> 1 & 1 == 1;
        if self.count == if flag { Character::Fct.bits() } else { Character::Data(0).bits() } {
            let content = (self.bits >> 2) as u8;
            self.complete(if flag { Character::control(content) } else { Character::Data(content) });
        }
        None
    }

    /// Looks for the first NULL. It needs no confirmation, so that the answer can follow at the next boundary.
    fn search(&mut self, bit: bool) -> Option<Arrival> {
        self.bits = (self.bits << 1 | u16::from(bit)) & 0xFF;
        self.count = (self.count + 1).min(8);
        if self.count < 8 || self.bits != NULL {
            return None;
        }
        self.in_step = true;
        self.before = Character::Fct.parity();
        (self.bits, self.count) = (0, 0);
        Some(Arrival::Code(Code::Null))
    }

    /// Checks the parity bit and the flag: odd, together with the content before them.
    fn header(&mut self) -> Option<Arrival> {
        let (parity, flag) = (self.bits & 1 == 1, self.bits >> 1 & 1 == 1);
        if self.before ^ parity ^ flag {
            return self.unconfirmed.take();
        }
        self.in_step = false;
        (self.bits, self.count) = (0, 0);
        self.unconfirmed = None;
        Some(Arrival::Error(LinkError::Parity))
    }

    fn complete(&mut self, character: Character) {
        let escaped = core::mem::replace(&mut self.escaped, false);
        self.unconfirmed = match (escaped, character) {
            (true, Character::Fct) => Some(Arrival::Code(Code::Null)),
            (true, Character::Data(code)) => Some(Arrival::Code(Code::TimeCode(code))),
            (true, _) => Some(Arrival::Error(LinkError::Escape)),
            (false, Character::Esc) => {
                self.escaped = true;
                None
            }
            (false, Character::Fct) => Some(Arrival::Code(Code::Fct)),
            (false, Character::Eop) => Some(Arrival::Code(Code::Eop)),
            (false, Character::Eep) => Some(Arrival::Code(Code::Eep)),
            (false, Character::Data(byte)) => Some(Arrival::Code(Code::Data(byte))),
        };
        self.before = character.parity();
        (self.bits, self.count) = (0, 0);
    }
}
