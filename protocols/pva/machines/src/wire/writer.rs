use crate::Order;
use crate::wire::header::{HEADER, Header, Segment, Side};
use alloc::vec::Vec;
use hodo_machine::{Bytes, Outbox};

/// The largest payload that is sent in one piece, unless a [`Writer`] is told otherwise: the size is a number of 32 bits.
const SEGMENT_BYTES: usize = 0xFFFF_FFF8;

/// Writes messages one behind the other; long arrays are shared, not copied.
///
/// A connection keeps one for its whole life, so that nothing is allocated per message once it has grown.
#[derive(Debug)]
pub struct Writer {
    from: Side,
    order: Order,
    segment_bytes: usize,
    bytes: Vec<u8>,
    /// Segments, and how many of `bytes` stand before each.
    shares: Vec<(usize, Bytes)>,
    shared_bytes: usize,
    message: Start,
}

/// The place where the message that is being written began.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    bytes: usize,
    shares: usize,
    shared_bytes: usize,
}

impl Writer {
    /// Creates a writer of one side's messages.
    #[must_use]
    pub fn new(from: Side, order: Order) -> Self {
        Writer {
            from,
            order,
            segment_bytes: SEGMENT_BYTES,
            bytes: Vec::new(),
            shares: Vec::new(),
            shared_bytes: 0,
            message: Start::default(),
        }
    }

    /// Cuts messages whose payload is longer into segments of so many bytes.
    #[must_use]
    pub fn with_segments_of(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes.clamp(1, SEGMENT_BYTES);
        self
    }

    /// Returns the byte order of the messages.
    #[must_use]
    #[inline]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Sets the byte order of the next messages.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Returns the bytes that wait to be sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    /// Tells whether nothing waits to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a message.
    #[inline]
    pub fn begin(&mut self, command: u8) {
        self.message = Start { bytes: self.bytes.len(), shares: self.shares.len(), shared_bytes: self.shared_bytes };
        let header = self.header(command, false, Segment::Whole, 0);
        self.bytes.extend_from_slice(&header.encode());
    }

    /// Ends the message: its size goes into its header, and it is cut into segments if it is long.
    #[inline]
    pub fn end(&mut self) {
        let at = self.message.bytes;
        let size = self.len() - at - self.message.shared_bytes - HEADER;
        if size > self.segment_bytes {
            self.cut(size);
        } else {
            self.bytes[at + 4..at + HEADER].copy_from_slice(&self.order.bytes_32(size as u32));
        }
    }

    /// Drops the message that was begun.
    pub fn abandon(&mut self) {
        self.bytes.truncate(self.message.bytes);
        self.shares.truncate(self.message.shares);
        self.shared_bytes = self.message.shared_bytes;
    }

    /// Writes a control message.
    pub fn control(&mut self, kind: crate::wire::Control, data: u32) {
        let header = Header { size: data, ..self.header(kind.code(), true, Segment::Whole, 0) };
        self.bytes.extend_from_slice(&header.encode());
    }

    /// Hands the messages over, and keeps the room.
    #[inline]
    pub fn flush(&mut self, out: &mut Outbox) {
        let mut from = 0;
        for (until, segment) in self.shares.drain(..) {
            out.copy(&self.bytes[from..until]);
            out.share(segment);
            from = until;
        }
        out.copy(&self.bytes[from..]);
        self.clear();
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a shared segment.
    #[inline]
    pub fn share(&mut self, segment: Bytes) {
        self.shared_bytes += segment.len();
        self.shares.push((self.bytes.len(), segment));
    }

    /// Appends a byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes(&self.order.bytes_16(value));
    }

