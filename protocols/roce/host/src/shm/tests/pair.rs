use crate::device::{AddressOfQueuePair, Device, Limits, Region, Reliability};
use crate::shm::{SharedMemoryDevice, SharedMemorySettings};
use hodo_io::Clock;
use hodo_machine::{Instant, Wait};
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest};
use std::time::Duration;

/// Bytes of each end's region.
pub(super) const REGION: usize = 4096;

pub(super) const LIMITS: Limits =
    Limits { send_depth: 8, receive_depth: 8, send_entries: 4, receive_entries: 4, inline_bytes: 64 };

/// Three timeouts of 4 ms, and one retry after 20 us.
pub(super) const IMPATIENT: Reliability = Reliability {
    mtu: 1024,
    timeout: 10,
    retries: 2,
    receiver_not_ready_retries: 1,
    receiver_not_ready_timer: 2,
    reads: 1,
    service_level: 0,
};

/// A device with a region and a queue pair.
pub(super) struct End {
    pub(super) device: SharedMemoryDevice,
    pub(super) region: Region,
    pub(super) local: AddressOfQueuePair,
}

pub(super) fn device() -> SharedMemoryDevice {
    SharedMemoryDevice::open(SharedMemorySettings::default(), Clock::start()).expect("shared memory")
}

impl End {
    pub(super) fn new(access: Access, limits: &Limits) -> End {
        let mut device = device();
        let region = device.register(REGION, access).expect("a little memory");
        let local = device.create(limits).expect("within the limits");
        End { device, region, local }
    }

    pub(super) fn connect(&mut self, far: &AddressOfQueuePair, reliability: &Reliability) {
        self.device.connect(&self.local, far, reliability).expect("the far end is there");
    }

    pub(super) fn entry(&self, offset: u64, length: u32) -> ScatterEntry {
        ScatterEntry { address: self.region.address + offset, length, key: self.region.local_key }
    }

    /// Returns where the far end finds this region.
    pub(super) fn remote(&self, offset: u64) -> Remote {
        Remote { address: self.region.address + offset, key: self.region.remote_key }
    }

    pub(super) fn fill(&mut self, offset: usize, bytes: &[u8]) {
        self.device.write(self.region, offset, bytes).expect("inside");
    }

    pub(super) fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.device.read(self.region, offset, &mut bytes).expect("inside");
        bytes
    }

    pub(super) fn receive(&mut self, id: u64, entries: &[ScatterEntry]) {
        self.device.post_receive(self.local.number, &ReceiveRequest { id, entries }).expect("room");
    }

    pub(super) fn send(&mut self, id: u64, operation: Operation, entries: &[ScatterEntry]) {
        self.post(&SendRequest::new(id, operation, entries));
    }

    pub(super) fn post(&mut self, request: &SendRequest<'_>) {
        self.device.post_send(self.local.number, request).expect("room");
    }

    /// Returns the completions that are there.
    pub(super) fn polled(&mut self) -> Vec<Completion> {
        let mut completions = Vec::new();
        self.device.poll(Wait::Never, Instant::ZERO, &mut completions).expect("the device works");
        completions
    }

    /// Returns the next completions, which come soon.
    pub(super) fn waited(&mut self, wait: Wait) -> Vec<Completion> {
        let mut completions = Vec::new();
        let until = self.device.now() + Duration::from_secs(10);
        self.device.poll(wait, until, &mut completions).expect("the device works");
        assert!(!completions.is_empty(), "nothing completed");
        completions
    }
}

/// Creates two ends that are connected.
pub(super) fn connected(access: Access, reliability: &Reliability) -> (End, End) {
    let (mut near, mut far) = (End::new(access, &LIMITS), End::new(access, &LIMITS));
    near.connect(&far.local, reliability);
    far.connect(&near.local, reliability);
    assert!(near.polled().is_empty() && far.polled().is_empty());
    (near, far)
}
