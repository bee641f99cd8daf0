//! The exchange of `ibv_rc_pingpong`: each side sends when its last send has completed and a message has arrived.

mod content;
mod error;

use crate::device::{AddressOfQueuePair, Device, DeviceError, Limits, Region, Reliability, WaitMode};
use crate::exchange::Request;
use crate::perftest::SIZE_MAX;
use crate::session::UDP;
use content::Content;
use hodo_machine::Instant;
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, ScatterEntry, SendRequest, Status};
use std::time::Duration;

pub use error::PingPongError;

/// The number of a receive request, and of a send request, as `ibv_rc_pingpong` has them.
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
/// The part of the time-out after which progress is looked for: a time-out lasts longer by that much at the most.
const LOOKS: u32 = 64;

/// The name of a line's value that tells whether an end checks what it receives.
const CHECK: &str = "check";

/// Two cache lines, which processors fetch together: the halves of the buffer do not share them.
const APART: usize = 128;

/// The parameters of a ping-pong, with the defaults of `ibv_rc_pingpong`.
#[derive(Debug, Clone, PartialEq)]
pub struct PingPong {
    /// Bytes of a message.
    pub size: u32,
    /// Receives that are posted ahead.
    pub receive_depth: u32,
    /// Messages each way.
    pub iterations: u64,
    /// How completions are waited for.
    pub wait: WaitMode,
    /// Entries that each message is gathered from.
    pub send_entries: u32,
    /// Entries that each message is scattered to.
    pub receive_entries: u32,
    /// Payloads up to this many bytes are sent inline.
    pub inline_bytes: u32,
    /// Whether every byte of every message is checked.
    pub checks: bool,
    /// Whether the time between two received messages is recorded.
    pub stamps: bool,
    /// The time without a completion after which the exchange fails.
    pub patience: Duration,
}

impl Default for PingPong {
    fn default() -> Self {
        PingPong {
            size: 4096,
            receive_depth: 500,
            iterations: 1000,
            wait: WaitMode::Poll,
            send_entries: 1,
            receive_entries: 1,
            inline_bytes: 0,
            checks: false,
            stamps: false,
            patience: Duration::from_secs(30),
        }
    }
}

impl PingPong {
    /// Returns what a server has to know of a client's ping-pong.
    #[must_use]
    pub fn request(&self) -> Request {
        let request = Request::default().with("size", &self.size).with("iterations", &self.iterations);
        request.with(CHECK, &u8::from(self.checks))
    }

    /// Returns what a server queries a client with.
    #[must_use]
    pub fn query(&self) -> Request {
        Request::default().with("query", &"ping-pong").with(CHECK, &u8::from(self.checks))
    }

    /// Returns these parameters with the size and the number of messages that a client requests.
    ///
    /// # Errors
    /// Returns the reason if there is no such ping-pong.
    pub fn as_requested(&self, request: &Request) -> Result<PingPong, String> {
        let (Some(size), Some(iterations)) = (request.get("size"), request.get("iterations")) else {
            return Err("a ping-pong has a size and iterations".into());
        };
        let most = self.size.max(SIZE_MAX);
        if size > most {
            return Err(format!(
                "a message of {size} bytes: choose at most {most}, or give the server the same --size"
            ));
        }
        Ok(PingPong { size, iterations, ..self.clone() })
    }
}

/// The side of an exchange: the client sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Connects, and sends first.
    Client,
    /// Waits for a client.
    Server,
}

/// A ping-pong that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Took {
    /// Messages each way.
    pub iterations: u64,
    /// Bytes of both directions.
    pub bytes: u64,
    /// From the first message to the last completion.
    pub span: Duration,
    /// The times between two received messages, if they were recorded.
    pub gaps: Option<Gaps>,
}

/// Times between two received messages, in cycles of the device's clock, or in nanoseconds where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// All together.
    pub sum: u64,
    /// How many there were.
    pub count: u64,
}

impl Gaps {
    const NONE: Gaps = Gaps { min: u64::MAX, max: 0, sum: 0, count: 0 };

    fn add(&mut self, gap: u64) {
        self.min = self.min.min(gap);
        self.max = self.max.max(gap);
        self.sum += gap;
        self.count += 1;
    }
}

/// One end of a ping-pong, with its queue pair and its memory.
#[derive(Debug)]
pub struct End<'d, D: Device> {
    device: &'d mut D,
    parameters: PingPong,
    local: AddressOfQueuePair,
    region: Region,
    /// Where messages are received in the region.
    half: usize,
    send_entries: Vec<ScatterEntry>,
    receive_entries: Vec<ScatterEntry>,
    completions: Vec<Completion>,
    posted: u32,
    sent: u64,
    received: u64,
    content: Content,
    buffer: Vec<u8>,
    last: Option<u64>,
    gaps: Gaps,
}

