//! The latency and the bandwidth of single operations, as perftest measures them: `ib_send_lat`, `ib_write_bw` and their kin.
//!
//! | test | one iteration | latency |
//! |---|---|---|
//! | `send-lat` | a message each way | half of the round trip |
//! | `write-lat` | a WRITE each way, seen by looking at the memory | half of the round trip |
//! | `read-lat`, `atomic-lat` | one operation | from posting it to its completion |
//! | `send-bw`, `write-bw`, `read-bw`, `atomic-bw` | one operation, up to the send depth outstanding | |
//!
//! The client asks for a test with a line of its own ([`crate::exchange`]); the server takes all parameters from it, so that both ends
//! agree. MB/sec are 2^20 bytes, as in perftest.

mod client;
mod rows;
mod server;

use crate::AddressOfQueuePair;
use crate::device::{Device, DeviceError, Limits, Region, Reliability, WaitMode};
use crate::exchange::{Exchange, Request};
use crate::pingpong::PingPongError;
use crate::session::SessionError;
use hodo_machine::Wait;
use hodo_roce::{Access, Completion, Operation, Remote, ScatterEntry, SendRequest, Status};
use std::time::Duration;

pub use rows::{Bandwidth, Latency, Row};

/// Bytes of a message at most: twice what perftest's `-a` goes up to.
pub const SIZE_MAX: u32 = 16 << 20;
/// Requests outstanding at most.
pub const DEPTH_MAX: u32 = 16_384;
/// Sizes of one session at most.
const SIZES_MAX: usize = 64;
/// Reads and atomic operations in flight.
const READS: u8 = 16;
/// Bytes of an atomic operation.
const ATOMIC: u32 = 8;

hodo_machine::codes! {
    /// A test, by perftest's name of its program.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Test: u8 {
        /// `ib_send_lat`.
        SendLatency = 0 => "send-lat",
        /// `ib_send_bw`.
        SendBandwidth = 1 => "send-bw",
        /// `ib_write_lat`.
        WriteLatency = 2 => "write-lat",
        /// `ib_write_bw`.
        WriteBandwidth = 3 => "write-bw",
        /// `ib_read_lat`.
        ReadLatency = 4 => "read-lat",
        /// `ib_read_bw`.
        ReadBandwidth = 5 => "read-bw",
        /// `ib_atomic_lat`.
        AtomicLatency = 6 => "atomic-lat",
        /// `ib_atomic_bw`.
        AtomicBandwidth = 7 => "atomic-bw",
    }
}

impl Test {
    /// Returns the test of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Test> {
        Self::ALL.iter().copied().find(|test| test.name() == name)
    }

    /// Returns whether it measures latency.
    #[must_use]
    pub const fn is_latency(self) -> bool {
        matches!(self, Test::SendLatency | Test::WriteLatency | Test::ReadLatency | Test::AtomicLatency)
    }

    const fn is_send(self) -> bool {
        matches!(self, Test::SendLatency | Test::SendBandwidth)
    }

    const fn is_atomic(self) -> bool {
        matches!(self, Test::AtomicLatency | Test::AtomicBandwidth)
    }
}

/// The atomic operation of `atomic-lat` and `atomic-bw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Atomic {
    /// FETCH_ADD of one.
    #[default]
    FetchAdd,
    /// CMP_SWAP of a count that goes up by one.
    CompareSwap,
}

/// The parameters of a test. Sizes, iterations and the depths are the client's, and become the server's.
#[derive(Debug, Clone, PartialEq)]
pub struct Perftest {
    /// The test.
    pub test: Test,
    /// The atomic operation, for tests of one.
    pub atomic: Atomic,
    /// Bytes of a message, one row of the result each.
    pub sizes: Vec<u32>,
    /// Iterations of each size.
    pub iterations: u64,
    /// Send requests outstanding, in tests of bandwidth.
    pub send_depth: u32,
    /// Receives that are posted ahead.
    pub receive_depth: u32,
    /// Payloads up to this many bytes are sent inline.
    pub inline_bytes: u32,
    /// Whether the server checks every byte of what is there at the end of each size.
    pub checks: bool,
    /// How this end waits for completions.
    pub wait: WaitMode,
    /// The time without progress after which the test fails.
    pub patience: Duration,
}

