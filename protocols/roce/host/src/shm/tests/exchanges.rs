//! Exchanges of two threads, each with a device of its own.

use super::pair::{End, LIMITS};
use crate::device::{Device, Limits, Reliability};
use hodo_machine::{Random, Wait};
use hodo_roce::{Access, Operation, ReceiveRequest, ScatterEntry, SendRequest, Status};
use std::sync::mpsc::channel;
use std::time::Duration;

const WAITS: [Wait; 3] = [Wait::Spin, Wait::Block, Wait::SpinThenBlock(Duration::from_micros(20))];

/// Runs the two sides of an exchange, each on a thread, with ends that are connected.
fn run(limits: Limits, near: impl FnOnce(End) + Send, far: impl FnOnce(End) + Send) {
    let ((to_far, from_near), (to_near, from_far)) = (channel(), channel());
    let start = move |to: std::sync::mpsc::Sender<_>, from: std::sync::mpsc::Receiver<_>| {
        let mut end = End::new(Access::ALL, &limits);
        to.send(end.local).expect("the other side is there");
        end.connect(&from.recv().expect("the other side is there"), &Reliability::default());
        end
    };
    std::thread::scope(|scope| {
        scope.spawn(move || far(start(to_near, from_near)));
        near(start(to_far, from_far));
    });
}

/// Bytes of a message: no two messages are alike.
fn content(number: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(number);
    (0..length.div_ceil(8)).flat_map(|_| random.bits().to_ne_bytes()).take(length).collect()
}

#[test]
fn large_messages_arrive_whole() {
    const SIZES: [usize; 5] = [64 << 10, (64 << 10) + 1, 1 << 20, (4 << 20) - 3, 8 << 20];
    for wait in WAITS {
        let near = move |mut end: End| {
            end.region = end.device.register(8 << 20, Access::LOCAL).expect("a little memory");
            for (number, size) in (0..).zip(SIZES) {
                end.fill(0, &content(number, size));
                end.send(number, Operation::SendWithImmediate(number as u32), &[end.entry(0, size as u32)]);
                let [sent] = end.waited(wait)[..] else { panic!("one completion") };
                assert_eq!((sent.id, sent.status), (number, Status::Success));
            }
        };
        let far = move |mut end: End| {
            end.region = end.device.register(8 << 20, Access::LOCAL).expect("a little memory");
            for (number, size) in (0..).zip(SIZES) {
                let cut = size as u32 / 3;
                end.receive(number, &[end.entry(0, cut), end.entry(u64::from(cut), (8 << 20) - cut)]);
                let [received] = end.waited(wait)[..] else { panic!("one completion") };
                assert_eq!((received.length as usize, received.immediate), (size, Some(number as u32)));
                assert!(end.bytes(0, size) == content(number, size), "message {number} of {size} bytes");
            }
        };
        run(LIMITS, near, far);
    }
}

#[test]
fn many_messages_outstanding_arrive_in_order() {
    const DEPTH: u32 = 256;
    const COUNT: u32 = 20_000;
    let limits =
        Limits { send_depth: DEPTH, receive_depth: DEPTH, send_entries: 1, receive_entries: 1, inline_bytes: 8 };
    for wait in WAITS {
        let near = move |mut end: End| {
            let entries = [end.entry(0, 8)];
            let (mut posted, mut done) = (0, 0);
            while done < COUNT {
                while posted < COUNT && posted - done < DEPTH {
                    end.fill(0, &u64::from(posted).to_ne_bytes());
                    let operation = Operation::SendWithImmediate(posted);
                    end.post(&SendRequest {
                        is_inline: true,
                        ..SendRequest::new(u64::from(posted), operation, &entries)
                    });
                    posted += 1;
                }
                for sent in end.waited(wait) {
                    assert_eq!((sent.id, sent.status), (u64::from(done), Status::Success));
                    done += 1;
                }
            }
        };
        let far = move |mut end: End| {
            let slot = |end: &End, number: u32| end.entry(u64::from(number % DEPTH) * 8, 8);
            (0..DEPTH).for_each(|number| end.receive(u64::from(number), &[slot(&end, number)]));
            let mut done = 0;
            while done < COUNT {
                for received in end.waited(wait) {
                    assert_eq!((received.id, received.status), (u64::from(done), Status::Success));
                    assert_eq!((received.immediate, received.length), (Some(done), 8));
                    assert_eq!(end.bytes((done % DEPTH * 8) as usize, 8), u64::from(done).to_ne_bytes());
                    end.receive(u64::from(done + DEPTH), &[slot(&end, done)]);
                    done += 1;
                }
            }
        };
        run(limits, near, far);
    }
}

#[test]
fn atomic_operations_of_both_ends_lose_nothing() {
    const COUNT: u64 = 10_000;
    let mut device = super::pair::device();
    let counter = device.register(8, Access::ALL).expect("a little memory");
    let remote = hodo_roce::Remote { address: counter.address, key: counter.remote_key };
    let add = |mut end: End| {
        for _ in 0..COUNT {
            end.send(0, Operation::FetchAdd { remote, add: 1 }, &[end.entry(0, 8)]);
            assert_eq!(end.waited(Wait::Spin)[0].status, Status::Success);
        }
    };
    let mut ends: Vec<End> = (0..2).map(|_| End::new(Access::ALL, &LIMITS)).collect();
    for end in &mut ends {
        let local = device.create(&LIMITS).expect("room");
        device.connect(&local, &end.local, &Reliability::default()).expect("it is there");
        end.connect(&local, &Reliability::default());
        device.poll(Wait::Never, device.now(), &mut Vec::new()).expect("the device works");
    }
    std::thread::scope(|scope| ends.drain(..).for_each(|end| drop(scope.spawn(move || add(end)))));
    let mut bytes = [0; 8];
    device.read(counter, 0, &mut bytes).expect("inside");
    assert_eq!(u64::from_ne_bytes(bytes), 2 * COUNT);
}

#[test]
fn a_wait_ends_at_its_time() {
    for wait in WAITS {
        let mut end = End::new(Access::LOCAL, &LIMITS);
        let entry = ScatterEntry { address: 0, length: 0, key: 0 };
        end.device.post_receive(end.local.number, &ReceiveRequest { id: 0, entries: &[entry] }).expect("room");
        let until = end.device.now() + Duration::from_millis(2);
        let mut completions = Vec::new();
        end.device.poll(wait, until, &mut completions).expect("the device works");
        assert!(completions.is_empty() && end.device.now() >= until);
    }
}
