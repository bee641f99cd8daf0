//! Reliable connections between processes of one host, through shared memory.
//!
//! A region is a file of memory that the far ends map, too. The requester carries out every operation itself: it finds the far
//! end's next posted receive, or the region of a remote key, checks keys, bounds and rights, copies the payload once to its
//! place, and publishes a completion. The far end's processor does nothing for a read, a write or an atomic operation, and touches
//! no payload. Waiting for completions is polling a word of shared memory, or sleeping on a Unix socket that the far end rings.
//!
//! Trust: a far end can write to every region that is shared with it, whatever rights were published, because it has mapped them.
//! So both ends belong to one user, who could do that with a debugger, too. A far end that dies, lies or writes garbage fails its
//! own queue pair: everything that it wrote is checked before use, files are mapped only if they cannot shrink, and nothing is
//! written outside of a region.

mod backlog;
mod far;
mod layout;
mod messages;
mod queue_pair;
mod receiving;
mod regions;
mod rendezvous;
mod requester;
mod sending;
mod waiting;

use crate::device::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability};
use far::{Far, Inbox};
use hodo_io::shared_memory::SharedMemory;
use hodo_io::{Clock, Patience, random_bits};
use hodo_machine::{Instant, Wait};
use hodo_roce::{Access, Completion, ReceiveRequest, SendRequest, Status};
use layout::{DEPTH_MAX, ENTRIES_MAX, REGIONS_MAX, Rings, Shape, Table};
use queue_pair::{QueuePair, Refusal, Resources, State};
use regions::{Regions, Registered, key_of, slot_of};
use rendezvous::{Origin, Rendezvous};
use requester::Scratch;
use std::collections::VecDeque;
use std::io;

/// Queue pairs of a device at most: the bits of a number that are its index.
const QUEUE_PAIRS_MAX: usize = 256;
/// Bytes of an inline payload at most.
const INLINE_MAX: u32 = 4096;

const EINVAL: i32 = 22;
const ENOMEM: i32 = 12;

/// The settings of a device in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedMemorySettings {
    /// Whether processes of other users may connect. They can then write to the regions of this process.
    pub accepts_other_users: bool,
}

/// A device whose far ends are processes of this host, or this process itself.
#[derive(Debug)]
pub struct SharedMemoryDevice {
    rendezvous: Rendezvous,
    table: Table,
    queue_pairs: Vec<Option<Box<QueuePair>>>,
    resources: Resources,
    /// From which the next key and the next number are made.
    variant: u32,
    /// When the channels are looked at next, and how many looks at the rings there were since the clock was read.
    channels_due: Instant,
    looks: u32,
    patience: Patience,
}

impl SharedMemoryDevice {
    /// Opens a device.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the operating system gives no socket or no memory.
    pub fn open(settings: SharedMemorySettings, clock: Clock) -> Result<Self, DeviceError> {
        let failed = |error: io::Error| system("open_device", &error);
        Ok(SharedMemoryDevice {
            rendezvous: Rendezvous::open(settings.accepts_other_users).map_err(failed)?,
            table: Table::create().map_err(failed)?,
            queue_pairs: Vec::new(),
            resources: Resources {
                clock,
                regions: Regions::new(),
                ready: VecDeque::new(),
                scratch: Scratch::new(),
                inbox: Inbox::new(),
                needs_channels: false,
            },
            variant: random_bits() as u32,
            channels_due: Instant::ZERO,
            looks: 0,
            patience: Patience::new(),
        })
    }

    /// Returns the device's global identifier, which says on which host it is.
    #[must_use]
    pub fn gid(&self) -> Gid {
        self.rendezvous.gid
    }

    fn next_variant(&mut self) -> u32 {
        self.variant = self.variant.wrapping_add(1);
        self.variant
    }

    /// Returns a queue pair, and what it shares with others.
    #[inline]
    fn find(&mut self, queue_pair: u32) -> Result<(&mut QueuePair, &mut Resources), DeviceError> {
        let found = self.queue_pairs.get_mut(index_of(queue_pair)).and_then(Option::as_deref_mut);
        match found.filter(|found| found.local.number == queue_pair) {
            Some(found) => Ok((found, &mut self.resources)),
            None => Err(no_queue_pair(queue_pair)),
        }
    }

    fn region(&self, region: Region) -> Result<&Registered, DeviceError> {
        self.resources.regions.find(region.local_key).ok_or_else(|| no_region(region))
    }

