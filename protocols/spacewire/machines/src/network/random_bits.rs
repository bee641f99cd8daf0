//! Bit errors at random, and which of them the parity of the characters shows.
//!
//! | flipped | seen |
//! |---|---|
//! | an odd number in the content of a character and the two bits after it | in those two bits: the character is not delivered |
//! | two in the content | no: the character is another one |
//! | one in the content, one in the parity bit after it | no: the character is another one |
//! | the flag after a character, and one more in that span | six bits later: the receiver is out of step, and finds an error there |
use hodo_machine::Random;

use crate::character::Character;

/// Bit errors of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitErrors {
    /// The probability that a bit arrives flipped.
    pub rate: f64,
    /// The seed of the places.
    pub seed: u64,
}

/// The state of the bit errors in one direction.
#[derive(Debug, Clone)]
pub(super) struct Flips {
    random: Random,
    /// Powers of the probability that a bit is right: to 1, 2, 4, 8 and so on.
    right: [f64; 40],
    /// Right bits before the next flipped one, counted from the content of the next character: its header was dealt with
    /// along with the character before.
    gap: u64,
}

/// The character that arrives, or the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The character as it was sent.
    Right,
    /// Another character, unnoticed.
    Altered(Character),
    /// A parity error, this many bits behind the character.
    Error(u64),
}

impl Flips {
    pub(super) fn new(errors: BitErrors) -> Self {
        let mut power = (1.0 - errors.rate).clamp(0.0, 1.0);
        let right = core::array::from_fn(|_| {
            let this = power;
            power *= power;
            this
        });
        let mut flips = Flips { random: Random::new(errors.seed), right, gap: 0 };
        flips.gap = flips.draw();
        flips
    }

    /// Returns how many whole units of `bits` are right from here on.
    pub(super) fn right_units(&self, bits: u64) -> u64 {
        self.gap / bits
    }

    /// Takes note of `bits` that passed, all of them right.
    pub(super) fn skip(&mut self, bits: u64) {
        self.gap -= bits;
    }

    /// Draws what becomes of a character: of its content, and of the two bits behind it.
    pub(super) fn pass(&mut self, character: Character) -> Outcome {
        let bits = u64::from(character.bits());
        let mut mask = 0u32;
        while self.gap < bits {
            mask |= 1 << self.gap;
            self.gap += 1 + self.draw();
        }
        self.gap -= bits;
        let content = mask & ((1 << (bits - 2)) - 1);
        let flag_behind = mask >> (bits - 1) != 0;
        match mask.count_ones() % 2 {
            1 => Outcome::Error(2),
            _ if flag_behind => Outcome::Error(6),
            _ if content == 0 => Outcome::Right,
            _ => Outcome::Altered(altered(character, content)),
        }
    }

    /// Draws the number of right bits before the next flipped one: a geometric distribution, without a logarithm.
    fn draw(&mut self) -> u64 {
        let unit = self.random.unit();
        let (mut n, mut probability) = (0u64, 1.0);
        for power in (0..self.right.len()).rev() {
            let longer = probability * self.right[power];
            if longer > unit {
                probability = longer;
                n += 1 << power;
            }
        }
        n
    }
}

fn altered(character: Character, mask: u32) -> Character {
    let content = u32::from(character.flag_and_content() >> 1) ^ mask;
    match character {
        Character::Data(_) => Character::Data(content as u8),
        _ => Character::control(content as u8),
    }
}
