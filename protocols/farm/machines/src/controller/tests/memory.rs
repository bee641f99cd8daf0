//! Memory that peers make a controller retain: it is charged to them, and whoever has most of too much goes.

use super::*;
use hodo_machine::Allowance;

const MIB: usize = 1 << 20;

/// Creates a controller that may retain 8 MiB.
fn small(config: ControllerConfig) -> Farm {
    farm(ControllerConfig { allowance: Allowance::of_bytes(8 << 20), output_bytes: 8 << 20, ..config })
}

fn charged(farm: &Farm) -> u64 {
    farm.machine.charges().expect("it charges").bytes()
}

fn has_too_much(error: Option<Error>) -> bool {
    matches!(error, Some(Error::TooMuchMemory(_)))
}

#[test]
fn of_nodes_that_read_no_answer_those_that_leave_most_go() {
    let mut farm = small(config());
    let (source, good) = (source(&mut farm, 0), node(&mut farm, 0, 1));
    let pings = plain(Kind::Ping, 1).repeat(10_000);
    let nodes: Vec<Peer> = (1..40).map(|number| node(&mut farm, number, 0)).collect();
    for peer in &nodes {
        farm.handle(Input::Blocked(*peer));
        (0..8).for_each(|_| farm.say(*peer, &pings));
        assert!(charged(&farm) <= 8 << 20, "{} bytes", charged(&farm));
    }
    let closed = farm.closed.clone();
    assert!(!closed.is_empty() && has_too_much(why_left(&mut farm, closed[0])), "{closed:?}");
    let code = Error::REASONS.iter().position(|reason| *reason == "too-much-memory").expect("it has a name");
    assert_eq!(farm.machine.counters().ended[code], closed.len() as u64);
    assert!(farm.is_open(good) && farm.is_open(source));
    give(&mut farm, source, [0]);
    farm.say(good, &token(0, ACCEPTED));
    assert_eq!(verdicts(&mut farm), [(0, ACCEPTED, 1)]);
    nodes.iter().for_each(|peer| farm.close(*peer));
    assert!(charged(&farm) < 1 << 20, "{} bytes", charged(&farm));
}

#[test]
fn an_event_has_all_its_room_once_a_part_has_come_and_nothing_whole_is_lost() {
    let large = ControllerConfig { event_max: 4 << 20, pool_bytes: 4 << 20, ..config() };
    let mut farm = small(large);
    let sources = [0, 1, 2, 3].map(|number| source(&mut farm, number));
    let head = |number| Header::new(Kind::Event, 4 << 20, number).encode();
    for (number, source) in (0..).zip(sources) {
        farm.say(source, &event(number, &[7; MIB / 2]));
        farm.say(source, &head(100 + number));
    }
    assert!(farm.closed.is_empty() && charged(&farm) <= 13 << 19, "12 bytes cost 1 MiB: {}", charged(&farm));
    for part in 0..7 {
        sources.iter().for_each(|source| farm.say(*source, &[part; MIB / 2]));
        assert!(charged(&farm) <= 8 << 20, "{} bytes", charged(&farm));
    }
    let closed = farm.closed.clone();
    assert!(!closed.is_empty() && closed.len() < 4, "{closed:?}");
    let errors: Vec<Error> = (0..closed.len()).filter_map(|index| why_left(&mut farm, closed[index])).collect();
    assert!(matches!(errors[..], [Error::TooMuchMemory(_), ..]), "{errors:?}");
    let node = node(&mut farm, 0, 10);
    assert_eq!(farm.given(node), [0, 1, 2, 3], "whoever gave them is gone or not");
}

#[test]
fn a_pool_that_is_full_leaves_room_for_what_arrives() {
    const PART: usize = 256 << 10;
    let large = ControllerConfig { event_max: 1 << 20, pool_bytes: 1 << 20, output_bytes: 2 << 20, ..config() };
    let mut farm = farm(ControllerConfig { allowance: Allowance::of_bytes(2 << 20), ..large });
    // Four windows of 1 MiB each, as each is to take one event.
    let sources = [0, 1, 2, 3].map(|number| source(&mut farm, number));
    for (number, source) in (0..).zip(sources) {
        farm.say(source, &event(number, &[7; MIB - 1000]));
    }
    assert!(farm.closed.is_empty() && charged(&farm) <= 2 << 20);
    let nodes = [0, 1].map(|number| node(&mut farm, number, 1));
    for (event, node) in (0..).zip(nodes) {
        assert_eq!(farm.given(node), [event]);
        let length = PART as u32;
        farm.say(node, &Token { length, flags: FLAG_OUTPUT, ..token_of(1, event, ACCEPTED) }.encode());
        farm.say(node, &[0; PART - 1]);
    }
    assert!(farm.closed.is_empty(), "three eighths are left for it");
}

#[test]
fn output_that_the_disk_is_too_far_behind_for_is_not_taken_and_its_event_goes_to_another_node() {
    let stored = ControllerConfig { uncommitted_max: Some(1000), uncommitted_bytes_max: 1 << 20, ..config() };
    let mut farm = small(ControllerConfig { event_max: 2 << 20, pool_bytes: 8 << 20, ..stored });
    let source = source(&mut farm, 0);
    let nodes = [0, 1].map(|number| node(&mut farm, number, 10));
    give(&mut farm, source, 0..20);
    let output = |event| Token { length: 2 << 20, flags: FLAG_OUTPUT, ..token_of(1, event, ACCEPTED) }.encode();
    for event in 0..10 {
        for (peer, event) in [(nodes[0], event), (nodes[1], event + 10)] {
            farm.say(peer, &output(event));
            farm.say(peer, &[9; 2 * MIB]);
            assert!(farm.machine.counters().uncommitted_bytes <= 9 << 20);
        }
    }
    assert_eq!(farm.closed.len(), 2);
    let closed = farm.closed[0];
    assert!(has_too_much(why_left(&mut farm, closed)));
    // The disk has caught up.
    farm.handle(Input::Command(Command::Committed(100)));
    let next = node(&mut farm, 2, 20);
    for _ in 0..40 {
        for event in farm.given(next) {
            farm.say(next, &token(event, Verdict::Rejected));
        }
    }
    let counts = farm.machine.counts();
    assert_eq!((counts.taken_in, counts.decided(), counts.quarantined), (20, 20, 0));
}
