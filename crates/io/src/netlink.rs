//! Queries to the kernel's tables of interfaces, queues and routes: `NETLINK_ROUTE` (rtnetlink(7)). They need no privilege, and see
//! the network namespace of the calling thread, which `/sys` may not.
//!
//! | bytes | field of a message's header |
//! |---|---|
//! | 0..4 | length, the header included |
//! | 4..6 | type |
//! | 6..8 | flags |
//! | 8..12 | sequence number |
//! | 12..16 | port of the sender |
//!
//! Attributes follow a fixed part: length (2 bytes, these four included), type (2 bytes), value; each begins at a multiple of four.

use crate::sys;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Bytes of a message's header.
const HEADER: usize = 16;
/// The type of a message that reports an error, or success where the number is 0.
const ERROR: u16 = 2;
/// The type of the message that ends a table.
const DONE: u16 = 3;
const REQUEST: u16 = 1;
/// A flag that requests a whole table.
pub(crate) const DUMP: u16 = 0x300;
/// The most bytes of a reply: thousands of interfaces.
const REPLY_MAX: usize = 16 << 20;
/// The kernel answers at once; this bounds the wait for a kernel that does not.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends one request, of this type and with these bytes behind its header, and returns the bodies of the reply's messages of type
/// `reply`.
///
/// # Errors
/// Returns the operating system's error, and `InvalidData` for a reply that is not one or has no end.
pub(crate) fn query(kind: u16, flags: u16, body: &[u8], reply: u16) -> io::Result<Vec<Vec<u8>>> {
    const SEQUENCE: u32 = 1;
    let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW)?;
    sys::set_timeout(fd.as_fd(), libc::SO_RCVTIMEO, PATIENCE)?;
    let mut request = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend((REQUEST | flags).to_ne_bytes());
    request.extend(SEQUENCE.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(body);
    sys::send(fd.as_fd(), &request, 0)?;
    let (mut found, mut received, mut buffer) = (Vec::new(), 0, vec![0; 1 << 17]);
    while received < REPLY_MAX {
        let length = sys::receive(fd.as_fd(), &mut buffer, 0)?;
        received += length;
        if collect(&buffer[..length], reply, &mut found)? || flags & DUMP == 0 {
            return Ok(found);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "a reply of netlink has no end"))
}

/// Adds the bodies of the messages of type `reply`, and returns whether the reply has ended.
fn collect(mut bytes: &[u8], reply: u16, found: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a message of netlink is cut short");
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0).unwrap_or(0) as usize;
        let body = bytes.get(HEADER..length).ok_or_else(invalid)?;
        match u16_at(bytes, 4).unwrap_or(0) {
            DONE => return Ok(true),
            ERROR => {
                let number = u32_at(body, 0).ok_or_else(invalid)? as i32;
                return if number == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(number.saturating_neg())) };
            }
            kind if kind == reply => found.push(body.to_vec()),
            _ => {}
        }
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
    }
    Ok(false)
}

/// Returns an iterator over types and values of attributes. It ends at one that is cut short.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Marks of a nested attribute and of one in network byte order, which stand in the type.
    const MARKS: u16 = 0xc000;
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
        Some((kind & !MARKS, value))
    })
}

/// Returns the value of the first attribute of this type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Encodes an attribute.
pub(crate) fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// Returns the text of an attribute, which ends with a zero.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|field| u16::from_ne_bytes(field.try_into().expect("two bytes")))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|field| u32::from_ne_bytes(field.try_into().expect("four bytes")))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|field| u64::from_ne_bytes(field.try_into().expect("eight bytes")))
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    #[test]
    fn messages_of_a_reply_are_collected_until_its_end() {
        let mut found = Vec::new();
        let bytes = [message(36, b"first"), message(20, b"other"), message(36, b"second")].concat();
        assert!(!collect(&bytes, 36, &mut found).unwrap());
        assert_eq!(found, [b"first".to_vec(), b"second".to_vec()]);
        assert!(collect(&message(DONE, &[0; 4]), 36, &mut found).unwrap());
        assert!(collect(&message(ERROR, &[0; 20]), 36, &mut found).unwrap());
        let refused = collect(&message(ERROR, &(-libc::ENODEV).to_ne_bytes()), 36, &mut found).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn no_bytes_panic() {
        let whole = [message(36, &encoded(1, b"tbf\0")), message(ERROR, &[])].concat();
        for length in 0..whole.len() {
            let _ = collect(&whole[..length], 36, &mut Vec::new());
            let _ = attributes(&whole[..length]).count();
        }
        for length in 0..=20 {
            let mut bytes = message(36, b"x");
            bytes[0] = length;
            let _ = collect(&bytes, 36, &mut Vec::new());
            assert!(attributes(&[length, 0, 0, 0, 0, 0]).count() <= 1);
        }
    }

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let bytes = [encoded(1, b"tbf\0"), encoded(0x8002, &[7]), encoded(3, &[])].concat();
        let read: Vec<(u16, Vec<u8>)> = attributes(&bytes).map(|(kind, value)| (kind, value.to_vec())).collect();
        assert_eq!(read, [(1, b"tbf\0".to_vec()), (2, vec![7]), (3, vec![])]);
        assert_eq!((text(&read[0].1), attribute(&bytes, 4)), ("tbf".to_owned(), None));
    }
}
