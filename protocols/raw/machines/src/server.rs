use crate::Error;
use crate::payload::Payload;
use crate::session::{Inbound, datagram};
use crate::stages::{Answered, FarStages};
use crate::subscription::Updates;
use crate::tracker::{Arrival, Tracker};
use crate::wire::updates::{Subscribe, decode_unsubscribe};
use crate::wire::{
    self, COUNTERS, Counters, FLAG_ACKNOWLEDGE, FLAG_FACTS, FLAG_STAGES, GREETING, GREETING_MAX, Header, Kind, PROOF,
    RANGE,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::time::Duration;
use hodo_machine::{Bytes, Input, Instant, Machine, Outbox, Output, Peer, Peers, Stamp, Timers, Transport};

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
    /// A subscription over UDP that was not renewed for this long gets no updates until it is.
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
    sessions: Peers<Session>,
    /// Sessions so far.
    opened: u64,
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
    /// Its greeting is late, and from then on it may have been silent for too long.
    Silence(Peer),
    /// Its next update is due.
    Update(Peer),
}

#[derive(Debug)]
struct Session {
    inbound: Inbound,
    /// The number that a SUBSCRIBE over UDP has to repeat: who does receives what is sent to its address.
    proof: u64,
    greeted: bool,
    blocked: bool,
    queued: bool,
    acknowledge: bool,
    /// When the first SEND arrived that the acknowledgement is owed to; one that only a REPORT asks for is no operation's.
    owed_since: Option<Instant>,
    heard: Instant,
    replies: VecDeque<Reply>,
    report: Option<Counters>,
    asked: u64,
    sends: Arrivals,
    echoes: Arrivals,
    /// Requests for DATA, each by its first number.
    receives: Arrivals,
    /// Where the client has asked for them.
    stages: Option<Box<Answered>>,
    updates: Updates,
}

/// The arrivals of one direction: a count on a stream, every number over UDP.
#[derive(Debug)]
enum Arrivals {
    Stream(u64),
    Datagrams(Box<Tracker>),
}

