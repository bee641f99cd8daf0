mod session;

use crate::Error;
use crate::payload::Payload;
use crate::session::datagram;
use crate::tracker::Arrival;
use crate::wire::updates::{Subscribe, decode_unsubscribe};
use crate::wire::{
    self, Counters, FLAG_ACKNOWLEDGE, FLAG_CHECKS, FLAG_PROVE, FLAG_STAGES, GREETING, GREETING_MAX, Header, Kind,
    PROOF, RECEIVE_MAX,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{
    Address, Bytes, Ends, Input, Instant, Machine, Outbox, Output, Peer, Peers, Proofs, Stamp, Timers, Transport,
};
use session::{Reply, SILENCE, Session, room_for_welcome, welcome};

/// Bytes after which a stream's replies are handed to the driver.
const BURST: usize = 128 << 10;
/// A payload is received straight into its place while this much of it is outstanding.
const LANDING_FROM: usize = 256 << 10;

/// Bounds of a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerConfig {
    /// Streams or datagrams.
    pub transport: Transport,
    /// The largest operation in bytes.
    pub size_max: u32,
    /// Replies that may wait for peers to take them, in all. One more ends the peer that is owed the most, so that each
    /// has at least its even share.
    pub pending_max: usize,
    /// A peer that has not greeted by then is closed.
    pub greeting_timeout: Duration,
    /// A peer over UDP that was silent for this long is forgotten.
    pub silence_timeout: Duration,
    /// A subscription over UDP that was not renewed for this long gets no updates until it is, and a peer over UDP that was
    /// silent for this long gets no operations that it asked for before.
    pub lease: Duration,
    /// Bits that nobody can guess, other ones for each server: the proofs of its peers follow from them.
    pub secret: [u64; 2],
}

/// A command of the application to a server.
#[derive(Debug, Clone, Copy)]
pub enum ServerCommand {
    /// The answer to [`ServerEvent::ReportAsked`]; the fields of the peer are filled in by the server.
    Report {
        /// The peer that asked.
        peer: Peer,
        /// The process's part of the counters.
        process: Counters,
    },
}

/// An event that a server reports to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// A peer wants the counters: answer with [`ServerCommand::Report`].
    ReportAsked(Peer),
    /// A peer broke the rules and was closed.
    Misbehaved(Peer, Error),
}

/// The far end of raw links: answers any number of clients.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    /// The server's facts as bytes, for peers that ask for them.
    facts: Bytes,
    proofs: Proofs,
    sessions: Peers<Session>,
    timers: Timers<Timer>,
    ready: VecDeque<Peer>,
    closing: VecDeque<Peer>,
    events: VecDeque<ServerEvent>,
    pending: usize,
    payload: Payload,
    sink: Vec<u8>,
}

/// The deadlines of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    /// The greeting is late; after the greeting, the peer may have been silent for too long.
    Silence(Peer),
    /// The next update is due.
    Update(Peer),
    /// SENDs wait for an acknowledgement, and no more may come.
    Acknowledgement(Peer),
}

impl ServerConfig {
    /// Returns how long a subscription lives unless it is renewed: for as long as its connection on a stream.
    fn lease(&self) -> Option<Duration> {
        (self.transport == Transport::Datagram).then_some(self.lease)
    }
}