impl Perftest {
    fn to_request(&self) -> Request {
        let sizes: Vec<String> = self.sizes.iter().map(u32::to_string).collect();
        Request::default()
            .with("test", &self.test.name())
            .with("swap", &u8::from(self.atomic == Atomic::CompareSwap))
            .with("sizes", &sizes.join(","))
            .with("iterations", &self.iterations)
            .with("depth", &self.send_depth)
            .with("receives", &self.receive_depth)
            .with("inline", &self.inline_bytes)
            .with("check", &u8::from(self.checks))
    }

    /// Reads a client's parameters; `wait` and `patience` are this end's own.
    fn of(request: &Request, wait: WaitMode, patience: Duration) -> Option<Self> {
        let sizes = request.get::<String>("sizes")?;
        let atomic = if request.get::<u8>("swap")? == 1 { Atomic::CompareSwap } else { Atomic::FetchAdd };
        Some(Perftest {
            test: Test::named(&request.get::<String>("test")?)?,
            atomic,
            sizes: sizes.split(',').map(|size| size.parse().ok()).collect::<Option<_>>()?,
            iterations: request.get("iterations")?,
            send_depth: request.get("depth")?,
            receive_depth: request.get("receives")?,
            inline_bytes: request.get("inline")?,
            checks: request.get::<u8>("check")? == 1,
            wait,
            patience,
        })
    }

    /// Checks what may come from a command line, or from a stranger.
    ///
    /// # Errors
    /// A sentence that says which value is out of range, and the range.
    pub fn check(&self) -> Result<(), String> {
        let sizes = self.sizes.len();
        if sizes == 0 || sizes > SIZES_MAX {
            return Err(format!("{sizes} sizes: give 1 to {SIZES_MAX} of them"));
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=SIZE_MAX).contains(*size)) {
            return Err(format!("a message of {size} bytes: choose 1 to {SIZE_MAX}"));
        }
        if let Some(size) = self.sizes.iter().find(|size| self.test.is_atomic() && **size != ATOMIC) {
            return Err(format!("an atomic operation has {ATOMIC} bytes, not {size}"));
        }
        for (what, depth) in [("send", self.send_depth), ("receive", self.receive_depth)] {
            if !(1..=DEPTH_MAX).contains(&depth) {
                return Err(format!("a {what} depth of {depth}: choose 1 to {DEPTH_MAX}"));
            }
        }
        Ok(())
    }

    /// Returns the attributes of the connection: reads and atomic operations in flight as perftest has them.
    fn reliability(base: &Reliability) -> Reliability {
        Reliability { reads: READS, ..*base }
    }
}

/// One end of a test, with its queue pair and its memory: half of it is sent from or read, the other half received to or written.
struct Bench<'d, D: Device> {
    device: &'d mut D,
    plan: Perftest,
    local: AddressOfQueuePair,
    region: Region,
    remote: Remote,
    half: usize,
    completions: Vec<Completion>,
}

impl<'d, D: Device> Bench<'d, D> {
    fn new(device: &'d mut D, plan: &Perftest) -> Result<Self, DeviceError> {
        let half = plan.sizes.iter().max().map_or(0, |size| *size as usize).next_multiple_of(64);
        let region = device.register(2 * half, Access::ALL)?;
        let local = device.create(&Limits {
            send_depth: plan.send_depth,
            receive_depth: plan.receive_depth,
            send_entries: 1,
            receive_entries: 1,
            inline_bytes: plan.inline_bytes,
        })?;
        let completions = Vec::with_capacity((plan.send_depth + plan.receive_depth) as usize);
        Ok(Bench { device, plan: plan.clone(), local, region, remote: Remote::default(), half, completions })
    }

    /// Tells the far end of this end's memory.
    fn tell_region(&self, exchange: &mut Exchange) -> Result<(), SessionError> {
        let request = Request::default().with("address", &self.region.address).with("key", &self.region.remote_key);
        Ok(exchange.request(&request)?)
    }