    /// Gives the channels of newcomers to the queue pairs that they are for.
    fn admit(&mut self) -> Result<(), DeviceError> {
        for (index, queue_pair) in self.queue_pairs.iter_mut().enumerate() {
            let Some(queue_pair) = queue_pair.as_deref_mut() else { continue };
            let (QueuePair { local, remote, .. }, State::Connected, None) =
                (&*queue_pair, queue_pair.state, &queue_pair.far)
            else {
                continue;
            };
            let claimed = self.rendezvous.claim(|hello| {
                let is_from = |remote: &AddressOfQueuePair| {
                    (remote.gid, remote.number, remote.psn) == (hello.from.gid, hello.from.number, hello.from.psn)
                };
                (hello.to_number, hello.to_psn) == (local.number, local.psn) && remote.as_ref().is_some_and(is_from)
            });
            let Some((newcomer, hello, files)) = claimed else { continue };
            match Far::map(&hello, &files, newcomer.channel) {
                Err(_) => queue_pair.fail(Status::General, &mut self.resources),
                Ok(far) => {
                    let channel = far.channel.as_ref().expect("it has just come");
                    let added = self.rendezvous.set.add(channel, Origin::Far(index).token());
                    added.map_err(|error| system("modify_qp", &error))?;
                    queue_pair.far = Some(far);
                    queue_pair.hear(&mut self.resources);
                }
            }
        }
        let queue_pairs = &self.queue_pairs;
        self.rendezvous.keep(|hello| {
            let wanted = queue_pairs.get(index_of(hello.to_number)).and_then(Option::as_deref);
            wanted.is_some_and(|wanted| {
                (wanted.local.number, wanted.local.psn) == (hello.to_number, hello.to_psn)
                    && wanted.state == State::Init
            })
        });
        Ok(())
    }
}

impl Device for SharedMemoryDevice {
    fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError> {
        if !access.is_consistent() {
            return Err(refused("reg_mr: remote writes and atomic operations need local writes", EINVAL));
        }
        let over = || refused(&format!("reg_mr: the limit of {REGIONS_MAX} regions is reached"), ENOMEM);
        let slot = self.resources.regions.free_slot().ok_or_else(over)?;
        let what = || format!("reg_mr: {length} bytes");
        let memory = SharedMemory::create("hodo-region", length).map_err(|error| system(&what(), &error))?;
        let (key, address) = (key_of(slot, self.next_variant()), memory.address());
        self.resources.regions.set(slot, Some(Registered { key, address, access, memory }));
        self.table.publish(slot, key, key);
        self.queue_pairs
            .iter_mut()
            .flatten()
            .for_each(|queue_pair| queue_pair.note_change(slot, &self.resources.regions));
        Ok(Region { address, length, local_key: key, remote_key: key })
    }

    fn deregister(&mut self, region: Region) -> Result<(), DeviceError> {
        self.region(region)?;
        let slot = slot_of(region.local_key);
        self.table.publish(slot, 0, 0);
        self.resources.regions.set(slot, None);
        self.queue_pairs
            .iter_mut()
            .flatten()
            .for_each(|queue_pair| queue_pair.note_change(slot, &self.resources.regions));
        Ok(())
    }

    fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let length = bytes.len();
        self.region(region)?.memory.copy_out(offset, bytes).map_err(|_| outside(region, offset, length))
    }

    fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.region(region)?.memory.copy_in(offset, bytes).map_err(|_| outside(region, offset, bytes.len()))
    }

    fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError> {
        let shape = check_limits(limits)?;
        let index = match self.queue_pairs.iter().position(Option::is_none) {
            Some(index) => index,
            None if self.queue_pairs.len() < QUEUE_PAIRS_MAX => self.queue_pairs.len(),
            None => return Err(refused("create_qp: the limit of 256 queue pairs is reached", ENOMEM)),
        };
        let rings = Rings::create(shape).map_err(|error| system("create_qp", &error))?;
        // Neither 0 nor 1, which are for the management of a fabric.
        let variant = self.next_variant() % 0xFFFF + 1;
        let number = variant << QUEUE_PAIRS_MAX.trailing_zeros() | index as u32;
        let psn = random_bits() as u32 & 0xFF_FFFF;
        let local = AddressOfQueuePair { lid: 0, number, psn, gid: self.rendezvous.gid };
        let queue_pair = Some(Box::new(QueuePair::new(local, limits, rings)));
        if index == self.queue_pairs.len() {
            self.queue_pairs.push(queue_pair);
        } else {
            self.queue_pairs[index] = queue_pair;
        }
        // Room for the completions of every request that may be outstanding.
        let most = |limits: &Limits| (limits.send_depth + limits.receive_depth) as usize + 2;
        let all: usize = self.queue_pairs.iter().flatten().map(|queue_pair| most(&queue_pair.limits)).sum();
        self.resources.ready.reserve(all.saturating_sub(self.resources.ready.len()));
        Ok(local)
    }

    fn connect(
        &mut self,
        local: &AddressOfQueuePair,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<(), DeviceError> {
        check_reliability(reliability)?;
        let index = index_of(local.number);
        if self.find(local.number)?.0.state != State::Init {
            return Err(refused("modify_qp: the queue pair has been connected before", EINVAL));
        }
        let channel = self.rendezvous.call(remote)?;
        let added = self.rendezvous.set.add(&channel, Origin::Outgoing(index).token());
        added.map_err(|error| system("modify_qp", &error))?;
        let table = self.table.memory().file().expect("created here");
        let found = self.queue_pairs[index].as_deref_mut().expect("it was found above");
        let is_told = found.connect(remote, reliability, channel, (&self.resources.regions, table));
        if !is_told.map_err(|error| system("modify_qp: the far end", &error))? {
            return Err(refused("modify_qp: too many descriptors of this user are in flight", ENOMEM));
        }
        self.look_at_channels()?;
        // The far end may have called before, along with another queue pair.
        self.admit()
    }

    #[inline]
    fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError> {
        let (found, resources) = self.find(queue_pair)?;
        found.post_send(request, resources).map_err(|refusal| cannot_post("post_send", refusal))
    }

    #[inline]
    fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError> {
        let (found, resources) = self.find(queue_pair)?;
        found.post_receive(request, &mut resources.ready).map_err(|refusal| cannot_post("post_recv", refusal))
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.wait(wait, until, completions)
    }

    fn now(&self) -> Instant {
        self.resources.clock.now()
    }

    fn destroy(&mut self, queue_pair: u32) {
        if self.find(queue_pair).is_ok() {
            self.queue_pairs[index_of(queue_pair)] = None;
            self.resources.ready.retain(|completion| completion.queue_pair != queue_pair);
        }
    }
}

