//! Samples that the tests of both versions' packets share.

use super::Order;
use super::operation::{Mode, Operation};
use alloc::vec;
use alloc::vec::Vec;

/// Returns these words as bytes.
pub(super) fn in_order(order: Order, words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    order.append(words, &mut bytes);
    bytes
}

/// Returns one operation of each kind, as the bytes of the tests have them.
pub(super) fn requests() -> Vec<Operation<&'static [u32]>> {
    let (incrementing, fifo) = (Mode::Incrementing, Mode::Fifo);
    vec![
        Operation::Read { mode: incrementing, address: 0x1234, words: 1 },
        Operation::Write { mode: incrementing, address: 0x1235, data: &[0xDEAD_BEEF] },
        Operation::Read { mode: fifo, address: 0x10, words: 3 },
        Operation::Write { mode: fifo, address: 0x20, data: &[1, 2] },
        Operation::RmwBits { address: 0x30, and: 0xFFFF_0000, or: 0x55 },
        Operation::RmwSum { address: 0x31, addend: 7 },
    ]
}
