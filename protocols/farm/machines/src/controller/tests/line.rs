//! Nodes behind lines that drain less than their credits allow.

use super::*;
use crate::wire::FLAG_TIMES;

const CREDITS: u32 = 8;

/// Has a node answer events of 1000 bytes, each when `answered` says of its number, when it was given and when the one before it was
/// answered; returns how many are with the node in the end.
fn settle(flags: u8, at_node: Duration, answered: impl Fn(u64, Instant, Instant) -> Instant) -> usize {
    let mut farm = farm(ControllerConfig { pool_bytes: 10_000_000, source_credits: 10_000, ..config() });
    let peer = accepted(100);
    farm.open(peer);
    farm.say(peer, &hello(Role::Source, 0, 0).encode());
    let node = node_of(&mut farm, 1, &Hello { flags, ..hello(Role::Node, 1, CREDITS) });
    (0..2000).for_each(|number| farm.say(peer, &event(number, &[0; 1000])));
    let (mut with_it, mut last) = (VecDeque::new(), farm.now);
    for _ in 0..1000 {
        let now = farm.now;
        with_it.extend(farm.given(node).into_iter().map(|number| (number, now)));
        let (number, came) = with_it.pop_front().expect("one may always be there");
        last = answered(number, came, last);
        farm.now = last;
        let at_node_us = at_node.as_micros() as u32;
        let told = if flags & FLAG_TIMES == 0 { 0 } else { at_node_us };
        farm.say(node, &Token { decided_us: told, ..token_of(1, number, ACCEPTED) }.encode());
        let _ = farm.drain_events();
    }
    with_it.len() + farm.given(node).len()
}

#[test]
fn a_node_has_no_more_than_its_line_drains_in_time() {
    // Four milliseconds for each event, one after the other.
    let slow = |_, came: Instant, last: Instant| came.max(last) + MILLI * 4;
    assert!((3..=4).contains(&settle(FLAG_TIMES, Duration::ZERO, slow)));
    let fast = |_, came, last: Instant| last.max(came + MILLI);
    assert_eq!(settle(FLAG_TIMES, Duration::ZERO, fast), 8);
    let long = |_, came, last: Instant| last.max(came + MILLI * 101);
    assert_eq!(settle(FLAG_TIMES, MILLI * 100, long), 8, "the time at the node is none of the line");
}

#[test]
fn a_node_that_tells_no_times_has_its_credits() {
    // Of another make: how much of the time is its own nobody knows.
    let deciding = |number, came, last: Instant| last.max(came + MILLI * if number < 8 { 1 } else { 100 });
    assert_eq!(settle(0, Duration::ZERO, deciding), 8);
    assert_eq!(settle(FLAG_TIMES, Duration::ZERO, deciding), 2);
}