impl Server {
    /// Creates a server without peers.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        Server {
            config,
            facts: Bytes::new(),
            proofs: Proofs::new(config.secret),
            sessions: Peers::default(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            events: VecDeque::new(),
            pending: 0,
            payload: Payload::new(),
            sink: Vec::new(),
        }
    }

    /// Makes the operations that the server sends carry these bytes, one after the other and again from their beginning.
    #[must_use]
    pub fn carrying(self, bytes: Bytes) -> Self {
        Server { payload: Payload::of(bytes), ..self }
    }

    /// Makes the server tell these facts in its greeting to clients that ask for them: at most [`GREETING_MAX`] bytes
    /// less those of the greeting and the proof.
    #[must_use]
    pub fn telling(self, facts: Bytes) -> Self {
        let most = GREETING_MAX - GREETING - PROOF;
        Server { facts: if facts.len() > most { Bytes::new() } else { facts }, ..self }
    }

    fn opened(&mut self, now: Instant, peer: Peer, from: &Address) {
        self.forget(peer);
        let session = Session::new(now, self.config.transport, self.proofs.proof(now, from));
        self.sessions.insert(peer, session);
        self.timers.arm(Timer::Silence(peer), now + self.config.greeting_timeout);
    }

    fn forget(&mut self, peer: Peer) {
        if let Some(session) = self.sessions.remove(peer) {
            self.pending -= session.replies.len();
            self.timers.cancel(Timer::Silence(peer));
            self.timers.cancel(Timer::Update(peer));
            self.timers.cancel(Timer::Acknowledgement(peer));
        }
    }

    fn close(&mut self, peer: Peer) {
        self.forget(peer);
        self.closing.push_back(peer);
    }

    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) -> Result<(), Error> {
        let size_max = self.config.size_max;
        if self.config.transport == Transport::Datagram {
            let outcome = datagram(bytes, size_max).and_then(|(header, body)| {
                if let Some(session) = self.sessions.at(peer) {
                    session.inbound.check_datagram(&header, bytes);
                }
                self.message(now, peer, header, Some(body))
            });
            let greeted = self.sessions.get(peer).is_some_and(|session| session.greeted);
            // Once greeted, a datagram that makes no sense was damaged on its way: what it carried counts as lost.
            return if greeted { Ok(()) } else { outcome };
        }
        let mut rest = bytes;
        while let Some(session) = self.sessions.at(peer) {
            let Some(header) = session.inbound.next(&mut rest, size_max)? else { break };
            self.message(now, peer, header, None)?;
        }
        self.still_arrives(now, peer);
        Ok(())
    }

    /// Tells a client by time that a long message is on its way.
    #[inline]
    fn still_arrives(&mut self, now: Instant, peer: Peer) {
        if self.sessions.at(peer).is_some_and(|session| session.still_arrives(now)) {
            self.queue(peer);
        }
    }

    fn message(&mut self, now: Instant, peer: Peer, header: Header, body: Option<&[u8]>) -> Result<(), Error> {
        let Some(session) = self.sessions.at(peer) else { return Ok(()) };
        if !session.greeted && header.kind != Kind::Hello {
            return Err(Error::Unexpected { kind: header.kind.code() });
        }
        // What is answered with more than came needs the proof over UDP; a connection is proof enough.
        let needs_proof = matches!(header.kind, Kind::Receive | Kind::Report | Kind::Subscribe | Kind::Unsubscribe);
        if needs_proof && body.is_some_and(|body| wire::proof(body) != session.proof) {
            return Ok(());
        }
        session.heard = now;
        session.damaged += u64::from(session.inbound.is_damaged());
        match header.kind {
            Kind::Hello => {
                wire::decode_greeting(body.unwrap_or_else(|| session.inbound.control()))?;
                session.greeted(now, &header);
                let length = room_for_welcome(&header, body) as u32;
                let sequence = header.sequence;
                self.reply(peer, Reply { kind: Kind::Welcome, length, sequence, count: 1, arrived: now })?;
            }
            Kind::Echo => {
                // One answer to each, so that the client does not count the network's second copy again. What is so late
                // that it may be either is for the client to tell.
                if session.echoes.note(header.sequence) == Arrival::Again {
                    return Ok(());
                }
                let Header { length, sequence, .. } = header;
                self.reply(peer, Reply { kind: Kind::Reply, length, sequence, count: 1, arrived: now })?;
            }
            Kind::Send => {
                session.sends.note(header.sequence);
                if header.flags & FLAG_ACKNOWLEDGE != 0 || session.is_due(now) {
                    session.acknowledge = true;
                    session.owed_since.get_or_insert(now);
                    self.queue(peer);
                } else if session.waits() {
                    self.timers.arm(Timer::Acknowledgement(peer), now + SILENCE);
                }
            }
            Kind::Receive => {
                let Header { length, sequence, count, .. } = header;
                if length > self.config.size_max {
                    return Err(Error::TooLarge { size: length, max: self.config.size_max });
                }
                if count > RECEIVE_MAX {
                    return Err(Error::AsksTooMuch { count, max: RECEIVE_MAX });
                }
                if count > 0 && session.receives.note(sequence) != Arrival::Again {
                    let count = u32::from(count);
                    self.reply(peer, Reply { kind: Kind::Data, length, sequence, count, arrived: now })?;
                }
            }
            Kind::Report => {
                session.acknowledge = true;
                if header.sequence != 0 {
                    session.stamp(header.flags & FLAG_STAGES != 0);
                    session.asked = header.sequence;
                    self.events.push_back(ServerEvent::ReportAsked(peer));
                }
                self.queue(peer);
            }
            Kind::Goodbye => self.close(peer),
            Kind::Subscribe | Kind::Unsubscribe => self.subscription(now, peer, &header, body)?,
            Kind::Welcome
            | Kind::Reply
            | Kind::Ack
            | Kind::Data
            | Kind::Counters
            | Kind::Subscribed
            | Kind::Update
            | Kind::Ended => {
                return Err(Error::Unexpected { kind: header.kind.code() });
            }
        }
        Ok(())
    }

    /// Begins, renews or ends a subscription.
    fn subscription(&mut self, now: Instant, peer: Peer, header: &Header, body: Option<&[u8]>) -> Result<(), Error> {
        let (size_max, lease) = (self.config.size_max, self.config.lease());
        let Some(session) = self.sessions.at(peer) else { return Ok(()) };
        let bytes = body.unwrap_or_else(|| session.inbound.control());
        if header.kind == Kind::Unsubscribe {
            decode_unsubscribe(bytes)?;
            session.updates.unsubscribe(header.sequence);
        } else {
            let ask = Subscribe::decode(bytes)?;
            if ask.size > size_max {
                return Err(Error::TooLarge { size: ask.size, max: size_max });
            }
            session.updates.subscribe(now, header.sequence, &ask, lease);
        }
        self.queue(peer);
        Ok(())
    }

    fn reply(&mut self, peer: Peer, reply: Reply) -> Result<(), Error> {
        if self.pending >= self.config.pending_max {
            self.make_room(peer)?;
        }
        if let Some(session) = self.sessions.at(peer) {
            session.replies.push_back(reply);
            self.pending += 1;
            self.queue(peer);
        }
        Ok(())
    }

    /// Ends the peer that is owed the most; `asking` is refused where that is the one.
    fn make_room(&mut self, asking: Peer) -> Result<(), Error> {
        let owed = self.sessions.get(asking).map_or(0, |session| session.replies.len());
        let all = self.sessions.iter().map(|(peer, session)| (session.replies.len(), peer));
        let error = Error::TooMany { max: self.config.pending_max };
        let Some((_, greedy)) = all.max().filter(|(most, _)| *most > owed) else { return Err(error) };
        self.misbehaved(greedy, error);
        Ok(())
    }

    #[inline]
    fn queue(&mut self, peer: Peer) {
        if let Some(session) = self.sessions.at(peer)
            && !session.queued
            && !session.blocked
        {
            session.queued = true;
            self.ready.push_back(peer);
        }
    }

    fn set_blocked(&mut self, peer: Peer, blocked: bool) {
        if let Some(session) = self.sessions.at(peer) {
            session.blocked = blocked;
            self.queue(peer);
        }
    }

    /// Writes what a session owes: one message over UDP, a burst on a stream. Answers whether more is owed.
    fn write(&mut self, now: Instant, peer: Peer, out: &mut Outbox) -> bool {
        let config = self.config;
        let Some(session) = self.sessions.at(peer) else { return false };
        let (start, stream) = (out.len(), config.transport == Transport::Stream);
        if !stream && now - session.heard >= config.lease {
            // Nobody tells when a peer over UDP is gone.
            self.pending -= session.replies.len();
            session.replies.clear();
        }
        while session.acknowledge
            || session.report.is_some()
            || !session.replies.is_empty()
            || session.updates.has_more(now)
        {
            if session.blocked || (out.len() > start && (!stream || out.len() - start >= BURST)) {
                return !session.blocked;
            }
            if session.acknowledge {
                session.acknowledge(now, out);
                if core::mem::take(&mut session.is_waiting) {
                    self.timers.cancel(Timer::Acknowledgement(peer));
                }
                if let Some(arrived) = session.owed_since.take() {
                    session.mark(arrived, peer, out);
                }
            } else if let Some(mut counters) = session.report.take() {
                session.tell(&mut counters, out);
            } else if let Some(reply) = session.replies.front_mut() {
                if reply.kind == Kind::Welcome {
                    let flags = if session.inbound.checks_payloads() { FLAG_CHECKS } else { 0 };
                    let header = Header { flags, ..Header::new(Kind::Welcome, reply.length, reply.sequence) };
                    welcome(header, config.size_max, session.proof, &self.facts, out);
                } else {
                    let is_checked = session.inbound.checks_payloads();
                    self.payload.message(&Header::new(reply.kind, reply.length, reply.sequence), is_checked, out);
                }
                let arrived = reply.arrived;
                reply.count -= 1;
                reply.sequence = reply.sequence.wrapping_add(1);
                if reply.count == 0 {
                    session.replies.pop_front();
                    self.pending -= 1;
                }
                session.mark(arrived, peer, out);
            } else {
                let payload = (&mut self.payload, session.inbound.checks_payloads());
                session.updates.write(now, config.lease(), payload, out);
            }
        }
        if let Some(at) = session.updates.next_due(now) {
            self.timers.arm(Timer::Update(peer), at);
        }
        false
    }

    /// Closes a peer that has not greeted in time, or that was silent for too long.
    fn silent(&mut self, now: Instant, peer: Peer) {
        let Some(session) = self.sessions.get(peer) else { return };
        let timeout = match self.config.transport {
            _ if !session.greeted => self.config.greeting_timeout,
            Transport::Datagram => self.config.silence_timeout,
            Transport::Stream => return,
        };
        match session.heard + timeout {
            until if until <= now => self.close(peer),
            until => self.timers.arm(Timer::Silence(peer), until),
        }
    }

    /// Acknowledges SENDs after a silence.
    fn waiting(&mut self, now: Instant, peer: Peer) {
        let Some(session) = self.sessions.at(peer) else { return };
        match session.heard + SILENCE {
            until if until > now => self.timers.arm(Timer::Acknowledgement(peer), until),
            _ => {
                session.acknowledge = true;
                self.queue(peer);
            }
        }
    }

    fn misbehaved(&mut self, peer: Peer, error: Error) {
        if self.sessions.get(peer).is_some() {
            self.close(peer);
            self.events.push_back(ServerEvent::Misbehaved(peer, error));
        }
    }
}

