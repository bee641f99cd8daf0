use crate::wire::header::{HEADER, Header, Segment, Side};
use crate::wire::reader::{LeftOver, SHARE_FROM, frozen, slack};
use crate::{Error, Limits, Order, Reader};
use bytes::BytesMut;
use hodo_machine::{Bytes, FramePiece, Frames};

/// A payload of which at least this many bytes are outstanding is received directly into its place.
const LANDING_FROM: usize = 4096;
/// Arrays of a message begin at a multiple of this.
const ALIGNED: usize = 8;
/// The room that a message begins with when it is gathered; more is taken only as bytes come.
const ROOM: usize = 64 << 10;
/// Buffers that are kept for later messages.
const SPENT: usize = 2;
/// Finds the messages in what one peer sends.
///
/// A message that lies whole in the received bytes is read where it is. Any other is gathered, with the segments of a
/// segmented one behind each other; a long one becomes shared memory, of which its arrays are slices.
#[derive(Debug)]
pub struct Inbound {
    peer: Side,
    frames: Frames<HEADER>,
    header: Header,
    /// Command of the segmented message that is being gathered.
    segmented: Option<u8>,
    buffer: BytesMut,
    filled: usize,
    /// Bytes left free in front of a message, so that its first long array is aligned where the last one's was not.
    pad: usize,
    whole: Bytes,
    spent: [Bytes; SPENT],
}

/// One message, or one control message.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A control message.
    Control(Header),
    /// A message with all its segments.
    Message(Message<'a>),
}

/// A whole message.
#[derive(Debug)]
pub struct Message<'a> {
    /// Command of the message.
    pub command: u8,
    /// Byte order of the payload.
    pub order: Order,
    payload: Payload<'a>,
}

