use super::*;

/// Returns the numbers of the events that the controller received, and whether each is whole.
fn given(rig: &mut Rig<Builder>) -> Vec<(u64, bool)> {
    built(rig).into_iter().map(|(kind, event, _)| (event, kind == Kind::Event)).collect()
}

/// Gives events as a source, numbered from the first on.
fn gives(rig: &mut Rig<Builder>, peer: Peer, numbers: core::ops::Range<u64>) {
    numbers.for_each(|number| rig.say(peer, &event(number, b"a")));
}

/// Returns the counters of a source: events without it, times that it counted as gone.
fn counted(rig: &Rig<Builder>, source: usize) -> (u64, u64) {
    let counters = rig.machine.source_counters()[source];
    (counters.missing, counters.counted_gone)
}

fn is_behind(rig: &mut Rig<Builder>, source: u32) -> bool {
    rig.drain_events().contains(&Event::Behind { source, within: 300 * MILLI })
}

#[test]
fn a_run_starts_when_all_sources_have_come() {
    let mut rig = builder(config());
    let first = source_at(&mut rig, 0, 0);
    gives(&mut rig, first, 0..50);
    assert_eq!(rig.machine.awaited(), [1]);
    rig.wait(Duration::from_secs(100), &[UP, first]);
    assert_eq!((given(&mut rig), rig.is_open(first)), (vec![], true));
    let second = source_at(&mut rig, 1, 1);
    gives(&mut rig, second, 0..50);
    assert_eq!(given(&mut rig), (0..50).map(|event| (event, true)).collect::<Vec<_>>());
    assert_eq!(rig.machine.awaited(), []);
    let held_back = [0, 1].map(|source| rig.machine.source_counters()[source].held_back_ns / 1_000_000_000);
    assert_eq!(held_back, [0, 99], "it is dead time, and the second one's");
    assert_eq!(rig.machine.counters().held_back_ns / 1_000_000_000, 99);
}

#[test]
fn or_without_those_that_are_not_there_by_then() {
    let mut rig = builder(BuilderConfig { start_without: Some(500 * MILLI), ..config() });
    rig.wait(600 * MILLI, &[UP]);
    let first = source_at(&mut rig, 0, 0);
    gives(&mut rig, first, 0..2);
    rig.wait(499 * MILLI, &[UP, first]);
    assert_eq!(given(&mut rig), [], "the time is that from the first source on");
    rig.wait(2 * MILLI, &[UP, first]);
    assert_eq!(given(&mut rig), [(0, false), (1, false)]);
    assert!(rig.drain_events().contains(&Event::StartedWithout { source: 1 }));
    let second = source_at(&mut rig, 1, 1);
    gives(&mut rig, first, 2..3);
    rig.wait(200 * MILLI, &[UP, first, second]);
    assert_eq!(given(&mut rig), [], "one that comes later is waited for");
    gives(&mut rig, second, 2..3);
    assert_eq!(given(&mut rig), [(2, true)]);
}

#[test]
fn one_that_is_behind_is_waited_for_as_long_as_it_gives_something() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    gives(&mut rig, first, 0..10);
    for number in 0..9 {
        rig.wait(299 * MILLI, &[UP, first, second]);
        assert_eq!(given(&mut rig), []);
        gives(&mut rig, second, number..number + 1);
        assert_eq!(given(&mut rig), [(number, true)]);
        verdict(&mut rig, number, Verdict::Rejected);
    }
    // Half of a fragment is something.
    rig.wait(299 * MILLI, &[UP, first, second]);
    rig.say(second, &event(9, b"abc")[..14]);
    rig.wait(299 * MILLI, &[UP, first]);
    assert_eq!((given(&mut rig), counted(&rig, 1)), (vec![], (0, 0)));
    rig.wait(2 * MILLI, &[UP, first]);
    assert_eq!((given(&mut rig), counted(&rig, 1)), (vec![(9, false)], (1, 1)));
}

