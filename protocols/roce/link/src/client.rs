//! The near end: how an [`Operation`](hodo_measure::Operation) becomes a work request, and completions become completions of
//! operations.

use crate::backend::Backend;
use crate::control::{MESSAGE, MESSAGES, Order, Report, UNCONFIRMED, losses};
use crate::far_end::is_gone;
use crate::feed::due_ns;
use crate::greeting::{Greeting, Wish, refusal};
use crate::options::{ENTRIES_MAX, Kind};
use crate::served::{CONTROL, RECEIVE, SEND, cut, message_at, say};
use hodo_machine::{Closed, Difference, Instant, Sampling, Stamp, Stamps, Wait};
use hodo_measure::{
    ClockDifference, Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Outcome, ReportWait, Subscription,
};
use hodo_roce::{Completion as Work, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};
use hodo_roce_host::{AddressOfQueuePair, DeviceError, Region, Reliability};
use std::collections::VecDeque;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

/// The time between two looks at the connection to the far end, while nothing completes.
const LOOK: Duration = Duration::from_millis(100);
/// How often the far end's clock is read while updates come.
const CLOCK_READ: Duration = Duration::from_millis(250);

/// The work requests that both ends of a link agree on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    /// Send requests outstanding on a channel.
    pub(crate) depth: u32,
    /// Payloads up to this many bytes are sent inline.
    pub(crate) inline: u32,
    pub(crate) send_entries: u32,
    pub(crate) receive_entries: u32,
    /// The largest operation in bytes.
    pub(crate) size: u32,
}

/// An RDMA link on a device, as the tester sees it.
pub(crate) struct RdmaLink<B: Backend> {
    device: B,
    stream: TcpStream,
    shape: Shape,
    payload: Region,
    messages: Region,
    /// The far end's memory.
    remote: Remote,
    control: AddressOfQueuePair,
    channels: Vec<Channel>,
    receive_entries: Vec<ScatterEntry>,
    works: Vec<Work>,
    /// Operations that have not ended.
    in_flight: usize,
    /// Subscriptions that have not ended.
    feeds: u32,
    /// The slots of control messages that are free.
    slots: Vec<u32>,
    report: Reports,
    stamps: Stamps,
    /// When the connection was looked at last.
    looked: Instant,
    /// Whether this is the first part of the link.
    is_first: bool,
    failed: Option<LinkError>,
}

/// A queue pair, and what is under way on it.
#[derive(Debug)]
struct Channel {
    address: AddressOfQueuePair,
    /// Requests of the send queue, in order: the tag of the operation that it ends, if any.
    sent: VecDeque<Option<u64>>,
    /// Operations whose answer is awaited, in order.
    answers: VecDeque<u64>,
    /// Operations for which the send queue has no room.
    waiting: VecDeque<Operation>,
    is_subscribed: bool,
}

/// The reports of the far end.
#[derive(Debug, Default)]
struct Reports {
    /// When the report was asked for that is not there.
    asked: Option<Instant>,
    next: Instant,
    last: Option<FarEnd>,
    difference: Difference,
}

/// The parts of a link that has been connected.
pub(crate) struct Parts<B> {
    pub(crate) device: B,
    pub(crate) stream: TcpStream,
    pub(crate) shape: Shape,
    pub(crate) payload: Region,
    pub(crate) messages: Region,
    pub(crate) remote: Remote,
    pub(crate) control: AddressOfQueuePair,
    pub(crate) channels: Vec<AddressOfQueuePair>,
    /// Whether this is the first part of the link.
    pub(crate) is_first: bool,
}

impl<B: Backend> RdmaLink<B> {
    pub(crate) fn new(parts: Parts<B>) -> Self {
        let Parts { device, stream, shape, payload, messages, remote, control, channels, is_first } = parts;
        let channel = |address| Channel {
            address,
            sent: VecDeque::with_capacity(shape.depth as usize),
            answers: VecDeque::with_capacity(shape.depth as usize),
            waiting: VecDeque::new(),
            is_subscribed: false,
        };
        RdmaLink {
            looked: device.now(),
            device,
            stream,
            payload,
            messages,
            remote,
            control,
            channels: channels.into_iter().map(channel).collect(),
            receive_entries: cut(
                payload,
                shape.size,
                shape.receive_entries,
                &mut [ScatterEntry::default(); ENTRIES_MAX as usize],
            )
            .to_vec(),
            works: Vec::with_capacity(256),
            in_flight: 0,
            feeds: 0,
            slots: (0..MESSAGES).collect(),
            report: Reports::default(),
            stamps: Stamps::default(),
            failed: None,
            is_first,
            shape,
        }
    }

