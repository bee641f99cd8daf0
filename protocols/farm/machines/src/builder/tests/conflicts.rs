//! A fragment that was given, and other data under its number.

use super::*;
use crate::wire::FLAG_CONFLICT;

fn conflict(event: u64) -> Token {
    Token { flags: FLAG_CONFLICT, ..token_of(1, event, Verdict::Quarantined) }
}

#[test]
fn other_data_of_a_source_goes_behind_its_event() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(first, &event(5, b"a"));
    rig.say(first, &event(5, b"b"));
    assert!(rig.drain_events().contains(&Event::Conflict { run: 1, event: 5, source: 0 }));
    assert_eq!(built(&mut rig), [], "not before its event");
    rig.say(second, &event(5, b"c"));
    let whole = (Kind::Event, 5, b"\0\0\0\0\x01\0\0\0a\x01\0\0\0\x01\0\0\0c".to_vec());
    let apart = (Kind::Conflict, 5, b"\0\0\0\0\x01\0\0\0b".to_vec());
    assert_eq!(built(&mut rig), [whole, apart]);
    rig.say(UP, &conflict(5).encode());
    assert_eq!((rig.tokens(first), rig.tokens(second)), (vec![conflict(5)], vec![]));
    verdict(&mut rig, 5, Verdict::Accepted);
    assert_eq!(rig.tokens(first), [token_of(1, 5, Verdict::Accepted); 2]);
    assert_eq!(rig.tokens(second), [token_of(1, 5, Verdict::Accepted)]);
    // And when it has its verdict.
    rig.say(second, &event(5, b"d"));
    rig.say(second, &event(5, b"c"));
    assert_eq!(built(&mut rig), [(Kind::Conflict, 5, b"\x01\0\0\0\x01\0\0\0d".to_vec())]);
    assert_eq!(rig.tokens(second)[0].flags, FLAG_DUPLICATE);
    rig.say(UP, &conflict(5).encode());
    assert_eq!(rig.tokens(second), [conflict(5)]);
    let counters = rig.machine.counters();
    assert_eq!((counters.conflicts, counters.duplicate_fragments, counters.complete), (2, 2, 1));
    assert_eq!(rig.machine.assembly.in_hand(0) + rig.machine.assembly.in_hand(1), 0);
}

#[test]
fn a_fragment_of_an_event_that_was_decided_without_it_is_told_so() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(second, &event(4, b"b"));
    rig.close(second);
    rig.wait(101 * MILLI, &[UP, first]);
    verdict(&mut rig, 5, Verdict::Accepted);
    rig.take(first);
    let second = source_at(&mut rig, 1, 2);
    rig.say(second, &event(5, b"late"));
    assert_eq!(rig.tokens(second), [Token { flags: FLAG_WITHOUT, ..token_of(1, 5, Verdict::Incomplete) }]);
    // Its answer may be lost.
    let again = source_at(&mut rig, 1, 3);
    rig.say(again, &event(5, b"late"));
    assert_eq!(rig.tokens(again), [Token { flags: FLAG_WITHOUT, ..token_of(1, 5, Verdict::Incomplete) }]);
    assert_eq!(rig.machine.counters().late_fragments, 2);
}

#[test]
fn a_source_that_has_said_that_it_has_none_gives_other_data() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &plain(Kind::Skip, 5));
    rig.say(first, &event(5, b"a"));
    rig.say(second, &event(5, b"c"));
    let alone = (Kind::Partial, 5, b"\x01\0\0\0\x01\0\0\0c".to_vec());
    assert_eq!(built(&mut rig), [alone, (Kind::Conflict, 5, b"\0\0\0\0\x01\0\0\0a".to_vec())]);
}

#[test]
fn two_programs_with_the_number_of_one_source_are_not_there_at_once() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    let twin = accepted(9);
    rig.open(twin);
    rig.say(twin, &Hello { instance: 2, ..hello(Role::Source, 0, 0) }.encode());
    assert_eq!(errors(&mut rig), [Error::Replaced { number: 0 }]);
    assert!(rig.is_open(first) && rig.is_open(second) && !rig.is_open(twin));
    rig.handle(Input::Closed(first, Closed::Finished));
    let later = accepted(10);
    rig.open(later);
    rig.say(later, &Hello { instance: 2, ..hello(Role::Source, 0, 0) }.encode());
    assert!(rig.is_open(later));
}

#[test]
fn what_the_controller_keeps_apart_is_told_to_every_source_of_it() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(second, &event(5, b"c"));
    rig.say(UP, &conflict(5).encode());
    assert_eq!((rig.tokens(first), rig.tokens(second)), (vec![conflict(5)], vec![conflict(5)]));
    assert!(rig.drain_events().contains(&Event::Conflict { run: 1, event: 5, source: 0 }), "the builder says so, too");
}
