//! Adapters through libibverbs: whatever has a driver there, from the kernel's software device to InfiniBand.

mod codes;
mod opening;
mod remedies;
#[cfg(test)]
mod tests;

use crate::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability};
use codes::{completion, operation, rights};
use hodo_io::verbs::{
    Capacity, CompletionQueue, Context, DeviceFacts, Domain, Entry, Path, Payload, Placement, PortFacts, QueuePair,
    Rights, SendWork, Timing,
};
use hodo_io::{Begin, Clock, Patience, Poll, polling, random_bits, verbs};
use hodo_machine::{Instant, Wait};
use hodo_roce::{Access, Completion, ReceiveRequest, ScatterEntry, SendRequest};
use remedies::{refused, registering};
use std::collections::BTreeMap;

pub use opening::{MemoryKind, VerbsSettings};

/// Looks at the completion queue for each look at the clock.
const POLLS_PER_LOOK: u32 = 16;

/// Routers on the way at most, as for other packets of the host. With 1, as `ibv_rc_pingpong` has it, a far end behind a router
/// cannot be reached.
const HOP_LIMIT: u8 = 64;

/// An adapter that libibverbs has a driver for, opened.
pub struct VerbsDevice {
    // In the order in which they are destroyed.
    pairs: Vec<QueuePair>,
    regions: BTreeMap<(u32, u64), verbs::Region>,
    completions: CompletionQueue,
    domain: Domain,
    context: Context,
    name: String,
    settings: VerbsSettings,
    facts: DeviceFacts,
    port: PortFacts,
    /// The port's global identifier, and the index of it in the port's table.
    gid: Option<(Gid, u8)>,
    /// Whether an event is announced, or waits in the channel.
    is_armed: bool,
    timestamps: Vec<u64>,
    entries: Vec<Entry>,
    inline: Vec<u8>,
    patience: Patience,
    clock: Clock,
}

impl VerbsDevice {
    /// Opens a device. The clock is that of [`Device::now`].
    ///
    /// # Errors
    /// [`DeviceError::Missing`] if the library, the device, the port, the global identifier or a capability is missing, in the
    /// words of `ibv_rc_pingpong`, with a remedy.
    pub fn open(settings: &VerbsSettings, clock: Clock) -> Result<Self, DeviceError> {
        opening::open(verbs::LIBRARY, settings, clock)
    }

    /// Returns the device's name, for example `mlx5_0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limits and capabilities of the device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Returns the state that the port had when the device was opened.
    #[must_use]
    pub fn port(&self) -> &PortFacts {
        &self.port
    }

    /// Returns the port's global identifier and its index; `None` on InfiniBand, if none was asked for.
    #[must_use]
    pub fn gid(&self) -> Option<(Gid, u8)> {
        self.gid
    }

    /// Returns the sizes that the device chose for a queue pair, which may be more than was asked for.
    #[must_use]
    pub fn limits(&self, queue_pair: u32) -> Option<Limits> {
        let capacity = self.pair(queue_pair).ok()?.capacity();
        Some(Limits {
            send_depth: capacity.send_depth,
            receive_depth: capacity.receive_depth,
            send_entries: capacity.send_entries,
            receive_entries: capacity.receive_entries,
            inline_bytes: capacity.inline_bytes,
        })
    }

    fn pair(&self, number: u32) -> Result<&QueuePair, DeviceError> {
        let at = self.pairs.binary_search_by_key(&number, QueuePair::number);
        at.map(|at| &self.pairs[at]).map_err(|_| no_queue_pair(number))
    }

    fn region(&self, region: Region) -> Result<&verbs::Region, DeviceError> {
        self.regions.get(&(region.local_key, region.address)).ok_or_else(no_region)
    }

    /// Takes what is in the completion queue. Returns whether there was anything.
    #[inline]
    fn take(&mut self, completions: &mut Vec<Completion>) -> Result<bool, DeviceError> {
        let (timestamps, has_timestamps) = (&mut self.timestamps, self.settings.has_timestamps);
        let count = self.completions.poll(|work| {
            completions.push(completion(work));
            if has_timestamps {
                timestamps.push(work.timestamp.unwrap_or(0));
            }
        });
        Ok(count.map_err(|error| refused("poll CQ failed", &error))? > 0)
    }