    /// Hears of the far end's memory.
    fn hear_region(&mut self, exchange: &mut Exchange) -> Result<(), SessionError> {
        let said = exchange.answer()?;
        let (address, key) = (said.get("address"), said.get("key"));
        let (Some(address), Some(key)) = (address, key) else {
            return Err(SessionError::Usage(format!("the far end said `{said}` where its memory was expected")));
        };
        self.remote = Remote { address, key };
        Ok(())
    }

    /// Returns the far end's memory at `offset` of the half that receives, or of the other.
    fn far(&self, receives: bool, offset: u32) -> Remote {
        let half = if receives { self.half as u64 } else { 0 };
        Remote { address: self.remote.address.wrapping_add(half + u64::from(offset)), key: self.remote.key }
    }

    /// Returns this end's memory of one half.
    fn near(&self, receives: bool, size: u32) -> ScatterEntry {
        let half = if receives { self.half as u64 } else { 0 };
        ScatterEntry { address: self.region.address + half, length: size, key: self.region.local_key }
    }

    fn post(&mut self, id: u64, operation: Operation, size: u32) -> Result<(), DeviceError> {
        let returns =
            matches!(operation, Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. });
        let entries = [self.near(returns, size)];
        let mut request = SendRequest::new(id, operation, &entries);
        request.is_inline = !returns && size <= self.plan.inline_bytes;
        self.device.post_send(self.local.number, &request)
    }

    /// Takes the completions that are there, after a wait of at most `span`.
    fn take(&mut self, wait: Wait, span: Duration) -> Result<(), PingPongError> {
        self.completions.clear();
        let until = self.device.now() + span;
        self.device.poll(wait, until, &mut self.completions)?;
        match self.completions.iter().find(|completion| completion.status != Status::Success) {
            Some(failed) => Err(PingPongError::Failed { status: failed.status, id: failed.id }),
            None => Ok(()),
        }
    }

    /// Fills the half that is sent from, or read, with what the far end checks.
    fn fill(&mut self, size: u32) -> Result<(), DeviceError> {
        let bytes: Vec<u8> = (0..size).map(|offset| pattern(size, offset)).collect();
        self.device.write(self.region, 0, &bytes)
    }

    /// Empties the half that is received to, or written.
    fn clear(&mut self, size: u32) -> Result<(), DeviceError> {
        self.device.write(self.region, self.half, &vec![0; size as usize])
    }

    /// Checks every byte that came, but for the last `counted`, which a test of latency counts in.
    fn verify(&mut self, size: u32, counted: u32) -> Result<(), PingPongError> {
        let mut bytes = vec![0; size as usize];
        self.device.read(self.region, self.half, &mut bytes)?;
        let wrong = (0..size - counted).zip(bytes).find(|(offset, byte)| *byte != pattern(size, *offset));
        wrong.map_or(Ok(()), |(offset, found)| {
            let (offset, expected) = (offset as usize, pattern(size, offset));
            Err(PingPongError::WrongData { number: self.plan.iterations - 1, offset, found, expected })
        })
    }

    fn byte(&self, offset: usize) -> Result<u8, DeviceError> {
        let mut byte = [0];
        self.device.read(self.region, offset, &mut byte)?;
        Ok(byte[0])
    }

    fn word(&self, offset: usize) -> Result<u64, DeviceError> {
        let mut bytes = [0; ATOMIC as usize];
        self.device.read(self.region, offset, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl<D: Device> Drop for Bench<'_, D> {
    fn drop(&mut self) {
        self.device.destroy(self.local.number);
        // Its queue pair is gone: nothing uses it.
        let _ = self.device.deregister(self.region);
    }
}

/// Returns byte `offset` of a message of this size, never 0.
#[inline]
fn pattern(size: u32, offset: u32) -> u8 {
    let mixed = (u64::from(size) << 32 | u64::from(offset)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8 | 1
}

/// Returns the byte that ends WRITE number `number` of a test of latency, never 0.
fn count_byte(number: u64) -> u8 {
    (number % 255) as u8 + 1
}
