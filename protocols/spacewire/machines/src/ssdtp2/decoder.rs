use super::{Flag, HEADER_LENGTH, Malformed, Message};
use crate::EndOfPacket;
use crate::stream::{Frame, Role, Stream};

/// Bytes of a time-code or a divider.
const CONTROL_LENGTH: usize = 2;
/// Bytes of the longest register frame. Their layout is not known; this is far more than a register has.
const REGISTER_MAX: usize = 4096;

/// The settings of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderSettings {
    /// Bytes of the longest packet, with all its fragments. Bounds the memory of a connection, to about twice as much.
    pub packet_max: usize,
    /// The treatment of packets without a byte.
    pub empty_packets: EmptyPackets,
}

/// The treatment of packets without a byte, which a link cannot transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EmptyPackets {
    /// Skip them, as SpaceWireRMAPLibrary does.
    #[default]
    Skip,
    /// Refuse them as an error of the stream, as spw_rmap does.
    Refuse,
    /// Deliver them.
    Deliver,
}

impl Default for DecoderSettings {
    /// Returns settings for packets of up to 16 MiB, without the empty ones.
    fn default() -> Self {
        DecoderSettings { packet_max: 16 << 20, empty_packets: EmptyPackets::Skip }
    }
}

/// Cuts one direction of a connection into messages.
///
/// ```
/// use hodo_spacewire::EndOfPacket::Eop;
/// use hodo_spacewire::ssdtp2::{Decoder, DecoderSettings, Message, encode_packets};
///
/// let mut sent = Vec::new();
/// encode_packets([(&b"abc"[..], Eop), (b"de", Eop)], &mut sent);
/// let mut decoder = Decoder::new(DecoderSettings::default());
/// let mut received = &sent[..];
/// assert_eq!(decoder.next(&mut received), Ok(Some(Message::Packet { data: b"abc", end: Eop })));
/// assert_eq!(decoder.next(&mut received), Ok(Some(Message::Packet { data: b"de", end: Eop })));
/// assert_eq!(decoder.next(&mut received), Ok(None));
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    settings: DecoderSettings,
    stream: Stream<HEADER_LENGTH, Flag, Malformed>,
}

impl Decoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(settings: DecoderSettings) -> Self {
        Decoder { settings, stream: Stream::default() }
    }

    /// Takes the next message off the front of `bytes`, or returns `None` once they are used up. Call it until then.
    ///
    /// A message that lies whole in `bytes` is borrowed from there, without a copy. Others are gathered.
    ///
    /// # Errors
    /// Returns the defect of the stream, and again from then on.
    #[inline]
    pub fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<Message<'s>>, Malformed> {
        let settings = self.settings;
        let body = self.stream.next(bytes, |header, gathered| parse(header, gathered, &settings))?;
        Ok(body.map(|(flag, body)| message(flag, body)))
    }

    /// Returns where the next bytes of the stream may be received directly, while much of a packet is outstanding.
    pub fn landing(&mut self) -> Option<&mut [u8]> {
        self.stream.landing()
    }

    /// Takes in that `count` bytes were received where [`landing`](Self::landing) returned, and returns the packet if that
    /// was its rest.
    pub fn landed(&mut self, count: usize) -> Option<Message<'_>> {
        self.stream.landed(count).map(|(flag, body)| message(flag, body))
    }
}

/// Parses a header that follows fragments of so many bytes.
#[inline]
fn parse(header: &[u8; HEADER_LENGTH], gathered: usize, settings: &DecoderSettings) -> Result<Frame<Flag>, Malformed> {
    let [code, _, length @ ..] = *header;
    let kind = Flag::from_code(code).ok_or(Malformed::UnknownFlag(code))?;
    let mut wide = [0; 16];
    wide[6..].copy_from_slice(&length);
    let length = u128::from_be_bytes(wide);
    let (role, before, limit) = match kind {
        Flag::CompleteEop | Flag::CompleteEep => (Role::Last, gathered, settings.packet_max),
        Flag::Fragment => (Role::Fragment, gathered, settings.packet_max),
        Flag::SendTimeCode | Flag::GotTimeCode | Flag::ChangeSpeed if length != CONTROL_LENGTH as u128 => {
            return Err(Malformed::ControlLength { flag: kind, length });
        }
        Flag::SendTimeCode | Flag::GotTimeCode | Flag::ChangeSpeed => (Role::Aside, 0, CONTROL_LENGTH),
        Flag::RegisterRead | Flag::RegisterReadReply | Flag::RegisterWrite | Flag::RegisterWriteReply => {
            (Role::Aside, 0, REGISTER_MAX)
        }
    };
    let total = before as u128 + length;
    if total > limit as u128 {
        return Err(Malformed::TooLarge { length: total, limit });
    }
    let role = match (role, total, settings.empty_packets) {
        (Role::Last, 0, EmptyPackets::Skip) => Role::Skipped,
        (Role::Last, 0, EmptyPackets::Refuse) => return Err(Malformed::Empty),
        (role, ..) => role,
    };
    Ok(Frame { kind, role, length: length as usize })
}

#[inline]
fn message(flag: Flag, body: &[u8]) -> Message<'_> {
    let first = || body.first().copied().unwrap_or_default();
    match flag {
        // Fragments are gathered and come out under the flag of the last one.
        Flag::CompleteEop | Flag::Fragment => Message::Packet { data: body, end: EndOfPacket::Eop },
        Flag::CompleteEep => Message::Packet { data: body, end: EndOfPacket::Eep },
        Flag::SendTimeCode => Message::SendTimeCode(first()),
        Flag::GotTimeCode => Message::GotTimeCode(first()),
        Flag::ChangeSpeed => Message::ChangeSpeed(first()),
        Flag::RegisterRead => Message::RegisterRead(body),
        Flag::RegisterReadReply => Message::RegisterReadReply(body),
        Flag::RegisterWrite => Message::RegisterWrite(body),
        Flag::RegisterWriteReply => Message::RegisterWriteReply(body),
    }
}
