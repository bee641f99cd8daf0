//! Failures, with the statuses that adapters report.

use super::pair::{End, IMPATIENT, LIMITS, connected};
use crate::device::{Device, DeviceError, Region, Reliability};
use hodo_machine::Wait;
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};

const READ_ONLY: Access = Access { local_write: false, remote_write: false, remote_read: true, remote_atomic: false };

fn outcomes(completions: &[Completion]) -> Vec<(u64, Status)> {
    completions.iter().map(|completion| (completion.id, completion.status)).collect()
}

type Case = (Access, fn(&End) -> Remote);

/// Posts a request that fails, and one behind it. Returns the statuses at both ends, whose receives have the numbers 10 and 20.
fn fail(near: &mut End, far: &mut End, operation: Operation, entries: &[ScatterEntry]) -> [Vec<(u64, Status)>; 2] {
    near.receive(10, &[]);
    near.send(1, operation, entries);
    near.send(2, Operation::Send, &[]);
    [outcomes(&near.polled()), outcomes(&far.polled())]
}

/// Returns the outcomes at the end that sends: the request fails, and everything else is flushed.
fn sender(status: Status) -> Vec<(u64, Status)> {
    vec![(1, status), (10, Status::Flushed), (2, Status::Flushed)]
}

#[test]
fn remote_keys_bounds_and_rights_are_checked() {
    let cases: [Case; 6] = [
        (Access::ALL, |far| Remote { key: far.region.remote_key ^ 0x100, ..far.remote(0) }),
        (Access::ALL, |far| Remote { key: 0, ..far.remote(0) }),
        (Access::ALL, |far| far.remote(4096 - 7)),
        (Access::ALL, |far| Remote { address: far.region.address - 1, ..far.remote(0) }),
        (Access::ALL, |far| Remote { address: u64::MAX - 3, ..far.remote(0) }),
        (READ_ONLY, |far| far.remote(0)),
    ];
    for (access, remote) in cases {
        let (mut near, mut far) = (End::new(Access::ALL, &LIMITS), End::new(access, &LIMITS));
        near.connect(&far.local, &IMPATIENT);
        far.connect(&near.local, &IMPATIENT);
        near.polled();
        far.receive(20, &[]);
        let (remote, entry) = (remote(&far), near.entry(0, 8));
        let [at_near, at_far] = fail(&mut near, &mut far, Operation::Write(remote), &[entry]);
        assert_eq!(at_near, sender(Status::RemoteAccess), "{remote:?}");
        assert_eq!(at_far, [(20, Status::Flushed)], "{remote:?}");
        assert_eq!(far.bytes(0, 4096), [0; 4096]);
    }
}

#[test]
fn each_right_is_one_of_its_own() {
    let write_only = Access { remote_write: true, ..Access::LOCAL };
    let operations: [fn(Remote) -> Operation; 3] = [
        Operation::Read,
        |remote| Operation::FetchAdd { remote, add: 1 },
        |remote| Operation::CompareSwap { remote, compare: 0, swap: 1 },
    ];
    for operation in operations {
        let (mut near, mut far) = connected(write_only, &IMPATIENT);
        let (operation, entry) = (operation(far.remote(0)), near.entry(0, 8));
        let [at_near, at_far] = fail(&mut near, &mut far, operation, &[entry]);
        assert_eq!((at_near, at_far), (sender(Status::RemoteAccess), vec![]), "{operation:?}");
        assert_eq!(far.bytes(0, 8), [0; 8]);
    }
}

#[test]
fn an_atomic_operation_needs_an_aligned_word() {
    let (mut near, mut far) = connected(Access::ALL, &IMPATIENT);
    let (operation, entry) = (Operation::FetchAdd { remote: far.remote(4), add: 1 }, near.entry(0, 8));
    let [at_near, _] = fail(&mut near, &mut far, operation, &[entry]);
    assert_eq!(at_near, sender(Status::RemoteInvalidRequest));
}

#[test]
fn local_entries_are_checked_and_the_far_end_hears_nothing() {
    let cases: [fn(&End) -> ScatterEntry; 3] = [
        |near| ScatterEntry { key: near.region.local_key ^ 0x100, ..near.entry(0, 8) },
        |near| near.entry(4096 - 7, 8),
        |near| near.entry(0, u32::MAX / 4),
    ];
    for entry in cases {
        let (mut near, mut far) = connected(Access::ALL, &IMPATIENT);
        far.receive(20, &[far.entry(0, 64)]);
        let entry = entry(&near);
        let [at_near, at_far] = fail(&mut near, &mut far, Operation::Send, &[entry]);
        assert_eq!((at_near, at_far), (sender(Status::LocalProtection), vec![]), "{entry:?}");
        far.send(3, Operation::Send, &[]);
        assert_eq!(outcomes(&far.polled()), [(3, Status::RetryExceeded), (20, Status::Flushed)]);
    }
    let (mut near, mut far) = (End::new(READ_ONLY, &LIMITS), End::new(Access::ALL, &LIMITS));
    near.connect(&far.local, &IMPATIENT);
    far.connect(&near.local, &IMPATIENT);
    near.polled();
    let (operation, entry) = (Operation::Read(far.remote(0)), near.entry(0, 8));
    let [at_near, _] = fail(&mut near, &mut far, operation, &[entry]);
    assert_eq!(at_near, sender(Status::LocalProtection), "a read writes to this end's region");
}

