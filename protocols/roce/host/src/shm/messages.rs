//! The messages of two devices over their channels. All numbers are least significant byte first.
//!
//! ```text
//! hello      u8 1, u8 version, u8 RNR timer, u8 0, u32 magic, then of the sender: 16 bytes GID, u32 queue pair, u32 PSN;
//!            of the far end: u32 queue pair, u32 PSN; u32 depth, u32 width of the receive queue
//!            with two files: the memory of the queue pair, and that of the device
//! regions    u8 2, u8 count, u16 0, then of each: u32 key, u64 address, u64 length, u8 slot, u8 rights, u16 0
//!            with a file for each whose key is not 0; the others are gone
//! bell       u8 3: something has arrived
//! ```

use super::layout::{DEPTH_MAX, ENTRIES_MAX, Shape};
use crate::device::{AddressOfQueuePair, Gid};
use hodo_io::shared_memory::FILES_MAX;
use hodo_machine::{Cursor, Truncated};
use hodo_roce::Access;

const HELLO: u8 = 1;
const REGIONS: u8 = 2;
const BELL_RINGS: u8 = 3;

const VERSION: u8 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"HoSM");

/// The message that wakes a sleeping device.
pub(super) const BELL: [u8; 1] = [BELL_RINGS];
/// Bytes of the longest message.
pub(super) const MESSAGE_BYTES: usize = 4 + FILES_MAX * REGION_BYTES;

const REGION_BYTES: usize = 24;

/// The first message on a channel: which queue pair it comes from, and for which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: AddressOfQueuePair,
    pub(super) to_number: u32,
    pub(super) to_psn: u32,
    pub(super) shape: Shape,
    /// The code of the time to wait when the sender has no receive posted.
    pub(super) not_ready_timer: u8,
}

/// A region that has come, or is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) slot: u8,
    /// 0 for a region that is gone.
    pub(super) key: u32,
    pub(super) address: u64,
    pub(super) length: u64,
    pub(super) access: Access,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Hello(Hello),
    Regions(&'a [u8]),
    Bell,
}

/// A message that no process of this kind sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Malformed
    }
}

impl Message<'_> {
    pub(super) fn decode(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
        let mut cursor = Cursor::new(bytes);
        match cursor.u8()? {
            HELLO => Hello::decode(cursor).map(Message::Hello),
            REGIONS => {
                let count = cursor.u8()?;
                cursor.u16_le()?;
                let is_whole = cursor.rest().len() == usize::from(count) * REGION_BYTES;
                if is_whole { Ok(Message::Regions(cursor.rest())) } else { Err(Malformed) }
            }
            BELL_RINGS if cursor.rest().is_empty() => Ok(Message::Bell),
            _ => Err(Malformed),
        }
    }
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![HELLO, VERSION, self.not_ready_timer, 0];
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.from.gid.0);
        let (depth, width) = (self.shape.depth(), self.shape.width());
        for word in [self.from.number, self.from.psn, self.to_number, self.to_psn, depth, width] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    fn decode(mut cursor: Cursor<'_>) -> Result<Hello, Malformed> {
        let [version, not_ready_timer, _] = cursor.array()?;
        if version != VERSION || not_ready_timer > 31 || cursor.u32_le()? != MAGIC {
            return Err(Malformed);
        }
        let gid = Gid(cursor.array()?);
        let [number, psn, to_number, to_psn] = [cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?];
        let (depth, width) = (cursor.u32_le()?, cursor.u32_le()?);
        let is_possible = depth.is_power_of_two() && depth <= DEPTH_MAX && width <= ENTRIES_MAX;
        let shape = Shape::new(depth, width).filter(|_| is_possible && cursor.rest().is_empty()).ok_or(Malformed)?;
        let from = AddressOfQueuePair { lid: 0, number, psn, gid };
        Ok(Hello { from, to_number, to_psn, shape, not_ready_timer })
    }
}

const LOCAL_WRITE: u8 = 1;
const REMOTE_WRITE: u8 = 2;
const REMOTE_READ: u8 = 4;
const REMOTE_ATOMIC: u8 = 8;