    /// Polls until there are completions, which it returns, or until a time.
    fn spin(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<bool, DeviceError> {
        let mut last = self.now();
        while last < until {
            for _ in 0..POLLS_PER_LOOK {
                if self.take(completions)? {
                    return Ok(true);
                }
            }
            let now = self.now();
            polling::add(now.nanos_since(last).min(polling::ROUND_NS_MAX));
            last = now;
        }
        Ok(false)
    }

    /// Polls before a sleep where that has paid lately.
    fn linger(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let before = completions.len();
        let mut poll = Poll::begin(self.now());
        let begin = self.patience.begin(poll.began());
        if begin == Begin::Sleep {
            self.sleep(until, completions)?;
            if completions.len() > before {
                self.patience.slept(poll.took_ns(self.now()));
            }
            return Ok(());
        }
        loop {
            if begin == Begin::Yield {
                std::thread::yield_now();
            }
            let (is_found, now) = (self.take(completions)?, self.now());
            if is_found {
                self.patience.found(poll.took_ns(now), poll.polled_ns(), now);
            } else if poll.looked(now) && now < until {
                continue;
            } else {
                self.patience.found_nothing(poll.polled_ns(), now);
            }
            polling::add(poll.polled_ns());
            return if is_found { Ok(()) } else { self.sleep(until, completions) };
        }
    }

    /// Sleeps until there are completions. The queue is armed, and then looked at once more, for one that came before is not announced.
    fn sleep(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if !self.settings.has_events {
            let text = format!("{} was opened without events: poll it, or open it with them", self.name);
            return Err(DeviceError::Missing(text));
        }
        loop {
            if !self.is_armed {
                self.completions.arm().map_err(|error| refused("Couldn't request CQ notification", &error))?;
                self.is_armed = true;
                if self.take(completions)? {
                    return Ok(());
                }
            }
            let now = self.now();
            if now >= until {
                return Ok(());
            }
            let is_event =
                self.completions.wait(until - now).map_err(|error| refused("Failed to get cq_event", &error))?;
            if is_event {
                self.is_armed = false;
                if self.take(completions)? {
                    return Ok(());
                }
            } else {
                self.check_events()?;
            }
        }
    }

    /// Takes asynchronous events, and fails with the first after which the device cannot be used.
    fn check_events(&self) -> Result<(), DeviceError> {
        let fatal = std::iter::from_fn(|| self.context.event()).find(|event| event.is_fatal);
        fatal.map_or(Ok(()), |event| {
            Err(DeviceError::Missing(format!("{} of {}: open the device again", event.text, self.name)))
        })
    }

    /// Copies the payload of an inline request out of its regions.
    fn gather(&mut self, entries: &[ScatterEntry]) -> Result<(), DeviceError> {
        self.inline.clear();
        for entry in entries {
            let before = self.regions.range(..=(entry.key, entry.address)).next_back();
            let (address, region) = before
                .filter(|((key, _), _)| *key == entry.key)
                .map(|((_, address), region)| (*address, region))
                .ok_or_else(no_region)?;
            let start = self.inline.len();
            self.inline.resize(start + entry.length as usize, 0);
            let offset = usize::try_from(entry.address - address).map_err(|_| no_region())?;
            region.read(offset, &mut self.inline[start..]).map_err(|error| outside(&error))?;
        }
        Ok(())
    }

    /// Makes room in the completion queue for everything that may be outstanding.
    fn make_room(&mut self, more: Capacity) -> Result<(), DeviceError> {
        let depth = |capacity: Capacity| u64::from(capacity.send_depth) + u64::from(capacity.receive_depth);
        let needed = depth(more) + self.pairs.iter().map(|pair| depth(pair.capacity())).sum::<u64>();
        if needed <= u64::from(self.completions.entries()) {
            return Ok(());
        }
        let limit = self.facts.completions;
        let entries = u32::try_from(needed).ok().filter(|entries| *entries <= limit).ok_or_else(|| {
            let name = &self.name;
            DeviceError::OutOfRange(format!(
                "{needed} outstanding requests: {name} has completion queues of at most {limit}; choose smaller depths"
            ))
        })?;
        self.completions.resize(entries).map_err(|error| refused("Couldn't resize CQ", &error))
    }
}

fn no_queue_pair(number: u32) -> DeviceError {
    DeviceError::OutOfRange(format!("0x{number:06x} is no queue pair of this device"))
}

fn no_region() -> DeviceError {
    DeviceError::OutOfRange("that is no region of this device".to_owned())
}

fn outside(error: &verbs::Error) -> DeviceError {
    match error {
        verbs::Error::OutOfBounds { .. } => DeviceError::OutOfRange(error.to_string()),
        other => refused("Couldn't copy to or from the region", other),
    }
}

impl Device for VerbsDevice {
    fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError> {
        opening::check_region(self, length, access)?;
        let placement = self.settings.memory.placement();
        let region =
            self.domain.register(length, rights(access), placement).map_err(|error| registering(length, &error))?;
        if self.settings.memory.is_prefetched() {
            region.prefetch().map_err(|error| refused("Couldn't prefetch MR", &error))?;
        }
        let (address, local_key) = (region.address(), region.local_key());
        let handle = Region { address, length, local_key, remote_key: region.remote_key() };
        self.regions.insert((local_key, address), region);
        if placement == Placement::Device {
            self.write(handle, 0, &vec![0; length])?;
        }
        Ok(handle)
    }

