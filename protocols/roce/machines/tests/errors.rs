//! Requests that fail, with the outcomes that verbs name, at both ends.

use crate::bare;
use crate::pair;

use bare::{Bare, MTU};
use hodo_machine::Instant;
use hodo_roce::wire::{Extended, NakCode, Opcode, Syndrome};
use hodo_roce::{
    Access, AdapterConfig, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, State, Status,
};
use hodo_sim::{Death, Network};
use pair::Pair;
use std::time::Duration;

/// Bytes of the region at the far end that a request may not use.
const SMALL: usize = 64;

fn statuses(completions: &[Completion]) -> Vec<(u64, Status)> {
    completions.iter().map(|completion| (completion.id, completion.status)).collect()
}

/// Runs a request of so many bytes, and one behind it, to a region with these rights. Returns how the first one fails; the
/// second one is flushed, as is the receive of the far end, and no byte there has changed.
fn refused(access: Access, operation: impl Fn(Remote) -> Operation, length: usize) -> Status {
    let mut pair = Pair::new(&Network::default());
    let (key, address) = pair.adapter(1).register(vec![5; SMALL], access, None).unwrap();
    pair.fill(0, 0, length, 9);
    pair.post_receive(1, 7, 0, 64);
    pair.post_send(0, 1, operation(Remote { address, key }), 0, length);
    pair.post_send(0, 2, Operation::Send, 0, 10);
    let [sent, received] = pair.run_until(2, 1);
    assert_eq!((sent[0].id, sent[1].id, sent[1].status), (1, 2, Status::Flushed));
    assert_eq!(statuses(&received), [(7, Status::Flushed)]);
    assert_eq!(pair.adapter(1).region(key), Some(&[5; SMALL][..]));
    assert!(pair.bytes(1).iter().all(|byte| *byte == 0) && pair.bytes(0)[..length].iter().all(|byte| *byte == 9));
    for side in 0..2 {
        let number = pair.numbers[side];
        assert_eq!(pair.adapter(side).state(number), Ok(State::Error));
    }
    sent[0].status
}

const fn at(remote: Remote, offset: u64) -> Remote {
    Remote { address: remote.address.wrapping_add(offset), key: remote.key }
}

#[test]
fn nothing_outside_of_a_region_is_reached() {
    let end = SMALL as u64;
    // One byte behind the end, one before the beginning, far behind, around the end of all addresses.
    for (offset, length) in [(end - 9, 10), (u64::MAX, 10), (end, 1), (1 << 40, 1), (0, 3000), (1, SMALL)] {
        for kind in 0..3 {
            let operation = |remote| match kind {
                0 => Operation::Write(at(remote, offset)),
                1 => Operation::WriteWithImmediate(at(remote, offset), 1),
                _ => Operation::Read(at(remote, offset)),
            };
            assert_eq!(refused(Access::ALL, operation, length), Status::RemoteAccess, "{offset} {length}");
        }
    }
    for offset in [end, 0_u64.wrapping_sub(8), 1 << 40] {
        let add = |remote| Operation::FetchAdd { remote: at(remote, offset), add: 1 };
        assert_eq!(refused(Access::ALL, add, 8), Status::RemoteAccess, "{offset}");
    }
}

#[test]
fn each_right_lets_one_kind_of_operation_pass() {
    let swap = |remote| Operation::CompareSwap { remote, compare: 0x0505_0505_0505_0505, swap: 1 };
    let add = |remote| Operation::FetchAdd { remote, add: 1 };
    assert_eq!(refused(Access { remote_write: false, ..Access::ALL }, Operation::Write, 8), Status::RemoteAccess);
    assert_eq!(refused(Access { remote_read: false, ..Access::ALL }, Operation::Read, 8), Status::RemoteAccess);
    assert_eq!(refused(Access { remote_atomic: false, ..Access::ALL }, swap, 8), Status::RemoteAccess);
    assert_eq!(refused(Access { remote_atomic: false, ..Access::ALL }, add, 8), Status::RemoteAccess);
    assert_eq!(refused(Access::LOCAL, Operation::Read, 8), Status::RemoteAccess);
    assert_eq!(refused(Access::LOCAL, Operation::Write, 3000), Status::RemoteAccess);
}

