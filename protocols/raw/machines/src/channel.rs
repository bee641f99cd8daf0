mod sending;

use crate::Error;
use crate::client::{ClientConfig, Event, Noticed, Queues};
use crate::lane::{Answer, Lane};
use crate::session::{Inbound, datagram};
use crate::stages::{COUNTERS_MAX, FarStages};
use crate::subscriber::{CLOCK_READ, Subscriber};
use crate::wire::updates::Subscribe;
use crate::wire::{
    self, COUNTERS, Counters, DAMAGED, Direction, FLAG_CHECKS, FLAG_DAMAGED, FLAG_PROVE, GREETING, Header, Kind, PROOF,
    RANGE,
};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Cursor, Instant, Peer, Transport};

/// Bytes after which a stream's messages are handed to the driver.
const BURST: usize = 128 << 10;
/// A payload is received straight into its place while this much of it is outstanding.
pub(crate) const LANDING_FROM: usize = 256 << 10;
/// A greeting or a question over UDP is repeated so many times in the time after which an operation is given up.
pub(crate) const REPEATS: u32 = 8;

/// Where a channel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Opening,
    Greeting,
    Ready,
    Failed,
    Left,
}

/// One connection to the server, and the operations on it.
#[derive(Debug)]
pub(crate) struct Channel {
    number: u32,
    transport: Transport,
    single: bool,
    size_max: u32,
    acknowledge_every: u32,
    unbounded: bool,
    /// SENDs that nobody waits for, and those that the server's count has told of.
    sent: u64,
    arrived: u64,
    greeting_timeout: Duration,
    timeout: Duration,
    pub(crate) state: State,
    pub(crate) in_ready: bool,
    pub(crate) blocked: bool,
    since: Instant,
    /// When the first greeting with this proof was sent.
    greeted: Option<Instant>,
    inbound: Inbound,
    queued: VecDeque<Queued>,
    echoes: Lane,
    sends: Lane,
    receives: Lane,
    unacknowledged: u32,
    greet: bool,
    flush: bool,
    leaving: bool,
    report: Report,
    reports: u64,
    /// The number of the WELCOME, which is repeated over UDP.
    proof: u64,
    updates: Option<Box<Subscriber>>,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    tag: u64,
    size: u32,
    direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    NotAsked,
    ToAsk,
    Asked(Instant),
}

impl Channel {
    pub(crate) fn new(number: u32, config: &ClientConfig) -> Self {
        Channel {
            number,
            transport: config.transport,
            single: number >= config.channels,
            size_max: config.size_max,
            acknowledge_every: config.acknowledge_every.max(1),
            unbounded: config.unbounded && config.transport == Transport::Datagram,
            sent: 0,
            arrived: 0,
            greeting_timeout: config.greeting_timeout,
            timeout: config.timeout,
            state: State::Waiting,
            in_ready: false,
            blocked: false,
            since: Instant::ZERO,
            greeted: None,
            inbound: inbound(config.check),
            queued: VecDeque::new(),
            echoes: Lane::default(),
            sends: Lane::default(),
            receives: Lane::default(),
            unacknowledged: 0,
            greet: false,
            flush: false,
            leaving: false,
            report: Report::NotAsked,
            reports: 0,
            proof: 0,
            updates: None,
        }
    }

    /// Returns how far the far end's clock is ahead, and the error of that, if there are subscriptions.
    pub(crate) fn far_clock(&self) -> Option<(i64, u64)> {
        self.updates.as_ref()?.far_clock()
    }

    pub(crate) fn opening(&mut self, now: Instant) {
        self.state = State::Opening;
        self.since = now;
    }

    /// Greets, now that the driver has the connection. A single-use connection sends its operation along.
    pub(crate) fn opened(&mut self, now: Instant, queues: &mut Queues) {
        self.state = State::Greeting;
        self.since = now;
        (self.greet, self.greeted) = (true, None);
        // The connection before may have been closed while it was held back; nothing is told of it any more.
        self.blocked = false;
        self.wake(queues);
    }

    #[inline]
    pub(crate) fn queue(&mut self, tag: u64, size: u32, direction: Direction, queues: &mut Queues) {
        self.queued.push_back(Queued { tag, size, direction });
        self.wake(queues);
    }

    /// Forgets what has not been sent. The connection of a single operation is being made for it.
    pub(crate) fn withdraw(&mut self, queues: &mut Queues) {
        if !self.single {
            queues.events.extend(self.queued.drain(..).map(|queued| Event::Withdrawn(queued.tag)));
        }
    }

