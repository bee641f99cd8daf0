//! The three ways in which detectors use LZ4.
//!
//! ```text
//! lz4      one block
//! lz4hdf5  size: u64, block: u32, then for each block its length: u32 and LZ4, or the bytes themselves if they are no shorter
//! bslz4    for each block of bits, transposed, its length: u32 and LZ4; then the elements that make no group of eight
//! ```
//!
//! The numbers are big-endian. lz4hdf5 is the format of the HDF5 filter 32004; bslz4 is that of bitshuffle's `compress_lz4`, without the
//! header of the HDF5 filter.

use super::shuffle;

/// Bytes of a block of bits, and the least number of elements in it: bitshuffle's.
const BLOCK: usize = 8192;
const BLOCK_ELEMENTS_MIN: usize = 128;

/// Decompresses blocks with their lengths.
pub fn fill_hdf5(mut from: &[u8], into: &mut [u8]) -> Result<(), String> {
    let need = into.len();
    let size = u64::from_be_bytes(*take(&mut from)?);
    let block = u32::from_be_bytes(*take(&mut from)?) as usize;
    if size != need as u64 || block == 0 {
        return Err(format!("its header says {size} bytes in blocks of {block}, and its dimensions {need} bytes"));
    }
    for into in into.chunks_mut(block) {
        let piece = piece(&mut from)?;
        if piece.len() == into.len() {
            into.copy_from_slice(piece);
        } else {
            fill(piece, into)?;
        }
    }
    Ok(())
}

/// Decompresses blocks of bits that were transposed, of elements of `width` bytes.
pub fn fill_shuffled(mut from: &[u8], width: usize, into: &mut [u8]) -> Result<(), String> {
    let block = (BLOCK / width / 8 * 8).max(BLOCK_ELEMENTS_MIN) * width;
    let (grouped, rest) = into.split_at_mut(into.len() / width / 8 * 8 * width);
    let mut shuffled = vec![0; block.min(grouped.len())];
    for into in grouped.chunks_mut(block) {
        let shuffled = &mut shuffled[..into.len()];
        fill(piece(&mut from)?, shuffled)?;
        shuffle::restore_bits(shuffled, width, into);
    }
    rest.copy_from_slice(from.get(..rest.len()).ok_or_else(ended)?);
    Ok(())
}

/// Decompresses one block into exactly this room.
pub fn fill(from: &[u8], into: &mut [u8]) -> Result<(), String> {
    match lz4_flex::block::decompress_into(from, into) {
        Ok(size) if size == into.len() => Ok(()),
        Ok(size) => Err(format!("a block has {size} bytes instead of {}", into.len())),
        Err(why) => Err(why.to_string()),
    }
}

/// Takes a piece with its length in front.
fn piece<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = u32::from_be_bytes(*take(from)?) as usize;
    let (piece, rest) = from.split_at_checked(length).ok_or_else(ended)?;
    *from = rest;
    Ok(piece)
}

fn take<'a, const N: usize>(from: &mut &'a [u8]) -> Result<&'a [u8; N], String> {
    let (number, rest) = from.split_first_chunk().ok_or_else(ended)?;
    *from = rest;
    Ok(number)
}

fn ended() -> String {
    "they end too early".into()
}
