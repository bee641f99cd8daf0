//! BloscLZ, the compressor that Blosc uses unless told otherwise.
//!
//! ```text
//! 000n_nnnn                       n + 1 bytes as they are
//! lllo_oooo [l ...] o             copy l + 2 bytes from o + 1 back; l = 7 goes on in further bytes, up to one below 255
//! lll1_1111 [l ...] 255 o o       the same, from 8192 + o back
//! ```

/// The distance behind which another form begins.
const FAR: usize = 8191;

/// Decompresses into exactly this room.
pub fn fill(from: &[u8], into: &mut [u8]) -> Result<(), String> {
    let mut from = from.iter();
    let mut at = 0;
    // The first byte is always one of literals; its upper bits are a mark of the format.
    let mut control = from.next().map(|byte| *byte & 31);
    while let Some(code) = control {
        if code < 32 {
            let length = usize::from(code) + 1;
            let room = into.get_mut(at..at + length).ok_or("they are longer than they say")?;
            let (have, rest) = from.as_slice().split_at_checked(length).ok_or_else(ended)?;
            room.copy_from_slice(have);
            from = rest.iter();
            at += length;
        } else {
            let (length, back) = copied(code, &mut from.by_ref().copied())?;
            let start = at.checked_sub(back).ok_or("they refer to what is before their beginning")?;
            if length > into.len() - at {
                return Err("they are longer than they say".into());
            }
            // What is copied may overlap what it makes.
            for place in 0..length {
                into[at + place] = into[start + place];
            }
            at += length;
        }
        control = from.next().copied();
    }
    if at == into.len() { Ok(()) } else { Err(format!("a block has {at} bytes instead of {}", into.len())) }
}

/// Returns the length and the distance of a copy.
fn copied(code: u8, from: &mut impl Iterator<Item = u8>) -> Result<(usize, usize), String> {
    let mut next = || from.next().map(usize::from).ok_or_else(ended);
    let mut length = usize::from(code >> 5) + 2;
    if code >> 5 == 7 {
        loop {
            let more = next()?;
            length += more;
            if more != 255 {
                break;
            }
        }
    }
    let upper = usize::from(code & 31) << 8;
    let lower = next()?;
    if upper == 31 << 8 && lower == 255 {
        let far = next()? << 8 | next()?;
        return Ok((length, far + FAR + 1));
    }
    Ok((length, upper + lower + 1))
}

fn ended() -> String {
    "they end too early".into()
}
