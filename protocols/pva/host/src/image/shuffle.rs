//! Bytes and bits that were put in another order, so that they compress better.

/// Restores elements of `width` bytes of which all first bytes were put first, then all second ones, and so on. What makes no whole element
/// is at the end, as it was.
pub fn restore_bytes(from: &[u8], width: usize, into: &mut [u8]) {
    let elements = from.len() / width;
    let whole = elements * width;
    for (byte, row) in from[..whole].chunks_exact(elements.max(1)).enumerate() {
        for (at, value) in row.iter().enumerate() {
            into[at * width + byte] = *value;
        }
    }
    into[whole..].copy_from_slice(&from[whole..]);
}

/// Restores elements of `width` bytes of which all first bits were put first, lowest bit first, then all second ones, and so on. The number
/// of elements is a multiple of eight.
pub fn restore_bits(from: &[u8], width: usize, into: &mut [u8]) {
    let row = from.len() / width / 8;
    for byte in 0..width {
        for group in 0..row {
            let bits = (0..8).fold(0, |bits, bit| bits | u64::from(from[(byte * 8 + bit) * row + group]) << (8 * bit));
            for (element, value) in transposed(bits).to_le_bytes().into_iter().enumerate() {
                into[(group * 8 + element) * width + byte] = value;
            }
        }
    }
}

/// Exchanges rows and columns of eight by eight bits.
const fn transposed(mut bits: u64) -> u64 {
    let swap = (bits ^ (bits >> 7)) & 0x00AA_00AA_00AA_00AA;
    bits ^= swap ^ (swap << 7);
    let swap = (bits ^ (bits >> 14)) & 0x0000_CCCC_0000_CCCC;
    bits ^= swap ^ (swap << 14);
    let swap = (bits ^ (bits >> 28)) & 0x0000_0000_F0F0_F0F0;
    bits ^ swap ^ (swap << 28)
}
