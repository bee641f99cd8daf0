//! The bytes of messages, and the check of those that arrive.
//!
//! A stock `ibv_rc_pingpong` fills its buffer with 0x7b; with `-c` its client sets the first byte of each page to 0. It sends from the
//! buffer that it receives into, so that what it sends is what it received last; and its server looks, at the end, at these
//! bytes alone. Nothing tells the far end whether it has `-c`, nor the size of its pages.

/// The byte that `ibv_rc_pingpong` fills its buffer with.
const FILL: u8 = 0x7B;
/// The byte at the beginning of a page that `ibv_rc_pingpong` checks.
const MARK: u8 = 0;
/// Bytes of the smallest page: larger ones begin where one of these does.
const PAGE: usize = 4096;
/// The byte that is left where a message was checked: neither [`FILL`] nor [`MARK`], so that a message that did not arrive is not taken
/// for the last one.
pub(super) const CLEARED: u8 = 0x84;

/// The kind of bytes that both ends send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Those of `ibv_rc_pingpong`, with or without `-c`.
    Stock {
        /// Whether pages are marked.
        is_marked: bool,
    },
    /// Bytes that differ from one message to the next, and within each: two ends of this program agree on them.
    Numbered,
}

impl Content {
    /// Returns message `number`.
    pub(super) fn message(self, number: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![FILL; size];
        self.fill(number, &mut bytes);
        bytes
    }

    /// Writes message `number`.
    #[inline]
    pub(super) fn fill(self, number: u64, bytes: &mut [u8]) {
        match self {
            Content::Stock { is_marked } => {
                bytes.fill(FILL);
                if is_marked {
                    bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = MARK);
                }
            }
            Content::Numbered => {
                (0..).zip(bytes).for_each(|(offset, byte)| *byte = numbered(number, offset));
            }
        }
    }

    /// Returns the first byte of message `number` that is wrong: its offset, the byte, and what it should be.
    pub(super) fn wrong(self, number: u64, bytes: &[u8]) -> Option<(usize, u8, u8)> {
        let wrong = |(offset, byte): (usize, &u8)| {
            let expected = match self {
                Content::Stock { .. } if *byte == MARK && offset.is_multiple_of(PAGE) => MARK,
                Content::Stock { .. } => FILL,
                Content::Numbered => numbered(number, offset),
            };
            (*byte != expected).then_some((offset, *byte, expected))
        };
        bytes.iter().enumerate().find_map(wrong)
    }
}

/// Returns byte `offset` of message `number`: no two messages, nor two parts of one, are alike.
#[inline]
fn numbered(number: u64, offset: usize) -> u8 {
    let mixed = (number << 20 ^ offset as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 3 * PAGE + 5;

    /// Returns the buffer of a stock client with `-c` that has pages of this size.
    fn stock(page: usize) -> Vec<u8> {
        let mut buffer = vec![0x7b; SIZE];
        (0..SIZE).step_by(page).for_each(|start| buffer[start] = 0);
        buffer
    }

    #[test]
    fn stock_bytes_are_those_of_stock_ends() {
        assert_eq!(Content::Stock { is_marked: true }.message(7, SIZE), stock(4096));
        assert_eq!(Content::Stock { is_marked: false }.message(7, SIZE), vec![0x7b; SIZE]);
    }

    #[test]
    fn what_a_stock_end_sends_is_right_whatever_its_options() {
        for page in [4096, 16_384, 65_536] {
            for content in [true, false].map(|is_marked| Content::Stock { is_marked }) {
                assert_eq!(content.wrong(0, &stock(page)), None);
                assert_eq!(content.wrong(9, &[0x7b; SIZE]), None);
            }
        }
    }

    #[test]
    fn every_wrong_byte_is_found() {
        for content in [Content::Stock { is_marked: true }, Content::Numbered] {
            let right = content.message(3, SIZE);
            assert_eq!(content.wrong(3, &right), None);
            for offset in [0, 1, PAGE, PAGE + 1, SIZE - 1] {
                let mut bytes = right.clone();
                bytes[offset] ^= 0xFF;
                let found = content.wrong(3, &bytes).map(|(at, found, _)| (at, found));
                assert_eq!(found, Some((offset, !right[offset])), "{content:?}");
            }
            assert!(content.wrong(3, &[CLEARED; SIZE]).is_some());
        }
        // A zero in the middle of a page is none of a stock end's.
        let mut bytes = stock(PAGE);
        bytes[PAGE / 2] = 0;
        assert_eq!(Content::Stock { is_marked: true }.wrong(0, &bytes), Some((PAGE / 2, 0, FILL)));
        assert!(Content::Numbered.wrong(4, &Content::Numbered.message(3, SIZE)).is_some());
    }
}
