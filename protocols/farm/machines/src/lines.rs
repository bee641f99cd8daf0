use crate::Error;
use crate::inbound::{Inbound, Intake, Message};
use crate::pool::Pool;
use crate::wire::{HEADER, Header, Kind, TOKEN};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Instant, Outbox, Output, Peer, Peers, Timers};

/// Bytes of small messages in one datagram.
const DATAGRAM: usize = 1400;
/// Bytes of small messages that a peer may leave untaken.
pub(crate) const OWED_MAX: usize = 1 << 20;
/// Between two looks at a connection there is less, unless this side was stopped itself.
const STOPPED: Duration = Duration::from_millis(300);
/// How often a peer is asked from amid a long message of its.
const AMID: Duration = Duration::from_millis(100);
/// A silent peer is asked after this part of the bound, and as often again.
const ASKED: u32 = 4;

/// The connections of a machine: what comes from each, and the small messages that are owed to it.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    pub(crate) peers: Peers<Line<R>>,
    pub(crate) pool: Pool,
    /// When each peer is to be looked at.
    looks: Timers<Peer>,
    ready: VecDeque<Peer>,
    closing: VecDeque<Ending>,
    /// Whether what is said goes as datagrams: whole messages, not too many in each.
    datagrams: bool,
    spare: Vec<Vec<u8>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line<R> {
    /// State of the connection, as its machine keeps it.
    pub(crate) state: R,
    pub(crate) inbound: Inbound,
    /// Bounds on what the peer may send.
    pub(crate) intake: Intake,
    /// Small messages that are to be sent.
    out: Vec<u8>,
    /// Data that belongs behind so many bytes of them.
    data: VecDeque<(usize, Bytes)>,
    queued: bool,
    /// Hold everything back until the peer has taken what was sent.
    pub(crate) blocked: bool,
    /// When something last came.
    pub(crate) heard: Instant,
    /// When it was last asked whether it is there.
    pinged: Instant,
    /// When it was last looked whether it is silent.
    looked: Instant,
}

/// A connection that is ended here, and what is still owed to it.
#[derive(Debug)]
struct Ending {
    peer: Peer,
    out: Vec<u8>,
    data: VecDeque<(usize, Bytes)>,
}

/// A connection that the driver reports as gone.
#[derive(Debug)]
pub(crate) enum Gone<R> {
    /// This.
    Was(R),
    /// It had been ended here, which has had its consequences.
    Ended,
    /// It had never come to be.
    Never,
}

/// How a silent connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Something came lately, or was asked for.
    Short,
    /// Nothing came for too long.
    Long,
}

impl<R> Default for Lines<R> {
    fn default() -> Self {
        Lines {
            peers: Peers::default(),
            pool: Pool::default(),
            looks: Timers::default(),
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            datagrams: false,
            spare: Vec::new(),
        }
    }
}

impl<R> Lines<R> {
    /// Creates a table of connections over streams, or over datagrams.
    pub(crate) fn over(datagrams: bool) -> Self {
        Lines { datagrams, ..Lines::default() }
    }

    /// Creates a table of connections with a bound on the data behind tokens that is arriving.
    pub(crate) fn with_arriving(bytes_max: u64) -> Self {
        Lines { pool: Pool::with_arriving(bytes_max), ..Lines::default() }
    }

    /// Adds a connection, which is looked at for the first time when its greeting is late.
    pub(crate) fn insert(&mut self, now: Instant, peer: Peer, state: R, intake: Intake, greeting: Duration) {
        let line = Line {
            state,
            inbound: Inbound::default(),
            intake,
            out: self.spare.pop().unwrap_or_default(),
            data: VecDeque::new(),
            queued: false,
            blocked: false,
            heard: now,
            pinged: now,
            looked: now,
        };
        self.peers.insert(peer, line);
        self.looks.arm(peer, now + greeting);
    }

    #[inline]
    pub(crate) fn at(&mut self, peer: Peer) -> Option<&mut Line<R>> {
        self.peers.at(peer)
    }

