use crate::Error;
use crate::pool::Pool;
use crate::wire::{APART, HEADER, Header, Hello, Kind, Lacks, TEXT_MAX, TOKEN, Token};
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::Range;

/// A payload is received straight into its place while this much of it is outstanding.
const LANDING_FROM: usize = 4096;

/// The messages in what one peer sends.
#[derive(Debug)]
pub(crate) struct Inbound {
    head: [u8; TOKEN],
    filled: usize,
    body: Option<Body>,
}

/// The bounds on what a peer may send, and whether payloads are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intake {
    /// The largest event in bytes; 0 where none is expected.
    pub event_max: u32,
    /// The most data behind a token; 0 where no token is expected.
    pub data_max: u32,
    /// Whether events' bytes are kept; else they are counted and let go.
    pub keep: bool,
}

#[derive(Debug)]
struct Body {
    head: Head,
    /// None where the bytes are not kept.
    buffer: Option<BytesMut>,
    filled: usize,
    length: usize,
}

#[derive(Debug, Clone, Copy)]
enum Head {
    Plain(Header),
    Token(Token),
}

/// One whole message.
#[derive(Debug)]
pub(crate) enum Message {
    Hello(Hello),
    /// An event of this length; its bytes where they are kept.
    Event {
        kind: Kind,
        event: u64,
        length: u32,
        payload: Option<Bytes>,
    },
    Token(Token, Bytes),
    /// A token whose data has not come yet: whoever asked for none refuses the peer before there is room for it.
    Begins(Token),
    Run(u32),
    /// The events behind it are fragments of this run for the quarantine.
    Apart(u32),
    Ping(u64),
    Pong,
    Drain,
    /// Up to which number a source gives events, or is to.
    Ends(u64),
    Refused(u64),
    Report(u64),
    Counters(Bytes),
    /// The fragment of this run and event is whole at its builder.
    Here(u32, u64),
    /// The builder lacks these parts of it.
    Lacks(u32, u64, Vec<Range<u32>>),
}

impl Intake {
    /// The intake from a peer that may send neither events nor tokens.
    pub(crate) const NONE: Intake = Intake { event_max: 0, data_max: 0, keep: true };
}

impl Head {
    const fn kind(&self) -> Kind {
        match self {
            Head::Plain(header) => header.kind,
            Head::Token(_) => Kind::Token,
        }
    }
}

impl Message {
    /// Returns the kind on the wire.
    pub(crate) const fn kind(&self) -> u8 {
        match self {
            Message::Hello(_) => Kind::Hello.code(),
            Message::Event { kind, .. } => kind.code(),
            Message::Token(..) | Message::Begins(_) => Kind::Token.code(),
            Message::Run(_) | Message::Apart(_) => Kind::Run.code(),
            Message::Ping(_) => Kind::Ping.code(),
            Message::Pong => Kind::Pong.code(),
            Message::Drain | Message::Ends(_) => Kind::Drain.code(),
            Message::Refused(_) => Kind::Refused.code(),
            Message::Report(_) => Kind::Report.code(),
            Message::Counters(..) => Kind::Counters.code(),
            Message::Here(..) => Kind::Here.code(),
            Message::Lacks(..) => Kind::Lacks.code(),
        }
    }
}

impl Default for Inbound {
    fn default() -> Self {
        Inbound { head: [0; TOKEN], filled: 0, body: None }
    }
}

impl Inbound {
    /// Takes the next message off the front of `bytes`, or nothing where the rest is a part of one, which is kept.
    #[inline]
    pub(crate) fn next(
        &mut self,
        bytes: &mut &[u8],
        intake: &Intake,
        pool: &mut Pool,
    ) -> Result<Option<Message>, Error> {
        loop {
            if self.body.is_some() {
                return self.fill(bytes, pool);
            }
            let Some(head) = self.head(bytes)? else { return Ok(None) };
            let (length, max, keep) = match head {
                Head::Token(token) => (token.length, intake.data_max, true),
                Head::Plain(header) if header.kind.is_event() => (header.length, intake.event_max, intake.keep),
                Head::Plain(header) => (header.length, TEXT_MAX, true),
            };
            if length > max {
                let kind = head.kind().code();
                return Err(if max == 0 { Error::Unexpected { kind } } else { Error::TooLarge { size: length, max } });
            }
            let length = length as usize;
            if (length == 0 || !keep)
                && let Some(rest) = bytes.get(length..)
            {
                *bytes = rest;
                return message(head, None).map(Some);
            }
            let buffer = match head {
                Head::Token(_) => Some(BytesMut::new()),
                Head::Plain(_) => keep.then(|| pool.take(length)),
            };
            self.body = Some(Body { head, buffer, filled: 0, length });
            if let Head::Token(token) = head
                && bytes.len() < length
            {
                return Ok(Some(Message::Begins(token)));
            }
        }
    }