#[test]
fn one_that_gives_nothing_for_too_long_counts_as_gone_and_is_told() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    gives(&mut rig, first, 0..2);
    rig.wait(301 * MILLI, &[UP, first, second]);
    assert_eq!(given(&mut rig), [(0, false), (1, false)]);
    assert!(is_behind(&mut rig, 1) && !rig.is_open(second));
    assert!(matches!(rig.take(second)[..], [.., Message::Refused(26)]), "what it said is read to the end");
    // It comes again, has nothing to give, and holds nobody back.
    let second = source_at(&mut rig, 1, 2);
    gives(&mut rig, first, 2..3);
    rig.wait(MILLI, &[UP, first, second]);
    assert_eq!((given(&mut rig), rig.is_open(second)), (vec![(2, false)], true));
    // Once it gives something it is waited for.
    gives(&mut rig, second, 3..4);
    gives(&mut rig, first, 3..5);
    rig.wait(299 * MILLI, &[UP, first, second]);
    assert_eq!((given(&mut rig), counted(&rig, 1)), (vec![(3, true)], (3, 1)));
}

#[test]
fn one_that_is_silent_is_waited_for_as_long_as_one_that_is_there() {
    let mut rig = builder(BuilderConfig { behind: 3000 * MILLI, ..config() });
    let [first, second] = sources(&mut rig);
    gives(&mut rig, first, 0..2);
    rig.wait(2900 * MILLI, &[UP, first]);
    assert_eq!((given(&mut rig), rig.is_open(second)), (vec![], false));
    let again = source_at(&mut rig, 1, 2);
    gives(&mut rig, again, 0..2);
    assert_eq!(given(&mut rig), [(0, true), (1, true)]);
    gives(&mut rig, first, 2..3);
    rig.wait(3100 * MILLI, &[UP, first]);
    assert_eq!(given(&mut rig), [(2, false)]);
    let again = source_at(&mut rig, 1, 3);
    assert!(matches!(rig.take(again)[..], [Message::Refused(26)]), "it is told when it comes");
    assert!(source_at(&mut rig, 1, 4) == accepted(4) && rig.is_open(accepted(4)), "once");
}

#[test]
fn one_that_has_gone_is_waited_for_with_patience_and_contributes_when_it_is_back() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    for life in 0..3u64 {
        gives(&mut rig, first, 10 * life..10 * life + 10);
        let peer = if life == 0 { second } else { source_at(&mut rig, 1, 2 + life as u32) };
        // It begins anew each time.
        gives(&mut rig, peer, 0..10 * life + 5);
        rig.close(peer);
        rig.wait(99 * MILLI, &[UP, first]);
        assert!(given(&mut rig).iter().all(|(_, is_whole)| *is_whole));
    }
    rig.wait(2 * MILLI, &[UP, first]);
    assert_eq!(given(&mut rig), (25..30).map(|event| (event, false)).collect::<Vec<_>>());
    gives(&mut rig, first, 30..31);
    rig.wait(MILLI, &[UP, first]);
    assert_eq!(given(&mut rig), [(30, false)], "nobody waits for it any more");
    let second = source_at(&mut rig, 1, 9);
    gives(&mut rig, first, 31..32);
    rig.wait(200 * MILLI, &[UP, first, second]);
    gives(&mut rig, second, 20..32);
    assert_eq!(given(&mut rig), [(31, true)]);
    let without = rig.tokens(second).iter().filter(|token| token.flags & FLAG_WITHOUT != 0).count();
    (25..31).for_each(|number| verdict(&mut rig, number, Verdict::Rejected));
    let later = rig.tokens(second).iter().filter(|token| token.flags & FLAG_WITHOUT != 0).count();
    assert_eq!((without, later), (0, 6), "it is told what went on without it");
    assert_eq!(rig.machine.source_counters()[1].late, 6);
}