#[test]
fn a_message_longer_than_its_receive_fails_both_ends() {
    let (mut near, mut far) = connected(Access::LOCAL, &IMPATIENT);
    far.receive(20, &[far.entry(0, 7)]);
    far.receive(21, &[far.entry(0, 7)]);
    let entry = near.entry(0, 8);
    let [at_near, at_far] = fail(&mut near, &mut far, Operation::Send, &[entry]);
    assert_eq!(at_near, sender(Status::RemoteInvalidRequest));
    assert_eq!(at_far, [(20, Status::LocalLength), (21, Status::Flushed)]);
}

#[test]
fn a_receive_outside_of_its_region_fails_both_ends() {
    let cases: [fn(&End) -> ScatterEntry; 2] =
        [|far| far.entry(4096 - 7, 8), |far| ScatterEntry { key: 0, ..far.entry(0, 8) }];
    for entry in cases {
        let (mut near, mut far) = connected(Access::LOCAL, &IMPATIENT);
        far.receive(20, &[entry(&far)]);
        let entry = near.entry(0, 8);
        let [at_near, at_far] = fail(&mut near, &mut far, Operation::Send, &[entry]);
        assert_eq!(at_near, sender(Status::RemoteOperation));
        assert_eq!(at_far, [(20, Status::LocalProtection)]);
    }
}

#[test]
fn a_region_that_is_gone_is_no_longer_written_to() {
    let (mut near, mut far) = connected(Access::ALL, &IMPATIENT);
    let (remote, gone) = (far.remote(0), far.region);
    far.region = far.device.register(64, Access::ALL).expect("memory");
    far.device.deregister(gone).expect("it was there");
    let entry = near.entry(0, 8);
    near.send(0, Operation::Write(far.remote(0)), &[entry]);
    assert_eq!(outcomes(&near.waited(Wait::Spin)), [(0, Status::Success)], "a region registered after connecting");
    let [at_near, _] = fail(&mut near, &mut far, Operation::Write(remote), &[entry]);
    assert_eq!(at_near, sender(Status::RemoteAccess));
    assert!(far.device.deregister(gone).is_err() && far.device.write(gone, 0, &[1]).is_err());
    let whole = Region { length: 1 << 20, ..far.region };
    assert!(far.device.read(whole, 60, &mut [0; 5]).is_err(), "the region is as long as it was registered");
}

#[test]
fn a_sender_waits_for_a_receive_or_gives_up() {
    let (mut near, mut far) = connected(Access::LOCAL, &IMPATIENT);
    near.receive(10, &[]);
    near.send(1, Operation::Send, &[]);
    near.send(2, Operation::Send, &[]);
    let mut completions = near.waited(Wait::Block);
    completions.extend(near.polled());
    assert_eq!(outcomes(&completions), [(1, Status::ReceiverNotReady), (2, Status::Flushed), (10, Status::Flushed)]);
    assert!(far.polled().is_empty());
    let patient = Reliability { receiver_not_ready_retries: 7, ..IMPATIENT };
    for wait in [Wait::Spin, Wait::Block] {
        let (mut near, mut far) = connected(Access::LOCAL, &patient);
        near.send(1, Operation::Send, &[]);
        near.send(2, Operation::Send, &[]);
        let mut none = Vec::new();
        let soon = near.device.now() + std::time::Duration::from_millis(3);
        near.device.poll(wait, soon, &mut none).expect("the device works");
        assert!(none.is_empty(), "seven retries are any number");
        far.receive(20, &[]);
        assert_eq!(outcomes(&near.waited(wait)), [(1, Status::Success)]);
        far.receive(21, &[]);
        assert_eq!(outcomes(&near.waited(wait)), [(2, Status::Success)]);
        assert_eq!(outcomes(&far.polled()), [(20, Status::Success), (21, Status::Success)]);
    }
    let hasty = Reliability { receiver_not_ready_retries: 0, ..IMPATIENT };
    let (mut near, _far) = connected(Access::LOCAL, &hasty);
    near.send(1, Operation::Send, &[]);
    assert_eq!(outcomes(&near.polled()), [(1, Status::ReceiverNotReady)]);
}

#[test]
fn queues_have_their_depth() {
    let (mut near, mut far) = connected(Access::LOCAL, &Reliability::default());
    let posted = |end: &mut End| {
        let request = SendRequest::new(1, Operation::Send, &[]);
        let full = DeviceError::Refused { what: "post_send: the queue is full".into(), errno: 12 };
        (0..100)
            .take_while(|_| {
                end.device.post_send(end.local.number, &request).map_err(|error| assert_eq!(error, full)).is_ok()
            })
            .count()
    };
    assert_eq!(posted(&mut near), LIMITS.send_depth as usize, "nothing was received");
    (0..LIMITS.receive_depth).for_each(|id| far.receive(u64::from(id), &[]));
    assert!(far.device.post_receive(far.local.number, &ReceiveRequest { id: 0, entries: &[] }).is_err());
    assert_eq!(near.polled().len(), LIMITS.send_depth as usize);
    assert_eq!(far.polled().len(), LIMITS.receive_depth as usize);
    (0..LIMITS.receive_depth).for_each(|id| far.receive(u64::from(id), &[]));
    assert_eq!(posted(&mut near), LIMITS.send_depth as usize, "nothing was polled");
}

