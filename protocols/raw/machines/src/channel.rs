use crate::Error;
use crate::client::{ClientConfig, Event, Noticed, Queues};
use crate::lane::{Answer, Lane};
use crate::session::{Inbound, datagram};
use crate::stages::{COUNTERS_MAX, FarStages, QUEUE, SEND};
use crate::subscriber::{CLOCK_READ, Subscriber};
use crate::wire::updates::Subscribe;
use crate::wire::{
    self, COUNTERS, Counters, Direction, FLAG_ACKNOWLEDGE, FLAG_BY_TIME, FLAG_FACTS, FLAG_PROVE, FLAG_STAGES, GREETING,
    GREETING_MAX, Header, Kind, PROOF, RANGE, RECEIVE_MAX,
};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Cursor, Instant, Moment, Outbox, Peer, Transport};

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
            inbound: Inbound::new(COUNTERS_MAX),
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

    pub(crate) fn fail(&mut self, error: Error, queues: &mut Queues) {
        self.state = State::Failed;
        queues.closing.push_back(Peer(self.number));
        queues.events.push_back(Event::Failed { channel: self.number, error });
    }

    #[inline]
    pub(crate) fn received(&mut self, now: Instant, bytes: &[u8], queues: &mut Queues) -> Result<(), Error> {
        if self.transport == Transport::Datagram {
            let outcome =
                datagram(bytes, self.size_max).and_then(|(header, body)| self.message(now, header, Some(body), queues));
            // Once greeted, a datagram that makes no sense was damaged on its way: what it carried counts as lost.
            return if self.state == State::Ready { Ok(()) } else { outcome };
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
        if self.inbound.payload_left() < LANDING_FROM {
            return None;
        }
        if sink.is_empty() {
            sink.resize(LANDING_FROM, 0);
        }
        Some(sink)
    }

    #[inline]
    fn message(&mut self, now: Instant, header: Header, body: Option<&[u8]>, queues: &mut Queues) -> Result<(), Error> {
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
                let (counters, stages) = (Counters::decode(body)?, FarStages::decode(&body[COUNTERS..])?);
                if self.report != Report::NotAsked && header.sequence == self.reports {
                    self.report = Report::NotAsked;
                    queues.far_stages.add(&stages);
                    queues.events.push_back(Event::Report { channel: self.number, counters });
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
                    self.fail(Error::NoCount, queues);
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
        self.inbound = Inbound::new(COUNTERS_MAX);
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

    /// Writes what is to be sent: one message over UDP, a burst on a stream. Answers whether more is waiting.
    #[inline]
    pub(crate) fn write(&mut self, now: Instant, queues: &mut Queues, out: &mut Outbox) -> bool {
        let (start, stream) = (out.len(), self.transport == Transport::Stream);
        loop {
            if self.blocked || !matches!(self.state, State::Greeting | State::Ready) {
                return false;
            }
            if out.len() > start && (!stream || out.len() - start >= BURST) {
                return true;
            }
            if self.leaving {
                self.state = State::Left;
                out.copy(&Header::new(Kind::Goodbye, 0, 0).encode());
                return false;
            }
            if self.greet {
                self.greet = false;
                self.greeted.get_or_insert(now);
                self.hello(out);
            } else if if self.single { self.in_flight() } else { self.state == State::Greeting } {
                // A single-use connection carries one operation, sent along with its greeting.
                return false;
            } else if let Some(next) = self.queued.front().copied() {
                self.operation(now, next, queues, out);
            } else if let Some(updates) = self.updates.as_mut().filter(|updates| updates.has_more()) {
                updates.write(now, self.proof, out);
            } else if self.flush {
                self.flush = false;
                self.report(0, 0, out);
            } else if self.report == Report::ToAsk {
                self.report = Report::Asked(now);
                let flags = if queues.stamps.sampling.is_on() { FLAG_STAGES } else { 0 };
                self.report(flags, self.reports, out);
            } else {
                return false;
            }
        }
    }

    /// Writes the greeting, over UDP with the proof, and as long as its answer may become.
    fn hello(&self, out: &mut Outbox) {
        let length = if self.transport == Transport::Datagram { GREETING_MAX } else { GREETING };
        let flags = FLAG_FACTS | FLAG_BY_TIME;
        out.copy(&Header { flags, ..Header::new(Kind::Hello, length as u32, 0) }.encode());
        out.copy(&wire::encode_greeting(self.size_max));
        out.copy(self.proof_over_udp(&self.proof.to_le_bytes()));
        out.copy(&[0; GREETING_MAX - GREETING][..length.saturating_sub(GREETING + PROOF)]);
    }

    fn report(&self, flags: u8, sequence: u64, out: &mut Outbox) {
        let proof = self.proof.to_le_bytes();
        let proof = self.proof_over_udp(&proof);
        out.copy(&Header { flags, ..Header::new(Kind::Report, proof.len() as u32, sequence) }.encode());
        out.copy(proof);
    }

    /// Returns the proof where it belongs to a message: on a stream the connection is proof enough.
    fn proof_over_udp<'a>(&self, proof: &'a [u8; PROOF]) -> &'a [u8] {
        if self.transport == Transport::Datagram { proof } else { &[] }
    }

    #[inline]
    fn operation(&mut self, now: Instant, next: Queued, queues: &mut Queues, out: &mut Outbox) {
        mark(next.tag, queues, out);
        match next.direction {
            Direction::Both => {
                self.queued.pop_front();
                queues.payload.message(&Header::new(Kind::Echo, next.size, self.echoes.push(next.tag, now)), out);
            }
            Direction::Send => {
                self.queued.pop_front();
                let sequence = if self.unbounded {
                    queues.events.push_back(Event::Sent(next.tag));
                    self.sent += 1;
                    self.sent - 1
                } else {
                    self.sends.push(next.tag, now)
                };
                let mut header = Header::new(Kind::Send, next.size, sequence);
                self.unacknowledged += 1;
                // A quarter of what is in flight, which may be far less than the window. The last one of a burst asks too: nobody
                // knows when the next one will come.
                let in_flight = if self.unbounded { u64::MAX } else { self.sends.ahead() };
                let every = u64::from(self.acknowledge_every).min(in_flight / 4);
                if self.single || u64::from(self.unacknowledged) >= every || self.queued.is_empty() {
                    self.unacknowledged = 0;
                    header.flags = FLAG_ACKNOWLEDGE;
                }
                queues.payload.message(&header, out);
            }
            Direction::Receive => {
                let mut header = Header::new(Kind::Receive, next.size, 0);
                let most = if self.single { 1 } else { RECEIVE_MAX };
                while let Some(also) = self.queued.front().copied()
                    && header.count < most
                    && (also.size, also.direction) == (next.size, next.direction)
                {
                    self.queued.pop_front();
                    let sequence = self.receives.push(also.tag, now);
                    if header.count == 0 {
                        header.sequence = sequence;
                    } else {
                        mark(also.tag, queues, out);
                    }
                    header.count += 1;
                }
                out.copy(&header.encode());
                out.copy(self.proof_over_udp(&self.proof.to_le_bytes()));
            }
        }
    }
}

/// Marks an operation that this poll writes.
#[inline]
fn mark(tag: u64, queues: &Queues, out: &mut Outbox) {
    if queues.stamps.sampling.takes(tag) {
        out.mark(QUEUE, tag, Moment::Sending);
        out.mark(SEND, tag, Moment::Sent);
    }
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