    pub(crate) fn flush(&mut self, queues: &mut Queues) {
        if !self.sends.is_empty() || !self.queued.is_empty() {
            self.flush = true;
            self.wake(queues);
        }
    }

    pub(crate) fn subscribe(&mut self, ask: Subscribe, queues: &mut Queues) {
        // On a stream nothing is lost, and an answer may stand behind much else.
        let repeat_after = if self.transport == Transport::Datagram { self.timeout / REPEATS } else { CLOCK_READ };
        self.updates.get_or_insert_with(|| Box::new(Subscriber::new(repeat_after))).subscribe(ask);
        self.wake(queues);
    }

    pub(crate) fn unsubscribe(&mut self, queues: &mut Queues) {
        if self.updates.as_mut().is_some_and(|updates| updates.unsubscribe()) {
            self.wake(queues);
        }
    }

    /// Returns what was irregular among its updates.
    pub(crate) fn noticed(&self) -> Noticed {
        self.updates.as_ref().map_or_else(Noticed::default, |updates| updates.noticed())
    }

    /// Tells the server over UDP that nothing more is to be done here; the end of a stream says so by itself.
    pub(crate) fn leave(&mut self, queues: &mut Queues) {
        if self.transport == Transport::Datagram {
            self.leaving = true;
            self.wake(queues);
        }
    }

    pub(crate) fn ask_report(&mut self, queues: &mut Queues) {
        if self.report == Report::NotAsked {
            self.reports += 1;
        }
        self.report = Report::ToAsk;
        self.wake(queues);
    }

    #[inline]
    pub(crate) fn wake(&mut self, queues: &mut Queues) {
        if !self.in_ready {
            self.in_ready = true;
            queues.ready.push_back(self.number);
        }
    }

    /// Notes that an operation was sent to this server, and to all others of its group.
    pub(crate) fn sent_to_all(&mut self) {
        self.sent += 1;
    }