#[test]
fn malformed_requests_are_refused() {
    let (mut near, far) = connected(Access::ALL, &Reliability::default());
    let (entry, remote) = (near.entry(0, 65), far.remote(0));
    let mut refused = |request: &SendRequest<'_>| {
        near.device.post_send(near.local.number, request).expect_err("it is malformed").to_string()
    };
    let inline = SendRequest { is_inline: true, ..SendRequest::new(1, Operation::Send, std::slice::from_ref(&entry)) };
    assert!(refused(&inline).starts_with("post_send: an inline payload longer than the queue pair was created for"));
    assert!(refused(&SendRequest::new(1, Operation::Send, &[entry; 5])).starts_with("post_send: more entries than"));
    let add = SendRequest::new(1, Operation::FetchAdd { remote, add: 1 }, std::slice::from_ref(&entry));
    assert!(refused(&add).starts_with("post_send: an atomic operation needs eight bytes"));
    let long = ScatterEntry { length: u32::MAX, ..entry };
    assert!(refused(&SendRequest::new(1, Operation::Send, &[long])).starts_with("post_send: longer than"));
    let mut alone = End::new(Access::LOCAL, &LIMITS);
    let request = SendRequest::new(1, Operation::Send, &[]);
    let early = alone.device.post_send(alone.local.number, &request).expect_err("it is too early");
    assert!(early.to_string().starts_with("post_send: the queue pair is not connected"));
    assert!(alone.device.post_send(alone.local.number ^ 0x100, &request).is_err(), "no such queue pair");
}

#[test]
fn a_far_end_that_never_connects_is_given_up() {
    for wait in [Wait::Spin, Wait::Block, Wait::SpinThenBlock(std::time::Duration::from_micros(50))] {
        let (mut near, far) = (End::new(Access::LOCAL, &LIMITS), End::new(Access::LOCAL, &LIMITS));
        near.connect(&far.local, &IMPATIENT);
        near.receive(10, &[]);
        let began = near.device.now();
        near.send(1, Operation::Send, &[]);
        let completions = near.waited(wait);
        assert_eq!(outcomes(&completions), [(1, Status::RetryExceeded), (10, Status::Flushed)]);
        let waited = near.device.now() - began;
        assert!(waited.as_millis() >= 12, "three timeouts of 4 ms: {waited:?}");
    }
}

#[test]
fn a_request_waits_for_a_far_end_that_connects_late() {
    let (mut near, mut far) = (End::new(Access::LOCAL, &LIMITS), End::new(Access::LOCAL, &LIMITS));
    near.connect(&far.local, &Reliability::default());
    near.fill(0, b"early");
    near.send(1, Operation::Send, &[near.entry(0, 5)]);
    far.receive(20, &[far.entry(0, 5)]);
    far.connect(&near.local, &Reliability::default());
    assert_eq!(outcomes(&near.waited(Wait::Block)), [(1, Status::Success)]);
    assert_eq!(outcomes(&far.waited(Wait::Block)), [(20, Status::Success)]);
    assert_eq!(far.bytes(0, 5), b"early");
}

#[test]
fn a_far_end_that_left_in_order_leaves_the_receives_of_this_one() {
    for wait in [Wait::Spin, Wait::Block] {
        let (mut near, mut far) = connected(Access::LOCAL, &IMPATIENT);
        near.receive(10, &[]);
        near.receive(11, &[]);
        far.send(20, Operation::Send, &[]);
        drop(far);
        assert_eq!(outcomes(&near.waited(wait)), [(10, Status::Success)]);
        let mut none = Vec::new();
        let soon = near.device.now() + std::time::Duration::from_millis(5);
        near.device.poll(wait, soon, &mut none).expect("the device works");
        assert!(none.is_empty(), "the other receive is still posted");
        near.send(1, Operation::Send, &[]);
        assert_eq!(outcomes(&near.polled()), [(1, Status::RetryExceeded), (11, Status::Flushed)]);
    }
}

#[test]
fn everything_that_is_posted_after_a_failure_is_flushed() {
    let (mut near, _far) = connected(Access::LOCAL, &IMPATIENT);
    near.send(1, Operation::Send, &[near.entry(4096, 1)]);
    assert_eq!(outcomes(&near.polled()), [(1, Status::LocalProtection)]);
    near.receive(10, &[]);
    near.send(2, Operation::Send, &[]);
    assert_eq!(outcomes(&near.polled()), [(10, Status::Flushed), (2, Status::Flushed)]);
    let local = near.local;
    near.device.destroy(local.number);
    assert!(near.polled().is_empty());
    near.local = near.device.create(&LIMITS).expect("its place is free");
    assert_ne!(near.local.number, local.number);
}