/// Returns the index of a queue pair's number.
#[inline]
const fn index_of(number: u32) -> usize {
    number as usize & (QUEUE_PAIRS_MAX - 1)
}

/// Checks the limits of a new queue pair, and returns the shape of its receive queue.
fn check_limits(limits: &Limits) -> Result<Shape, DeviceError> {
    let bounds = [
        ("requests outstanding", limits.send_depth.max(limits.receive_depth), DEPTH_MAX),
        ("entries of a request", limits.send_entries.max(limits.receive_entries), ENTRIES_MAX),
        ("bytes of an inline payload", limits.inline_bytes, INLINE_MAX),
    ];
    let over = bounds.iter().find(|(_, asked, most)| asked > most);
    let shape = Shape::new(limits.receive_depth.max(1), limits.receive_entries);
    match (over, shape) {
        (Some((what, asked, most)), _) => Err(out_of_range(what, *asked, *most)),
        (None, Some(shape)) => Ok(shape),
        (None, None) => Err(refused("create_qp", EINVAL)),
    }
}

fn check_reliability(reliability: &Reliability) -> Result<(), DeviceError> {
    if !(reliability.mtu.is_power_of_two() && (256..=4096).contains(&reliability.mtu)) {
        let mtu = reliability.mtu;
        return Err(DeviceError::OutOfRange(format!("path MTU {mtu} is not one of 256, 512, 1024, 2048, 4096")));
    }
    let bounds = [
        ("the code of the timeout", reliability.timeout, 31),
        ("retries", reliability.retries, 7),
        ("retries of a receiver that is not ready", reliability.receiver_not_ready_retries, 7),
        ("the code of the timer of a receiver that is not ready", reliability.receiver_not_ready_timer, 31),
    ];
    let over = bounds.iter().find(|(_, asked, most)| asked > most);
    over.map_or(Ok(()), |(what, asked, most)| Err(out_of_range(what, u32::from(*asked), u32::from(*most))))
}

#[cold]
fn out_of_range(what: &str, asked: u32, most: u32) -> DeviceError {
    DeviceError::OutOfRange(format!("{what}: {asked}, and the most is {most}"))
}

#[cold]
fn refused(what: &str, errno: i32) -> DeviceError {
    DeviceError::Refused { what: what.into(), errno }
}

#[cold]
fn system(what: &str, error: &io::Error) -> DeviceError {
    let errno = match error.kind() {
        io::ErrorKind::OutOfMemory => ENOMEM,
        _ => error.raw_os_error().unwrap_or(EINVAL),
    };
    refused(what, errno)
}

#[cold]
fn cannot_post(verb: &str, refusal: Refusal) -> DeviceError {
    match refusal {
        Refusal::Full => refused(&format!("{verb}: the queue is full"), ENOMEM),
        Refusal::Malformed(how) => refused(&format!("{verb}: {how}"), EINVAL),
    }
}

#[cold]
fn no_queue_pair(number: u32) -> DeviceError {
    refused(&format!("there is no queue pair {number:#08x}"), EINVAL)
}

#[cold]
fn no_region(region: Region) -> DeviceError {
    DeviceError::OutOfRange(format!("no region has the key {:#010x}", region.local_key))
}

#[cold]
fn outside(region: Region, offset: usize, length: usize) -> DeviceError {
    DeviceError::OutOfRange(format!("{length} bytes at {offset} are not all inside of a region of {}", region.length))
}

#[cfg(test)]
mod tests;