impl Announced {
    /// Returns the announcement that a slot has no region any more.
    pub(super) fn gone(slot: u8) -> Self {
        Announced { slot, key: 0, address: 0, length: 0, access: Access::default() }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.key.to_le_bytes());
        bytes.extend(self.address.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        let right = |has: bool, bit: u8| if has { bit } else { 0 };
        let rights = right(self.access.local_write, LOCAL_WRITE)
            | right(self.access.remote_write, REMOTE_WRITE)
            | right(self.access.remote_read, REMOTE_READ)
            | right(self.access.remote_atomic, REMOTE_ATOMIC);
        bytes.extend([self.slot, rights, 0, 0]);
    }

    fn decode(bytes: &[u8]) -> Result<Announced, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let (key, address, length) = (cursor.u32_le()?, cursor.u64_le()?, cursor.u64_le()?);
        let [slot, rights, _, _] = cursor.array()?;
        let has = |right: u8| rights & right != 0;
        let access = Access {
            local_write: has(LOCAL_WRITE),
            remote_write: has(REMOTE_WRITE),
            remote_read: has(REMOTE_READ),
            remote_atomic: has(REMOTE_ATOMIC),
        };
        Ok(Announced { slot, key, address, length, access })
    }
}

/// Returns the message that announces regions, at most [`FILES_MAX`].
pub(super) fn announce(regions: &[Announced]) -> Vec<u8> {
    let mut bytes = vec![REGIONS, regions.len() as u8, 0, 0];
    regions.iter().for_each(|region| region.encode(&mut bytes));
    bytes
}

/// Returns the regions of such a message.
pub(super) fn announced(regions: &[u8]) -> impl Iterator<Item = Result<Announced, Malformed>> {
    regions.chunks(REGION_BYTES).map(Announced::decode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Random;

    fn hello() -> Hello {
        Hello {
            from: AddressOfQueuePair { lid: 0, number: 0x11, psn: 0xF9_46CF, gid: Gid([7; 16]) },
            to_number: 0x12,
            to_psn: 3,
            shape: Shape::new(500, 1).expect("in range"),
            not_ready_timer: 12,
        }
    }

    #[test]
    fn a_hello_has_its_layout() {
        let mut expected = vec![1, 1, 12, 0, b'H', b'o', b'S', b'M'];
        expected.extend([7; 16]);
        expected.extend([0x11, 0, 0, 0, 0xCF, 0x46, 0xF9, 0, 0x12, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0]);
        assert_eq!(hello().encode(), expected);
        assert_eq!(Message::decode(&expected), Ok(Message::Hello(hello())));
        for depth in [0u32, 3, 1 << 17, u32::MAX] {
            expected[40..44].copy_from_slice(&depth.to_le_bytes());
            assert_eq!(Message::decode(&expected), Err(Malformed), "{depth} receives");
        }
    }

    #[test]
    fn regions_come_back_as_they_were() {
        let mut all: Vec<Announced> = (0..FILES_MAX as u8).map(Announced::gone).collect();
        all[3] = Announced { slot: 3, key: 0x103, address: 1 << 40, length: 4097, access: Access::ALL };
        all[4] = Announced { access: Access::LOCAL, ..all[3] };
        let bytes = announce(&all);
        assert_eq!(bytes.len(), MESSAGE_BYTES);
        let Ok(Message::Regions(rest)) = Message::decode(&bytes) else { panic!("regions") };
        assert_eq!(announced(rest).collect::<Result<Vec<_>, _>>(), Ok(all));
        assert_eq!(Message::decode(&bytes[..bytes.len() - 1]), Err(Malformed));
        assert_eq!(Message::decode(&BELL), Ok(Message::Bell));
    }

    #[test]
    fn any_bytes_decode_or_are_malformed() {
        let mut random = Random::new(1);
        let whole = [hello().encode(), announce(&[Announced::gone(1)]), BELL.to_vec()];
        for round in 0..30_000 {
            let mut bytes = whole[round % 3].clone();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            if let Ok(Message::Regions(rest)) = Message::decode(&bytes) {
                assert!(announced(rest).all(|region| region.is_ok()));
            }
        }
    }
}
