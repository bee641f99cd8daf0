//! The nodes that fail or die over an event, and the events that they are not to be blamed on.

use super::*;

/// Lets nodes that decide one event after the other die over a poison: it alone is blamed, and the events beside it are decided.
#[test]
fn a_poison_takes_no_other_event_with_it() {
    let mut farm = farm(ControllerConfig { deaths_max: 3, ..config() });
    let source = source(&mut farm, 0);
    let mut nodes: Vec<Peer> = (0..4).map(|number| node(&mut farm, number, 4)).collect();
    give(&mut farm, source, 0..16);
    let mut next = 4;
    for _ in 0..40 {
        for peer in &mut nodes {
            for number in farm.given(*peer) {
                if number == 2 {
                    farm.close(*peer);
                    *peer = node(&mut farm, next, 4);
                    next += 1;
                    break;
                }
                farm.say(*peer, &token(number, ACCEPTED));
            }
        }
    }
    let counts = farm.machine.counts();
    assert_eq!((counts.accepted, counts.quarantined, counts.in_hand()), (15, 1, 0));
    assert_eq!(next, 7, "three nodes died");
    let told = verdicts(&mut farm);
    assert!(told.contains(&(2, Verdict::Quarantined, 3)));
    let blamed = told.iter().filter(|(_, _, attempts)| *attempts > 1).count();
    assert_eq!(blamed, 1, "{told:?}");
}

#[test]
fn of_the_events_of_a_node_that_dies_the_first_is_blamed() {
    let mut farm = farm(ControllerConfig { deaths_max: 1, ..config() });
    let source = source(&mut farm, 0);
    let dead = node(&mut farm, 0, 4);
    give(&mut farm, source, 0..4);
    farm.say(dead, &token(0, ACCEPTED));
    farm.close(dead);
    assert_eq!(verdicts(&mut farm), [(0, ACCEPTED, 1), (1, Verdict::Quarantined, 1)]);
    let last = node(&mut farm, 1, 4);
    for number in 2..4 {
        assert_eq!(farm.given(last), [number], "any of them may be why it died");
        farm.say(last, &token(number, ACCEPTED));
    }
    assert_eq!(verdicts(&mut farm), [(2, ACCEPTED, 1), (3, ACCEPTED, 1)]);
}

/// Has one node die over whatever it gets, and come again at once: the others decide.
#[test]
fn a_suspect_goes_to_a_node_that_has_not_failed_over_it() {
    let mut farm = farm(ControllerConfig { deaths_max: 2, ..config() });
    let source = source(&mut farm, 0);
    let mut mortal = node(&mut farm, 0, 1);
    let good = node(&mut farm, 1, 2);
    give(&mut farm, source, 0..2);
    assert_eq!((farm.given(mortal), farm.given(good)), (vec![0], vec![1]));
    farm.close(mortal);
    for peer in 2..5 {
        mortal = node_of(&mut farm, peer, &hello(Role::Node, 0, 1));
        assert_eq!(farm.given(mortal), [], "the other one is waited for");
        farm.close(mortal);
    }
    farm.say(good, &token(1, ACCEPTED));
    assert_eq!(farm.given(good), [0]);
    farm.say(good, &token(0, ACCEPTED));
    assert_eq!(verdicts(&mut farm), [(1, ACCEPTED, 1), (0, ACCEPTED, 2)]);
}

#[test]
fn where_no_other_node_is_there_a_poison_comes_to_its_end_all_the_same() {
    let mut farm = farm(ControllerConfig { deaths_max: 4, ..config() });
    let source = source(&mut farm, 0);
    give(&mut farm, source, 0..1);
    for peer in 0..4 {
        let node = node_of(&mut farm, peer, &hello(Role::Node, 0, 1));
        assert_eq!(farm.given(node), [0]);
        farm.close(node);
    }
    assert_eq!(verdicts(&mut farm), [(0, Verdict::Quarantined, 4)]);
}

#[test]
fn a_node_whose_decider_has_never_given_a_verdict_gets_one_event_at_a_time_and_no_suspect_of_others() {
    for policy in Policy::ALL {
        let mut farm = farm(ControllerConfig { policy, ..config() });
        let source = source(&mut farm, 0);
        let broken = node(&mut farm, 0, 2);
        give(&mut farm, source, 0..2);
        assert_eq!(farm.given(broken), [0, 1]);
        let good = node(&mut farm, 1, 4);
        farm.say(broken, &token(0, Verdict::Failed));
        farm.say(broken, &token(1, Verdict::Failed));
        // Each is with the other one, alone.
        for number in 0..2 {
            assert_eq!(farm.given(good), [number], "{policy:?}");
            farm.say(good, &token(number, ACCEPTED));
        }
        give(&mut farm, source, 2..8);
        let [one] = farm.given(broken)[..] else { panic!("{policy:?}: not one") };
        farm.say(broken, &token(one, ACCEPTED));
        // With its first verdict it is like the others.
        while farm.machine.counts().in_hand() > 0 {
            let given = [broken, good].map(|peer| (peer, farm.given(peer)));
            assert!(given.iter().any(|(_, numbers)| !numbers.is_empty()), "{policy:?}");
            for (peer, numbers) in given {
                numbers.into_iter().for_each(|number| farm.say(peer, &token(number, ACCEPTED)));
            }
        }
    }
}

/// Has a node fail over an event, where no node was given a number, and another has more to do.
#[test]
fn nodes_of_one_number_are_told_apart_by_their_starts() {
    let mut farm = farm(ControllerConfig { deaths_max: 3, ..config() });
    let source = source(&mut farm, 0);
    let [broken, good] = [(1, 1), (2, 2)].map(|(instance, credits)| {
        let hello = Hello { instance, ..hello(Role::Node, 0, credits) };
        node_of(&mut farm, instance as u32, &hello)
    });
    give(&mut farm, source, 0..2);
    assert_eq!([broken, good].map(|node| farm.given(node)), [[0], [1]]);
    farm.say(broken, &token(0, Verdict::Failed));
    assert_eq!(farm.given(broken), [], "it has failed over the event");
    farm.say(good, &token(1, ACCEPTED));
    assert_eq!(farm.given(good), [0]);
}