    fn deregister(&mut self, region: Region) -> Result<(), DeviceError> {
        self.regions.remove(&(region.local_key, region.address)).map(drop).ok_or_else(no_region)
    }

    fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.region(region)?.read(offset, bytes).map_err(|error| outside(&error))
    }

    fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let region = self.regions.get_mut(&(region.local_key, region.address)).ok_or_else(no_region)?;
        region.write(offset, bytes).map_err(|error| outside(&error))
    }

    fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError> {
        opening::check_limits(self, limits)?;
        let wish = Capacity {
            send_depth: limits.send_depth,
            receive_depth: limits.receive_depth,
            send_entries: limits.send_entries,
            receive_entries: limits.receive_entries,
            inline_bytes: limits.inline_bytes,
        };
        let created = self.domain.queue_pair(&self.completions, wish);
        let mut queue_pair = created.map_err(|error| refused("Couldn't create QP", &error))?;
        self.make_room(queue_pair.capacity())?;
        // Each region says what the far end may do; a device without atomic operations refuses their right.
        let every = Rights { remote_atomic: self.facts.has_atomics, ..rights(Access::ALL) };
        let initialized = queue_pair.initialize(self.settings.port, every);
        initialized.map_err(|error| refused("Failed to modify QP to INIT", &error))?;
        let (number, psn) = (queue_pair.number(), (random_bits() & 0xff_ffff) as u32);
        let at = self.pairs.partition_point(|pair| pair.number() < number);
        self.pairs.insert(at, queue_pair);
        let gid = self.gid.map_or(Gid::default(), |(gid, _)| gid);
        Ok(AddressOfQueuePair { lid: self.port.lid, number, psn, gid })
    }

    fn connect(
        &mut self,
        local: &AddressOfQueuePair,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<(), DeviceError> {
        opening::check_connection(self, remote, reliability)?;
        let has_gid = remote.gid != Gid::default();
        let path = Path {
            number: remote.number,
            psn: remote.psn,
            lid: remote.lid,
            global: self.gid.filter(|_| has_gid).map(|(_, index)| (remote.gid.0, index)),
            hop_limit: HOP_LIMIT,
            service_level: reliability.service_level,
            mtu: reliability.mtu,
            port: self.settings.port,
        };
        let timing = Timing {
            timeout: reliability.timeout,
            retries: reliability.retries,
            receiver_not_ready_retries: reliability.receiver_not_ready_retries,
            reads: reliability.reads,
        };
        let at = self.pairs.binary_search_by_key(&local.number, QueuePair::number);
        let pair = &mut self.pairs[at.map_err(|_| no_queue_pair(local.number))?];
        let received = pair.receive_from(&path, reliability.reads, reliability.receiver_not_ready_timer);
        received.map_err(|error| remedies::connecting(remote.gid, &error))?;
        pair.send_from(local.psn, timing).map_err(|error| refused("Failed to modify QP to RTS", &error))
    }

    #[inline]
    fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError> {
        if request.is_inline {
            self.gather(request.entries)?;
        } else {
            self.entries.clear();
            self.entries.extend(request.entries.iter().map(codes::entry));
        }
        let work = SendWork {
            id: request.id,
            operation: operation(request.operation),
            payload: if request.is_inline { Payload::Inline(&self.inline) } else { Payload::Entries(&self.entries) },
            is_signaled: request.is_signaled,
            is_solicited: request.is_solicited,
            has_fence: request.has_fence,
        };
        let posted = self.pair(queue_pair)?.post_send(&work);
        posted.map_err(|error| refused("Couldn't post send", &error))
    }

    #[inline]
    fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError> {
        self.entries.clear();
        self.entries.extend(request.entries.iter().map(codes::entry));
        let posted = self.pair(queue_pair)?.post_receive(request.id, &self.entries);
        posted.map_err(|error| refused("Couldn't post receive", &error))
    }

    /// Returns the cycles at each completion, 0 for one that failed. The clock wraps at [`DeviceFacts::timestamp_mask`].
    fn timestamps(&self) -> &[u64] {
        &self.timestamps
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.timestamps.clear();
        if self.take(completions)? {
            return Ok(());
        }
        match wait {
            Wait::Never => Ok(()),
            Wait::Block => self.sleep(until, completions),
            Wait::Adaptive => self.linger(until, completions),
            Wait::Spin => {
                let is_found = self.spin(until, completions)?;
                if is_found { Ok(()) } else { self.check_events() }
            }
            Wait::SpinThenBlock(span) => {
                let is_found = self.spin(until.min(self.now() + span), completions)?;
                if is_found { Ok(()) } else { self.sleep(until, completions) }
            }
        }
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn destroy(&mut self, queue_pair: u32) {
        self.pairs.retain(|pair| pair.number() != queue_pair);
    }
}
