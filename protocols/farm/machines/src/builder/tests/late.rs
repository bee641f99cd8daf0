//! Sources that are late, gone, back or behind.

use super::*;

/// Gives an event of one byte from each of these.
fn give(rig: &mut Rig<Builder>, peers: &[Peer], numbers: core::ops::Range<u64>) {
    for number in numbers {
        peers.iter().for_each(|peer| rig.say(*peer, &event(number, b"a")));
    }
}

/// Returns the numbers of the whole events among those that the controller received, and those of the others.
fn whole_and_not(rig: &mut Rig<Builder>) -> (Vec<u64>, Vec<u64>) {
    let (whole, others): (Vec<_>, Vec<_>) = built(rig).into_iter().partition(|(kind, ..)| *kind == Kind::Event);
    let numbers = |built: Vec<(Kind, u64, Vec<u8>)>| built.into_iter().map(|(_, number, _)| number).collect();
    (numbers(whole), numbers(others))
}

#[test]
fn a_run_begins_when_all_sources_have_come() {
    let mut rig = builder(config());
    let first = source_at(&mut rig, 0, 0);
    give(&mut rig, &[first], 0..3);
    rig.wait(60_000 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![]));
    assert_eq!(rig.machine.waited_for(), (vec![1], false), "it has never been here");
    let second = source_at(&mut rig, 1, 1);
    assert_eq!(rig.machine.waited_for(), (vec![1], true));
    give(&mut rig, &[second], 0..3);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1, 2], vec![]));
    assert_eq!(rig.machine.waited_for(), (vec![], true));
}

#[test]
fn or_without_those_that_have_not_come() {
    let mut rig = builder(BuilderConfig { starts_without: true, ..config() });
    let first = source_at(&mut rig, 0, 0);
    rig.wait(1000 * MILLI, &[UP, first]);
    give(&mut rig, &[first], 0..3);
    rig.wait(99 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![]), "one that is late may be there any moment");
    rig.wait(2 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![0, 1, 2]));
    give(&mut rig, &[first], 3..6);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![3, 4, 5]), "not one of the others waits");
    assert!(rig.drain_events().contains(&Event::Gone { source: 1 }));
}

#[test]
fn one_that_is_gone_is_waited_for_once_and_contributes_when_it_is_back() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    give(&mut rig, &[first, second], 0..2);
    rig.close(second);
    give(&mut rig, &[first], 2..4);
    rig.wait(99 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1], vec![]));
    rig.wait(2 * MILLI, &[UP, first]);
    give(&mut rig, &[first], 4..6);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![2, 3, 4, 5]));
    let second = source_at(&mut rig, 1, 5);
    give(&mut rig, &[first], 6..8);
    rig.wait(1000 * MILLI, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![]), "it is there");
    // It remembers nothing, and begins anew.
    rig.take(second);
    give(&mut rig, &[second], 0..8);
    assert_eq!(whole_and_not(&mut rig), (vec![6, 7], vec![]));
    (0..8).for_each(|number| verdict(&mut rig, number, Verdict::Accepted));
    let tokens = rig.tokens(second);
    assert_eq!(tokens.iter().filter(|token| token.flags == FLAG_LATE).count(), 4, "{tokens:?}");
}

#[test]
fn each_run_begins_when_all_have_come() {
    let mut rig = builder(config());
    rig.say(UP, &plain(Kind::Run, 2));
    let [first, second] = sources(&mut rig);
    give(&mut rig, &[first, second], 0..2);
    for peer in [first, second] {
        rig.close(peer);
    }
    rig.wait(101 * MILLI, &[UP]);
    assert!(rig.drain_events().contains(&Event::Gone { source: 1 }));
    // In the same run it is waited for as one that has just gone, since all come again.
    let first = source_at(&mut rig, 0, 3);
    give(&mut rig, &[first], 2..4);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1], vec![]));
    rig.wait(101 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![2, 3]));
    rig.say(first, &plain(Kind::Run, 2));
    give(&mut rig, &[first], 0..2);
    rig.wait(60_000 * MILLI, &[UP, first]);
    assert_eq!((whole_and_not(&mut rig), rig.machine.waited_for()), ((vec![], vec![]), (vec![1], false)));
    let second = source_at(&mut rig, 1, 4);
    rig.say(second, &plain(Kind::Run, 2));
    give(&mut rig, &[second], 0..2);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1], vec![]));
}