/// Operations of one size that are to be sent back, numbered from `sequence`; or the answer to HELLO.
#[derive(Debug)]
struct Reply {
    kind: Kind,
    /// Of WELCOME the bytes behind its header at most.
    length: u32,
    sequence: u64,
    count: u32,
    /// When what asks for it arrived.
    arrived: Instant,
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
            sessions: Peers::default(),
            opened: 0,
            timers: Timers::default(),
            ready: VecDeque::new(),
            closing: VecDeque::new(),
            events: VecDeque::new(),
            pending: 0,
            payload: Payload::new(),
            sink: Vec::new(),
        }
    }

    /// Makes the server tell these facts in its greeting to clients that ask for them: at most [`GREETING_MAX`] bytes
    /// less those of the greeting and the proof.
    #[must_use]
    pub fn telling(self, facts: Bytes) -> Self {
        let most = GREETING_MAX - GREETING - PROOF;
        Server { facts: if facts.len() > most { Bytes::new() } else { facts }, ..self }
    }

    /// Returns the proof of the session with this number.
    #[expect(
        deprecated,
        reason = "it is SipHash-2-4 of the core library, with a key of ours; nothing replaces it there"
    )]
    fn proof(&self, session: u64) -> u64 {
        let [high, low] = self.config.secret;
        let mut hasher = core::hash::SipHasher::new_with_keys(high, low);
        hasher.write_u64(session);
        hasher.finish()
    }

    fn opened(&mut self, now: Instant, peer: Peer) {
        let transport = self.config.transport;
        let arrivals = || match transport {
            Transport::Stream => Arrivals::Stream(0),
            Transport::Datagram => Arrivals::Datagrams(Box::default()),
        };
        self.forget(peer);
        self.opened += 1;
        let session = Session {
            inbound: Inbound::new(COUNTERS),
            proof: self.proof(self.opened),
            greeted: false,
            blocked: false,
            queued: false,
            acknowledge: false,
            owed_since: None,
            heard: now,
            replies: VecDeque::new(),
            report: None,
            asked: 0,
            sends: arrivals(),
            echoes: arrivals(),
            receives: arrivals(),
            stages: None,
            updates: Updates::default(),
        };
        self.sessions.insert(peer, session);
        self.timers.arm(Timer::Silence(peer), now + self.config.greeting_timeout);
    }

    fn forget(&mut self, peer: Peer) {
        if let Some(session) = self.sessions.remove(peer) {
            self.pending -= session.replies.len();
            self.timers.cancel(Timer::Silence(peer));
            self.timers.cancel(Timer::Update(peer));
        }
    }

    fn close(&mut self, peer: Peer) {
        self.forget(peer);
        self.closing.push_back(peer);
    }

    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) -> Result<(), Error> {
        let size_max = self.config.size_max;
        if self.config.transport == Transport::Datagram {
            let outcome =
                datagram(bytes, size_max).and_then(|(header, body)| self.message(now, peer, header, Some(body)));
            let greeted = self.sessions.get(peer).is_some_and(|session| session.greeted);
            // Once greeted, a datagram that makes no sense was damaged on its way: what it carried counts as lost.
            return if greeted { Ok(()) } else { outcome };
        }
        let mut rest = bytes;
        while let Some(session) = self.sessions.at(peer) {
            let Some(header) = session.inbound.next(&mut rest, size_max)? else { break };
            self.message(now, peer, header, None)?;
        }
        Ok(())
    }

    fn message(&mut self, now: Instant, peer: Peer, header: Header, body: Option<&[u8]>) -> Result<(), Error> {
        let Some(session) = self.sessions.at(peer) else { return Ok(()) };
        session.heard = now;
        if !session.greeted && header.kind != Kind::Hello {
            return Err(Error::Unexpected { kind: header.kind.code() });
        }
        match header.kind {
            Kind::Hello => {
                wire::decode_greeting(body.unwrap_or_else(|| session.inbound.control()))?;
                session.greeted = true;
                let most = body.map_or(GREETING_MAX, <[u8]>::len) as u32;
                let length = if header.flags & FLAG_FACTS == 0 { GREETING as u32 } else { most };
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
                if header.flags & FLAG_ACKNOWLEDGE != 0 {
                    session.acknowledge = true;
                    session.owed_since.get_or_insert(now);
                    self.queue(peer);
                }
            }
            Kind::Receive => {
                let Header { length, sequence, count, .. } = header;
                if length > self.config.size_max {
                    return Err(Error::TooLarge { size: length, max: self.config.size_max });
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
            Kind::Subscribe => {
                let ask = Subscribe::decode(body.unwrap_or_else(|| session.inbound.control()))?;
                if ask.size > self.config.size_max {
                    return Err(Error::TooLarge { size: ask.size, max: self.config.size_max });
                }
                // A connection is proof enough.
                if body.is_none() || ask.proof == session.proof {
                    session.updates.subscribe(now, header.sequence, &ask, self.config.lease());
                    self.queue(peer);
                }
            }
            Kind::Unsubscribe => {
                let proof = decode_unsubscribe(body.unwrap_or_else(|| session.inbound.control()))?;
                if body.is_none() || proof == session.proof {
                    session.updates.unsubscribe(header.sequence);
                    self.queue(peer);
                }
            }
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
        while session.acknowledge
            || session.report.is_some()
            || !session.replies.is_empty()
            || session.updates.has_more(now)
        {
            if session.blocked || (out.len() > start && (!stream || out.len() - start >= BURST)) {
                return !session.blocked;
            }
            if session.acknowledge {
                session.acknowledge = false;
                session.sends.acknowledge(out);
                if let Some(arrived) = session.owed_since.take() {
                    session.mark(arrived, peer, out);
                }
            } else if let Some(mut counters) = session.report.take() {
                session.tell(&mut counters, out);
            } else if let Some(reply) = session.replies.front_mut() {
                if reply.kind == Kind::Welcome {
                    reply.welcome(config.size_max, session.proof, &self.facts, out);
                } else {
                    self.payload.message(&Header::new(reply.kind, reply.length, reply.sequence), out);
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
                session.updates.write(now, config.lease(), &self.payload, out);
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
            Input::Opened(peer, _) => self.opened(now, peer),
            Input::Received(peer, bytes) => {
                if let Err(error) = self.received(now, peer, bytes) {
                    self.misbehaved(peer, error);
                }
            }
            Input::Landed(peer, count) => {
                let Some(session) = self.sessions.at(peer) else { return };
                let Some(header) = session.inbound.landed(count) else { return };
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

    #[inline]
    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        let left = self.sessions.get(peer)?.inbound.payload_left();
        if left < LANDING_FROM {
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

impl Session {
    /// Switches the stamps of its answers on or off.
    fn stamp(&mut self, on: bool) {
        if on != self.stages.is_some() {
            self.stages = on.then(Box::default);
        }
    }

    /// Marks an answer to what arrived then; its tag is the peer's number.
    #[inline]
    fn mark(&mut self, arrived: Instant, peer: Peer, out: &mut Outbox) {
        if let Some(stages) = &mut self.stages {
            stages.mark(arrived, u64::from(peer.0), out);
        }
    }

    /// Writes COUNTERS, with the stages where they are asked for.
    fn tell(&self, counters: &mut Counters, out: &mut Outbox) {
        self.fill(counters);
        let stages = self.stages.as_ref().map(|stages| &stages.spans);
        let length = COUNTERS + stages.map_or(0, FarStages::encoded_len);
        out.copy(&Header::new(Kind::Counters, length as u32, self.asked).encode());
        out.copy(&counters.encode());
        if let Some(stages) = stages {
            stages.encode(out);
        }
    }

    fn fill(&self, counters: &mut Counters) {
        for arrivals in [&self.sends, &self.echoes, &self.receives] {
            if let Arrivals::Datagrams(tracker) = arrivals {
                counters.duplicated += tracker.duplicated;
                counters.reordered += tracker.reordered;
            }
        }
        counters.received = match &self.sends {
            Arrivals::Stream(count) => *count,
            Arrivals::Datagrams(tracker) => {
                // Nobody else can tell what these are, and no more may be received than was sent.
                counters.duplicated += tracker.long_ago;
                tracker.received
            }
        };
    }
}

impl Arrivals {
    #[inline]
    fn note(&mut self, sequence: u64) -> Arrival {
        match self {
            Arrivals::Stream(count) => {
                *count += 1;
                Arrival::First
            }
            Arrivals::Datagrams(tracker) => tracker.arrived(sequence),
        }
    }

    fn acknowledge(&self, out: &mut Outbox) {
        match self {
            Arrivals::Stream(count) => out.copy(&Header::new(Kind::Ack, 0, *count).encode()),
            Arrivals::Datagrams(tracker) => {
                let ranges = tracker.recent();
                let mut header = Header::new(Kind::Ack, (ranges.len() * RANGE) as u32, tracker.next);
                header.count = ranges.len() as u16;
                out.copy(&header.encode());
                for (first, count) in ranges {
                    out.copy(&first.to_le_bytes());
                    out.copy(&count.to_le_bytes());
                }
            }
        }
    }
}

impl Reply {
    /// Writes the answer to HELLO: the proof and the facts as far as there is room for them.
    fn welcome(&self, size_max: u32, proof: u64, facts: &[u8], out: &mut Outbox) {
        let room = self.length as usize;
        let proof = if room >= GREETING + PROOF { &proof.to_le_bytes()[..] } else { &[] };
        let facts = if room >= GREETING + PROOF + facts.len() { facts } else { &[] };
        let length = GREETING + proof.len() + facts.len();
        out.copy(&Header::new(Kind::Welcome, length as u32, self.sequence).encode());
        out.copy(&wire::encode_greeting(size_max));
        out.copy(proof);
        out.copy(facts);
    }
}
