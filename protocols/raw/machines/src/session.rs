use crate::Error;
use crate::wire::updates::STAMP;
use crate::wire::{HEADER, Header, INTACT, Kind, extra_over_udp, is_intact};
use alloc::vec::Vec;
use crc32fast::Hasher;
use hodo_machine::{FramePiece, Frames};

/// Finds the messages in what one peer sends. Payloads are counted and let go; bodies of the other kinds are gathered, and
/// the stamps of updates.
#[derive(Debug)]
pub(crate) struct Inbound {
    frames: Frames<HEADER>,
    header: Header,
    control: Vec<u8>,
    control_max: usize,
    /// The checksum so far of the message that is coming in, where payloads are checked.
    check: Option<Hasher>,
    is_damaged: bool,
}

impl Inbound {
    /// Creates the reader of a peer that sends at most `control_max` bytes behind a header that is not a payload's.
    pub(crate) fn new(control_max: usize) -> Self {
        Inbound {
            frames: Frames::default(),
            header: Header::new(Kind::Goodbye, 0, 0),
            control: Vec::new(),
            control_max,
            check: None,
            is_damaged: false,
        }
    }

    /// Has payloads checked from now on, or not.
    pub(crate) fn check_payloads(&mut self, on: bool) {
        self.check = on.then(Hasher::new);
    }

    /// Returns whether payloads are checked.
    #[inline]
    pub(crate) fn checks_payloads(&self) -> bool {
        self.check.is_some()
    }

    /// Returns whether the last message is known not to be as it was sent.
    #[inline]
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Checks a whole datagram with this header.
    #[inline]
    pub(crate) fn check_datagram(&mut self, header: &Header, datagram: &[u8]) {
        self.is_damaged = self.check.is_some() && header.has_checksum() && !is_intact(datagram);
    }

    /// Returns the next message that ends in `bytes`, which are taken off the front.
    #[inline]
    pub(crate) fn next(&mut self, bytes: &mut &[u8], size_max: u32) -> Result<Option<Header>, Error> {
        while let Some(piece) = self.frames.next(bytes) {
            match piece {
                FramePiece::Header(header) => {
                    self.header = self.bounded(Header::decode(&header)?, size_max)?;
                    self.control.clear();
                    let body = self.header.body();
                    if let Some(check) = &mut self.check {
                        self.is_damaged = false;
                        *check = Hasher::new();
                        check.update(&header);
                    }
                    if body == 0 {
                        return Ok(Some(self.header));
                    }
                    self.frames.expect_body(body as u64);
                }
                FramePiece::Body(body, left) => {
                    if let Some(check) = &mut self.check
                        && self.header.has_checksum()
                    {
                        check.update(body);
                        self.is_damaged = left == 0 && check.clone().finalize() != INTACT;
                    }
                    if self.header.kind == Kind::Update {
                        let missing = STAMP - self.control.len();
                        self.control.extend_from_slice(&body[..missing.min(body.len())]);
                    } else if !self.header.kind.is_payload() {
                        self.control.extend_from_slice(body);
                    }
                    if left == 0 {
                        return Ok(Some(self.header));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the body of the last message that is not a payload, or the stamp of an update.
    pub(crate) fn control(&self) -> &[u8] {
        &self.control
    }

    /// Bytes of payload still to come, where nothing else needs to be looked at before them.
    #[inline]
    pub(crate) fn payload_left(&self) -> usize {
        let is_gathered = self.header.kind == Kind::Update && self.control.len() < STAMP;
        if self.header.kind.is_payload() && !is_gathered { self.frames.body_left() as usize } else { 0 }
    }

    /// Notes that so many bytes of payload were received elsewhere; answers the message when that ended it.
    pub(crate) fn landed(&mut self, count: usize) -> Option<Header> {
        (self.frames.landed(count) == 0).then_some(self.header)
    }

    fn bounded(&self, header: Header, size_max: u32) -> Result<Header, Error> {
        let is_size = header.kind.is_payload() || header.kind == Kind::Receive;
        let max = if is_size { size_max } else { self.control_max as u32 };
        if header.length > max { Err(Error::TooLarge { size: header.length, max }) } else { Ok(header) }
    }
}

/// Splits a datagram into the header of its one message and the bytes behind it.
#[inline]
pub(crate) fn datagram(bytes: &[u8], size_max: u32) -> Result<(Header, &[u8]), Error> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Error::Length { told: HEADER, came: bytes.len() });
    };
    let header = Header::decode(header)?;
    if header.kind.is_payload() && header.length > size_max {
        return Err(Error::TooLarge { size: header.length, max: size_max });
    }
    let told = header.body() + extra_over_udp(header.kind);
    if told != body.len() {
        return Err(Error::Length { told: HEADER.saturating_add(told), came: bytes.len() });
    }
    Ok((header, body))
}
