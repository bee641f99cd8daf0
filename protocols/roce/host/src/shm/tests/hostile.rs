//! A far end that lies: whatever it writes to the shared memory or says on its channel, this end neither panics nor touches a byte
//! outside of the regions.

use super::pair::{End, LIMITS, connected, device};
use crate::device::{AddressOfQueuePair, Device, Reliability};
use crate::shm::SharedMemoryDevice;
use crate::shm::layout::{Arrival, Message, OwnerState, Shape};
use crate::shm::messages::{Announced, Hello, announce};
use crate::shm::queue_pair::QueuePair;
use crate::shm::rendezvous::path_of;
use hodo_io::shared_memory::{Channel, SharedMemory};
use hodo_machine::{Random, Wait};
use hodo_roce::{Access, Completed, Completion, Operation, ReceiveRequest, Remote, SendRequest, Status};
use std::time::Duration;

/// Overwrites words of memory: with noise, with small numbers as sequences and counts are, or with a field of the truth.
fn scribble(memory: &SharedMemory, random: &mut Random, truth: &[u64]) {
    for _ in 0..=random.below(8) {
        let place = random.below(memory.len() as u64 / 8) as usize * 8;
        let word = match random.below(4) {
            0 => random.bits(),
            1 => random.below(40),
            2 => random.below(40) << 32 | random.below(40),
            _ => truth[random.below(truth.len() as u64) as usize],
        };
        memory.copy_in(place, &word.to_ne_bytes()).expect("inside");
    }
}

fn queue_pair(end: &End) -> &QueuePair {
    end.device.queue_pairs.iter().flatten().next().expect("an end has one")
}

/// Posts a request of any kind, if there is room for it. Returns what has completed.
fn act(end: &mut End, remote: Remote, random: &mut Random) -> Vec<Completion> {
    let entries = [end.entry(random.below(2000), random.below(2000) as u32)];
    let word = [end.entry(8, 8)];
    let (operation, entries) = match random.below(7) {
        0 => (Operation::Send, &entries),
        1 => (Operation::SendWithInvalidate(remote.key), &entries),
        2 => (Operation::Write(remote), &entries),
        3 => (Operation::Read(remote), &entries),
        4 => (Operation::FetchAdd { remote, add: 1 }, &word),
        5 => (Operation::WriteWithImmediate(remote, 7), &entries),
        _ => {
            let _ = end.device.post_receive(end.local.number, &ReceiveRequest { id: 2, entries: &entries });
            return end.polled();
        }
    };
    let _ = end.device.post_send(end.local.number, &SendRequest::new(1, operation, entries));
    end.polled()
}

#[test]
fn scribbles_in_the_shared_memory_fail_at_most_the_queue_pair() {
    let mut failed = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let (mut near, mut far) =
            connected(Access::ALL, &Reliability { receiver_not_ready_retries: 0, ..Reliability::default() });
        // Never shared: it has no right that a far end could use.
        let private = near.device.register(4096, Access::default()).expect("a little memory");
        let canary = near.device.register(64, Access::ALL).expect("a little memory");
        let key = u64::from(near.region.local_key);
        let truth =
            [near.region.address, far.region.address, canary.address, u64::MAX, key << 32 | 4096, key << 32 | key];
        let remote = far.remote(0);
        far.receive(1, &[far.entry(0, 4096)]);
        for _ in 0..20 {
            match random.below(4) {
                0 => scribble(queue_pair(&far).rings.memory(), &mut random, &truth),
                1 => scribble(queue_pair(&near).rings.memory(), &mut random, &truth),
                2 => scribble(far.device.table.memory(), &mut random, &truth),
                _ => scribble(near.device.table.memory(), &mut random, &truth),
            }
            if act(&mut near, remote, &mut random).iter().any(|completion| completion.status != Status::Success) {
                failed += 1;
                break;
            }
        }
        let mut bytes = [1; 4096];
        near.device.read(private, 0, &mut bytes).expect("inside");
        assert_eq!(bytes, [0; 4096]);
    }
    assert!((50..400).contains(&failed), "{failed} of 400 failed: the scribbles are too weak or too strong");
}