#[test]
fn a_key_that_was_invalidated_or_deregistered_opens_nothing() {
    for deregisters in [false, true] {
        let mut pair = Pair::new(&Network::default());
        let (key, address) = pair.adapter(1).register(vec![5; SMALL], Access::ALL, None).unwrap();
        if deregisters {
            assert_eq!(pair.adapter(1).deregister(key), Some(vec![5; SMALL]));
        } else {
            pair.post_receive(1, 7, 0, 64);
            pair.post_send(0, 1, Operation::SendWithInvalidate(key), 0, 10);
            let [_, received] = pair.run_until(1, 1);
            assert_eq!((received[0].status, received[0].invalidated), (Status::Success, Some(key)));
        }
        pair.post_send(0, 2, Operation::Write(Remote { address, key }), 0, 8);
        let [sent, _] = pair.run_until(1, 0);
        assert_eq!(statuses(&sent), [(2, Status::RemoteAccess)]);
    }
}

#[test]
fn a_send_that_invalidates_no_key_fails_at_both_ends() {
    let mut pair = Pair::new(&Network::default());
    pair.post_receive(1, 7, 0, 64);
    pair.post_send(0, 1, Operation::SendWithInvalidate(1), 0, 10);
    let [sent, received] = pair.run_until(1, 1);
    assert_eq!(
        (statuses(&sent), statuses(&received)),
        (vec![(1, Status::RemoteAccess)], vec![(7, Status::LocalAccess)])
    );
}

#[test]
fn a_message_longer_than_its_receive_fails_at_both_ends() {
    for (length, room) in [(11, 10), (3000, 10), (3000, 2999), (1, 0)] {
        let mut pair = Pair::new(&Network::default());
        pair.fill(0, 0, length, 9);
        pair.post_receive(1, 7, 100, room);
        pair.post_receive(1, 8, 5000, 64);
        pair.post_send(0, 1, Operation::Send, 0, length);
        pair.post_send(0, 2, Operation::Send, 0, 10);
        let [sent, received] = pair.run_until(2, 2);
        assert_eq!(statuses(&sent), [(1, Status::RemoteInvalidRequest), (2, Status::Flushed)]);
        assert_eq!(statuses(&received), [(7, Status::LocalLength), (8, Status::Flushed)]);
        let bytes = pair.bytes(1);
        assert!(bytes[..100].iter().chain(&bytes[100 + room..]).all(|byte| *byte == 0), "{length} into {room}");
    }
}

#[test]
fn an_unaligned_atomic_operation_is_invalid() {
    for offset in [1, 4, 7] {
        let add = |remote| Operation::FetchAdd { remote: at(remote, offset), add: 1 };
        assert_eq!(refused(Access::ALL, add, 8), Status::RemoteInvalidRequest);
        let swap = |remote| Operation::CompareSwap { remote: at(remote, offset), compare: 0, swap: 1 };
        assert_eq!(refused(Access::ALL, swap, 8), Status::RemoteInvalidRequest);
    }
}

#[test]
fn a_far_end_that_serves_no_reads_finds_them_invalid() {
    let mut pair =
        Pair::with(&Network::default(), &|_, connection| hodo_roce::Connection { reads_served: 0, ..connection });
    let remote = Remote { address: pair.regions[1].address, key: pair.regions[1].key };
    pair.post_send(0, 1, Operation::Read(remote), 0, 10);
    let [sent, _] = pair.run_until(1, 0);
    assert_eq!(statuses(&sent), [(1, Status::RemoteInvalidRequest)]);
}

