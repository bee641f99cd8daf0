//! The interface of all backends: what the ping-pong, the latency and bandwidth tests, and the links need of a device.

use hodo_machine::{Instant, Wait};
use hodo_roce::{Access, Completion, ReceiveRequest, SendRequest};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;
use thiserror::Error;

/// A global identifier, 128 bits: the address of a port. An IPv4 address stands in its last four bytes (`::ffff:a.b.c.d`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// Returns the identifier of an IP address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Gid {
        match address {
            IpAddr::V4(v4) => Gid(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Gid(v6.octets()),
        }
    }

    /// Returns the IP address that this is the identifier of.
    #[must_use]
    pub fn address(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Gid {
    /// Writes it as rdma-core prints one, an IPv6 address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

/// A registered region of memory, which the device owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The virtual address of its first byte, for scatter entries and for the far end.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// The local key.
    pub local_key: u32,
    /// The remote key.
    pub remote_key: u32,
}

/// The sizes of a queue pair (`ibv_qp_cap`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Send requests that may be outstanding.
    pub send_depth: u32,
    /// Receive requests that may be outstanding.
    pub receive_depth: u32,
    /// Entries of a send request.
    pub send_entries: u32,
    /// Entries of a receive request.
    pub receive_entries: u32,
    /// Bytes of an inline payload.
    pub inline_bytes: u32,
}

/// The address of a queue pair, which its two ends tell each other out of band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressOfQueuePair {
    /// The local identifier; 0 on Ethernet.
    pub lid: u16,
    /// The queue pair's number, 24 bits.
    pub number: u32,
    /// The first packet sequence number that it sends, 24 bits.
    pub psn: u32,
    /// The port's global identifier.
    pub gid: Gid,
}

/// The attributes of a reliable connection that both ends choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliability {
    /// The path MTU: 256, 512, 1024, 2048 or 4096 bytes of payload.
    pub mtu: u32,
    /// The acknowledgement timeout as verbs code it: 4.096 us * 2^timeout, or none for 0.
    pub timeout: u8,
    /// Retries after a timeout or a sequence error, 0 to 7.
    pub retries: u8,
    /// Retries when the receiver is not ready, 0 to 6, or 7 for any number.
    pub receiver_not_ready_retries: u8,
    /// The time that a far end waits when this receiver is not ready, as verbs code it (12 is 0.64 ms).
    pub receiver_not_ready_timer: u8,
    /// Reads and atomic operations in flight, each way.
    pub reads: u8,
    /// The service level.
    pub service_level: u8,
}

impl Reliability {
    /// Returns the acknowledgement timeout as a time; for none, the longest there is.
    #[must_use]
    pub const fn timeout_span(&self) -> Duration {
        match self.timeout & 31 {
            0 => Duration::from_nanos(4096 << 31),
            code => Duration::from_nanos(4096 << code),
        }
    }
}

impl Default for Reliability {
    /// Returns what `ibv_rc_pingpong` chooses.
    fn default() -> Self {
        Reliability {
            mtu: 1024,
            timeout: 14,
            retries: 7,
            receiver_not_ready_retries: 7,
            receiver_not_ready_timer: 12,
            reads: 1,
            service_level: 0,
        }
    }
}

/// How completions are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// The completion queue is polled.
    Poll,
    /// The processor sleeps until a completion event.
    Events,
    /// The queue is polled for this long, then the processor sleeps.
    SpinThenBlock(Duration),
}

impl WaitMode {
    /// Returns the driver's wait.
    #[must_use]
    pub const fn wait(self) -> Wait {
        match self {
            WaitMode::Poll => Wait::Spin,
            WaitMode::Events => Wait::Block,
            WaitMode::SpinThenBlock(span) => Wait::SpinThenBlock(span),
        }
    }
}

/// An RDMA device that has been opened, with its queue pairs and regions: the software adapter, shared memory, or an adapter.
///
/// All queue pairs of a device share one completion queue.
pub trait Device {
    /// Allocates and registers a region of zeroes.
    ///
    /// # Errors
    /// [`DeviceError`] if the memory cannot be had, or cannot be registered.
    fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError>;

    /// Ends the registration of a region; its keys are invalid from then on.
    ///
    /// # Errors
    /// [`DeviceError`] if there is no such region, or it is in use.
    fn deregister(&mut self, region: Region) -> Result<(), DeviceError>;

    /// Copies bytes out of a region, from `offset` on.
    ///
    /// # Errors
    /// [`DeviceError`] if they are not all inside of it.
    fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies bytes into a region, from `offset` on.
    ///
    /// # Errors
    /// [`DeviceError`] if they are not all inside of it.
    fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Creates a queue pair of the reliable-connection service in the state INIT, and returns what its far end needs to know.
    ///
    /// # Errors
    /// [`DeviceError`] if the device cannot do what the limits ask.
    fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError>;

    /// Moves a queue pair to RTR and RTS, towards its far end. `local` is what [`Device::create`] returned.
    ///
    /// # Errors
    /// [`DeviceError`] if an attribute is out of range, or the far end cannot be reached.
    fn connect(
        &mut self,
        local: &AddressOfQueuePair,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<(), DeviceError>;

    /// Posts a request to the send queue.
    ///
    /// # Errors
    /// [`DeviceError`] if the queue is full, or the request is malformed.
    fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError>;

    /// Posts a request to the receive queue.
    ///
    /// # Errors
    /// [`DeviceError`] if the queue is full, or the request is malformed.
    fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError>;

    /// Waits for completions, at most until `until`, and appends those that are there.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has failed as a whole.
    fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError>;

    /// Returns the device's own clock, in its cycles, at each completion of the last [`Device::poll`]; empty if it has none, or was opened
    /// without.
    fn timestamps(&self) -> &[u64] {
        &[]
    }

    /// Returns the time now, on the clock of [`Device::poll`].
    fn now(&self) -> Instant;

    /// Keeps answering far ends for this long. The last acknowledgement may be lost, and then a far end sends again what has completed here;
    /// adapters answer by themselves.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has failed as a whole.
    fn linger(&mut self, span: Duration) -> Result<(), DeviceError> {
        let _ = span;
        Ok(())
    }

    /// Destroys a queue pair.
    fn destroy(&mut self, queue_pair: u32);
}

/// Why a device cannot do something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Something is missing: a library, a device, a capability. The text says which, and what to do.
    #[error("{0}")]
    Missing(String),
    /// The device refused a request, as verbs name it.
    #[error("{what}: {}", std::io::Error::from_raw_os_error(*errno))]
    Refused {
        /// The verb and its object.
        what: String,
        /// The error number.
        errno: i32,
    },
    /// A setting is out of the device's range. The text says which, and the range.
    #[error("{0}")]
    OutOfRange(String),
}
