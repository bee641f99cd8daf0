use crate::Error;
use crate::inbound::{Inbound, Intake, Message};
use crate::peers::Peers;
use crate::pool::Pool;
use crate::wire::{Header, Kind};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Instant, Outbox, Output, Peer};

/// The connections of a machine: what comes from each, and the small messages that are owed to it.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    pub(crate) peers: Peers<Line<R>>,
    pub(crate) pool: Pool,
    /// Connections that there are.
    pub(crate) count: u32,
    ready: VecDeque<Peer>,
    closing: VecDeque<(Peer, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line<R> {
    /// What it is to its machine.
    pub(crate) part: R,
    pub(crate) inbound: Inbound,
    /// Small messages that are to be sent.
    out: Vec<u8>,
    /// Data that belongs behind so many bytes of them.
    data: VecDeque<(usize, Bytes)>,
    queued: bool,
    /// Hold back events until the peer has taken what was sent.
    pub(crate) blocked: bool,
    /// When something last came.
    pub(crate) heard: Instant,
    /// When it was last asked whether it is there.
    pinged: Instant,
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
            count: 0,
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            spare: Vec::new(),
        }
    }
}

impl<R> Lines<R> {
    /// A connection has come to be.
    pub(crate) fn insert(&mut self, now: Instant, peer: Peer, part: R) {
        let line = Line {
            part,
            inbound: Inbound::default(),
            out: self.spare.pop().unwrap_or_default(),
            data: VecDeque::new(),
            queued: false,
            blocked: false,
            heard: now,
            pinged: now,
        };
        self.peers.insert(peer, line);
        self.count += 1;
    }

    #[inline]
    pub(crate) fn at(&mut self, peer: Peer) -> Option<&mut Line<R>> {
        self.peers.at(peer)
    }

    /// The next message of a peer.
    #[inline]
    pub(crate) fn next(
        &mut self,
        now: Instant,
        peer: Peer,
        bytes: &mut &[u8],
        intake: &Intake,
    ) -> Result<Option<Message>, Error> {
        let Some(line) = self.peers.at(peer) else { return Ok(None) };
        line.heard = now;
        line.inbound.next(bytes, intake, &mut self.pool)
    }

    /// Has a small message sent.
    #[inline]
    pub(crate) fn say(&mut self, peer: Peer, message: &[u8]) {
        if let Some(line) = self.peers.at(peer) {
            line.out.extend_from_slice(message);
            if !line.queued {
                line.queued = true;
                self.ready.push_back(peer);
            }
        }
    }

    /// Has a small message sent, and data behind it.
    pub(crate) fn say_with(&mut self, peer: Peer, message: &[u8], data: Bytes) {
        self.say(peer, message);
        if let Some(line) = self.peers.at(peer)
            && !data.is_empty()
        {
            line.data.push_back((line.out.len(), data));
        }
    }

    /// Whether more small messages are owed than a peer that takes them would leave.
    pub(crate) fn owes_too_much(&mut self, peer: Peer, max: usize) -> bool {
        self.peers.at(peer).is_some_and(|line| line.out.len() > max)
    }

    /// A connection is gone.
    pub(crate) fn remove(&mut self, peer: Peer) -> Option<R> {
        let line = self.peers.remove(peer)?;
        self.count -= 1;
        let Line { part, mut out, .. } = *line;
        if self.spare.len() < 64 {
            out.clear();
            self.spare.push(out);
        }
        Some(part)
    }

    /// Ends a connection, and says why. What is owed to it is still sent.
    pub(crate) fn end(&mut self, peer: Peer, why: &Error) -> Option<R> {
        let line: Box<Line<R>> = self.peers.remove(peer)?;
        self.count -= 1;
        let mut last = line.out;
        if !matches!(why, Error::RefusedBy { .. } | Error::Closed(_)) {
            let text = why.to_string();
            last.extend_from_slice(&Header::new(Kind::Refused, text.len() as u32, why.code()).encode());
            last.extend_from_slice(text.as_bytes());
        }
        self.closing.push_back((peer, last));
        Some(line.part)
    }

    /// Asks a silent peer whether it is there; answers whether it was silent for too long.
    pub(crate) fn silence(&mut self, now: Instant, peer: Peer, bound: Duration) -> Silence {
        let Some(line) = self.peers.at(peer) else { return Silence::Short };
        let silent = now - line.heard;
        if silent >= bound {
            return Silence::Long;
        }
        if silent >= bound / 4 && now - line.pinged >= bound / 4 {
            line.pinged = now;
            self.say(peer, &Header::new(Kind::Ping, 0, now.as_nanos()).encode());
        }
        Silence::Short
    }

    /// The next small messages to be sent, or connection to be closed.
    #[inline]
    pub(crate) fn poll<E>(&mut self, out: &mut Outbox) -> Option<Output<E>> {
        while let Some(peer) = self.ready.pop_front() {
            let Some(line) = self.peers.at(peer) else { continue };
            if !core::mem::take(&mut line.queued) {
                continue;
            }
            let mut from = 0;
            for (at, data) in line.data.drain(..) {
                out.copy(&line.out[from..at]);
                out.share(data);
                from = at;
            }
            out.copy(&line.out[from..]);
            line.out.clear();
            return Some(Output::Send(peer));
        }
        let (peer, last) = self.closing.front_mut()?;
        let peer = *peer;
        if last.is_empty() {
            self.closing.pop_front();
            return Some(Output::Close(peer));
        }
        out.copy(last);
        last.clear();
        Some(Output::Send(peer))
    }

    /// Whether [`Lines::poll`] has something.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.closing.is_empty()
    }
}