#[test]
fn scribbles_at_the_same_time_are_no_worse() {
    let again = |memory: &SharedMemory| {
        let file = memory.file().expect("created here").try_clone_to_owned().expect("one more descriptor");
        SharedMemory::map(&file, memory.len()).expect("sealed")
    };
    for seed in 0..10 {
        let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
        let memories = [queue_pair(&far), queue_pair(&near)].map(|queue_pair| again(queue_pair.rings.memory()));
        let truth = [near.region.address, far.region.address, u64::from(far.region.local_key) << 32 | 64];
        let (mut random, mut noise) = (Random::new(seed), Random::new(seed + 1000));
        (0..8).for_each(|id| far.receive(id, &[far.entry(0, 4096)]));
        let scribbler = std::thread::spawn(move || {
            for _ in 0..2_000 {
                memories.iter().for_each(|memory| scribble(memory, &mut noise, &truth));
            }
        });
        let remote = far.remote(0);
        while !scribbler.is_finished() {
            act(&mut near, remote, &mut random);
        }
        scribbler.join().expect("it ends");
    }
}

/// Has a message arrive that no far end has sent.
fn forge(near: &End, receive: u32, length: u32) {
    let message = Message { kind: Completed::Receive, length, immediate: None, invalidated: None, is_solicited: false };
    queue_pair(near).rings.arrive(receive, &Arrival::Message(message));
}

#[test]
fn receives_that_nobody_posted_complete_nothing() {
    let (mut near, _far) = connected(Access::LOCAL, &Reliability::default());
    near.receive(10, &[near.entry(0, 8)]);
    (0..LIMITS.receive_depth).for_each(|number| forge(&near, number, 8));
    let [received] = near.polled()[..] else { panic!("one receive was posted") };
    assert_eq!((received.id, received.status), (10, Status::Success));
    near.receive(11, &[]);
    assert_eq!(near.polled()[0].status, Status::Flushed, "the queue pair has failed");
}

#[test]
fn a_message_that_says_to_be_longer_than_its_receive_is_none() {
    let (mut near, _far) = connected(Access::LOCAL, &Reliability::default());
    near.receive(10, &[near.entry(0, 8)]);
    forge(&near, 0, 9);
    assert_eq!(near.polled()[0].status, Status::General);
}

/// A far end that speaks the protocol by hand.
struct Impostor {
    channel: Channel,
    rings: SharedMemory,
    table: SharedMemory,
    /// For its listener, which accepts nothing.
    _device: SharedMemoryDevice,
}

impl Impostor {
    /// Introduces itself to a queue pair, with rings of this length, and no receive posted there.
    fn new(near: &mut End, rings: usize) -> Impostor {
        let device = device();
        let from = AddressOfQueuePair { lid: 0, number: 0x1234, psn: 5, gid: device.gid() };
        near.connect(&from, &Reliability::default());
        let memory = |length| SharedMemory::create("hodo-test", length).expect("a little memory");
        let impostor = Impostor {
            channel: Channel::connect(&path_of(near.device.gid())).expect("it listens"),
            rings: memory(rings),
            table: memory(1 << 14),
            _device: device,
        };
        impostor.rings.copy_in(0, &(OwnerState::Ready as u32).to_ne_bytes()).expect("it is longer");
        let hello = Hello {
            from,
            to_number: near.local.number,
            to_psn: near.local.psn,
            shape: Shape::new(8, 4).expect("in range"),
            not_ready_timer: 1,
        };
        impostor.say(&hello.encode(), &[&impostor.rings, &impostor.table]);
        impostor
    }

    fn say(&self, message: &[u8], files: &[&SharedMemory]) {
        let files: Vec<_> = files.iter().map(|memory| memory.file().expect("created here")).collect();
        assert!(self.channel.send(message, &files).expect("open"));
    }
}