#[test]
fn one_that_comes_again_and_again_and_gives_nothing_holds_nobody_back_for_ever() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    gives(&mut rig, first, 0..1);
    gives(&mut rig, second, 0..1);
    assert_eq!(given(&mut rig), [(0, true)]);
    gives(&mut rig, first, 1..2);
    rig.close(second);
    for life in 2..9 {
        let again = source_at(&mut rig, 1, life);
        rig.wait(60 * MILLI, &[UP, first, again]);
        if rig.is_open(again) {
            rig.close(again);
        }
    }
    assert_eq!(given(&mut rig), [(1, false)]);
    assert_eq!(counted(&rig, 1), (1, 1));
}

#[test]
fn those_that_come_when_all_have_gone_wait_for_each_other() {
    let mut rig = builder(config());
    let both = sources(&mut rig);
    both.into_iter().for_each(|peer| gives(&mut rig, peer, 0..1));
    both.into_iter().for_each(|peer| rig.close(peer));
    rig.wait(500 * MILLI, &[UP]);
    // One that gives nothing has not come.
    let nobody = source_at(&mut rig, 1, 5);
    rig.close(nobody);
    rig.wait(20 * MILLI, &[UP]);
    let first = source_at(&mut rig, 0, 6);
    gives(&mut rig, first, 1..2);
    rig.wait(500 * MILLI, &[UP, first]);
    assert_eq!(rig.machine.awaited(), [1]);
    let second = source_at(&mut rig, 1, 7);
    gives(&mut rig, second, 1..2);
    assert_eq!(given(&mut rig), [(0, true), (1, true)]);
}

#[test]
fn an_event_waits_no_longer_when_the_last_one_that_is_waited_for_has_given() {
    let mut rig = builder(BuilderConfig { sources: 3, ..config() });
    let [first, second, third] = [0, 1, 2].map(|number| source_at(&mut rig, number, number));
    [first, second, third].into_iter().for_each(|peer| gives(&mut rig, peer, 9..10));
    assert_eq!(given(&mut rig), [(9, true)]);
    rig.close(second);
    rig.wait(150 * MILLI, &[UP, first, third]);
    for [early, late] in [[first, third], [third, first]] {
        let number = 10 + u64::from(early == third);
        rig.say(early, &event(number, b"a"));
        rig.wait(10 * MILLI, &[UP, first, third]);
        assert_eq!(given(&mut rig), []);
        rig.say(late, &event(number, b"c"));
        rig.wait(MILLI, &[UP, first, third]);
        assert_eq!(given(&mut rig), [(number, false)]);
    }
}

#[test]
fn one_that_has_no_room_is_not_behind() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    gives(&mut rig, second, 0..50);
    gives(&mut rig, first, 0..50);
    rig.wait(MILLI, &[UP, first, second]);
    assert_eq!(given(&mut rig).len(), 50);
    // The controller decides on those of the first, and on none that both have.
    let third = source_at(&mut rig, 0, 5);
    gives(&mut rig, third, 60..61);
    rig.wait(Duration::from_secs(5), &[UP, third, second]);
    assert_eq!((given(&mut rig), counted(&rig, 1)), (vec![], (0, 0)));
    verdict(&mut rig, 0, Verdict::Rejected);
    rig.wait(299 * MILLI, &[UP, third, second]);
    assert_eq!(counted(&rig, 1), (0, 0));
    rig.wait(2 * MILLI, &[UP, third, second]);
    assert_eq!(counted(&rig, 1), (1, 1));
}

#[test]
fn those_that_are_ahead_leave_room_for_the_one_behind() {
    let mut rig = builder(BuilderConfig { pool_bytes: 1000, fragment_max: 500, ..config() });
    let [first, second] = sources(&mut rig);
    // Each has all that it may have; the second has numbers that the first has yet to give.
    rig.say(first, &event(10, &[1; 260]));
    rig.say(second, &event(20, &[2; 260]));
    rig.wait(11 * MILLI, &[UP, first, second]);
    assert_eq!(given(&mut rig), [(10, false)], "the second has passed it");
    verdict(&mut rig, 10, Verdict::Rejected);
    rig.say(first, &event(20, &[1; 260]));
    assert_eq!(given(&mut rig), [(20, true)]);
}