    /// Appends four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&self.order.bytes_32(value));
    }

    /// Appends eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&self.order.bytes_64(value));
    }

    /// Appends a size, in the shortest form.
    #[inline]
    pub fn size(&mut self, size: u64) {
        match size {
            0..0xFE => self.u8(size as u8),
            0xFE..0x7FFF_FFFF => {
                self.u8(0xFE);
                self.u32(size as u32);
            }
            _ => {
                self.u8(0xFE);
                self.u32(0x7FFF_FFFF);
                self.u64(size);
            }
        }
    }

    /// Appends the null size.
    #[inline]
    pub fn null(&mut self) {
        self.u8(0xFF);
    }

    /// Appends a text: its size, and its bytes.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        self.size(text.len() as u64);
        self.bytes(text);
    }

    /// Returns what waits to be sent as one run of bytes. For tests.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.append_to(&mut all);
        all
    }

    /// Appends the messages to a datagram, and keeps the room.
    pub fn move_to(&mut self, datagram: &mut Vec<u8>) {
        self.append_to(datagram);
        self.clear();
    }

    /// Drops what waits to be sent, and keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shares.clear();
        self.shared_bytes = 0;
        self.message = Start::default();
    }

    fn append_to(&self, all: &mut Vec<u8>) {
        let mut from = 0;
        for (until, segment) in &self.shares {
            all.extend_from_slice(&self.bytes[from..*until]);
            all.extend_from_slice(segment);
            from = *until;
        }
        all.extend_from_slice(&self.bytes[from..]);
    }

    fn header(&self, command: u8, is_control: bool, segment: Segment, size: usize) -> Header {
        Header { from: self.from, order: self.order, is_control, segment, command, size: size as u32 }
    }

    /// Writes the last message again, in segments.
    fn cut(&mut self, mut left: usize) {
        let Start { bytes: at, shares, .. } = self.message;
        let command = self.bytes[at + 3];
        let message = self.bytes.split_off(at);
        let mut runs: Vec<Bytes> = Vec::new();
        let body = Bytes::from(message).slice(HEADER..);
        let mut from = 0;
        for (until, segment) in self.shares.split_off(shares) {
            let until = until - at - HEADER;
            runs.extend([body.slice(from..until), segment]);
            from = until;
        }
        runs.push(body.slice(from..));
        self.shared_bytes = self.message.shared_bytes;
        let mut runs = runs.into_iter().filter(|run| !run.is_empty());
        let mut run = Bytes::new();
        let mut place = Segment::First;
        while left > 0 {
            let size = left.min(self.segment_bytes);
            left -= size;
            place = if left == 0 { Segment::Last } else { place };
            let header = self.header(command, false, place, size);
            self.bytes.extend_from_slice(&header.encode());
            let mut missing = size;
            while missing > 0 {
                if run.is_empty() {
                    run = runs.next().expect("the runs hold as many bytes as the segments");
                }
                let piece = run.split_to(missing.min(run.len()));
                missing -= piece.len();
                self.share(piece);
            }
            place = Segment::Middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_size_and_shares_long_arrays() {
        let mut writer = Writer::new(Side::Server, Order::Big);
        writer.begin(10);
        writer.u16(0x0102);
        let long = Bytes::from(alloc::vec![9; 5000]);
        writer.share(long.clone());
        writer.u8(3);
        writer.end();
        let bytes = writer.to_vec();
        assert_eq!(bytes[..10], [0xCA, 2, 0xC0, 10, 0, 0, 0x13, 0x8B, 1, 2]);
        assert_eq!((bytes.len(), writer.len(), bytes[bytes.len() - 1]), (5011, 5011, 3));
        let mut out = Outbox::new();
        writer.flush(&mut out);
        assert_eq!(out.bytes(&out.pieces()[1]).as_ptr(), long.as_ptr(), "no copy");
        assert!(writer.is_empty());
    }

    #[test]
    fn a_message_that_is_given_up_leaves_nothing() {
        let mut writer = Writer::new(Side::Client, Order::Little);
        writer.begin(2);
        writer.bytes(b"kept");
        writer.end();
        let before = writer.to_vec();
        writer.begin(11);
        writer.u64(1);
        writer.share(Bytes::from_static(b"shared"));
        writer.abandon();
        assert_eq!(writer.to_vec(), before);
    }

    #[test]
    fn long_messages_leave_in_segments() {
        let mut writer = Writer::new(Side::Client, Order::Little).with_segments_of(4);
        writer.begin(11);
        writer.bytes(b"abc");
        writer.share(Bytes::from_static(b"defgh"));
        writer.bytes(b"i");
        writer.end();
        let segments: [&[u8]; 3] =
            [b"\xCA\x02\x10\x0B\x04\0\0\0abcd", b"\xCA\x02\x30\x0B\x04\0\0\0efgh", b"\xCA\x02\x20\x0B\x01\0\0\0i"];
        assert_eq!(writer.to_vec(), segments.concat());
    }
}