/// Returns how a send ends that waits for a receive, while an impostor does this; `None` if it goes on waiting.
fn outcome(rings: usize, act: impl FnOnce(&Impostor)) -> Option<Status> {
    let mut near = End::new(Access::ALL, &LIMITS);
    let impostor = Impostor::new(&mut near, rings);
    near.send(1, Operation::Send, &[]);
    act(&impostor);
    let mut completions = Vec::new();
    let until = near.device.now() + Duration::from_millis(20);
    near.device.poll(Wait::Block, until, &mut completions).expect("the device works");
    completions.first().map(|completion| completion.status)
}

type Lie<'a> = (&'a str, &'a dyn Fn(&Impostor));

#[test]
fn what_is_said_on_a_channel_is_checked() {
    let region = Announced { slot: 3, key: 0x103, address: 1 << 40, length: 4096, access: Access::ALL };
    let memory = SharedMemory::create("hodo-test", 4096).expect("a little memory");
    assert_eq!(outcome(64, |_| {}), Some(Status::General), "the rings are shorter than it says");
    assert_eq!(outcome(1 << 14, |impostor| impostor.say(&announce(&[region]), &[&memory])), None, "nothing is wrong");
    let cases: [Lie<'_>; 7] = [
        ("noise", &|impostor| impostor.say(&[9, 9, 9], &[])),
        ("a region without its file", &|impostor| impostor.say(&announce(&[region]), &[])),
        ("a file for one of two", &|impostor| impostor.say(&announce(&[region, region]), &[&memory])),
        ("shorter than it says", &|impostor| {
            impostor.say(&announce(&[Announced { length: 4097, ..region }]), &[&memory]);
        }),
        ("a length of half the world", &|impostor| {
            impostor.say(&announce(&[Announced { length: u64::MAX / 2, ..region }]), &[&memory]);
        }),
        ("an end behind the last address", &|impostor| {
            impostor.say(&announce(&[Announced { address: u64::MAX - 100, ..region }]), &[&memory]);
        }),
        ("the key of another slot", &|impostor| {
            impostor.say(&announce(&[Announced { slot: 4, ..region }]), &[&memory]);
        }),
    ];
    for (name, act) in cases {
        assert_eq!(outcome(1 << 14, act), Some(Status::General), "{name}");
    }
}

#[test]
fn a_region_at_an_odd_address_has_no_words() {
    let mut near = End::new(Access::ALL, &LIMITS);
    let impostor = Impostor::new(&mut near, 1 << 14);
    let memory = SharedMemory::create("hodo-test", 4096).expect("a little memory");
    let region = Announced { slot: 3, key: 0x103, address: 1001, length: 4096, access: Access::ALL };
    impostor.table.copy_in(128 + 3 * 8 + 4, &0x103u32.to_ne_bytes()).expect("the key is valid");
    impostor.say(&announce(&[region]), &[&memory]);
    let remote = Remote { address: 1008, key: 0x103 };
    near.send(1, Operation::Write(remote), &[near.entry(0, 8)]);
    assert_eq!(near.waited(Wait::Block)[0].status, Status::Success);
    near.send(2, Operation::FetchAdd { remote, add: 1 }, &[near.entry(0, 8)]);
    assert_eq!(near.waited(Wait::Block)[0].status, Status::RemoteInvalidRequest);
}

#[test]
fn silent_and_noisy_strangers_do_not_keep_others_out() {
    let (mut near, mut far) = (End::new(Access::LOCAL, &LIMITS), End::new(Access::LOCAL, &LIMITS));
    let path = path_of(near.device.gid());
    let mut strangers = Vec::new();
    for round in 0..300 {
        let stranger = Channel::connect(&path).expect("it listens");
        if round % 2 == 0 {
            stranger.send(&[round as u8], &[]).expect("open");
        }
        strangers.push(stranger);
        near.device.look_at_channels().expect("the device works");
    }
    near.connect(&far.local, &Reliability::default());
    far.connect(&near.local, &Reliability::default());
    near.receive(10, &[]);
    far.send(20, Operation::Send, &[]);
    assert_eq!(near.waited(Wait::Block)[0].status, Status::Success);
}