#[test]
fn a_result_that_has_no_place_here_is_a_protection_error() {
    let local = |pair: &mut Pair, access| {
        let (key, address) = pair.adapter(0).register(vec![5; SMALL], access, None).unwrap();
        ScatterEntry { address, length: 10, key }
    };
    let read_only = Access { local_write: false, remote_write: false, remote_atomic: false, remote_read: true };
    for kind in 0..3 {
        let mut pair = Pair::new(&Network::default());
        let entry = match kind {
            0 => local(&mut pair, read_only),
            1 => ScatterEntry { length: SMALL as u32 + 1, ..local(&mut pair, Access::LOCAL) },
            _ => ScatterEntry { key: 1, ..local(&mut pair, Access::LOCAL) },
        };
        let remote = Remote { address: pair.regions[1].address, key: pair.regions[1].key };
        let number = pair.numbers[0];
        pair.adapter(0).post_send(number, &SendRequest::new(1, Operation::Read(remote), &[entry])).unwrap();
        pair.post_send(0, 2, Operation::Send, 0, 10);
        let [sent, _] = pair.run_until(2, 0);
        assert_eq!(statuses(&sent), [(1, Status::LocalProtection), (2, Status::Flushed)]);
        // The far end has done nothing wrong.
        let far = pair.numbers[1];
        assert_eq!(pair.adapter(1).state(far), Ok(State::ReadyToSend));
    }
}

#[test]
fn a_receive_that_may_not_be_written_to_fails_at_both_ends() {
    let mut pair = Pair::new(&Network::default());
    let read_only = Access { local_write: false, remote_write: false, remote_atomic: false, remote_read: true };
    let (key, address) = pair.adapter(1).register(vec![5; SMALL], read_only, None).unwrap();
    let entries = [ScatterEntry { address, length: 20, key }];
    let number = pair.numbers[1];
    pair.adapter(1).post_receive(number, &ReceiveRequest { id: 7, entries: &entries }).unwrap();
    pair.post_send(0, 1, Operation::Send, 0, 10);
    let [sent, received] = pair.run_until(1, 1);
    assert_eq!(
        (statuses(&sent), statuses(&received)),
        (vec![(1, Status::RemoteOperation)], vec![(7, Status::LocalProtection)])
    );
    assert_eq!(pair.adapter(1).region(key), Some(&[5; SMALL][..]));
}

#[test]
fn a_receiver_that_never_gets_ready_is_given_up_after_all_its_retries() {
    let mut pair = Pair::with(&Network::default(), &|_, connection| hodo_roce::Connection {
        receiver_not_ready_retries: 3,
        ..connection
    });
    for id in 1..4 {
        pair.post_send(0, id, Operation::Send, 0, 10);
    }
    let [sent, _] = pair.run_until(3, 0);
    assert_eq!(statuses(&sent), [(1, Status::ReceiverNotReady), (2, Status::Flushed), (3, Status::Flushed)]);
    let (near, far) = (pair.counters(0), pair.counters(1));
    assert_eq!((far.receiver_not_ready, near.far_receiver_not_ready, near.timeouts), (4, 4, 0));
    // Each of the three waits takes what the far end has asked for.
    assert!(pair.now() >= Instant::ZERO + 3 * Duration::from_micros(640), "{:?}", pair.now());
}

#[test]
fn a_peer_that_is_gone_fails_what_is_outstanding_and_all_that_follows() {
    for death in [Death::Silent, Death::Reset] {
        let mut pair = Pair::new(&Network::default());
        pair.post_receive(1, 7, 0, 64);
        pair.post_send(0, 1, Operation::Send, 0, 10);
        assert_eq!(pair.run_until(1, 1).map(|taken| taken[0].status), [Status::Success; 2]);
        let node = pair.sites[1].node;
        pair.world.kill(node, death);
        pair.post_receive(0, 8, 0, 64);
        pair.post_send(0, 2, Operation::Send, 0, 3000);
        pair.post_send(0, 3, Operation::Send, 0, 10);
        let end = pair.now() + Duration::from_secs(1);
        while pair.world.turn(end).is_some() {}
        let (sends, receives): (Vec<_>, Vec<_>) =
            pair.take(0).into_iter().partition(|completion| !completion.kind.is_receive());
        assert_eq!(statuses(&sends), [(2, Status::RetryExceeded), (3, Status::Flushed)]);
        assert_eq!(statuses(&receives), [(8, Status::Flushed)]);
        // Later requests are flushed as well.
        pair.post_send(0, 4, Operation::Send, 0, 10);
        pair.run_for_millis(1);
        assert_eq!(statuses(&pair.take(0)), [(4, Status::Flushed)]);
    }
}