#[derive(Debug)]
enum Payload<'a> {
    Here(&'a [u8]),
    Shared(&'a Bytes),
}

impl<'a> Message<'a> {
    /// Returns the message of a header and the payload that stands behind it.
    #[must_use]
    pub const fn new(header: &Header, payload: &'a [u8]) -> Self {
        Message { command: header.command, order: header.order, payload: Payload::Here(payload) }
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match self.payload {
            Payload::Here(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
        }
    }

    /// Returns a reader at the front of the payload.
    #[must_use]
    pub fn reader(&self, limits: &'a Limits) -> Reader<'a> {
        match self.payload {
            Payload::Here(bytes) => Reader::new(bytes, self.order, limits),
            Payload::Shared(bytes) => Reader::shared(bytes, self.order, limits),
        }
    }
}

/// The place of a message that has just become complete.
#[derive(Clone, Copy)]
enum Complete<'a> {
    Control,
    Here(&'a [u8]),
    Gathered,
}

impl Inbound {
    /// Creates the reader of what a peer sends that plays this part.
    #[must_use]
    pub fn new(peer: Side) -> Self {
        Inbound {
            peer,
            frames: Frames::default(),
            header: Header {
                from: peer,
                order: Order::Little,
                is_control: true,
                segment: Segment::Whole,
                command: 0,
                size: 0,
            },
            segmented: None,
            buffer: BytesMut::new(),
            filled: 0,
            pad: 0,
            whole: Bytes::new(),
            spent: [const { Bytes::new() }; SPENT],
        }
    }

    /// Returns the next message that ends in `bytes`, which are taken off the front; `None` once all are taken.
    ///
    /// # Errors
    /// An [`Error`] for what is no stream of this protocol, and for a message over the limit; nothing more can be read then.
    #[inline]
    pub fn next<'s, 'a: 's>(
        &'s mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
    ) -> Result<Option<Incoming<'s>>, Error> {
        let complete = loop {
            match self.frames.next(bytes) {
                None => return Ok(None),
                Some(FramePiece::Header(header)) => {
                    if let Some(complete) = self.begin(&header, limits)? {
                        break complete;
                    }
                }
                Some(FramePiece::Body(body, left)) => {
                    let is_alone = self.filled == 0 && self.header.segment == Segment::Whole;
                    if is_alone && left == 0 {
                        break Complete::Here(body);
                    }
                    self.gather(body, left);
                    if left == 0 && self.ends() {
                        break Complete::Gathered;
                    }
                }
            }
        };
        Ok(Some(self.incoming(complete)))
    }

    /// Returns where the next bytes may be received directly, while much of a payload is outstanding.
    pub fn landing(&mut self) -> Option<&mut [u8]> {
        let left = usize::try_from(self.frames.body_left()).unwrap_or(usize::MAX);
        if left < LANDING_FROM {
            return None;
        }
        self.make_room(1, left);
        let from = self.pad + self.filled;
        let until = self.buffer.len().min(from + left);
        self.buffer.get_mut(from..until)
    }

    /// Notes that so many bytes were received at [`Inbound::landing`]; returns the message if they ended it.
    pub fn landed(&mut self, count: usize) -> Option<Incoming<'_>> {
        let left = self.frames.landed(count);
        self.filled += count;
        (left == 0 && self.ends()).then(|| self.incoming(Complete::Gathered))
    }

    /// Takes what the reading of the last message has left: memory for a later one, and where its first long array lay, so that the next
    /// one's is aligned.
    #[inline]
    pub fn recycle(&mut self, left_over: &mut LeftOver, limits: &Limits) {
        if self.whole.is_empty() {
            return;
        }
        // Whoever has the array of the message is from now on the only one.
        let whole = core::mem::take(&mut self.whole);
        self.keep(whole, limits);
        let LeftOver { first_share, memory } = core::mem::take(left_over);
        if let Some(at) = first_share {
            self.pad = at.wrapping_neg() % ALIGNED;
        }
        if let Some(memory) = memory {
            self.keep(memory, limits);
        }
    }

    /// Takes a header; returns the message if it has no payload.
    fn begin(&mut self, header: &[u8; HEADER], limits: &Limits) -> Result<Option<Complete<'static>>, Error> {
        let header = Header::decode(header)?;
        if header.from != self.peer {
            return Err(Error::SameSide);
        }
        if header.is_control {
            self.header = header;
            return Ok(Some(Complete::Control));
        }
        let command = header.command;
        self.segmented = match (header.segment, self.segmented) {
            (Segment::Whole, None) => None,
            (Segment::First, None) => Some(command),
            (Segment::Middle | Segment::Last, Some(begun)) if begun == command => Some(command),
            _ => return Err(Error::Segment { command }),
        };
        let size = self.filled as u64 + u64::from(header.size);
        if size > limits.message_bytes as u64 {
            let max = limits.message_bytes as u64;
            return Err(Error::OverLimit { what: "bytes of a message", count: size, max });
        }
        self.header = header;
        self.frames.expect_body(header.size.into());
        let is_complete = header.size == 0 && self.ends();
        Ok(is_complete.then_some(if self.filled == 0 { Complete::Here(&[]) } else { Complete::Gathered }))
    }

    /// Returns whether the message ends with the piece that is being read.
    fn ends(&self) -> bool {
        matches!(self.header.segment, Segment::Whole | Segment::Last)
    }

    fn gather(&mut self, bytes: &[u8], left: u64) {
        self.make_room(bytes.len(), bytes.len() + usize::try_from(left).unwrap_or(usize::MAX));
        let from = self.pad + self.filled;
        self.buffer[from..from + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Makes room for `need` more bytes; for up to `likely` if no more than doubles what came.
    fn make_room(&mut self, need: usize, likely: usize) {
        if self.filled == 0 && self.buffer.is_empty() {
            self.buffer = self.recycled();
        }
        let used = self.pad + self.filled;
        if self.buffer.len() >= used + need {
            return;
        }
        let length = used + likely.min(need.max(used).max(ROOM));
        if self.buffer.capacity() < length {
            let slack = if length - used == likely { slack(length) } else { 0 };
            if self.filled > 0 {
                self.buffer.reserve(length + slack - self.buffer.len());
            } else {
                // Nothing has to be moved, and the memory in front of it is used again.
                self.buffer.clear();
                if !self.buffer.try_reclaim(length) {
                    self.buffer = BytesMut::with_capacity(length + slack);
                }
            }
        }
        self.buffer.resize(length, 0);
    }

    /// Returns the largest buffer that was kept.
    fn recycled(&mut self) -> BytesMut {
        let spent = self.spent.iter_mut().max_by_key(|spent| spent.len()).map(core::mem::take).unwrap_or_default();
        let memory = spent.try_into_mut().unwrap_or_default();
        if (memory.as_ptr() as usize).is_multiple_of(ALIGNED) { memory } else { BytesMut::new() }
    }

    fn incoming<'s, 'a: 's>(&'s mut self, complete: Complete<'a>) -> Incoming<'s> {
        let Header { command, order, .. } = self.header;
        let payload = match complete {
            Complete::Control => return Incoming::Control(self.header),
            Complete::Here(bytes) => Payload::Here(bytes),
            Complete::Gathered => {
                let from = self.pad;
                let until = from + core::mem::take(&mut self.filled);
                if until - from < SHARE_FROM {
                    // The next message overwrites it, after this one was read.
                    Payload::Here(&self.buffer[from..until])
                } else {
                    self.whole = frozen(core::mem::take(&mut self.buffer)).slice(from..until);
                    Payload::Shared(&self.whole)
                }
            }
        };
        self.segmented = None;
        Incoming::Message(Message { command, order, payload })
    }

    /// Keeps a buffer that nobody else reads for a later message, in place of the smallest.
    fn keep(&mut self, buffer: Bytes, limits: &Limits) {
        if !buffer.is_unique() {
            return;
        }
        let kept: usize = self.spent.iter().map(Bytes::len).sum();
        let Some(place) = self.spent.iter_mut().min_by_key(|spent| spent.len()) else { return };
        if kept - place.len() + buffer.len() <= limits.recycled_bytes {
            *place = buffer;
        }
    }
}

#[cfg(test)]
mod tests;