    /// Returns how many of the operations that nobody waits for have arrived, as the server has told.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(crate) fn fail(&mut self, error: Error, peer: Peer, queues: &mut Queues) {
        self.state = State::Failed;
        queues.closing.push_back(peer);
        queues.events.push_back(Event::Failed { channel: self.number, error });
    }

    #[inline]
    pub(crate) fn received(&mut self, now: Instant, bytes: &[u8], queues: &mut Queues) -> Result<(), Error> {
        if self.transport == Transport::Datagram {
            let outcome = datagram(bytes, self.size_max).and_then(|(header, body)| {
                self.inbound.check_datagram(&header, bytes);
                self.message(now, header, Some(body), queues)
            });
            // Once greeted, a datagram that makes no sense was damaged on its way: what it carried counts as lost.
            return if self.state == State::Ready && outcome != Err(Error::NoCount) { Ok(()) } else { outcome };
        }
        let mut rest = bytes;
        while let Some(header) = self.inbound.next(&mut rest, self.size_max)? {
            self.message(now, header, None, queues)?;
            if self.state == State::Waiting {
                // A single-use connection has had its answer: what else it brought is not for the next one.
                break;
            }
        }
        if self.inbound.payload_left() > 0 {
            queues.progress = now;
        }
        Ok(())
    }

    pub(crate) fn landed(&mut self, now: Instant, count: usize, queues: &mut Queues) -> Result<(), Error> {
        match self.inbound.landed(count) {
            Some(header) => self.message(now, header, None, queues),
            None => {
                queues.progress = now;
                Ok(())
            }
        }
    }

    pub(crate) fn landing<'a>(&self, sink: &'a mut alloc::vec::Vec<u8>) -> Option<&'a mut [u8]> {
        if self.inbound.payload_left() < LANDING_FROM || self.inbound.checks_payloads() {
            return None;
        }
        if sink.is_empty() {
            sink.resize(LANDING_FROM, 0);
        }
        Some(sink)
    }

    #[inline]
    fn message(&mut self, now: Instant, header: Header, body: Option<&[u8]>, queues: &mut Queues) -> Result<(), Error> {
        queues.noticed.damaged += u64::from(self.inbound.is_damaged());
        match header.kind {
            Kind::Reply => self.answered(now, Direction::Both, header.sequence, queues),
            Kind::Data => self.answered(now, Direction::Receive, header.sequence, queues),
            Kind::Ack => self.acknowledged(now, &header, body, queues),
            Kind::Welcome => {
                let body = body.unwrap_or_else(|| self.inbound.control());
                let size_max = wire::decode_greeting(body)?;
                if self.state == State::Greeting {
                    let before = self.proof;
                    if let Some((proof, facts)) = body[GREETING..].split_first_chunk::<PROOF>() {
                        self.proof = u64::from_le_bytes(*proof);
                        facts.clone_into(&mut queues.far_facts);
                    }
                    if header.flags & FLAG_PROVE != 0 {
                        // Not for each copy of it; the greeting is repeated anyway.
                        if self.proof != before {
                            (self.greet, self.greeted) = (true, None);
                        }
                        self.wake(queues);
                        return Ok(());
                    }
                    if self.inbound.checks_payloads() && header.flags & FLAG_CHECKS == 0 {
                        return Err(Error::NoCheck);
                    }
                    self.state = State::Ready;
                    let answer = now - self.greeted.unwrap_or(now);
                    for lane in [&mut self.echoes, &mut self.sends, &mut self.receives] {
                        lane.expect(answer);
                    }
                    if !self.single {
                        queues.events.push_back(Event::Ready { channel: self.number, size_max });
                    }
                    self.wake(queues);
                }
                Ok(())
            }
            Kind::Counters => {
                let body = body.unwrap_or_else(|| self.inbound.control());
                let (counters, mut rest) = (Counters::decode(body)?, &body[COUNTERS..]);
                let mut damaged = None;
                if header.flags & FLAG_DAMAGED != 0 {
                    let told = Error::Length { told: COUNTERS + DAMAGED, came: body.len() };
                    let (count, behind) = rest.split_first_chunk().ok_or(told)?;
                    (damaged, rest) = (Some(u64::from_le_bytes(*count)), behind);
                }
                let stages = FarStages::decode(rest)?;
                if self.report != Report::NotAsked && header.sequence == self.reports {
                    self.report = Report::NotAsked;
                    queues.far_stages.add(&stages);
                    queues.events.push_back(Event::Report { channel: self.number, counters, damaged });
                }
                Ok(())
            }
            Kind::Update | Kind::Subscribed | Kind::Ended => {
                let body = body.unwrap_or_else(|| self.inbound.control());
                let Some(updates) = &mut self.updates else {
                    return Err(Error::Unexpected { kind: header.kind.code() });
                };
                updates.message(now, &header, body, self.number, queues)
            }
            Kind::Hello
            | Kind::Echo
            | Kind::Send
            | Kind::Receive
            | Kind::Report
            | Kind::Goodbye
            | Kind::Subscribe
            | Kind::Unsubscribe => Err(Error::Unexpected { kind: header.kind.code() }),
        }
    }

    #[inline]
    fn answered(
        &mut self,
        now: Instant,
        direction: Direction,
        sequence: u64,
        queues: &mut Queues,
    ) -> Result<(), Error> {
        let lane = if direction == Direction::Both { &mut self.echoes } else { &mut self.receives };
        if self.transport == Transport::Stream {
            let tag = lane.answered_in_order(sequence)?;
            queues.events.push_back(Event::Done(tag));
            if self.single {
                self.end_single(queues);
            }
            return Ok(());
        }
        tell(lane.answered(now, sequence), queues);
        if lane.overtaken_at().is_some_and(|at| at <= now) {
            lane.expire(now, self.timeout, |tag| queues.events.push_back(Event::Lost(tag)));
        }
        Ok(())
    }

    fn acknowledged(
        &mut self,
        now: Instant,
        header: &Header,
        body: Option<&[u8]>,
        queues: &mut Queues,
    ) -> Result<(), Error> {
        let Some(body) = body else {
            queues.progress = now;
            let is_waited_for = !self.sends.is_empty();
            self.sends.acknowledged_below(header.sequence, |tag| queues.events.push_back(Event::Done(tag)))?;
            if self.single && is_waited_for && self.sends.is_empty() {
                self.end_single(queues);
            }
            return Ok(());
        };
        if self.unbounded {
            let ranges = usize::from(header.count) * RANGE;
            let Some(received) = body.get(ranges..).and_then(<[u8]>::first_chunk) else {
                if body.len() == ranges {
                    return Err(Error::NoCount);
                }
                return Ok(());
            };
            // No more than was sent, whatever it says.
            let received = u64::from_le_bytes(*received).min(self.sent);
            if let Some(count @ 1..) = received.checked_sub(self.arrived) {
                self.arrived = received;
                queues.events.push_back(Event::Arrived { channel: self.number, count });
            }
            return Ok(());
        }
        let mut cursor = Cursor::new(body);
        for _ in 0..header.count {
            let wrong = |_| Error::Length { told: usize::from(header.count) * RANGE, came: body.len() };
            let (first, count) = (cursor.u64_le().map_err(wrong)?, cursor.u64_le().map_err(wrong)?);
            self.sends.acknowledged(now, first, count, |answer| tell(answer, queues));
        }
        if self.sends.overtaken_at().is_some_and(|at| at <= now) {
            self.sends.expire(now, self.timeout, |tag| queues.events.push_back(Event::Lost(tag)));
        }
        Ok(())
    }

    /// Closes a single-use connection that has had its answer; the next one is opened if more is to be done.
    fn end_single(&mut self, queues: &mut Queues) {
        queues.closing.push_back(Peer(self.number));
        self.inbound = inbound(self.inbound.checks_payloads());
        (self.echoes, self.sends, self.receives) = Default::default();
        self.state = State::Waiting;
    }

    /// Tells whether a single-use connection has to be opened for queued operations.
    pub(crate) fn wants_opening(&self) -> bool {
        self.single && self.state == State::Waiting && !self.queued.is_empty()
    }

    /// Returns when this channel is to be checked again.
    pub(crate) fn next_check(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Opening | State::Greeting => Some(now + self.timeout / REPEATS),
            State::Waiting | State::Failed | State::Left => None,
            State::Ready if self.transport == Transport::Stream => self.next_renewal(now),
            State::Ready if self.report != Report::NotAsked => Some(now + self.timeout / REPEATS),
            State::Ready => {
                let given_up = self.lanes().into_iter().filter_map(|lane| lane.given_up_at(self.timeout));
                given_up.chain(self.overtaken_at()).chain(self.next_renewal(now)).min()
            }
        }
    }

    /// Returns when the server is to be asked again for updates, or for their end.
    fn next_renewal(&self, now: Instant) -> Option<Instant> {
        self.updates.as_ref()?.next_check(now)
    }

    /// Returns when an operation is to be given up because later ones have been answered.
    #[inline]
    pub(crate) fn overtaken_at(&self) -> Option<Instant> {
        self.lanes().into_iter().filter_map(Lane::overtaken_at).min()
    }

    fn lanes(&self) -> [&Lane; 3] {
        [&self.echoes, &self.sends, &self.receives]
    }

    fn in_flight(&self) -> bool {
        self.lanes().into_iter().any(|lane| !lane.is_empty())
    }

    pub(crate) fn check(&mut self, now: Instant, queues: &mut Queues) -> Result<(), Error> {
        let waited = now - self.since;
        if matches!(self.state, State::Opening | State::Greeting) && waited >= self.greeting_timeout {
            return Err(Error::NoAnswer);
        }
        if self.state == State::Ready
            && let Some(updates) = &mut self.updates
            && updates.check(now)
        {
            self.wake(queues);
        }
        if self.transport == Transport::Stream {
            return Ok(());
        }
        if self.state == State::Greeting {
            self.greet = true;
            self.wake(queues);
        }
        if let Report::Asked(asked) = self.report
            && now - asked >= self.timeout / REPEATS
        {
            self.ask_report(queues);
        }
        let timeout = self.timeout;
        for lane in [&mut self.echoes, &mut self.sends, &mut self.receives] {
            lane.expire(now, timeout, |tag| queues.events.push_back(Event::Lost(tag)));
        }
        Ok(())
    }
}

/// Returns the reader of what a server sends.
fn inbound(check: bool) -> Inbound {
    let mut inbound = Inbound::new(COUNTERS_MAX + DAMAGED);
    inbound.check_payloads(check);
    inbound
}

#[inline]
fn tell(answer: Answer, queues: &mut Queues) {
    match answer {
        Answer::Done { tag, reordered } => {
            queues.noticed.reordered += u64::from(reordered);
            queues.events.push_back(Event::Done(tag));
        }
        Answer::Recovered { tag } => queues.events.push_back(Event::Recovered(tag)),
        Answer::Duplicate => queues.noticed.duplicated += 1,
        Answer::Unknown => {}
    }
}
