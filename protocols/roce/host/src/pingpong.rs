//! The exchange of `ibv_rc_pingpong`: each side sends when its last send has completed and a message has arrived.

use crate::device::{AddressOfQueuePair, Device, DeviceError, Limits, Region, Reliability, WaitMode};
use crate::exchange::Request;
use crate::perftest::SIZE_MAX;
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, ScatterEntry, SendRequest, Status};
use std::time::Duration;
use thiserror::Error;

/// The number of a receive request, and of a send request, as `ibv_rc_pingpong` has them.
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
/// The byte that `ibv_rc_pingpong` fills its buffer with.
const FILL: u8 = 0x7B;

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
        Request::default().with("size", &self.size).with("iterations", &self.iterations)
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

/// Why a ping-pong failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PingPongError {
    /// The device refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A request did not succeed.
    #[error("Failed status {status} ({}) for wr_id {id}", status.code())]
    Failed {
        /// The outcome.
        status: Status,
        /// The request's number.
        id: u64,
    },
    /// Nothing completed for a long time.
    #[error("no completion within {} s: is the far end stopped, or with another number of iterations?", .0.as_secs())]
    Stalled(Duration),
    /// The far end has acknowledged everything, and sends nothing.
    #[error(
        "no message within {} s after {received} of {iterations}, though the far end has acknowledged every message of ours: is it \
         stopped, or with another number of iterations?",
        patience.as_secs()
    )]
    Unanswered {
        /// How long it was waited for.
        patience: Duration,
        /// Messages that came.
        received: u64,
        /// Messages that should come.
        iterations: u64,
    },
    /// A message had another length.
    #[error("message {number} has {length} bytes, not {size}: both ends need the same --size")]
    WrongLength {
        /// The message, from 0.
        number: u64,
        /// Bytes that came.
        length: u32,
        /// Bytes that were expected.
        size: u32,
    },
    /// A byte of a message is wrong.
    #[error("message {number}: byte {offset} is {found:#04x}, not {expected:#04x}")]
    WrongData {
        /// The message, from 0.
        number: u64,
        /// The byte.
        offset: usize,
        /// The value that arrived.
        found: u8,
        /// The value that was sent.
        expected: u8,
    },
    /// An atomic operation counted wrong.
    #[error("atomic operation {number}: the count is {found}, not {expected}")]
    WrongAtomic {
        /// The operation, from 0.
        number: u64,
        /// The count that was found.
        found: u64,
        /// The expected count.
        expected: u64,
    },
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
        device.write(region, 0, &vec![FILL; size])?;
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

    /// Connects the queue pair.
    ///
    /// # Errors
    /// [`DeviceError`] if the far end cannot be reached.
    pub fn connect(&mut self, remote: &AddressOfQueuePair, reliability: &Reliability) -> Result<(), DeviceError> {
        self.device.connect(&self.local, remote, reliability)
    }

    /// Exchanges all messages.
    ///
    /// # Errors
    /// Returns the first [`PingPongError`].
    pub fn run(&mut self, side: Side) -> Result<Took, PingPongError> {
        let iterations = self.parameters.iterations;
        let began = self.device.now();
        let mut pending = RECEIVE;
        if side == Side::Client && iterations > 0 {
            self.post_send(0)?;
            pending |= SEND;
        }
        let (mut give_up, mut seen) = (began + self.parameters.patience, 0);
        let wait = self.parameters.wait.wait();
        let mut started = u64::from(pending & SEND != 0);
        while self.received < iterations || self.sent < iterations {
            self.completions.clear();
            self.device.poll(wait, give_up, &mut self.completions)?;
            if self.completions.is_empty() {
                // A slow far end is none that has stopped.
                if self.sent + self.received == seen {
                    return Err(self.stalled(started));
                }
                seen = self.sent + self.received;
                give_up = self.device.now() + self.parameters.patience;
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
        Ok(Took { iterations, bytes: u64::from(self.parameters.size) * iterations * 2, span, gaps })
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
        if self.parameters.checks {
            (0..).zip(&mut self.buffer).for_each(|(offset, byte)| *byte = pattern(number, offset));
            self.device.write(self.region, 0, &self.buffer)?;
        }
        let mut request = SendRequest::new(SEND, Operation::Send, &self.send_entries);
        request.is_inline = self.parameters.size <= self.parameters.inline_bytes;
        self.device.post_send(self.local.number, &request)
    }

    /// Checks every byte of a message, and overwrites it, so that one which did not arrive is not taken for the last one.
    fn check(&mut self, number: u64) -> Result<(), PingPongError> {
        self.device.read(self.region, self.half, &mut self.buffer)?;
        let wrong = (0..).zip(&self.buffer).find(|(offset, byte)| **byte != pattern(number, *offset));
        if let Some((offset, found)) = wrong {
            return Err(PingPongError::WrongData { number, offset, found: *found, expected: pattern(number, offset) });
        }
        self.buffer.fill(FILL);
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

/// Returns byte `offset` of message `number`: no two messages, nor two parts of one, are alike.
#[inline]
fn pattern(number: u64, offset: usize) -> u8 {
    let mixed = (number << 20 ^ offset as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
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
mod tests {
    use super::*;
    use crate::{SharedMemoryDevice, SharedMemorySettings};
    use hodo_io::Clock;
    use hodo_machine::{Instant, Wait};
    use std::sync::mpsc;

    /// An adapter that takes long for each message, and may miss the acknowledgement of one: it says so after the next message has come.
    struct Slow {
        inner: SharedMemoryDevice,
        sends: u64,
        missed: Option<u64>,
        late: Option<Completion>,
        is_answered: bool,
    }

    impl Device for Slow {
        fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError> {
            self.inner.register(length, access)
        }

        fn deregister(&mut self, region: Region) -> Result<(), DeviceError> {
            self.inner.deregister(region)
        }

        fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
            self.inner.read(region, offset, bytes)
        }

        fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
            self.inner.write(region, offset, bytes)
        }

        fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError> {
            self.inner.create(limits)
        }

        fn connect(
            &mut self,
            local: &AddressOfQueuePair,
            remote: &AddressOfQueuePair,
            reliability: &Reliability,
        ) -> Result<(), DeviceError> {
            self.inner.connect(local, remote, reliability)
        }

        fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError> {
            hodo_io::sleep(Duration::from_millis(30));
            self.inner.post_send(queue_pair, request)
        }

        fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError> {
            self.inner.post_receive(queue_pair, request)
        }

        fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
            if let Some(late) = self.late.take_if(|_| self.is_answered) {
                completions.push(Completion { status: Status::RetryExceeded, ..late });
                completions.push(Completion { id: RECEIVE, status: Status::Flushed, ..late });
                return Ok(());
            }
            self.inner.poll(wait, until, completions)?;
            self.is_answered |= self.late.is_some() && completions.iter().any(|completion| completion.id == RECEIVE);
            if let Some(index) = completions.iter().position(|completion| completion.id == SEND) {
                self.sends += 1;
                if self.missed == Some(self.sends) {
                    self.late = Some(completions.remove(index));
                }
            }
            Ok(())
        }

        fn now(&self) -> Instant {
            self.inner.now()
        }

        fn destroy(&mut self, queue_pair: u32) {
            self.inner.destroy(queue_pair);
        }
    }

    /// Runs one end, which exchanges `iterations` messages.
    fn run(
        (side, iterations, missed): (Side, u64, Option<u64>),
        (tell, hear): (mpsc::Sender<AddressOfQueuePair>, mpsc::Receiver<AddressOfQueuePair>),
    ) -> Result<Took, PingPongError> {
        let patience = Duration::from_millis(200);
        let parameters = PingPong { iterations, patience, wait: WaitMode::Events, ..PingPong::default() };
        let device = SharedMemoryDevice::open(SharedMemorySettings::default(), Clock::start()).unwrap();
        let mut device = Slow { inner: device, sends: 0, missed, late: None, is_answered: false };
        let mut end = End::new(&mut device, &parameters).unwrap();
        tell.send(*end.local()).unwrap();
        end.connect(&hear.recv().unwrap(), &Reliability::default()).unwrap();
        let took = end.run(side);
        // The far end may still wait for this one.
        drop(tell);
        let _ = hear.recv();
        took
    }

    fn both(client: u64, server: u64) -> (Result<Took, PingPongError>, Result<Took, PingPongError>) {
        both_of(client, server, None)
    }

    /// Returns what both ends say, of which the client misses an acknowledgement.
    fn both_of(
        client: u64,
        server: u64,
        missed: Option<u64>,
    ) -> (Result<Took, PingPongError>, Result<Took, PingPongError>) {
        let (to_client, at_client) = mpsc::channel();
        let (to_server, at_server) = mpsc::channel();
        let far = std::thread::spawn(move || run((Side::Server, server, None), (to_client, at_server)));
        let took = run((Side::Client, client, missed), (to_server, at_client));
        (took, far.join().unwrap())
    }

    #[test]
    fn a_slow_far_end_is_none_that_has_stopped() {
        let (client, server) = both(12, 12);
        assert_eq!((client.unwrap().iterations, server.unwrap().iterations), (12, 12));
        let (client, server) = both(12, 3);
        // Its last message was taken by a receive that the far end had posted.
        assert!(matches!(client, Err(PingPongError::Unanswered { received: 3, iterations: 12, .. })), "{client:?}");
        assert_eq!(server.unwrap().iterations, 3);
    }
    #[test]
    fn the_last_reply_proves_that_the_last_message_arrived() {
        let (client, server) = both_of(5, 5, Some(5));
        assert_eq!((client.unwrap().iterations, server.unwrap().iterations), (5, 5));
        let (client, _) = both_of(5, 5, Some(3));
        assert!(matches!(client, Err(PingPongError::Failed { status: Status::RetryExceeded, .. })), "{client:?}");
    }
}