#[test]
fn one_that_was_away_for_less_than_that_is_in_every_event() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    give(&mut rig, &[first, second], 0..20);
    rig.close(second);
    give(&mut rig, &[first], 20..40);
    rig.wait(99 * MILLI, &[UP, first]);
    let second = source_at(&mut rig, 1, 5);
    for number in 0..40 {
        rig.wait(60 * MILLI, &[UP, first, second]);
        give(&mut rig, &[second], number..number + 1);
    }
    let (whole, others) = whole_and_not(&mut rig);
    assert_eq!((whole.len(), others), (40, vec![]), "it is slow, and holds the other one back");
}

#[test]
fn one_that_is_there_and_gives_nothing_holds_the_others_back_for_so_long_and_is_told() {
    let behind = Duration::from_secs(5);
    let silence = Duration::from_secs(1000);
    let mut rig = builder(BuilderConfig { behind, silence, source_credits: 10, ..config() });
    let [first, second] = [source_at(&mut rig, 0, 0), source_at(&mut rig, 1, 1)];
    rig.wait(Duration::from_secs(60), &[UP, first, second]);
    give(&mut rig, &[first, second], 0..1);
    verdict(&mut rig, 0, Verdict::Accepted);
    rig.wait(Duration::from_secs(60), &[UP, first, second]);
    give(&mut rig, &[first], 1..11);
    rig.wait(behind - MILLI, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![0], vec![]), "nobody waited for it before");
    // A byte of the next fragment is enough.
    rig.say(second, &event(1, b"a")[..5]);
    rig.wait(MILLI, &[UP, first, second]);
    rig.wait(behind - 2 * MILLI, &[UP, first, second]);
    assert_eq!((whole_and_not(&mut rig), rig.is_open(second)), ((vec![], vec![]), true));
    rig.drain_events();
    rig.wait(2 * MILLI, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![], (1..11).collect()));
    let told = rig.drain_events();
    assert!(told.contains(&Event::Behind { source: 1 }), "{told:?}");
    assert!(told.iter().any(|event| matches!(event, Event::Left { error: Error::Behind, .. })), "{told:?}");
    assert!(!rig.is_open(second), "it is told by its connection");
    let counters = rig.machine.counters();
    assert_eq!((counters.behind, counters.held_back_ns > 4_000_000_000), (1, true), "{}", counters.held_back_ns);
    // It comes again, and is not waited for before it gives.
    let second = source_at(&mut rig, 1, 2);
    (1..11).for_each(|number| verdict(&mut rig, number, Verdict::Accepted));
    give(&mut rig, &[first], 11..13);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![11, 12]));
    give(&mut rig, &[second], 13..14);
    give(&mut rig, &[first], 13..15);
    rig.wait(behind - MILLI, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![13], vec![]), "and then it is");
    assert_eq!(rig.machine.waited_for(), (vec![1], true));
}

#[test]
fn one_that_may_give_no_more_is_not_behind() {
    let mut rig = builder(BuilderConfig { behind: 200 * MILLI, source_credits: 3, ..config() });
    let [first, second] = [source_at(&mut rig, 0, 0), source_at(&mut rig, 1, 1)];
    give(&mut rig, &[second], 0..3);
    give(&mut rig, &[first], 0..2);
    // The controller takes its time, so that the second source has no credit, and the first none for long.
    verdict(&mut rig, 0, Verdict::Accepted);
    verdict(&mut rig, 1, Verdict::Accepted);
    give(&mut rig, &[first], 2..5);
    rig.wait(199 * MILLI, &[UP, first, second]);
    assert_eq!(rig.machine.counters().behind, 0);
    give(&mut rig, &[second], 3..5);
    rig.wait(1000 * MILLI, &[UP, first, second]);
    assert_eq!(rig.machine.counters().behind, 0, "all is with the controller");
    let (whole, others) = whole_and_not(&mut rig);
    assert_eq!((whole.len(), others), (5, vec![]));
}

#[test]
fn one_that_comes_to_a_builder_that_was_started_again_says_what_may_still_come() {
    let mut rig = builder(config());
    let come = |rig: &mut Rig<Builder>, number, resumes| {
        let peer = accepted(number);
        rig.open(peer);
        rig.say(peer, &Hello { resumes, ..hello(Role::Source, number, 0) }.encode());
        rig.say(peer, &plain(Kind::Run, 1));
        peer
    };
    let first = come(&mut rig, 0, Some((1, 50)));
    // The second one has no verdict on what the first one has answered, and nothing else.
    let second = come(&mut rig, 1, None);
    give(&mut rig, &[second], 40..52);
    rig.wait(streams::REORDER, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![], (40..50).collect()), "the controller knows them, and compares");
    give(&mut rig, &[first], 50..52);
    assert_eq!(whole_and_not(&mut rig), (vec![50, 51], vec![]));
    // Where one has had verdicts, the run has begun: who is dead by now does not stop it.
    let mut rig = builder(config());
    let first = come(&mut rig, 0, Some((1, 50)));
    give(&mut rig, &[first], 50..52);
    rig.wait(101 * MILLI, &[UP, first]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![50, 51]));
}