    /// Connects the queue pairs, and posts their receives.
    ///
    /// # Errors
    /// [`DeviceError`] if the far end cannot be reached.
    pub(crate) fn connect(
        &mut self,
        far: &[AddressOfQueuePair],
        wish: &Wish,
        reliability: &Reliability,
    ) -> Result<(), DeviceError> {
        for slot in 0..MESSAGES {
            self.listen(slot)?;
        }
        let (control, channels) = far.split_first().expect("a welcome has an address for control");
        self.device.connect(&self.control, control, reliability)?;
        for (channel, far) in channels.iter().enumerate() {
            for _ in 0..wish.receive_depth {
                self.receive(channel)?;
            }
            let local = self.channels[channel].address;
            self.device.connect(&local, far, reliability)?;
        }
        Ok(())
    }

    /// Posts a receive of a channel.
    ///
    /// # Errors
    /// [`DeviceError`] if the queue is full.
    #[inline]
    fn receive(&mut self, channel: usize) -> Result<(), DeviceError> {
        let request = ReceiveRequest { id: RECEIVE | channel as u64, entries: &self.receive_entries };
        self.device.post_receive(self.channels[channel].address.number, &request)
    }

    /// Posts a receive for a control message.
    ///
    /// # Errors
    /// [`DeviceError`] if the queue is full.
    fn listen(&mut self, slot: u32) -> Result<(), DeviceError> {
        let entries = [message_at(self.messages, slot, MESSAGE)];
        let id = CONTROL | RECEIVE | u64::from(slot);
        self.device.post_receive(self.control.number, &ReceiveRequest { id, entries: &entries })
    }

    /// Posts the request of an operation, for which there is room.
    #[inline]
    fn post(&mut self, operation: Operation) -> Result<(), DeviceError> {
        let Operation { tag, channel, size, mode } = operation;
        let channel = channel as usize;
        let out = if mode == Mode::Receive && self.shape.kind != Kind::Read { 0 } else { size };
        let verb = verb(self.shape.kind, mode, self.remote, size);
        let is_answered = mode != Mode::Send && self.shape.kind != Kind::Read;
        let mut at = [ScatterEntry::default(); ENTRIES_MAX as usize];
        let mut request =
            SendRequest::new(SEND | channel as u64, verb, cut(self.payload, out, self.shape.send_entries, &mut at));
        request.is_inline = out <= self.shape.inline && self.shape.kind != Kind::Read;
        let Channel { address, sent, answers, .. } = &mut self.channels[channel];
        self.device.post_send(address.number, &request)?;
        sent.push_back((!is_answered).then_some(tag));
        if is_answered {
            answers.push_back(tag);
        }
        if self.stamps.sampling.takes(tag) {
            self.stamps.keep(Stamp { stage: "post", tag, at: self.device.now() });
        }
        Ok(())
    }

    /// Ends an operation.
    #[inline]
    fn end(&mut self, tag: u64, done: &mut Vec<Completion>) {
        self.in_flight -= 1;
        if self.stamps.sampling.takes(tag) {
            self.stamps.keep(Stamp { stage: "complete", tag, at: self.device.now() });
        }
        done.push(Completion { tag, outcome: Outcome::Done });
    }

