//! Nodes that take less than the controller gives.

use super::*;

fn small(number: u32, event_max: u32) -> Hello {
    Hello { event_max, ..hello(Role::Node, number, 4) }
}

#[test]
fn an_event_goes_only_to_a_node_whose_greeting_took_its_size() {
    for policy in Policy::ALL {
        let mut farm = farm(ControllerConfig { policy, ..config() });
        let source = source(&mut farm, 0);
        let nodes = [4, 1000, 5].map(|max| node_of(&mut farm, max, &small(max, max)));
        (0..4).for_each(|number| farm.say(source, &event(number, b"large")));
        let given = nodes.map(|node| farm.given(node));
        assert_eq!(given[0], [], "{policy:?}");
        assert_eq!(given[1].len() + given[2].len(), 4, "{policy:?}");
        farm.say(source, &event(4, b"larger"));
        farm.say(source, &event(5, b"fits"));
        for (node, numbers) in nodes.into_iter().zip(&given) {
            numbers.iter().for_each(|number| farm.say(node, &token(*number, ACCEPTED)));
        }
        let given = nodes.map(|node| farm.given(node));
        assert_eq!(given[1][..1], [4], "{policy:?}: {given:?}");
        assert_eq!(given.concat().len(), 2, "{policy:?}");
        assert!(nodes.iter().all(|node| farm.is_open(*node)), "{policy:?}");
    }
}

#[test]
fn a_token_that_was_passed_over_keeps_its_place() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let nodes = [3, 1000, 4].map(|max| node_of(&mut farm, max, &Hello { credits: 1, ..small(max, max) }));
    farm.say(source, &event(0, b"large"));
    farm.say(source, &event(1, b"large"));
    give(&mut farm, source, 2..4);
    assert_eq!(nodes.map(|node| farm.given(node)), [vec![], vec![0], vec![]], "the next one waits for its node");
    farm.say(nodes[1], &token(0, ACCEPTED));
    assert_eq!(nodes.map(|node| farm.given(node)), [[2], [1], [3]]);
}

#[test]
fn an_event_that_no_node_takes_is_quarantined_and_told_and_costs_no_node() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    for number in 0..3 {
        farm.say(source, &event(number, b"large"));
    }
    assert_eq!(verdicts(&mut farm), [], "without a node nothing is known of what nodes take");
    let first = node_of(&mut farm, 0, &small(0, 3));
    give(&mut farm, source, [3]);
    assert_eq!(farm.given(first), [3]);
    let quarantined = |number| token_of(1, number, Verdict::Quarantined);
    assert_eq!(farm.tokens(source), [0, 1, 2].map(quarantined));
    let told = farm.drain_events();
    let sizes = told.iter().filter_map(|event| match event {
        Event::TooLarge { event, size, max, .. } => Some((*event, *size, *max)),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [(0, 5, 3), (1, 5, 3), (2, 5, 3)]);
    let counters = farm.machine.counters();
    assert_eq!((counters.too_large, counters.nodes_lost, farm.machine.counts().quarantined), (3, 0, 3));
}

#[test]
fn an_event_that_another_node_failed_over_is_not_given_to_one_that_does_not_take_it() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let [large, little] = [1000, 3].map(|max| node_of(&mut farm, max, &small(max, max)));
    farm.say(source, &event(0, b"large"));
    assert_eq!(farm.given(large), [0]);
    farm.say(large, &token(0, Verdict::Failed));
    assert_eq!((farm.given(large), farm.given(little)), (vec![0], vec![]), "nobody else takes it");
    farm.close(large);
    assert_eq!(verdicts(&mut farm), [(0, Verdict::Quarantined, 2)]);
    assert_eq!((farm.given(little), farm.machine.counters().too_large), (vec![], 1));
}