/// A far end that was started anew under the same number expects other sequence numbers. One among those in flight would count as
/// an acknowledgement, which is why they are drawn at random.
#[test]
fn a_peer_that_returns_with_another_psn_takes_nothing() {
    for shift in [1000, 1 << 22, (1 << 24) - 1, (1 << 24) - 1000] {
        let mut pair = Pair::with(&Network::default(), &|side, mut connection| {
            if side == 1 {
                connection.receive_psn = connection.receive_psn.after(shift);
            }
            connection
        });
        pair.post_receive(1, 7, 0, 64);
        pair.fill(0, 0, 10, 9);
        let remote = Remote { address: pair.regions[1].address, key: pair.regions[1].key };
        pair.post_send(0, 1, Operation::Write(remote), 0, 10);
        pair.post_send(0, 2, Operation::FetchAdd { remote, add: 1 }, 16, 8);
        let [sent, received] = pair.run_until(2, 0);
        assert_eq!(statuses(&sent), [(1, Status::RetryExceeded), (2, Status::Flushed)], "{shift}");
        assert!(received.is_empty() && pair.bytes(1).iter().all(|byte| *byte == 0), "{shift}");
    }
}

#[test]
fn losses_that_the_far_end_reports_count_as_retries() {
    let mut bare = Bare::with(AdapterConfig::default(), |connection| connection.retries = 2);
    bare.post(1, Operation::Send, 3 * MTU);
    for _ in 0..2 {
        bare.take();
        bare.pass_to_deadline();
    }
    assert_eq!(bare.take().len(), 3);
    // The third sign of a loss is one too many.
    bare.acknowledge(0, Syndrome::Nak(NakCode::SequenceError));
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::RetryExceeded)]);
    let counters = bare.adapter.counters();
    assert_eq!((counters.timeouts, counters.naks_received), (2, 1));
}

#[test]
fn progress_begins_the_retries_anew() {
    let mut bare = Bare::with(AdapterConfig::default(), |connection| connection.retries = 1);
    bare.post(1, Operation::Send, 8 * MTU);
    for psn in 0..7 {
        bare.take();
        bare.pass_to_deadline();
        bare.take();
        bare.acknowledge(psn, Syndrome::ACK);
    }
    bare.take();
    bare.acknowledge(7, Syndrome::ACK);
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::Success)]);
}

#[test]
fn each_refusal_has_its_outcome() {
    for (code, status) in [
        (NakCode::InvalidRequest, Status::RemoteInvalidRequest),
        (NakCode::InvalidDomain, Status::RemoteInvalidRequest),
        (NakCode::RemoteAccess, Status::RemoteAccess),
        (NakCode::RemoteOperation, Status::RemoteOperation),
    ] {
        let mut bare = Bare::new();
        (1..4).for_each(|id| bare.post(id, Operation::Send, 10));
        bare.take();
        bare.acknowledge(1, Syndrome::Nak(code));
        bare.take();
        // A refusal acknowledges what is before it.
        assert_eq!(bare.outcomes(), [(1, Status::Success), (2, status), (3, Status::Flushed)]);
        assert_eq!(bare.adapter.state(bare.number), Ok(State::Error));
        // Neither late answers nor requests change anything.
        bare.acknowledge(2, Syndrome::ACK);
        bare.hand(Opcode::WriteOnly, 0, Extended::Rdma(bare.rdma(0, 4)), b"abcd");
        assert!(bare.take().is_empty() && bare.outcomes().is_empty() && bare.bytes()[..4] == [0; 4]);
    }
}

#[test]
fn a_response_of_a_wrong_length_is_a_bad_one() {
    for length in [0, 3, 9, MTU] {
        let mut bare = Bare::new();
        bare.post(1, Operation::Read(bare::remote(0)), 8);
        bare.take();
        bare.respond(Opcode::ReadResponseOnly, 0, bare::ack_header(), &vec![1; length]);
        bare.take();
        assert_eq!(bare.outcomes(), [(1, Status::BadResponse)]);
        assert!(bare.bytes().iter().all(|byte| *byte == 0));
    }
    // Data for a send.
    let mut bare = Bare::new();
    bare.post(1, Operation::Send, 8);
    bare.take();
    bare.respond(Opcode::ReadResponseOnly, 0, bare::ack_header(), &[1; 8]);
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::BadResponse)]);
}
