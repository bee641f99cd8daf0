//! Two adapters on a simulated network.

use crate::pair;

use hodo_roce::{Access, Completed, Operation, Remote, Status};
use hodo_sim::Network;
use pair::Pair;

#[test]
fn sends_arrive_in_order_with_their_immediate_data() {
    let mut pair = Pair::new(&Network::default());
    for (id, length) in [(0, 0), (1, 1), (2, 1024), (3, 1025), (4, 5000)] {
        pair.post_receive(1, id, 0, 8192);
        pair.fill(0, 0, length, id as u8);
        pair.post_send(0, id, Operation::SendWithImmediate(id as u32 + 7), 0, length);
        let [sent, received] = pair.run_until(1, 1);
        assert_eq!((sent[0].id, sent[0].status, sent[0].kind), (id, Status::Success, Completed::Send));
        assert_eq!((received[0].id, received[0].length as usize), (id, length));
        assert_eq!(received[0].immediate, Some(id as u32 + 7));
        assert!(pair.bytes(1)[..length].iter().all(|byte| *byte == id as u8));
    }
}

#[test]
fn writes_reads_and_atomic_operations_reach_the_far_memory() {
    let mut pair = Pair::new(&Network::default());
    let remote = |pair: &Pair, offset| Remote { address: pair.regions[1].address + offset, key: pair.regions[1].key };
    for length in [0, 1, 7, 1000, 1024, 1025, 65_536] {
        pair.fill(0, 0, length, 3);
        let to = remote(&pair, 512);
        pair.post_send(0, 1, Operation::Write(to), 0, length);
        pair.post_send(0, 2, Operation::Read(to), 100_000, length);
        let [done, _] = pair.run_until(2, 0);
        assert!(done.iter().all(|completion| completion.status == Status::Success), "{done:?}");
        assert_eq!(pair.bytes(1)[512..512 + length], pair.bytes(0)[..length]);
        assert_eq!(pair.bytes(0)[100_000..100_000 + length], pair.bytes(0)[..length]);
    }
    let place = remote(&pair, 64);
    pair.post_send(0, 3, Operation::FetchAdd { remote: place, add: 5 }, 0, 8);
    pair.post_send(0, 4, Operation::CompareSwap { remote: place, compare: 5, swap: 9 }, 8, 8);
    pair.post_send(0, 5, Operation::CompareSwap { remote: place, compare: 5, swap: 11 }, 16, 8);
    let [done, _] = pair.run_until(3, 0);
    assert!(done.iter().all(|completion| completion.status == Status::Success), "{done:?}");
    let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!([0, 8, 16].map(|at| word(pair.bytes(0), at)), [0, 5, 9]);
    assert_eq!(word(pair.bytes(1), 64), 9);
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let mut pair = Pair::new(&Network::default());
    pair.fill(0, 0, 3000, 8);
    pair.post_send(0, 1, Operation::Send, 0, 3000);
    pair.run_for_millis(2);
    assert!(pair.counters(1).receiver_not_ready > 1, "{:?}", pair.counters(1));
    pair.post_receive(1, 2, 0, 4096);
    let [sent, received] = pair.run_until(1, 1);
    assert_eq!((sent[0].status, received[0].length), (Status::Success, 3000));
}

#[test]
fn a_wrong_key_fails_the_request_and_flushes_the_rest() {
    let mut pair = Pair::new(&Network::default());
    let remote = Remote { address: pair.regions[1].address, key: pair.regions[1].key ^ 1 };
    pair.post_receive(1, 9, 0, 64);
    pair.post_send(0, 1, Operation::Write(remote), 0, 100);
    pair.post_send(0, 2, Operation::Send, 0, 100);
    let [sent, received] = pair.run_until(2, 1);
    assert_eq!([sent[0].status, sent[1].status], [Status::RemoteAccess, Status::Flushed]);
    assert_eq!(received[0].status, Status::Flushed);
    let _ = Access::ALL;
}

#[test]
fn a_far_end_that_is_gone_is_given_up_after_all_retries() {
    let mut pair = Pair::new(&Network { loss: 1.0, ..Network::default() });
    pair.post_send(0, 1, Operation::Send, 0, 100);
    let [sent, _] = pair.run_until(1, 0);
    assert_eq!(sent[0].status, Status::RetryExceeded);
    assert_eq!(pair.counters(0).timeouts, 8);
}