    /// Takes the completion of a work request.
    #[inline]
    fn take(&mut self, work: &Work, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let index = (work.id & 0xFFFF_FFFF) as usize;
        if work.status != Status::Success {
            return Err(failure(work, index as u32));
        }
        if work.id & CONTROL != 0 {
            return self.take_control(work, index as u32);
        }
        if work.id & SEND != 0 {
            if let Some(tag) = self.channels[index].sent.pop_front().flatten() {
                self.end(tag, done);
            }
            if let Some(operation) = self.channels[index].waiting.pop_front() {
                self.post(operation).map_err(refused)?;
            }
            return Ok(());
        }
        self.receive(index).map_err(refused)?;
        if !self.channels[index].is_subscribed {
            let answered = self.channels[index].answers.pop_front();
            let unasked =
                || LinkError::PeerMisbehaved { channel: index as u32, what: "an answer was not asked for".into() };
            self.end(answered.ok_or_else(unasked)?, done);
            return Ok(());
        }
        let Some(stamp) = work.immediate else {
            self.channels[index].is_subscribed = false;
            self.feeds -= 1;
            done.push(Completion { tag: index as u64, outcome: Outcome::Unsubscribed });
            return Ok(());
        };
        let now = self.device.now();
        // Before the far end's clock is known, an update has no age.
        if let Some((ahead_ns, _)) = self.report.difference.known() {
            let theirs_ns = now.as_nanos().wrapping_add_signed(ahead_ns);
            let took_ns = self.report.difference.since(due_ns(stamp, theirs_ns), now).unwrap_or(0);
            done.push(Completion { tag: index as u64, outcome: Outcome::Update { took_ns } });
        }
        Ok(())
    }

    fn take_control(&mut self, work: &Work, slot: u32) -> Result<(), LinkError> {
        if work.id & SEND != 0 {
            self.slots.push(slot);
            return Ok(());
        }
        let now = self.device.now();
        let mut bytes = [0; MESSAGE as usize];
        let bytes = &mut bytes[..work.length.min(MESSAGE) as usize];
        self.device.read(self.messages, (slot * MESSAGE) as usize, bytes).map_err(refused)?;
        self.listen(slot).map_err(refused)?;
        let request = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        if let Some((report, asked)) = request.and_then(|request| Report::of(&request)).zip(self.report.asked.take()) {
            self.report.difference.read(asked.as_nanos(), report.now_ns, now);
            let clock = self.report.difference.known();
            let clock = clock.map(|(ahead_ns, error_ns)| ClockDifference { ahead_ns, error_ns });
            let counted = report.far_end.loss;
            // The adapter at the far end is the same for all parts of a link.
            let loss = if self.is_first { counted } else { Loss { overrun: counted.overrun, ..Loss::default() } };
            self.report.last = Some(FarEnd { clock, loss, ..report.far_end });
        }
        Ok(())
    }

    /// Sends a control message.
    fn order(&mut self, order: Order) -> Result<(), LinkError> {
        let full = LinkError::PeerMisbehaved { channel: 0, what: "control messages are not acknowledged".into() };
        let slot = self.slots.pop().ok_or(full)?;
        let id = CONTROL | SEND | u64::from(slot);
        let text = order.request().to_string();
        say(&mut self.device, self.control.number, self.messages, MESSAGES + slot, id, &text).map_err(refused)
    }

    /// Requests a report, unless one is awaited.
    fn ask(&mut self) -> Result<(), LinkError> {
        if self.report.asked.is_none() {
            let now = self.device.now();
            (self.report.asked, self.report.next) = (Some(now), now + CLOCK_READ);
            self.order(Order::Report)?;
        }
        Ok(())
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let outcome = self.turned(wait, until, done);
        outcome.inspect_err(|error| self.failed = Some(error.clone()))
    }

    #[inline]
    fn turned(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let mut works = std::mem::take(&mut self.works);
        let next = if self.feeds > 0 { until.min(self.report.next) } else { until };
        let look = next.min(self.looked + LOOK).max(self.device.now());
        let polled = self.device.poll(wait, look, &mut works).map_err(refused);
        let taken = polled.and_then(|()| works.iter().try_for_each(|work| self.take(work, done)));
        let is_silent = works.is_empty();
        works.clear();
        self.works = works;
        let attended = self.attend(is_silent && wait != Wait::Never);
        // The far end's own words say more than a request that it did not answer.
        match (taken, attended) {
            (Err(_), Err(told @ LinkError::PeerMisbehaved { .. })) => Err(told),
            (taken, attended) => taken.and(attended),
        }
    }

    /// Looks at the connection while nothing completes, and reads the far end's clock while updates come.
    #[inline]
    fn attend(&mut self, is_silent: bool) -> Result<(), LinkError> {
        if is_silent || self.feeds > 0 {
            let now = self.device.now();
            if self.feeds > 0 && now >= self.report.next {
                self.ask()?;
            }
            if now >= self.looked + LOOK {
                self.looked = now;
                return self.check_far_end();
            }
        }
        Ok(())
    }

