use super::*;
use crate::wire::FLAG_ENDS;

/// Returns the numbers at which a source is told to end.
fn ends(rig: &mut Rig<Builder>, peer: Peer) -> Vec<u64> {
    let messages = rig.take(peer).into_iter();
    messages.filter_map(|message| if let Message::Drain(end) = message { Some(end) } else { None }).collect()
}

/// Gives events as a source, numbered from the first on.
fn gives(rig: &mut Rig<Builder>, peer: Peer, numbers: core::ops::Range<u64>) {
    numbers.for_each(|number| rig.say(peer, &event(number, b"a")));
}

/// Sends DRAIN as a source that has given all below this number.
fn asks(rig: &mut Rig<Builder>, peer: Peer, count: u64) {
    rig.say(peer, &plain(Kind::Drain, count));
}

/// Creates a builder of three sources, each of which is further than the one before.
fn uneven() -> (Rig<Builder>, [Peer; 3]) {
    let mut rig = builder(BuilderConfig { sources: 3, silence: 10_000 * MILLI, behind: 20_000 * MILLI, ..config() });
    let peers = [0, 1, 2].map(|number| source_at(&mut rig, number, number));
    for (peer, count) in peers.into_iter().zip([5, 8, 11]) {
        assert!(matches!(rig.take(peer)[..], [Message::Hello(Hello { flags: FLAG_ENDS, .. })]));
        gives(&mut rig, peer, 0..count);
    }
    assert_eq!(built(&mut rig).len(), 5);
    (rig, peers)
}

#[test]
fn sources_that_are_told_to_end_one_after_the_other_end_at_one_number() {
    let (mut rig, [first, second, third]) = uneven();
    for (peer, count) in [(third, 12), (first, 5)] {
        asks(&mut rig, peer, count);
        rig.wait(500 * MILLI, &[]);
        assert_eq!(
            [first, second, third].map(|peer| ends(&mut rig, peer)),
            [[]; 3],
            "others may have given more by then"
        );
    }
    asks(&mut rig, second, 8);
    for (peer, count) in [first, second, third].into_iter().zip([5, 8, 11]) {
        assert_eq!(ends(&mut rig, peer), [12]);
        gives(&mut rig, peer, count..12);
        rig.say(peer, &plain(Kind::Drain, 12));
    }
    assert!(built(&mut rig).iter().all(|(kind, ..)| *kind == Kind::Event));
    assert_eq!((rig.machine.counters().complete, rig.machine.counters().events_open), (12, 0));
}

#[test]
fn one_that_ends_alone_is_told_after_a_while_and_not_waited_for() {
    let (mut rig, [first, second, third]) = uneven();
    asks(&mut rig, first, 5);
    rig.wait(1999 * MILLI, &[]);
    assert_eq!(ends(&mut rig, first), []);
    rig.wait(2 * MILLI, &[]);
    assert_eq!([first, second, third].map(|peer| ends(&mut rig, peer)), [vec![11], vec![], vec![]]);
    gives(&mut rig, first, 5..11);
    rig.say(first, &plain(Kind::Drain, 11));
    for peer in [second, third] {
        gives(&mut rig, peer, if peer == second { 8..13 } else { 11..13 });
    }
    rig.wait(11 * MILLI, &[]);
    let given = built(&mut rig).into_iter().map(|(kind, event, _)| (event, kind == Kind::Event)).collect::<Vec<_>>();
    assert_eq!(given, (5..13).map(|event| (event, event < 11)).collect::<Vec<_>>());
}

#[test]
fn one_that_is_told_to_end_later_ends_where_the_others_did() {
    let (mut rig, [first, second, third]) = uneven();
    [(second, 8), (third, 11)].into_iter().for_each(|(peer, count)| asks(&mut rig, peer, count));
    rig.wait(2001 * MILLI, &[UP, first, second, third]);
    for (peer, count) in [(second, 8), (third, 11)] {
        assert_eq!(ends(&mut rig, peer), [11]);
        gives(&mut rig, peer, count..11);
        rig.say(peer, &plain(Kind::Drain, 11));
        rig.close(peer);
    }
    // It stood still meanwhile, although it was told to end together with them.
    asks(&mut rig, first, 5);
    rig.wait(2001 * MILLI, &[UP, first]);
    assert_eq!(ends(&mut rig, first), [11]);
    gives(&mut rig, first, 5..11);
    rig.say(first, &plain(Kind::Drain, 11));
    assert!(built(&mut rig).iter().all(|(kind, ..)| *kind == Kind::Event));
    rig.close(first);
    // The next ones have numbers of their own.
    let peers = [0, 1, 2].map(|number| source_at(&mut rig, number, 10 + number));
    for peer in peers {
        rig.take(peer);
        gives(&mut rig, peer, 0..3);
        asks(&mut rig, peer, 3);
    }
    assert_eq!(peers.map(|peer| ends(&mut rig, peer)), [[3]; 3]);
}

#[test]
fn one_that_goes_holds_up_no_other_that_is_to_end() {
    let (mut rig, [first, second, third]) = uneven();
    [(first, 5), (second, 8)].into_iter().for_each(|(peer, count)| asks(&mut rig, peer, count));
    rig.close(third);
    assert_eq!([first, second].map(|peer| ends(&mut rig, peer)), [[11], [11]]);
}

#[test]
fn when_it_drains_all_end_at_one_number_and_what_they_give_goes_on() {
    for by_controller in [false, true] {
        let (mut rig, peers) = uneven();
        if by_controller {
            rig.say(UP, &plain(Kind::Drain, 0));
        } else {
            rig.handle(Input::Command(Command::Drain));
        }
        // One event is on its way when the third is told to stop.
        for (peer, count) in peers.into_iter().zip([5, 8, 12]) {
            assert_eq!(ends(&mut rig, peer), [0]);
            gives(&mut rig, peer, if count == 12 { 11..12 } else { 0..0 });
            rig.say(peer, &plain(Kind::Drain, count));
        }
        assert_eq!(peers.map(|peer| ends(&mut rig, peer)), [vec![12], vec![12], vec![]]);
        for (peer, count) in peers.into_iter().zip([5, 8]) {
            gives(&mut rig, peer, count..12);
            assert!(!rig.machine.is_drained());
            rig.say(peer, &plain(Kind::Drain, 12));
        }
        let messages = rig.take(UP);
        let whole = |message: &Message| matches!(message, Message::Event { kind: Kind::Event, .. });
        assert_eq!(messages.iter().filter(|message| whole(message)).count(), 7);
        assert_eq!(matches!(messages[..], [.., Message::Drain(12)]), by_controller);
        (0..12).for_each(|number| verdict(&mut rig, number, Verdict::Accepted));
        assert_eq!(rig.machine.is_drained(), !by_controller);
    }
}