impl<'d, D: Device> End<'d, D> {
    /// Registers memory, creates a queue pair, and posts its receives.
    ///
    /// # Errors
    /// [`DeviceError`] if the device cannot do what the parameters ask.
    pub fn new(device: &'d mut D, parameters: &PingPong) -> Result<Self, DeviceError> {
        let size = parameters.size as usize;
        // A half for each direction. `ibv_rc_pingpong` has one buffer for both: through shared memory, each end then sends what
        // the other end's processor has just written, and 16 KiB take 5.1 us instead of 0.7.
        let half = size.next_multiple_of(APART).max(APART);
        let region = device.register(2 * half, Access::LOCAL)?;
        let content = Content::Stock { is_marked: parameters.checks };
        device.write(region, 0, &content.message(0, size))?;
        let local = device.create(&Limits {
            send_depth: 1,
            receive_depth: parameters.receive_depth,
            send_entries: parameters.send_entries,
            receive_entries: parameters.receive_entries,
            inline_bytes: parameters.inline_bytes,
        })?;
        let mut end = End {
            device,
            local,
            region,
            half,
            send_entries: entries(region, 0, parameters.size, parameters.send_entries),
            receive_entries: entries(region, half, parameters.size, parameters.receive_entries),
            completions: Vec::with_capacity(16),
            posted: 0,
            sent: 0,
            received: 0,
            last: None,
            gaps: Gaps::NONE,
            content,
            buffer: vec![0; if parameters.checks { size } else { 0 }],
            parameters: parameters.clone(),
        };
        end.post_receives()?;
        Ok(end)
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &D {
        self.device
    }

    /// Returns what the far end needs to know.
    #[must_use]
    pub fn local(&self) -> &AddressOfQueuePair {
        &self.local
    }

    /// Prepares for a far end that is not of this program: it cannot be told of this end's UDP port.
    ///
    /// # Errors
    /// [`DeviceError`] if it cannot reach this end.
    pub(crate) fn face(&mut self, remote: &AddressOfQueuePair) -> Result<(), DeviceError> {
        self.device.face(remote)
    }

    /// Connects the queue pair.
    ///
    /// # Errors
    /// [`DeviceError`] if the far end cannot be reached.
    pub fn connect(&mut self, remote: &AddressOfQueuePair, reliability: &Reliability) -> Result<(), DeviceError> {
        self.device.connect(&self.local, remote, reliability)
    }

    /// Sets the number of messages each way.
    pub(crate) fn set_iterations(&mut self, iterations: u64) {
        self.parameters.iterations = iterations;
    }

    /// Agrees with a far end of this program, which has sent this line, on its UDP port, and on messages that differ from one to the next if
    /// it or this end checks them. Toward any other far end each message is as `ibv_rc_pingpong` sends it.
    pub fn agree(&mut self, line: &Request) {
        if let Some(port) = line.get(UDP) {
            self.device.send_to_port(port);
        }
        if self.parameters.checks || line.get::<u8>(CHECK) == Some(1) {
            self.content = Content::Numbered;
            self.buffer.resize(self.parameters.size as usize, 0);
        }
    }

    /// Exchanges all messages. If that fails, the far end's last message is refused, so that it does not wait for a reply to it.
    ///
    /// # Errors
    /// Returns the first [`PingPongError`].
    pub fn run(&mut self, side: Side) -> Result<Took, PingPongError> {
        self.exchange(side).map_err(|error| {
            // The device may have failed as a whole: then there is nobody to be told.
            let _ = self.device.refuse(self.local.number);
            error.remarked(self.device)
        })
    }

    fn exchange(&mut self, side: Side) -> Result<Took, PingPongError> {
        let iterations = self.parameters.iterations;
        let began = self.device.now();
        let mut pending = RECEIVE;
        if side == Side::Client && iterations > 0 {
            self.post_send(0)?;
            pending |= SEND;
        }
        let mut silence = Silence::new(self.parameters.patience, began);
        let wait = self.parameters.wait.wait();
        let mut started = u64::from(pending & SEND != 0);
        while self.received < iterations || self.sent < iterations {
            self.completions.clear();
            self.device.poll(wait, silence.look, &mut self.completions)?;
            if self.completions.is_empty() && silence.is_over(self.device.now(), self.sent + self.received) {
                return Err(self.stalled(started));
            }
            for index in 0..self.completions.len() {
                let completion = self.completions[index];
                if side == Side::Client && self.is_proven(&completion) {
                    self.sent += 1;
                    break;
                }
                self.completed(&completion, index)?;
                pending &= !completion.id;
                if pending == 0 && started < iterations {
                    self.post_send(started)?;
                    started += 1;
                    pending = RECEIVE | SEND;
                }
            }
        }
        let span = self.device.now() - began;
        let gaps = self.parameters.stamps.then_some(self.gaps);
        let bytes = u64::from(self.parameters.size).saturating_mul(iterations).saturating_mul(2);
        Ok(Took { iterations, bytes, span, gaps })
    }

    /// Goes on answering the far end for this long, in case it has not received the last acknowledgement.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has failed as a whole.
    pub fn linger(&mut self, span: Duration) -> Result<(), DeviceError> {
        self.device.linger(span)
    }

    /// Returns whether a client's last message, whose acknowledgement never came, has arrived all the same: the reply to it is here. A server
    /// that has sent its last reply is gone before long, and answers no retry.
    fn is_proven(&self, completion: &Completion) -> bool {
        let iterations = self.parameters.iterations;
        let is_last = self.received == iterations && self.sent + 1 == iterations;
        is_last && completion.id == SEND && completion.status == Status::RetryExceeded
    }

    /// Tells apart what can be missing after `started` messages were sent.
    fn stalled(&self, started: u64) -> PingPongError {
        let PingPong { patience, iterations, .. } = self.parameters;
        if self.sent < started {
            return PingPongError::Stalled(patience);
        }
        PingPongError::Unanswered { patience, received: self.received, iterations }
    }

    #[inline]
    fn completed(&mut self, completion: &Completion, index: usize) -> Result<(), PingPongError> {
        if completion.status != Status::Success {
            return Err(PingPongError::Failed { status: completion.status, id: completion.id });
        }
        if completion.id == SEND {
            self.sent += 1;
            return Ok(());
        }
        if completion.length != self.parameters.size {
            let (length, size) = (completion.length, self.parameters.size);
            return Err(PingPongError::WrongLength { number: self.received, length, size });
        }
        if self.parameters.checks {
            self.check(self.received)?;
        }
        if self.parameters.stamps {
            self.stamp(index);
        }
        self.received += 1;
        self.posted -= 1;
        // As many at a time as `ibv_rc_pingpong` posts: this is what the study of the receive depth shows.
        if self.posted <= 1 {
            self.post_receives()?;
        }
        Ok(())
    }

    /// Records the time since the last received message: in cycles of the device's clock where it has one, else in nanoseconds.
    fn stamp(&mut self, index: usize) {
        let cycles = self.device.timestamps().get(index).copied();
        let now = cycles.unwrap_or_else(|| self.device.now().as_nanos());
        // A clock that has begun again shows nothing.
        if let Some(gap) = self.last.replace(now).and_then(|last| now.checked_sub(last)) {
            self.gaps.add(gap);
        }
    }

    fn post_receives(&mut self) -> Result<(), DeviceError> {
        while self.posted < self.parameters.receive_depth {
            let request = ReceiveRequest { id: RECEIVE, entries: &self.receive_entries };
            self.device.post_receive(self.local.number, &request)?;
            self.posted += 1;
        }
        Ok(())
    }

    #[inline]
    fn post_send(&mut self, number: u64) -> Result<(), DeviceError> {
        if self.content == Content::Numbered {
            self.content.fill(number, &mut self.buffer);
            self.device.write(self.region, 0, &self.buffer)?;
        }
        let mut request = SendRequest::new(SEND, Operation::Send, &self.send_entries);
        request.is_inline = self.parameters.size <= self.parameters.inline_bytes;
        self.device.post_send(self.local.number, &request)
    }

    /// Checks every byte of a message, and overwrites it, so that one which did not arrive is not taken for the last one.
    fn check(&mut self, number: u64) -> Result<(), PingPongError> {
        self.device.read(self.region, self.half, &mut self.buffer)?;
        if let Some((offset, found, expected)) = self.content.wrong(number, &self.buffer) {
            return Err(PingPongError::WrongData { number, offset, found, expected });
        }
        self.buffer.fill(content::CLEARED);
        self.device.write(self.region, self.half, &self.buffer)?;
        Ok(())
    }
}

impl<D: Device> Drop for End<'_, D> {
    fn drop(&mut self) {
        self.device.destroy(self.local.number);
        // Its queue pair is gone: nothing uses it.
        let _ = self.device.deregister(self.region);
    }
}

/// The time without a completion.
struct Silence {
    patience: Duration,
    /// Completions when progress was looked for last.
    completed: u64,
    since: Instant,
    /// When progress is looked for next.
    look: Instant,
}

impl Silence {
    fn new(patience: Duration, now: Instant) -> Self {
        Silence { patience, completed: 0, since: now, look: now + patience / LOOKS }
    }

    /// Returns whether nothing has completed for as long as patience lasts. A slow far end is none that has stopped.
    fn is_over(&mut self, now: Instant, completed: u64) -> bool {
        if completed != self.completed {
            (self.completed, self.since) = (completed, now);
        }
        let end = self.since + self.patience;
        self.look = end.min(now + self.patience / LOOKS);
        now >= end
    }
}

/// Cuts a message into entries of about equal length.
fn entries(region: Region, start: usize, size: u32, count: u32) -> Vec<ScatterEntry> {
    let count = count.max(1);
    let edge = |index: u32| u64::from(size) * u64::from(index) / u64::from(count);
    let cut = |index| ScatterEntry {
        address: region.address + start as u64 + edge(index),
        length: (edge(index + 1) - edge(index)) as u32,
        key: region.local_key,
    };
    (0..count).map(cut).collect()
}

#[cfg(test)]
mod tests;
