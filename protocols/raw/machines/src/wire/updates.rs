//! The wire of updates, which a server sends to a subscription without a request for each; little-endian.
//!
//! | message | bytes behind the header | field | meaning |
//! |---|---|---|---|
//! | SUBSCRIBE | 0..8 | proof | the number of the WELCOME; looked at over UDP alone |
//! | | 8..16 | asked | the client's clock in nanoseconds |
//! | | 16..24 | rate | updates in a million seconds; 0: as fast as the server can |
//! | | 24..32 | first | nanoseconds from the beginning of the subscription to its first update |
//! | | 32..36 | size | of an update, from the header's first byte |
//! | | 36..40 | queue | updates that may wait; with one more the oldest is skipped |
//! | SUBSCRIBED | 0..8 | asked | that of the SUBSCRIBE |
//! | | 8..16 | now | the server's clock in nanoseconds |
//! | | 16..20 | lease | milliseconds until nothing is sent any more unless SUBSCRIBE comes again; 0: for ever |
//! | | 20..24 | | 0 |
//! | UPDATE | 0..8 | due | the server's clock when it was due, or sent where it has no rate |
//! | | 8..16 | skipped | updates that were skipped so far |
//! | | 16.. | payload | |
//! | UNSUBSCRIBE | 0..8 | proof | as above |
//! | | 8..16 | | 0 |
//! | ENDED | 0..8 | sent | updates that were sent in all |
//! | | 8..16 | skipped | updates that were skipped in all |
//!
//! The header's sequence is the number of the subscription, from 1, each higher than the one before it; of an UPDATE its own
//! number, from 0, and the header's count holds the lower 16 bits of the subscription's.

use crate::Error;
use hodo_machine::Cursor;

/// Bytes behind the header of SUBSCRIBE.
pub const SUBSCRIBE: usize = 40;
/// Bytes behind the header of SUBSCRIBED.
pub const SUBSCRIBED: usize = 24;
/// Bytes between the header and the payload of UPDATE.
pub const STAMP: usize = 16;
/// Bytes behind the header of UNSUBSCRIBE.
pub const UNSUBSCRIBE: usize = 16;
/// Bytes behind the header of ENDED.
pub const ENDED: usize = 16;

/// The body of SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subscribe {
    /// The number of the WELCOME, which proves that the client receives what is sent to its address.
    pub proof: u64,
    /// The client's clock in nanoseconds.
    pub asked_ns: u64,
    /// Updates in a million seconds; 0 for as fast as the server can.
    pub rate_micro: u64,
    /// Nanoseconds from the beginning of the subscription to its first update.
    pub first_after_ns: u64,
    /// The size of an update in bytes.
    pub size: u32,
    /// Updates that may wait.
    pub queue: u32,
}

/// The body of SUBSCRIBED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subscribed {
    /// That of the SUBSCRIBE.
    pub asked_ns: u64,
    /// The server's clock in nanoseconds.
    pub now_ns: u64,
    /// Milliseconds until the subscription has to be renewed; 0 for never.
    pub lease_ms: u32,
}

/// The bytes between the header and the payload of UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The server's clock when the update was due, or sent where it has no rate.
    pub due_ns: u64,
    /// Updates that were skipped so far.
    pub skipped: u64,
}

/// The body of ENDED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Updates that were sent in all.
    pub sent: u64,
    /// Updates that were skipped in all.
    pub skipped: u64,
}

impl Subscribe {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> [u8; SUBSCRIBE] {
        let mut bytes = [0; SUBSCRIBE];
        let words = [self.proof, self.asked_ns, self.rate_micro, self.first_after_ns];
        put(&mut bytes, &words);
        bytes[32..36].copy_from_slice(&self.size.to_le_bytes());
        bytes[36..].copy_from_slice(&self.queue.to_le_bytes());
        bytes
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// [`Error::Length`] if bytes are missing.
    pub fn decode(bytes: &[u8]) -> Result<Subscribe, Error> {
        let [proof, asked_ns, rate_micro, first_after_ns] = words(bytes, SUBSCRIBE)?;
        let mut cursor = Cursor::new(&bytes[32..]);
        let mut next = || cursor.u32_le().map_err(|_| short(bytes, SUBSCRIBE));
        Ok(Subscribe { proof, asked_ns, rate_micro, first_after_ns, size: next()?, queue: next()? })
    }
}

impl Subscribed {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> [u8; SUBSCRIBED] {
        let mut bytes = [0; SUBSCRIBED];
        put(&mut bytes, &[self.asked_ns, self.now_ns, u64::from(self.lease_ms)]);
        bytes
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// [`Error::Length`] if bytes are missing.
    pub fn decode(bytes: &[u8]) -> Result<Subscribed, Error> {
        let [asked_ns, now_ns, lease] = words(bytes, SUBSCRIBED)?;
        Ok(Subscribed { asked_ns, now_ns, lease_ms: lease as u32 })
    }
}

impl Stamp {
    /// Encodes the stamp.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; STAMP] {
        let mut bytes = [0; STAMP];
        put(&mut bytes, &[self.due_ns, self.skipped]);
        bytes
    }

