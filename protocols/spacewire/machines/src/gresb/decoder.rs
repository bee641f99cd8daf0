use super::{Command, DecoderSettings, FromHost, HEADER_LENGTH, Malformed, StatusBits, ToHost};
use crate::EndOfPacket;
use crate::stream::{Frame, Role, Stream};

/// Cuts the stream from a host into frames: the decoder of a bridge.
#[derive(Debug, Clone)]
pub struct FromHostDecoder {
    settings: DecoderSettings,
    stream: Stream<HEADER_LENGTH, Command, Malformed>,
}

/// Cuts the stream from a bridge into packets: the decoder of a host.
#[derive(Debug, Clone)]
pub struct ToHostDecoder {
    settings: DecoderSettings,
    stream: Stream<HEADER_LENGTH, Status, Malformed>,
}

/// The status of a frame to the host.
#[derive(Debug, Clone, Copy)]
struct Status {
    end: EndOfPacket,
    is_truncated: bool,
}

impl FromHostDecoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(settings: DecoderSettings) -> Self {
        FromHostDecoder { settings, stream: Stream::default() }
    }

    /// Takes the next frame off the front of `bytes`, or returns `None` once they are used up. Call it until then.
    ///
    /// A frame that lies whole in `bytes` is borrowed from there, without a copy. Others are gathered.
    ///
    /// # Errors
    /// Returns the defect of the stream, and again from then on.
    #[inline]
    pub fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<FromHost<'s>>, Malformed> {
        let limit = self.settings.body_max;
        let body = self.stream.next(bytes, |header, _| parse(header, limit, command))?;
        Ok(body.map(|(command, body)| from_host(command, body)))
    }

    /// Returns where the next bytes of the stream may be received directly, while much of a body is outstanding.
    pub fn landing(&mut self) -> Option<&mut [u8]> {
        self.stream.landing()
    }

    /// Takes in that `count` bytes were received where [`landing`](Self::landing) returned, and returns the frame if that
    /// was its rest.
    pub fn landed(&mut self, count: usize) -> Option<FromHost<'_>> {
        self.stream.landed(count).map(|(command, body)| from_host(command, body))
    }
}

impl ToHostDecoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(settings: DecoderSettings) -> Self {
        ToHostDecoder { settings, stream: Stream::default() }
    }

    /// Takes the next packet off the front of `bytes`, or returns `None` once they are used up. Call it until then.
    ///
    /// A packet that lies whole in `bytes` is borrowed from there, without a copy. Others are gathered.
    ///
    /// # Errors
    /// Returns the defect of the stream, and again from then on.
    #[inline]
    pub fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<ToHost<'s>>, Malformed> {
        let DecoderSettings { body_max, status_bits } = self.settings;
        let body = self.stream.next(bytes, |header, _| parse(header, body_max, |byte, _| status(byte, status_bits)))?;
        Ok(body.map(|(status, data)| to_host(status, data)))
    }

    /// Returns where the next bytes of the stream may be received directly, while much of a packet is outstanding.
    pub fn landing(&mut self) -> Option<&mut [u8]> {
        self.stream.landing()
    }

    /// Takes in that `count` bytes were received where [`landing`](Self::landing) returned, and returns the packet if that
    /// was its rest.
    pub fn landed(&mut self, count: usize) -> Option<ToHost<'_>> {
        self.stream.landed(count).map(|(status, data)| to_host(status, data))
    }
}

/// Parses a header, whose first byte `kind` parses together with the length.
#[inline]
fn parse<K>(
    header: &[u8; HEADER_LENGTH],
    limit: usize,
    kind: impl Fn(u8, usize) -> Result<K, Malformed>,
) -> Result<Frame<K>, Malformed> {
    let [first, high, middle, low] = *header;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    let kind = kind(first, length)?;
    if length > limit {
        return Err(Malformed::TooLarge { length, limit });
    }
    Ok(Frame { kind, role: Role::Last, length })
}

#[inline]
fn command(byte: u8, length: usize) -> Result<Command, Malformed> {
    match Command::from_code(byte) {
        None => Err(Malformed::UnknownCommand(byte)),
        Some(Command::SendTimeCode) if length != 1 => Err(Malformed::TimeCodeLength(length)),
        Some(command) => Ok(command),
    }
}

#[inline]
fn status(byte: u8, bits: StatusBits) -> Result<Status, Malformed> {
    let (truncated, eep) = bits.masks();
    if byte & !(truncated | eep) != 0 {
        return Err(Malformed::UnknownStatus(byte));
    }
    let end = if byte & eep != 0 { EndOfPacket::Eep } else { EndOfPacket::Eop };
    Ok(Status { end, is_truncated: byte & truncated != 0 })
}

#[inline]
fn from_host(command: Command, body: &[u8]) -> FromHost<'_> {
    match command {
        Command::Packet => FromHost::Packet(body),
        Command::SetConfiguration => FromHost::SetConfiguration(body),
        Command::ReadConfiguration => FromHost::ReadConfiguration(body),
        Command::SendTimeCode => FromHost::SendTimeCode(body.first().copied().unwrap_or_default()),
    }
}

#[inline]
fn to_host(status: Status, data: &[u8]) -> ToHost<'_> {
    ToHost { data, end: status.end, is_truncated: status.is_truncated }
}