    /// Returns the next message of a peer.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, peer: Peer, bytes: &mut &[u8]) -> Result<Option<Message>, Error> {
        let Some(line) = self.peers.at(peer) else { return Ok(None) };
        line.heard = now;
        line.inbound.next(bytes, &line.intake, &mut self.pool)
    }

    /// Returns the peer that has the most room for data that is arriving.
    pub(crate) fn greediest(&self) -> Option<Peer> {
        self.peers.iter().max_by_key(|(_, line)| line.inbound.arriving()).map(|(peer, _)| peer)
    }

    /// Takes in bytes that were received into the place that a peer's message had offered.
    #[inline]
    pub(crate) fn landed(&mut self, peer: Peer, count: usize) {
        if let Some(line) = self.peers.at(peer) {
            line.inbound.landed(count);
        }
    }

    /// Has a small message sent.
    #[inline]
    pub(crate) fn say(&mut self, peer: Peer, message: &[u8]) {
        if let Some(line) = self.peers.at(peer) {
            line.out.extend_from_slice(message);
            if !line.queued && !line.blocked {
                line.queued = true;
                self.ready.push_back(peer);
            }
        }
    }

    /// Notes that a peer does not take what is sent to it, or does so again.
    pub(crate) fn set_blocked(&mut self, peer: Peer, blocked: bool) {
        if let Some(line) = self.peers.at(peer) {
            line.blocked = blocked;
            if !blocked && !line.out.is_empty() && !line.queued {
                line.queued = true;
                self.ready.push_back(peer);
            }
        }
    }

    /// Has a small message sent, and data behind it.
    #[inline]
    pub(crate) fn say_with(&mut self, peer: Peer, message: &[u8], data: Option<Bytes>) {
        self.say(peer, message);
        if let Some(data) = data
            && !data.is_empty()
            && let Some(line) = self.peers.at(peer)
        {
            line.data.push_back((line.out.len(), data));
        }
    }

    /// Refuses a peer that leaves untaken what is owed to it.
    pub(crate) fn check_owed(&mut self, peer: Peer) -> Result<(), Error> {
        if self.owes_too_much(peer, OWED_MAX) { Err(Error::OverCredit { max: OWED_MAX as u64 }) } else { Ok(()) }
    }

    /// Tells whether more bytes of small messages are owed than a peer that takes them would leave.
    pub(crate) fn owes_too_much(&mut self, peer: Peer, max: usize) -> bool {
        self.peers.at(peer).is_some_and(|line| line.out.len() > max)
    }

    /// Removes a connection that is gone: its number may be another's from now on.
    pub(crate) fn gone(&mut self, peer: Peer) -> Gone<R> {
        let Some(line) = self.peers.remove(peer) else {
            let before = self.closing.len();
            self.closing.retain(|ending| ending.peer != peer);
            return if self.closing.len() < before { Gone::Ended } else { Gone::Never };
        };
        self.looks.cancel(peer);
        self.pool.arrived(line.inbound.arriving());
        let Line { state, mut out, .. } = *line;
        if self.spare.len() < 64 {
            out.clear();
            self.spare.push(out);
        }
        Gone::Was(state)
    }

    /// Ends a connection, and says why. What is owed to it is still sent.
    pub(crate) fn end(&mut self, peer: Peer, why: &Error) -> Option<R> {
        let line: Box<Line<R>> = self.peers.remove(peer)?;
        self.looks.cancel(peer);
        self.pool.arrived(line.inbound.arriving());
        let (mut out, data) = (line.out, line.data);
        if self.datagrams {
            // Datagrams may be lost anyhow, and so may these.
            out.clear();
        }
        if !matches!(why, Error::RefusedBy { .. } | Error::Closed(_)) {
            let text = why.to_string();
            out.extend_from_slice(&Header::new(Kind::Refused, text.len() as u32, why.code()).encode());
            out.extend_from_slice(text.as_bytes());
        }
        self.closing.push_back(Ending { peer, out, data });
        Some(line.state)
    }

    /// Pings a silent peer, has it looked at again in time, and returns whether it was silent for too long.
    pub(crate) fn silence(&mut self, now: Instant, peer: Peer, bound: Duration) -> Silence {
        let Some(line) = self.peers.at(peer) else { return Silence::Short };
        let silent = now - line.heard;
        let unlooked = now - core::mem::replace(&mut line.looked, now);
        // Whoever could not look for so long could not read either: what came meanwhile is read first.
        let was_stopped = unlooked >= STOPPED.max(bound / 2);
        if silent >= bound && !was_stopped {
            return Silence::Long;
        }
        // Who is busy with a long message hears that the other side is there, but cannot be asked meanwhile.
        let since = now - line.pinged;
        let amid = line.inbound.is_amid();
        let ask = (silent >= bound / ASKED && since >= bound / ASKED) || (amid && since >= AMID);
        if ask {
            line.pinged = now;
        }
        let asked = if silent >= bound / ASKED { line.pinged } else { line.heard } + bound / ASKED;
        let next = match amid {
            _ if silent >= bound => now + AMID,
            true => asked.min(line.pinged + AMID),
            false => asked.min(line.heard + bound),
        };
        self.looks.arm(peer, next);
        if ask {
            self.say(peer, &Header::new(Kind::Ping, 0, now.as_nanos()).encode());
        }
        Silence::Short
    }

    /// Returns a peer that is to be looked at by now. It has no next look before it is given one.
    #[inline]
    pub(crate) fn due(&mut self, now: Instant) -> Option<Peer> {
        self.looks.pop_due(now)
    }

    /// Has a peer looked at by this instant.
    pub(crate) fn look_by(&mut self, peer: Peer, at: Instant) {
        self.looks.arm_by(peer, at);
    }

    /// Returns when the next peer is to be looked at.
    #[inline]
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.looks.next()
    }

    /// Returns the next small messages to be sent, or connection to be closed.
    #[inline]
    pub(crate) fn poll<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        if self.is_idle() { None } else { self.next_output(out) }
    }

    fn next_output<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        while let Some(peer) = self.ready.pop_front() {
            let Some(line) = self.peers.at(peer) else { continue };
            if !core::mem::take(&mut line.queued) || line.blocked {
                continue;
            }
            if self.datagrams {
                let count = whole(&line.out);
                out.copy(&line.out[..count]);
                line.out.drain(..count);
                if !line.out.is_empty() {
                    line.queued = true;
                    self.ready.push_back(peer);
                }
                return Some(Output::Send(peer));
            }
            put(&mut line.out, &mut line.data, out);
            return Some(Output::Send(peer));
        }
        let Ending { peer, out: last, data } = self.closing.front_mut()?;
        let peer = *peer;
        if last.is_empty() {
            self.closing.pop_front();
            return Some(Output::Close(peer));
        }
        put(last, data, out);
        Some(Output::Send(peer))
    }

    /// Tells whether [`Lines::poll`] has nothing to do.
    #[inline]
    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.closing.is_empty()
    }
}

/// Bytes of the first small messages, as many as a datagram should hold.
fn whole(messages: &[u8]) -> usize {
    let mut end = 0;
    while let Some(header) = messages[end..].first_chunk().and_then(|bytes| Header::decode(bytes).ok()) {
        let head = if header.kind == Kind::Token { TOKEN } else { HEADER };
        let next = end + head + header.length as usize;
        if next > messages.len() || (end > 0 && next > DATAGRAM) {
            break;
        }
        end = next;
    }
    if end == 0 { messages.len() } else { end }
}

/// Puts small messages into the outbox, each with the data behind it.
#[inline]
fn put(small: &mut Vec<u8>, data: &mut VecDeque<(usize, Bytes)>, out: &mut Outbox) {
    let mut from = 0;
    while let Some((at, data)) = data.pop_front() {
        out.copy(&small[from..at]);
        out.share(data);
        from = at;
    }
    out.copy(&small[from..]);
    small.clear();
}
