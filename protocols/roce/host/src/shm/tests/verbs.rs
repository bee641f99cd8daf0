//! What each operation does.

use super::pair::{End, IMPATIENT, LIMITS, connected};
use crate::device::{Device, DeviceError, Reliability};
use hodo_machine::Wait;
use hodo_roce::{Access, Completed, Operation, SendRequest, Status};

const NONE: Access = Access { local_write: false, remote_write: false, remote_read: false, remote_atomic: false };

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
