//! A number that has been given, and other data under it.

use super::*;
use crate::wire::FLAG_CONFLICT;

fn kept_apart(farm: &mut Farm) -> Vec<(Option<Role>, u32, u64, Vec<u8>)> {
    let told = farm.drain_events().into_iter().filter_map(|event| match event {
        Event::Verdict(Final { conflict: Some(role), node, event, data, .. }) => {
            Some((Some(role), node, event, data.to_vec()))
        }
        _ => None,
    });
    told.collect()
}

fn conflict(event: u64) -> Token {
    Token { flags: FLAG_CONFLICT, ..token_of(1, event, Verdict::Quarantined) }
}

#[test]
fn other_data_under_a_number_is_kept_apart_whether_that_has_its_verdict_or_not() {
    let mut farm = farm(config());
    let (one, two) = (source(&mut farm, 0), source(&mut farm, 1));
    let node = node(&mut farm, 0, 1);
    farm.say(one, &event(5, b"abc"));
    farm.say(two, &event(5, b"abd"));
    assert_eq!(kept_apart(&mut farm), [(Some(Role::Source), 1, 5, b"abd".to_vec())]);
    assert_eq!((farm.tokens(one), farm.tokens(two)), (vec![], vec![conflict(5)]));
    farm.say(node, &token(5, Verdict::Rejected));
    farm.say(two, &event(5, b"ab"));
    farm.say(two, &event(5, b"abc"));
    assert_eq!(kept_apart(&mut farm), [(Some(Role::Source), 1, 5, b"ab".to_vec())]);
    let duplicate = Token { flags: FLAG_DUPLICATE, ..token_of(1, 5, Verdict::Rejected) };
    assert_eq!(farm.tokens(two), [conflict(5), duplicate]);
    assert_eq!(farm.given(node), [5], "nothing is decided on twice");
    let counts = farm.machine.counts();
    assert_eq!((counts.taken_in, counts.rejected, counts.duplicates, counts.conflicts), (1, 1, 1, 2));
}

#[test]
fn its_token_comes_when_it_is_stored() {
    let mut farm = farm(ControllerConfig { uncommitted_max: Some(10), ..config() });
    let source = source(&mut farm, 0);
    farm.say(source, &event(5, b"abc"));
    farm.say(source, &event(5, b"x"));
    assert_eq!(farm.tokens(source), []);
    farm.handle(Input::Command(Command::Committed(1)));
    assert_eq!(farm.tokens(source), [conflict(5)]);
}

#[test]
fn a_disk_that_does_not_keep_up_has_the_giver_keep_it() {
    let bounds = ControllerConfig { uncommitted_max: Some(1000), uncommitted_bytes_max: 1000, ..config() };
    let mut farm = farm(bounds);
    let source = source(&mut farm, 0);
    farm.say(source, &event(5, b"abc"));
    for byte in 0..10 {
        farm.say(source, &event(5, &[byte; 500]));
    }
    assert_eq!(why_left(&mut farm, source), Some(Error::Closed(Closed::Finished)));
    let counts = farm.machine.counts();
    assert_eq!((counts.conflicts, counts.duplicates), (5, 0));
}

#[test]
fn a_count_that_runs_over_finds_numbers_that_nobody_keeps_any_more() {
    let mut farm = farm(ControllerConfig { remembered: 2048, ..config() });
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 1));
    for number in 0..5000 {
        farm.say(source, &event(number, b"abc"));
        farm.say(node, &token(number, Verdict::Rejected));
    }
    farm.take(source);
    farm.say(source, &event(7, b"abc"));
    assert_eq!(farm.tokens(source), [conflict(7)]);
    farm.say(source, &event(4999, b"abc"));
    assert_eq!(farm.tokens(source)[0].flags, FLAG_DUPLICATE);
}

#[test]
fn what_an_earlier_process_decided_on_may_come_again_as_often_as_a_source_keeps_events() {
    let mut ledger = Ledger::default();
    ledger.recover(1, &[(Verdict::Rejected, 1000)], core::iter::once(0..1000)).expect("the run is new");
    let config = ControllerConfig { source_credits: 100, ..config() };
    let mut farm = Rig::new(Controller::new(config, NoSupply, ledger));
    let source = source(&mut farm, 0);
    for number in 0..200 {
        give(&mut farm, source, [number]);
    }
    assert!(farm.tokens(source).iter().all(|token| token.flags == FLAG_DUPLICATE));
    give(&mut farm, source, 200..203);
    assert_eq!(farm.tokens(source), [200, 201, 202].map(conflict));
    assert_eq!((farm.machine.counters().unchecked, farm.machine.counts().conflicts), (203, 3));
}

#[test]
fn what_comes_late_under_a_number_that_was_passed_is_new_or_known_or_kept_apart() {
    let mut ledger = Ledger::with_ranges(4);
    ledger.recover(1, &[(Verdict::Rejected, 10)], core::iter::once(0..10)).expect("the run is new");
    let mut farm = Rig::new(Controller::new(config(), NoSupply, ledger));
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 1));
    for number in (100..5000).step_by(25) {
        farm.say(source, &event(number, b"abc"));
        farm.say(node, &token(number, Verdict::Rejected));
    }
    farm.take(source);
    farm.take(node);
    farm.say(source, &event(110, b"abc"));
    assert_eq!(farm.given(node), [110], "it has not come");
    farm.say(source, &event(110, b"x"));
    assert_eq!(farm.tokens(source), [conflict(110)]);
    farm.say(node, &token(110, Verdict::Accepted));
    farm.say(source, &event(110, b"abc"));
    farm.say(source, &event(125, b"abc"));
    let duplicate = |event| Token { flags: FLAG_DUPLICATE, ..token_of(1, event, Verdict::Rejected) };
    assert_eq!(farm.tokens(source)[1..], [duplicate(110), duplicate(125)]);
    farm.take(source);
    farm.say(source, &event(125, b"x"));
    farm.say(source, &event(5, b"abc"));
    assert_eq!(farm.tokens(source), [conflict(125), conflict(5)], "an earlier process may have decided on it");
    let counts = farm.machine.counts();
    assert_eq!((counts.rejected, counts.accepted, counts.duplicates, counts.conflicts), (206, 1, 2, 3));
    assert_eq!(farm.machine.decided(), 207);
}

#[test]
fn a_builder_gives_a_fragment_apart_and_no_source_does() {
    let mut farm = farm(config());
    let builder = accepted(50);
    farm.open(builder);
    farm.say(builder, &hello(Role::Builder, 3, 0).encode());
    farm.take(builder);
    farm.say(builder, &event(5, b"\x02\0\0\0\x03\0\0\0abc"));
    farm.say(builder, &message(Kind::Conflict, 5, b"\x02\0\0\0\x01\0\0\0x"));
    assert_eq!(kept_apart(&mut farm), [(Some(Role::Source), 2, 5, b"x".to_vec())]);
    assert_eq!(farm.tokens(builder), [conflict(5)]);
    // An event that lacked fragments may be whole when it is built again.
    farm.say(builder, &message(Kind::Partial, 6, b"a"));
    farm.say(builder, &event(6, b"ab"));
    assert_eq!(kept_apart(&mut farm), []);
    let source = source(&mut farm, 0);
    farm.say(source, &message(Kind::Conflict, 5, b"x"));
    assert_eq!(why_left(&mut farm, source), Some(Error::Unexpected { kind: 0 }));
}
