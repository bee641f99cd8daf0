//! Chunks of c-blosc 1, which is what area detectors send.
//!
//! ```text
//! version: u8, compressor version: u8, flags: u8, width: u8, bytes: u32, block: u32, compressed: u32     little-endian
//! flags    1 bytes in another order, 2 not compressed, 4 bits in another order, 16 blocks are not split, compressor << 5
//! then     where each block begins: u32; each block is split into a part for each byte of an element, unless flags or sizes
//!          say otherwise; a part is its length: i32, and compressed bytes, or the bytes themselves if they are no shorter
//! ```

use super::{blosclz, lz4, shuffle, unzlib};

const HEADER: usize = 16;
/// Bounds of what c-blosc splits: bytes of an element, and elements of a block.
const SPLITS_MAX: usize = 16;
const SPLIT_ELEMENTS_MIN: usize = 128;

/// The header of a chunk, checked.
struct Chunk<'a> {
    all: &'a [u8],
    flags: u8,
    width: usize,
    block: usize,
    /// Bytes that parts may still have, so that no bytes are decompressed again and again.
    left: usize,
}

/// Decompresses a chunk.
pub fn fill(from: &[u8], into: &mut [u8]) -> Result<(), String> {
    let need = into.len();
    let header = from.first_chunk::<HEADER>().ok_or_else(ended)?;
    let number = |at| number(header, at).unwrap_or(0) as usize;
    let (bytes, block) = (number(4), number(8));
    if bytes != need {
        return Err(format!("the header says {bytes} bytes, and the dimensions {need}"));
    }
    if header[0] > 2 {
        return Err(format!("format {} is that of Blosc 2; choose Blosc 1", header[0]));
    }
    if header[2] & 2 != 0 {
        into.copy_from_slice(from.get(HEADER..HEADER + need).ok_or_else(ended)?);
        return Ok(());
    }
    if block == 0 && need > 0 {
        return Err("the header says blocks of 0 bytes".into());
    }
    let width = usize::from(header[3]).max(1);
    let mut chunk = Chunk { all: from, flags: header[2], width, block, left: from.len() };
    let mut shuffled = vec![0; block.min(need)];
    for (at, into) in into.chunks_mut(block.max(1)).enumerate() {
        chunk.restore(at, &mut shuffled[..into.len()], into)?;
    }
    Ok(())
}

impl Chunk<'_> {
    /// Decompresses one block, and restores the order of its bytes or bits.
    fn restore(&mut self, at: usize, shuffled: &mut [u8], into: &mut [u8]) -> Result<(), String> {
        let width = self.width;
        if self.flags & 1 != 0 && width > 1 {
            self.block(at, shuffled)?;
            shuffle::restore_bytes(shuffled, width, into);
        } else if self.flags & 4 != 0 && into.len() >= width && (into.len() / width).is_multiple_of(8) {
            self.block(at, shuffled)?;
            let whole = into.len() / width * width;
            shuffle::restore_bits(&shuffled[..whole], width, &mut into[..whole]);
            into[whole..].copy_from_slice(&shuffled[whole..]);
        } else {
            // c-blosc leaves the bits of other blocks as they are.
            self.block(at, into)?;
        }
        Ok(())
    }

    /// Decompresses one block.
    fn block(&mut self, at: usize, into: &mut [u8]) -> Result<(), String> {
        let start = number(self.all, HEADER + 4 * at)? as usize;
        let mut from = self.all.get(start..).ok_or_else(ended)?;
        let is_whole = into.len() == self.block;
        let may_split =
            self.flags & 16 == 0 && self.width <= SPLITS_MAX && self.block / self.width >= SPLIT_ELEMENTS_MIN;
        let parts = if may_split && is_whole { self.width } else { 1 };
        let length = into.len() / parts;
        for into in into.chunks_exact_mut(length.max(1)) {
            let size = number(from, 0)? as usize;
            let (part, rest) = from[4..].split_at_checked(size).ok_or_else(ended)?;
            self.left = self.left.checked_sub(4 + size).ok_or("its blocks overlap")?;
            if size == length {
                into.copy_from_slice(part);
            } else {
                self.part(part, into)?;
            }
            from = rest;
        }
        Ok(())
    }

    fn part(&self, from: &[u8], into: &mut [u8]) -> Result<(), String> {
        let room = into.len();
        let size = match self.flags >> 5 {
            0 => return blosclz::fill(from, into),
            1 => return lz4::fill(from, into),
            2 => snap::raw::Decoder::new().decompress(from, into).map_err(|why| why.to_string())?,
            3 => return unzlib(from, into),
            4 => ruzstd::decoding::FrameDecoder::new().decode_all(from, into).map_err(|why| why.to_string())?,
            other => return Err(format!("compressor {other} is not known: choose one of Blosc 1")),
        };
        if size == room { Ok(()) } else { Err(format!("a block has {size} bytes instead of {room}")) }
    }
}

fn number(from: &[u8], at: usize) -> Result<u32, String> {
    let bytes = from.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(ended)?;
    Ok(u32::from_le_bytes(*bytes))
}

fn ended() -> String {
    "they end too early".into()
}