impl Machine for Server {
    type Command = ServerCommand;
    type Event = ServerEvent;

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, ServerCommand>) {
        match input {
            Input::Opened(peer, ends) => self.opened(now, peer, &ends.remote),
            Input::Received(peer, bytes) => {
                if let Err(error) = self.received(now, peer, bytes) {
                    self.misbehaved(peer, error);
                }
            }
            Input::Landed(peer, count) => {
                let Some(session) = self.sessions.at(peer) else { return };
                let Some(header) = session.inbound.landed(count) else { return self.still_arrives(now, peer) };
                if let Err(error) = self.message(now, peer, header, None) {
                    self.misbehaved(peer, error);
                }
            }
            Input::Closed(peer, _) => self.forget(peer),
            Input::Blocked(peer) => self.set_blocked(peer, true),
            Input::Drained(peer) => self.set_blocked(peer, false),
            Input::Command(ServerCommand::Report { peer, process }) => {
                if let Some(session) = self.sessions.at(peer) {
                    session.report = Some(process);
                    self.queue(peer);
                }
            }
            Input::Elapsed => {
                while let Some(timer) = self.timers.pop_due(now) {
                    match timer {
                        Timer::Silence(peer) => self.silent(now, peer),
                        Timer::Update(peer) => self.queue(peer),
                        Timer::Acknowledgement(peer) => self.waiting(now, peer),
                    }
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<ServerEvent> {
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let Some(peer) = self.closing.pop_front() {
            return Output::Close(peer);
        }
        while let Some(&peer) = self.ready.front() {
            let before = out.len();
            if !self.write(now, peer, out) {
                self.ready.pop_front();
                if let Some(session) = self.sessions.at(peer) {
                    session.queued = false;
                }
            }
            if out.len() > before {
                return Output::Send(peer);
            }
        }
        Output::Idle(self.timers.next())
    }

    /// Takes whoever greets with the proof of its address; a greeting without it is answered with the proof, everything else
    /// not at all.
    fn admits(&mut self, now: Instant, ends: &Ends, bytes: &[u8], out: &mut Outbox) -> bool {
        if self.config.transport == Transport::Stream {
            return true;
        }
        let Ok((header, body)) = datagram(bytes, self.config.size_max) else { return false };
        if header.kind != Kind::Hello || wire::decode_greeting(body).is_err() {
            return false;
        }
        if self.proofs.holds(now, &ends.remote, wire::proof(&body[GREETING..])) {
            return true;
        }
        let length = room_for_welcome(&header, Some(body)) as u32;
        let header = Header { flags: FLAG_PROVE, ..Header::new(Kind::Welcome, length, header.sequence) };
        welcome(header, self.config.size_max, self.proofs.proof(now, &ends.remote), &self.facts, out);
        false
    }

    #[inline]
    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        let inbound = &self.sessions.get(peer)?.inbound;
        if inbound.payload_left() < LANDING_FROM || inbound.checks_payloads() {
            return None;
        }
        if self.sink.is_empty() {
            self.sink.resize(LANDING_FROM, 0);
        }
        Some(&mut self.sink)
    }

    fn stamped(&mut self, stamp: Stamp) {
        if let Some(session) = self.sessions.at(Peer(stamp.tag as u32))
            && let Some(stages) = &mut session.stages
        {
            stages.stamped(stamp);
        }
    }
}
