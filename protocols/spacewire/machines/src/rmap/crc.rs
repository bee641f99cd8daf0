/// The cyclic redundancy code of headers and data (5.2): x^8 + x^2 + x + 1, starting with 0. The code of bytes and their
/// code is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Crc {
    /// The code of the standard: the first bit of a byte is the least significant one.
    #[default]
    Standard,
    /// The code of devices built after draft E of the standard: the first bit is the most significant one.
    DraftE,
}

impl Crc {
    /// Returns the code of `bytes`.
    #[must_use]
    pub fn of(self, bytes: &[u8]) -> u8 {
        let tables = match self {
            Crc::Standard => &STANDARD,
            Crc::DraftE => &DRAFT_E,
        };
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let crc = blocks.iter().fold(0, |crc, block| {
            let first = tables[BLOCK - 1][usize::from(block[0] ^ crc)];
            (1..BLOCK).fold(first, |sum, at| sum ^ tables[BLOCK - 1 - at][usize::from(block[at])])
        });
        rest.iter().fold(crc, |crc, byte| tables[0][usize::from(crc ^ byte)])
    }
}

/// Bytes that are looked up at a time: their lookups do not wait for each other.
const BLOCK: usize = 16;

/// For every byte, the code of the byte with as many zeros behind it as the table's number.
type Tables = [[u8; 256]; BLOCK];

static STANDARD: Tables = tables(true);
static DRAFT_E: Tables = tables(false);

const fn tables(is_reflected: bool) -> Tables {
    let mut tables = [[0; 256]; BLOCK];
    let mut byte = 0;
    while byte < 256 {
        tables[0][byte] = remainder(byte as u8, is_reflected);
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < BLOCK {
        byte = 0;
        while byte < 256 {
            tables[zeros][byte] = tables[0][tables[zeros - 1][byte] as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

const fn remainder(mut byte: u8, is_reflected: bool) -> u8 {
    let mut bit = 0;
    while bit < 8 {
        byte = match (is_reflected, byte & 1, byte >> 7) {
            (true, 1, _) => byte >> 1 ^ 0xE0,
            (true, _, _) => byte >> 1,
            (false, _, 1) => byte << 1 ^ 0x07,
            (false, _, _) => byte << 1,
        };
        bit += 1;
    }
    byte
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use hodo_machine::Random;

    #[test]
    fn the_tables_begin_as_those_that_are_published() {
        assert_eq!(STANDARD[0][..8], [0x00, 0x91, 0xE3, 0x72, 0x07, 0x96, 0xE4, 0x75]);
        assert_eq!(DRAFT_E[0][..6], [0x00, 0x07, 0x0E, 0x09, 0x1C, 0x1B]);
    }

    /// The check value of the standard's code, and of CRC-8 without reflection, which draft E is.
    #[test]
    fn the_code_of_the_digits_is_that_which_is_published() {
        assert_eq!((Crc::Standard.of(b"123456789"), Crc::DraftE.of(b"123456789")), (0x20, 0xF4));
    }

    #[test]
    fn blocks_give_the_code_that_single_bytes_give() {
        let mut random = Random::new(1);
        for length in 0..200 {
            let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            for (crc, table) in [(Crc::Standard, &STANDARD[0]), (Crc::DraftE, &DRAFT_E[0])] {
                let slow = bytes.iter().fold(0, |crc, byte| table[usize::from(crc ^ byte)]);
                assert_eq!(crc.of(&bytes), slow, "{length} bytes");
                bytes.push(slow);
                assert_eq!(crc.of(&bytes), 0, "{length} bytes with their code");
                bytes.pop();
            }
        }
    }
}