    /// Returns an error if the far end is gone, in its own words if it has said any.
    fn check_far_end(&self) -> Result<(), LinkError> {
        let mut bytes = [0; 1024];
        let Ok(count) = (&self.stream).read(&mut bytes) else {
            let gone = LinkError::Closed { channel: 0, why: Closed::Reset };
            return if is_gone(&self.stream) { Err(gone) } else { Ok(()) };
        };
        let mut said = Greeting::default();
        said.take(&bytes[..count]);
        let line = said.line().ok().flatten().and_then(|(line, _)| refusal(&line));
        Err(match line {
            Some(what) => LinkError::PeerMisbehaved { channel: 0, what },
            None => LinkError::Closed { channel: 0, why: Closed::Finished },
        })
    }
}

impl<B: Backend> Link for RdmaLink<B> {
    #[inline]
    fn start(&mut self, operation: Operation) {
        self.in_flight += 1;
        let channel = &mut self.channels[operation.channel as usize];
        if channel.sent.len() >= self.shape.depth as usize || !channel.waiting.is_empty() {
            channel.waiting.push_back(operation);
        } else if let Err(error) = self.post(operation) {
            self.failed.get_or_insert_with(|| refused(error));
        }
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.device.now()
    }

    fn subscribe(&mut self, subscription: Subscription) -> Result<(), LinkError> {
        let channel = &mut self.channels[subscription.channel as usize];
        if !std::mem::replace(&mut channel.is_subscribed, true) {
            self.feeds += 1;
        }
        self.order(Order::Subscribe(subscription))?;
        // The far end takes so many before it has answered.
        while self.slots.len() <= (MESSAGES - UNCONFIRMED) as usize {
            let until = self.now() + LOOK;
            self.turn(Wait::Block, until, &mut Vec::new())?;
        }
        Ok(())
    }

    fn unsubscribe(&mut self) {
        if self.feeds > 0
            && let Err(error) = self.order(Order::Unsubscribe)
        {
            self.failed.get_or_insert(error);
        }
    }

    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        self.report.last = None;
        let mut wait = ReportWait::begin(self.now(), until, done);
        self.ask()?;
        while self.report.last.is_none() {
            let Some(until) = wait.until(self.now(), self.progress(), done) else { return Ok(None) };
            self.turn(Wait::Block, until, done)?;
        }
        // The acknowledgement leaves now: nobody may turn this link for a while.
        let now = self.now();
        self.turn(Wait::Never, now, done)?;
        Ok(self.report.last.clone())
    }

    fn losses(&self) -> Loss {
        losses(&self.device.counters())
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.stamps.sampling = taken;
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        self.stamps.hand_over(stamps);
    }
}

impl<B: Backend> Drop for RdmaLink<B> {
    fn drop(&mut self) {
        // The far end notices it by the connection; one that is gone needs no goodbye.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Returns the verb of an operation: what is answered carries the bytes of the answer.
fn verb(kind: Kind, mode: Mode, remote: Remote, size: u32) -> hodo_roce::Operation {
    match (kind, mode) {
        (Kind::Send, Mode::Send) => hodo_roce::Operation::Send,
        (Kind::Send, _) => hodo_roce::Operation::SendWithImmediate(size),
        (Kind::Write, Mode::Send) => hodo_roce::Operation::Write(remote),
        (Kind::Write, _) => hodo_roce::Operation::WriteWithImmediate(remote, size),
        (Kind::Read, _) => hodo_roce::Operation::Read(remote),
    }
}

/// Returns the error of a work request that did not succeed.
#[cold]
fn failure(work: &Work, index: u32) -> LinkError {
    let channel = if work.id & CONTROL == 0 { index } else { 0 };
    match work.status {
        Status::RetryExceeded => LinkError::Closed { channel, why: Closed::TimedOut },
        status => LinkError::PeerMisbehaved { channel, what: format!("{status} ({})", status.code()) },
    }
}

/// Returns the error of a device.
#[cold]
fn refused(error: DeviceError) -> LinkError {
    match error {
        DeviceError::Refused { errno, .. } if errno != 0 => LinkError::System(errno),
        other => LinkError::PeerMisbehaved { channel: 0, what: other.to_string() },
    }
}