#[test]
fn who_goes_on_to_another_run_is_waited_for_a_while_in_the_one_before() {
    let mut rig = builder(config());
    rig.say(UP, &plain(Kind::Run, 2));
    let [first, second] = sources(&mut rig);
    give(&mut rig, &[first], 0..2);
    give(&mut rig, &[second], 0..1);
    // The second one gives events of both, in turn.
    rig.say(second, &plain(Kind::Run, 2));
    give(&mut rig, &[second], 0..1);
    rig.wait(90 * MILLI, &[UP, first, second]);
    rig.say(second, &plain(Kind::Run, 1));
    give(&mut rig, &[second], 1..2);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1], vec![]));
    give(&mut rig, &[first], 2..3);
    rig.say(second, &plain(Kind::Run, 2));
    give(&mut rig, &[second], 1..2);
    rig.wait(101 * MILLI, &[UP, first, second]);
    assert_eq!(whole_and_not(&mut rig), (vec![], vec![2]), "and no longer");
    rig.say(first, &plain(Kind::Run, 2));
    give(&mut rig, &[first], 0..2);
    assert_eq!(whole_and_not(&mut rig), (vec![0, 1], vec![]), "who has not come to it holds it up");
}

#[test]
fn a_count_that_begins_anew_begins_the_stream_anew() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    let last = 1 << 28;
    give(&mut rig, &[first, second], last - 2..last);
    give(&mut rig, &[first, second], 0..3);
    give(&mut rig, &[first], 3..5);
    rig.wait(1000 * MILLI, &[UP, first, second]);
    give(&mut rig, &[second], 3..5);
    assert_eq!(whole_and_not(&mut rig), (vec![last - 2, last - 1, 0, 1, 2, 3, 4], vec![]));
}

/// Returns the numbers below which a source is told to give all.
fn told_to_end(rig: &mut Rig<Builder>, peer: Peer) -> Vec<u64> {
    let messages = rig.take(peer).into_iter();
    let told = messages.filter_map(|message| if let Message::Ends(below) = message { Some(below) } else { None });
    told.collect()
}

#[test]
fn sources_that_are_to_end_give_what_any_of_them_has() {
    let mut rig = builder(BuilderConfig { sources: 3, ..config() });
    let [first, second] = sources(&mut rig);
    let third = accepted(2);
    rig.open(third);
    rig.say(third, &hello(Role::Source, 2, 0).encode());
    give(&mut rig, &[first], 0..9);
    give(&mut rig, &[second], 0..5);
    rig.say(first, &plain(Kind::Drain, 9));
    rig.say(second, &plain(Kind::Drain, 5));
    rig.wait(99 * MILLI, &[UP, first, second, third]);
    assert_eq!((told_to_end(&mut rig, first), told_to_end(&mut rig, second)), (vec![], vec![]));
    // It has come again, and not said of which run it is.
    rig.say(third, &plain(Kind::Drain, 12));
    for (peer, below) in [(first, 9), (second, 5), (third, 12)] {
        assert_eq!(told_to_end(&mut rig, peer)[0], 12);
        rig.say(peer, &plain(Kind::Drain, below));
        assert_eq!(told_to_end(&mut rig, peer).last(), Some(&12), "and again, as the answer may be lost");
    }
}

#[test]
fn or_what_they_have_where_the_others_go_on() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    give(&mut rig, &[first], 0..9);
    rig.say(second, &plain(Kind::Drain, 5));
    rig.wait(99 * MILLI, &[UP, first, second]);
    assert_eq!(told_to_end(&mut rig, second), []);
    rig.wait(2 * MILLI, &[UP, first, second]);
    assert_eq!((told_to_end(&mut rig, second), told_to_end(&mut rig, first)), (vec![5], vec![]));
    // One that is gone is waited for as ever.
    rig.close(second);
    let second = source_at(&mut rig, 1, 5);
    rig.close(second);
    rig.wait(50 * MILLI, &[UP, first]);
    rig.say(first, &plain(Kind::Drain, 9));
    assert_eq!(told_to_end(&mut rig, first), []);
    rig.wait(51 * MILLI, &[UP, first]);
    assert_eq!(told_to_end(&mut rig, first), [9]);
    // Nor is anybody where none may give any more.
    rig.handle(Input::Command(Command::Drain));
    let second = source_at(&mut rig, 1, 6);
    rig.say(second, &plain(Kind::Drain, 5));
    assert_eq!(told_to_end(&mut rig, second), [5]);
}
