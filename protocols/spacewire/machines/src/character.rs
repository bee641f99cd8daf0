//! Characters and control codes, to the bit (ECSS-E-ST-50-12C, 7.2 and 7.3).
//!
//! | item | bits in the order of transmission | length | class |
//! |---|---|--:|---|
//! | data | P 0 d0 d1 d2 d3 d4 d5 d6 d7 | 10 | N-char |
//! | FCT | P 1 0 0 | 4 | L-char |
//! | EOP | P 1 0 1 | 4 | N-char |
//! | EEP | P 1 1 0 | 4 | N-char |
//! | ESC | P 1 1 1 | 4 | |
//! | NULL | ESC, FCT | 8 | L-char |
//! | time-code | ESC, data | 14 | L-char |
//!
//! Parity is odd over the content of the character before, the parity bit and the flag after it (7.4), so that
//! an error in a character shows in the header of the next.

/// A data or control character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Character {
    /// Eight bits of data.
    Data(u8),
    /// Flow control token: room for eight more N-chars.
    Fct,
    /// The end of a packet.
    Eop,
    /// The end of a packet that is not whole.
    Eep,
    /// The first half of a NULL or a time-code.
    Esc,
}

impl Character {
    /// Returns the length in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Character::Data(_) => 10,
            _ => 4,
        }
    }

    /// Returns the flag and the content, without the parity bit: the flag in bit 0, then the content in the order of transmission.
    #[must_use]
    pub const fn flag_and_content(self) -> u16 {
        match self {
            Character::Data(byte) => (byte as u16) << 1,
            Character::Fct => 0b001,
            Character::Eop => 0b101,
            Character::Eep => 0b011,
            Character::Esc => 0b111,
        }
    }

    /// Returns the parity of the content: `true` for an odd number of ones. The next character's parity bit covers it.
    #[must_use]
    pub const fn parity(self) -> bool {
        (self.flag_and_content() >> 1).count_ones() % 2 == 1
    }

    /// Returns all bits with the first one in bit 0, behind a character whose content had the parity `before`.
    #[must_use]
    pub const fn encode(self, before: bool) -> u16 {
        let rest = self.flag_and_content();
        let flag = rest & 1 == 1;
        // Odd: content before + parity bit + flag.
        let parity = !(before ^ flag);
        (rest << 1) | parity as u16
    }

    /// Returns the control character for the two bits behind the flag, the first of them in bit 0.
    #[must_use]
    pub const fn control(content: u8) -> Character {
        match content & 0b11 {
            0b00 => Character::Fct,
            0b10 => Character::Eop,
            0b01 => Character::Eep,
            _ => Character::Esc,
        }
    }
}

/// A unit that a link end sends: a character, or an ESC with the character behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// Keeps the link running while there is nothing else to send.
    Null,
    /// Room for eight more N-chars.
    Fct,
    /// Eight bits of data.
    Data(u8),
    /// The end of a packet.
    Eop,
    /// The end of a packet that is not whole.
    Eep,
    /// Six bits of time in bits 0 to 5, two flags above.
    TimeCode(u8),
}

impl Code {
    /// Returns the length in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Code::Null => 8,
            Code::TimeCode(_) => 14,
            Code::Data(_) => 10,
            Code::Fct | Code::Eop | Code::Eep => 4,
        }
    }

    /// Returns the one or two characters that it consists of.
    #[must_use]
    pub const fn characters(self) -> (Option<Character>, Character) {
        match self {
            Code::Null => (Some(Character::Esc), Character::Fct),
            Code::TimeCode(code) => (Some(Character::Esc), Character::Data(code)),
            Code::Fct => (None, Character::Fct),
            Code::Data(byte) => (None, Character::Data(byte)),
            Code::Eop => (None, Character::Eop),
            Code::Eep => (None, Character::Eep),
        }
    }

    /// Tells whether it takes credit.
    #[must_use]
    pub const fn is_nchar(self) -> bool {
        matches!(self, Code::Data(_) | Code::Eop | Code::Eep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_null_after_a_reset_is_0111_0100() {
        let (esc, fct) = Code::Null.characters();
        let first = esc.map(|esc| esc.encode(false));
        assert_eq!(first, Some(0b1110)); // 0 1 1 1, the first bit in bit 0
        assert_eq!(fct.encode(Character::Esc.parity()), 0b0010); // 0 1 0 0
    }

    #[test]
    fn parity_is_odd_over_every_pair_of_neighbours() {
        let all =
            || (0..=255).map(Character::Data).chain([Character::Fct, Character::Eop, Character::Eep, Character::Esc]);
        for before in all() {
            for after in all() {
                let bits = after.encode(before.parity());
                let covered = (before.flag_and_content() >> 1).count_ones() + (bits & 0b11).count_ones();
                assert_eq!(covered % 2, 1, "{before:?} {after:?}");
                assert_eq!(bits >> 1, after.flag_and_content());
            }
        }
    }

    #[test]
    fn control_characters_are_found_again() {
        for control in [Character::Fct, Character::Eop, Character::Eep, Character::Esc] {
            let content = (control.flag_and_content() >> 1) as u8;
            assert_eq!(Character::control(content), control);
        }
    }
}