    /// Decodes the stamp at the front of these bytes.
    ///
    /// # Errors
    /// [`Error::Length`] if bytes are missing.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Stamp, Error> {
        let [due_ns, skipped] = words(bytes, STAMP)?;
        Ok(Stamp { due_ns, skipped })
    }
}

impl Ended {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> [u8; ENDED] {
        let mut bytes = [0; ENDED];
        put(&mut bytes, &[self.sent, self.skipped]);
        bytes
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// [`Error::Length`] if bytes are missing.
    pub fn decode(bytes: &[u8]) -> Result<Ended, Error> {
        let [sent, skipped] = words(bytes, ENDED)?;
        Ok(Ended { sent, skipped })
    }
}

/// Encodes the body of UNSUBSCRIBE.
#[must_use]
pub fn encode_unsubscribe(proof: u64) -> [u8; UNSUBSCRIBE] {
    let mut bytes = [0; UNSUBSCRIBE];
    put(&mut bytes, &[proof]);
    bytes
}

/// Returns the proof in an UNSUBSCRIBE.
///
/// # Errors
/// [`Error::Length`] if bytes are missing.
pub fn decode_unsubscribe(bytes: &[u8]) -> Result<u64, Error> {
    let [proof, _] = words(bytes, UNSUBSCRIBE)?;
    Ok(proof)
}

#[inline]
fn put(bytes: &mut [u8], words: &[u64]) {
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// Returns the first words of a body that has at least `length` bytes.
#[inline]
fn words<const N: usize>(bytes: &[u8], length: usize) -> Result<[u64; N], Error> {
    if bytes.len() < length {
        return Err(short(bytes, length));
    }
    let mut words = [0; N];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = place.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Ok(words)
}

fn short(bytes: &[u8], length: usize) -> Error {
    Error::Length { told: length, came: bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribe_is_these_bytes() {
        let ask =
            Subscribe { proof: 0x0102, asked_ns: 3, rate_micro: 1_000_000, first_after_ns: 5, size: 64, queue: 8 };
        #[rustfmt::skip]
        let bytes = [
            2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0F, 0, 0, 0, 0, 0,
            5, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 8, 0, 0, 0,
        ];
        assert_eq!(ask.encode(), bytes);
        assert_eq!(Subscribe::decode(&bytes), Ok(ask));
    }

    #[test]
    fn every_body_round_trips_and_a_short_one_is_refused() {
        let subscribed = Subscribed { asked_ns: u64::MAX, now_ns: 7, lease_ms: 1000 };
        let (stamp, ended) = (Stamp { due_ns: 1 << 40, skipped: 2 }, Ended { sent: 9, skipped: u64::MAX });
        assert_eq!(Subscribed::decode(&subscribed.encode()), Ok(subscribed));
        assert_eq!(Stamp::decode(&stamp.encode()), Ok(stamp));
        assert_eq!(Ended::decode(&ended.encode()), Ok(ended));
        assert_eq!(decode_unsubscribe(&encode_unsubscribe(77)), Ok(77));
        let bytes = [0; SUBSCRIBE];
        for length in 0..SUBSCRIBE {
            let error = |told| Error::Length { told, came: length };
            assert_eq!(Subscribe::decode(&bytes[..length]), Err(error(SUBSCRIBE)));
            assert_eq!(Subscribed::decode(&bytes[..length]).err(), (length < SUBSCRIBED).then(|| error(SUBSCRIBED)));
            assert_eq!(Stamp::decode(&bytes[..length]).err(), (length < STAMP).then(|| error(STAMP)));
            assert_eq!(Ended::decode(&bytes[..length]).err(), (length < ENDED).then(|| error(ENDED)));
            assert_eq!(decode_unsubscribe(&bytes[..length]).err(), (length < UNSUBSCRIBE).then(|| error(UNSUBSCRIBE)));
        }
    }
}
