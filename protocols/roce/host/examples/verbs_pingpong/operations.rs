//! Every operation once, and the ways in which it fails, between two queue pairs of one thread.

use hodo_io::Clock;
use hodo_machine::Wait;
use hodo_roce::{Access, Completed, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};
use hodo_roce_host::{
    AddressOfQueuePair, Device, DeviceError, Limits, Region, Reliability, VerbsDevice, VerbsSettings,
};
use std::time::Duration;

const LENGTH: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(20);

/// A device with a region and a queue pair.
struct Side {
    device: VerbsDevice,
    region: Region,
    local: AddressOfQueuePair,
}

impl Side {
    fn new(settings: &VerbsSettings) -> Result<Self, DeviceError> {
        let mut device = VerbsDevice::open(settings, Clock::start())?;
        let region = device.register(LENGTH, Access::ALL)?;
        let limits =
            Limits { send_depth: 16, receive_depth: 16, send_entries: 2, receive_entries: 2, inline_bytes: 32 };
        let local = device.create(&limits)?;
        Ok(Side { device, region, local })
    }

    fn entry(&self, offset: u32, length: u32) -> ScatterEntry {
        ScatterEntry { address: self.region.address + u64::from(offset), length, key: self.region.local_key }
    }

    fn remote(&self, offset: u64) -> Remote {
        Remote { address: self.region.address + offset, key: self.region.remote_key }
    }

    fn receive(&mut self, id: u64, offset: u32, length: u32) -> Result<(), DeviceError> {
        let entries = [self.entry(offset, length)];
        self.device.post_receive(self.local.number, &ReceiveRequest { id, entries: &entries })
    }

    fn send(&mut self, id: u64, operation: Operation, offset: u32, length: u32) -> Result<(), DeviceError> {
        let entries = [self.entry(offset, length)];
        self.device.post_send(self.local.number, &SendRequest::new(id, operation, &entries))
    }

    /// Waits for one completion.
    fn completion(&mut self, wait: Wait) -> Result<Completion, DeviceError> {
        let mut found = Vec::new();
        let until = self.device.now() + PATIENCE;
        self.device.poll(wait, until, &mut found)?;
        assert_eq!(found.len(), 1, "one request was posted: {found:?}");
        Ok(found[0])
    }

    /// Waits for so many completions.
    fn completions(&mut self, count: usize) -> Result<Vec<Completion>, DeviceError> {
        let mut found = Vec::new();
        let until = self.device.now() + PATIENCE;
        while found.len() < count && self.device.now() < until {
            self.device.poll(Wait::Block, until, &mut found)?;
        }
        assert_eq!(found.len(), count, "{found:?}");
        Ok(found)
    }

