//! The effect of each operation.

use super::pair::{End, LIMITS, connected, device};
use crate::device::{Device, DeviceError, Limits, Reliability};
use hodo_roce::{Access, Completed, Operation, ReceiveRequest, Remote, SendRequest, Status};

#[test]
fn a_message_lands_in_the_next_receive() {
    let (mut near, mut far) = connected(Access::LOCAL, &Reliability::default());
    near.fill(0, b"hello world");
    far.receive(1, &[far.entry(100, 6), far.entry(300, 50)]);
    far.receive(2, &[far.entry(0, 0)]);
    near.send(10, Operation::Send, &[near.entry(6, 5), near.entry(5, 1), near.entry(0, 5)]);
    near.post(&SendRequest {
        is_signaled: false,
        is_solicited: true,
        ..SendRequest::new(11, Operation::SendWithImmediate(77), &[])
    });
    assert_eq!((far.bytes(100, 6), far.bytes(300, 5)), (b"world ".to_vec(), b"hello".to_vec()));
    let [sent] = near.polled()[..] else { panic!("one completion: the other send is not signaled") };
    assert_eq!((sent.id, sent.status, sent.kind, sent.length), (10, Status::Success, Completed::Send, 0));
    assert_eq!(sent.queue_pair, near.local.number);
    let [first, second] = far.polled()[..] else { panic!("two completions") };
    assert_eq!((first.id, first.status, first.kind, first.length), (1, Status::Success, Completed::Receive, 11));
    assert_eq!((first.immediate, first.is_solicited, first.queue_pair), (None, false, far.local.number));
    assert_eq!((second.id, second.length, second.immediate, second.is_solicited), (2, 0, Some(77), true));
}

#[test]
fn rings_wrap() {
    let (mut near, mut far) = connected(Access::LOCAL, &Reliability::default());
    for number in 0..1000u32 {
        far.receive(u64::from(number), &[far.entry(0, 64)]);
        near.send(u64::from(number), Operation::SendWithImmediate(number), &[near.entry(0, 64)]);
        assert_eq!(near.polled().len(), 1);
        let [received] = far.polled()[..] else { panic!("one completion") };
        assert_eq!((received.id, received.immediate), (u64::from(number), Some(number)));
    }
}

#[test]
fn a_write_lands_at_its_address_and_tells_nobody() {
    let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
    near.fill(0, b"written");
    near.send(1, Operation::Write(far.remote(8)), &[near.entry(0, 7)]);
    assert_eq!(far.bytes(8, 8), b"written\0");
    let [written] = near.polled()[..] else { panic!("one completion") };
    assert_eq!((written.status, written.kind, written.length), (Status::Success, Completed::Write, 0));
    assert!(far.polled().is_empty());
    near.send(2, Operation::Write(Remote { address: 0, key: 0 }), &[]);
    assert_eq!(near.polled()[0].status, Status::Success, "a write of nothing needs no key");
}

#[test]
fn a_write_with_immediate_takes_a_receive() {
    let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
    far.receive(5, &[]);
    near.fill(0, b"written");
    near.send(1, Operation::WriteWithImmediate(far.remote(0), 9), &[near.entry(0, 7)]);
    assert_eq!(far.bytes(0, 7), b"written");
    let [received] = far.polled()[..] else { panic!("one completion") };
    assert_eq!((received.id, received.kind, received.length), (5, Completed::ReceiveWrite, 7));
    assert_eq!(received.immediate, Some(9));
    assert_eq!(near.polled()[0].kind, Completed::Write);
}

#[test]
fn a_read_brings_bytes_back() {
    let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
    far.fill(100, b"there");
    near.send(1, Operation::Read(far.remote(100)), &[near.entry(0, 2), near.entry(10, 3)]);
    assert_eq!((near.bytes(0, 2), near.bytes(10, 3)), (b"th".to_vec(), b"ere".to_vec()));
    let [read] = near.polled()[..] else { panic!("one completion") };
    assert_eq!((read.status, read.kind, read.length), (Status::Success, Completed::Read, 5));
    assert!(far.polled().is_empty());
}

#[test]
fn atomic_operations_return_what_was_there() {
    let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
    let value = |end: &End, offset| u64::from_ne_bytes(end.bytes(offset, 8).try_into().expect("eight bytes"));
    far.fill(16, &40u64.to_ne_bytes());
    near.send(1, Operation::FetchAdd { remote: far.remote(16), add: 2 }, &[near.entry(0, 8)]);
    assert_eq!((value(&near, 0), value(&far, 16)), (40, 42));
    near.send(2, Operation::CompareSwap { remote: far.remote(16), compare: 42, swap: 7 }, &[near.entry(0, 8)]);
    assert_eq!((value(&near, 0), value(&far, 16)), (42, 7));
    near.send(3, Operation::CompareSwap { remote: far.remote(16), compare: 42, swap: 8 }, &[near.entry(0, 8)]);
    assert_eq!((value(&near, 0), value(&far, 16)), (7, 7));
    let kinds: Vec<_> = near.polled().iter().map(|completion| (completion.kind, completion.length)).collect();
    assert_eq!(kinds, [(Completed::FetchAdd, 8), (Completed::CompareSwap, 8), (Completed::CompareSwap, 8)]);
}