    /// Takes a whole header, or a token's.
    #[inline]
    fn head(&mut self, bytes: &mut &[u8]) -> Result<Option<Head>, Error> {
        if self.filled == 0 {
            if let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() {
                let header = Header::decode(head)?;
                if header.kind != Kind::Token {
                    *bytes = rest;
                    return Ok(Some(Head::Plain(header)));
                }
                if let Some((head, rest)) = bytes.split_first_chunk::<TOKEN>() {
                    *bytes = rest;
                    return Token::decode(head).map(|token| Some(Head::Token(token)));
                }
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
        self.gather(bytes, HEADER);
        let Some(head) = self.head[..self.filled].first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::decode(head)?;
        if header.kind != Kind::Token {
            self.filled = 0;
            return Ok(Some(Head::Plain(header)));
        }
        self.gather(bytes, TOKEN);
        if self.filled < TOKEN {
            return Ok(None);
        }
        self.filled = 0;
        Token::decode(&self.head).map(|token| Some(Head::Token(token)))
    }

    fn gather(&mut self, bytes: &mut &[u8], up_to: usize) {
        let take = up_to.saturating_sub(self.filled).min(bytes.len());
        let (front, rest) = bytes.split_at(take);
        self.head[self.filled..self.filled + take].copy_from_slice(front);
        self.filled += take;
        *bytes = rest;
    }

    #[inline]
    fn fill(&mut self, bytes: &mut &[u8], pool: &mut Pool) -> Result<Option<Message>, Error> {
        let Some(body) = &mut self.body else { return Ok(None) };
        while body.filled < body.length && !bytes.is_empty() {
            let mut take = (body.length - body.filled).min(bytes.len());
            if let Some(buffer) = &mut body.buffer {
                if body.filled == buffer.len() {
                    pool.extend(buffer, body.length)?;
                }
                take = take.min(buffer.len() - body.filled);
                buffer[body.filled..body.filled + take].copy_from_slice(&bytes[..take]);
            }
            body.filled += take;
            *bytes = &bytes[take..];
        }
        if body.filled < body.length {
            return Ok(None);
        }
        pool.arrived(self.arriving());
        let Some(Body { head, buffer, .. }) = self.body.take() else { return Ok(None) };
        message(head, buffer.map(BytesMut::freeze)).map(Some)
    }

    /// Returns the room for the data behind a token that is arriving.
    pub(crate) fn arriving(&self) -> usize {
        match &self.body {
            Some(Body { head: Head::Token(_), buffer: Some(buffer), .. }) => buffer.len(),
            _ => 0,
        }
    }

    /// Tells whether a part of a message has come.
    pub(crate) const fn is_amid(&self) -> bool {
        self.filled > 0 || self.body.is_some()
    }

    /// Returns where the rest of a large payload may be received directly.
    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        let body = self.body.as_mut()?;
        let filled = body.filled;
        body.buffer.as_mut().map(|buffer| &mut buffer[filled..]).filter(|room| room.len() >= LANDING_FROM)
    }

    /// Notes that `count` bytes were received there; [`Inbound::next`] then returns the message if it is whole.
    pub(crate) fn landed(&mut self, count: usize) {
        if let Some(body) = &mut self.body {
            body.filled = (body.filled + count).min(body.length);
        }
    }
}

#[inline]
fn message(head: Head, body: Option<Bytes>) -> Result<Message, Error> {
    let header = match head {
        Head::Token(token) => return Ok(Message::Token(token, body.unwrap_or_default())),
        Head::Plain(header) => header,
    };
    let Header { kind, length, value } = header;
    if kind.is_event() && (kind != Kind::Skip || length == 0) {
        return Ok(Message::Event { kind, event: value, length, payload: body });
    }
    let body = body.unwrap_or_default();
    Ok(match kind {
        Kind::Hello => Message::Hello(Hello::decode(&header, &body)?),
        Kind::Run => match (u32::try_from(value), u32::try_from(value ^ APART)) {
            (Ok(run), _) => Message::Run(run),
            (_, Ok(run)) => Message::Apart(run),
            _ => return Err(Error::NoSuchRun { run: u32::MAX }),
        },
        Kind::Ping => Message::Ping(value),
        Kind::Pong => Message::Pong,
        Kind::Drain if value == 0 => Message::Drain,
        Kind::Drain => Message::Ends(value),
        Kind::Refused => Message::Refused(value),
        Kind::Report => Message::Report(value),
        Kind::Counters => Message::Counters(body),
        Kind::Here => Message::Here(Lacks::decode(value, &body)?.run, value),
        Kind::Lacks => {
            let Lacks { run, event, parts } = Lacks::decode(value, &body)?;
            Message::Lacks(run, event, parts)
        }
        Kind::Event | Kind::Partial | Kind::Skip | Kind::Token | Kind::Segment => {
            return Err(Error::Unexpected { kind: kind.code() });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Verdict;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;
    use hodo_machine::Random;

    const INTAKE: Intake = Intake { event_max: 10_000, data_max: 10_000, keep: true };

    fn token(length: u32) -> Token {
        Token {
            event: 3,
            verdict: Verdict::Accepted,
            credits: 1,
            flags: 0,
            run: 1,
            waited_us: 0,
            decided_us: 9,
            length,
        }
    }

    #[test]
    fn the_same_messages_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        stream.extend(Header::new(Kind::Event, 5000, 1).encode());
        stream.extend(vec![7; 5000]);
        stream.extend(token(0).encode());
        stream.extend(token(20).encode());
        stream.extend([9; 20]);
        stream.extend(Header::new(Kind::Ping, 0, 77).encode());
        let whole = read(&stream, stream.len());
        assert_eq!(whole.matches("payload").count(), 1);
        for cut in [1, 2, 11, 12, 13, 27, 28, 29, 4999, 5012] {
            assert_eq!(read(&stream, cut), whole, "cut {cut}");
        }
    }

    fn read(stream: &[u8], cut: usize) -> String {
        let (mut inbound, mut pool, mut text) = (Inbound::default(), Pool::default(), String::new());
        for chunk in stream.chunks(cut) {
            let mut rest = chunk;
            while let Some(message) = inbound.next(&mut rest, &INTAKE, &mut pool).unwrap() {
                if !matches!(message, Message::Begins(_)) {
                    text += &format!("{message:?}\n");
                }
            }
        }
        text
    }

    #[test]
    fn a_large_payload_lands_in_its_place() {
        let (mut inbound, mut pool) = (Inbound::default(), Pool::default());
        let mut bytes = Header::new(Kind::Event, 9000, 4).encode().to_vec();
        bytes.extend([1; 100]);
        assert!(inbound.next(&mut &bytes[..], &INTAKE, &mut pool).unwrap().is_none());
        let place = inbound.landing().unwrap();
        assert_eq!(place.len(), 8900);
        place.fill(2);
        inbound.landed(8900);
        let Some(Message::Event { payload, .. }) = inbound.next(&mut &[][..], &INTAKE, &mut pool).unwrap() else {
            panic!("no event")
        };
        let payload = payload.unwrap();
        assert_eq!((payload[99], payload[100], payload.len()), (1, 2, 9000));
    }

    #[test]
    fn data_behind_a_token_has_room_as_it_comes() {
        let intake = Intake { data_max: 16 << 20, ..INTAKE };
        let (mut inbound, mut pool) = (Inbound::default(), Pool::with_arriving(1 << 20));
        let mut next = |bytes: &[u8]| {
            let found = inbound.next(&mut &bytes[..], &intake, &mut pool);
            (found.map(|message| message.map(|message| message.kind())), inbound.arriving())
        };
        assert_eq!(next(&token(16 << 20).encode()), (Ok(Some(Kind::Token.code())), 0), "28 bytes cost nothing");
        assert_eq!(next(&[1]), (Ok(None), 64 << 10));
        assert_eq!(next(&[1; 64 << 10]), (Ok(None), 128 << 10));
        assert_eq!(next(&[1; 900 << 10]), (Ok(None), 1 << 20));
        assert_eq!(next(&[1; 100 << 10]).0, Err(Error::OverData { max: 1 << 20 }));
    }

    #[test]
    fn room_is_given_back_when_the_data_is_whole() {
        let (mut inbound, mut pool) = (Inbound::default(), Pool::with_arriving(10_000));
        for _ in 0..3 {
            for bytes in [&token(10_000).encode()[..], &[1; 9_999], &[1]] {
                let found = inbound.next(&mut &bytes[..], &INTAKE, &mut pool).unwrap();
                assert_eq!(matches!(found, Some(Message::Token(..))), bytes.len() == 1);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        'stream: for seed in 0..3000 {
            let mut random = Random::new(seed);
            let (mut inbound, mut pool) = (Inbound::default(), Pool::default());
            for _ in 0..20 {
                let length = random.below(60) as usize;
                let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
                if random.chance(0.5) && length > 4 {
                    bytes[3] = (random.below(13) as u8) << 4;
                }
                let mut rest = &bytes[..];
                loop {
                    match inbound.next(&mut rest, &INTAKE, &mut pool) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => continue 'stream,
                    }
                }
            }
        }
    }
}