    fn bytes(&self, offset: usize, length: usize) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; length];
        self.device.read(self.region, offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// Creates two sides that are connected.
fn connected(settings: &VerbsSettings, reliability: &Reliability) -> Result<(Side, Side), DeviceError> {
    let (mut near, mut far) = (Side::new(settings)?, Side::new(settings)?);
    let (near_local, far_local) = (near.local, far.local);
    near.device.connect(&near_local, &far_local, reliability)?;
    far.device.connect(&far_local, &near_local, reliability)?;
    Ok((near, far))
}

pub fn run(settings: &VerbsSettings, mtu: u32) -> Result<(), DeviceError> {
    let reliability = Reliability { mtu, ..Reliability::default() };
    messages(settings, &reliability)?;
    remote_memory(settings, &reliability)?;
    atomics(settings, &reliability)?;
    failures(settings, &reliability)?;
    refusals(settings, &reliability)?;
    outstanding(settings, &reliability)
}

fn messages(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let (mut near, mut far) = connected(settings, reliability)?;
    println!("limits of the queue pair: {:?}", near.device.limits(near.local.number));
    for (wait, name) in [(Wait::Spin, "poll"), (Wait::Block, "events")] {
        near.device.write(near.region, 0, &pattern(3000))?;
        far.receive(7, 4096, 4096)?;
        near.send(8, Operation::SendWithImmediate(0x1234_5678), 0, 3000)?;
        let received = far.completion(wait)?;
        let expected = (7, Status::Success, Completed::Receive, 3000, Some(0x1234_5678), far.local.number);
        assert_eq!(tuple(&received), expected);
        let sent = near.completion(wait)?;
        assert_eq!(tuple(&sent), (8, Status::Success, Completed::Send, 0, None, near.local.number));
        assert_eq!(far.bytes(4096, 3000)?, pattern(3000));
        println!("SEND with immediate, {name}: ok");
    }
    // Gathered from two entries, scattered to two others.
    let (from, to) = ([near.entry(10, 100), near.entry(500, 50)], [far.entry(0, 30), far.entry(1000, 4000)]);
    far.device.post_receive(far.local.number, &ReceiveRequest { id: 1, entries: &to })?;
    near.device.post_send(near.local.number, &SendRequest::new(2, Operation::Send, &from))?;
    assert_eq!(far.completion(Wait::Spin)?.length, 150);
    assert_eq!(near.completion(Wait::Spin)?.status, Status::Success);
    let gathered = [&pattern(3000)[10..110], &pattern(3000)[500..550]].concat();
    assert_eq!([far.bytes(0, 30)?, far.bytes(1000, 120)?].concat(), gathered);
    println!("SEND from and to two entries: ok");
    // Inline: the memory is overwritten at once.
    let inline = [near.entry(0, 20)];
    far.receive(3, 0, 64)?;
    let request = SendRequest { is_inline: true, ..SendRequest::new(4, Operation::Send, &inline) };
    near.device.post_send(near.local.number, &request)?;
    near.device.write(near.region, 0, &[0; 20])?;
    assert_eq!(far.completion(Wait::Block)?.length, 20);
    assert_eq!(near.completion(Wait::Block)?.status, Status::Success);
    assert_eq!(far.bytes(0, 20)?, &pattern(3000)[..20]);
    println!("SEND inline: ok");
    // A receive that nobody announces, and a wait that ends at its deadline.
    let (before, mut found) = (near.device.now(), Vec::new());
    near.device.poll(Wait::Block, before + Duration::from_millis(50), &mut found)?;
    let slept = near.device.now() - before;
    assert!(found.is_empty() && slept >= Duration::from_millis(50), "{found:?} after {slept:?}");
    println!("events, deadline of 50 ms: {slept:?}");
    Ok(())
}

fn remote_memory(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let (mut near, mut far) = connected(settings, reliability)?;
    near.device.write(near.region, 0, &pattern(4000))?;
    near.send(1, Operation::Write(far.remote(100)), 0, 4000)?;
    let written = near.completion(Wait::Block)?;
    assert_eq!(tuple(&written), (1, Status::Success, Completed::Write, 0, None, near.local.number));
    assert_eq!(far.bytes(100, 4000)?, pattern(4000));
    println!("WRITE: ok");
    far.receive(2, 0, 0)?;
    near.send(3, Operation::WriteWithImmediate(far.remote(5000), 0xABCD), 0, 40)?;
    let expected = (2, Status::Success, Completed::ReceiveWrite, 40, Some(0xABCD), far.local.number);
    assert_eq!(tuple(&far.completion(Wait::Block)?), expected);
    assert_eq!(near.completion(Wait::Block)?.kind, Completed::Write);
    assert_eq!(far.bytes(5000, 40)?, pattern(40));
    println!("WRITE with immediate: ok");
    near.send(4, Operation::Read(far.remote(100)), 4096, 4000)?;
    let read = near.completion(Wait::Spin)?;
    assert_eq!(tuple(&read), (4, Status::Success, Completed::Read, 4000, None, near.local.number));
    assert_eq!(near.bytes(4096, 4000)?, pattern(4000));
    println!("READ: ok");
    Ok(())
}

fn atomics(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let (mut near, mut far) = connected(settings, reliability)?;
    if !near.device.facts().has_atomics {
        println!("atomic operations: the device has none");
        return Ok(());
    }
    far.device.write(far.region, 64, &5u64.to_ne_bytes())?;
    near.send(1, Operation::FetchAdd { remote: far.remote(64), add: 7 }, 0, 8)?;
    let added = near.completion(Wait::Block)?;
    assert_eq!(tuple(&added), (1, Status::Success, Completed::FetchAdd, 8, None, near.local.number));
    let (returned, value) = (near.bytes(0, 8)?, far.bytes(64, 8)?);
    assert_eq!((returned, value), (5u64.to_ne_bytes().to_vec(), 12u64.to_ne_bytes().to_vec()));
    println!("FETCH_ADD: ok");
    near.send(2, Operation::CompareSwap { remote: far.remote(64), compare: 12, swap: 1 << 40 }, 8, 8)?;
    assert_eq!(near.completion(Wait::Spin)?.kind, Completed::CompareSwap);
    near.send(3, Operation::CompareSwap { remote: far.remote(64), compare: 12, swap: 99 }, 16, 8)?;
    assert_eq!(near.completion(Wait::Spin)?.status, Status::Success);
    assert_eq!(near.bytes(8, 16)?, [12u64.to_ne_bytes(), (1u64 << 40).to_ne_bytes()].concat());
    assert_eq!(far.bytes(64, 8)?, (1u64 << 40).to_ne_bytes());
    println!("CMP_SWP: ok");
    Ok(())
}

fn failures(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let failed = |name: &str, expected: &[Status], reliability: &Reliability, post: Post| {
        let (mut near, mut far) = connected(settings, reliability)?;
        near.receive(2, 0, 64)?;
        post(&mut near, &mut far)?;
        let mut found = near.completions(2)?;
        // The receive that was posted before is flushed, and so is a send that is posted from now on.
        near.send(3, Operation::Send, 0, 64)?;
        found.extend(near.completions(1)?);
        found.sort_by_key(|completion| completion.id);
        let failed = found[0].status;
        let outcomes: Vec<(u64, Status)> = found.iter().map(|completion| (completion.id, completion.status)).collect();
        assert_eq!(outcomes, [(1, failed), (2, Status::Flushed), (3, Status::Flushed)], "{name}");
        assert!(expected.contains(&failed), "{name}: {failed}");
        println!("{name}: {failed} ({}), then flushed", failed.code());
        Ok::<(), DeviceError>(())
    };
    let impatient = Reliability { retries: 1, receiver_not_ready_retries: 1, timeout: 10, ..*reliability };
    failed("wrong remote key", &[Status::RemoteAccess], reliability, |near, far| {
        let place = far.remote(0);
        near.send(1, Operation::Write(Remote { key: place.key ^ 0x5555, ..place }), 0, 64)
    })?;
    failed("outside of the remote region", &[Status::RemoteAccess], reliability, |near, far| {
        near.send(1, Operation::Read(far.remote(LENGTH as u64 - 8)), 0, 64)
    })?;
    failed("no right to write", &[Status::RemoteAccess], reliability, |near, far| {
        let region = far.device.register(64, Access { remote_read: true, ..Access::LOCAL })?;
        near.send(1, Operation::Write(Remote { address: region.address, key: region.remote_key }), 0, 64)
    })?;
    // The kernel's software device reports the second of two.
    failed("wrong local key", &[Status::LocalProtection, Status::LocalQueuePair], reliability, |near, far| {
        far.receive(9, 0, 64)?;
        let entries = [ScatterEntry { key: near.region.local_key ^ 0x5555, ..near.entry(0, 64) }];
        near.device.post_send(near.local.number, &SendRequest::new(1, Operation::Send, &entries))
    })?;
    failed(
        "receive is too short",
        &[Status::RemoteInvalidRequest, Status::RemoteOperation],
        reliability,
        |near, far| {
            far.receive(9, 0, 32)?;
            near.send(1, Operation::Send, 0, 64)
        },
    )?;
    failed("no receive", &[Status::ReceiverNotReady], &impatient, |near, _| near.send(1, Operation::Send, 0, 64))?;
    failed("no far end", &[Status::RetryExceeded], &impatient, |near, far| {
        far.device.destroy(far.local.number);
        near.send(1, Operation::Write(far.remote(0)), 0, 64)
    })
}

/// Posts request 1 at the near side.
type Post = fn(&mut Side, &mut Side) -> Result<(), DeviceError>;

fn refusals(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let mut near = Side::new(settings)?;
    let entries = [near.entry(0, 1); 3];
    let attempts = [
        near.device.post_receive(near.local.number, &ReceiveRequest { id: 1, entries: &entries[..] }).err(),
        near.device.post_receive(0xFF_FFFF, &ReceiveRequest { id: 1, entries: &[] }).err(),
        near.device.read(near.region, LENGTH - 1, &mut [0; 2]).err(),
        near.device.register(0, Access::LOCAL).err(),
        near.device.register(64, Access { remote_write: true, ..Access::default() }).err(),
        near.device.create(&Limits { send_depth: u32::MAX, ..LIMITS }).err(),
        near.device.connect(&near.local, &near.local, &Reliability { mtu: 1500, ..*reliability }).err(),
        near.device.connect(&near.local, &near.local, &Reliability { retries: 8, ..*reliability }).err(),
        near.device.deregister(Region { local_key: 1, ..near.region }).err(),
    ];
    for error in attempts {
        println!("refused: {}", error.expect("it is refused"));
    }
    let full = (0..1000).find_map(|id| Some((id, near.receive(id, 0, 64).err()?)));
    let (posted, error) = full.expect("a queue has a bound");
    println!("refused: {error} after {posted} receives");
    Ok(())
}

const LIMITS: Limits =
    Limits { send_depth: 512, receive_depth: 512, send_entries: 1, receive_entries: 1, inline_bytes: 0 };

/// Keeps many requests outstanding, over more than one queue pair, so that the completion queue has to be extended.
fn outstanding(settings: &VerbsSettings, reliability: &Reliability) -> Result<(), DeviceError> {
    let settings = VerbsSettings { completions: 64, ..settings.clone() };
    let (mut near, mut far) = connected(&settings, reliability)?;
    for _ in 0..2 {
        let (near_end, far_end) = (near.device.create(&LIMITS)?, far.device.create(&LIMITS)?);
        near.device.connect(&near_end, &far_end, reliability)?;
        far.device.connect(&far_end, &near_end, reliability)?;
        (near.local, far.local) = (near_end, far_end);
        for id in 0..500 {
            far.receive(id, 0, 64)?;
        }
        for id in 0..500 {
            near.send(id, Operation::Send, 0, 64)?;
        }
        for side in [&mut near, &mut far] {
            let found = side.completions(500)?;
            assert!(found.iter().map(|completion| completion.id).eq(0..500), "in order: {found:?}");
            assert!(found.iter().all(|completion| completion.status == Status::Success));
        }
    }
    println!("500 requests outstanding, on two queue pairs: ok");
    Ok(())
}

/// Returns what a test compares.
fn tuple(completion: &Completion) -> (u64, Status, Completed, u32, Option<u32>, u32) {
    let Completion { id, status, kind, length, immediate, queue_pair, .. } = *completion;
    (id, status, kind, length, immediate, queue_pair)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 256) as u8).collect()
}