#[test]
fn a_send_can_invalidate_a_key() {
    let (mut near, mut far) = connected(Access::ALL, &Reliability::default());
    far.receive(1, &[]);
    near.send(1, Operation::SendWithInvalidate(far.region.remote_key), &[]);
    let [received] = far.polled()[..] else { panic!("one completion") };
    assert_eq!(received.invalidated, Some(far.region.remote_key));
    near.send(2, Operation::Write(far.remote(0)), &[near.entry(0, 1)]);
    assert_eq!(near.polled()[1].status, Status::RemoteAccess);
}

#[test]
fn an_inline_payload_is_copied_when_it_is_posted() {
    let (mut near, mut far) = connected(Access::LOCAL, &Reliability::default());
    near.fill(0, b"early");
    let entries = [near.entry(0, 5)];
    near.post(&SendRequest { is_inline: true, ..SendRequest::new(1, Operation::Send, &entries) });
    near.fill(0, b"later");
    near.send(2, Operation::Send, &[near.entry(0, 5)]);
    far.receive(1, &[far.entry(0, 5)]);
    far.receive(2, &[far.entry(5, 5)]);
    assert_eq!(near.polled().len(), 2, "both waited for the receives");
    assert_eq!(far.bytes(0, 10), b"earlylater");
}

#[test]
fn two_queue_pairs_of_one_device_reach_each_other() {
    let mut device = device();
    let (a, b) = (device.create(&LIMITS).expect("room"), device.create(&LIMITS).expect("room"));
    device.connect(&a, &b, &Reliability::default()).expect("it is here");
    device.connect(&b, &a, &Reliability::default()).expect("it is here");
    device.post_receive(b.number, &ReceiveRequest { id: 1, entries: &[] }).expect("room");
    device.post_send(a.number, &SendRequest::new(2, Operation::Send, &[])).expect("room");
    let mut end = End { region: device.register(8, Access::LOCAL).expect("memory"), device, local: a };
    let ids: Vec<_> = end.polled().iter().map(|completion| (completion.queue_pair, completion.id)).collect();
    assert_eq!(ids, [(a.number, 2), (b.number, 1)]);
}

#[test]
fn what_is_out_of_range_is_refused() {
    let text = |result: Result<_, DeviceError>| result.expect_err("it is refused").to_string();
    let mut device = device();
    let limits = |change: fn(&mut Limits)| {
        let mut limits = LIMITS;
        change(&mut limits);
        limits
    };
    let created = text(device.create(&limits(|limits| limits.send_depth = 65_537)).map(drop));
    assert_eq!(created, "requests outstanding: 65537, and the most is 65536");
    assert!(device.create(&limits(|limits| limits.receive_entries = 33)).is_err());
    assert!(device.create(&limits(|limits| limits.inline_bytes = 4097)).is_err());
    assert!(device.register(0, Access::LOCAL).is_err());
    assert!(device.register(8, Access { remote_write: true, ..Access::default() }).is_err());
    let (mut near, far) = (End::new(Access::LOCAL, &LIMITS), End::new(Access::LOCAL, &LIMITS));
    let mut connect = |change: fn(&mut Reliability)| {
        let mut reliability = Reliability::default();
        change(&mut reliability);
        near.device.connect(&near.local, &far.local, &reliability)
    };
    assert_eq!(text(connect(|it| it.mtu = 1000)), "path MTU 1000 is not one of 256, 512, 1024, 2048, 4096");
    assert_eq!(text(connect(|it| it.retries = 8)), "retries: 8, and the most is 7");
    assert_eq!(connect(|_| {}), Ok(()));
    assert!(text(connect(|_| {})).starts_with("modify_qp: the queue pair has been connected before"));
}

#[test]
fn a_far_end_elsewhere_is_named_with_a_remedy() {
    let (mut near, far) = (End::new(Access::LOCAL, &LIMITS), End::new(Access::LOCAL, &LIMITS));
    let mut connect = |change: fn(&mut [u8; 16])| {
        let mut remote = far.local;
        change(&mut remote.gid.0);
        near.device.connect(&near.local, &remote, &Reliability::default()).expect_err("nobody is there").to_string()
    };
    let other_host = connect(|gid| gid[1] ^= 1);
    assert!(other_host.contains("run both ends here and both with shared memory"), "{other_host}");
    let other_process = connect(|gid| gid[15] ^= 1);
    assert!(other_process.contains("is the far end's process running"), "{other_process}");
}
