//! Connections that come, leave and fall silent.

use super::*;
use crate::greetings::GREETING_MAX;

#[test]
fn a_node_drains_and_leaves_without_blame() {
    let mut farm = farm(config());
    let (source, leaving) = (source(&mut farm, 0), node(&mut farm, 0, 4));
    give(&mut farm, source, 0..2);
    farm.say(leaving, &plain(Kind::Drain, 0));
    let told = farm.take(leaving);
    assert!(matches!(told[..], [.., Message::Drain]), "nothing is on its way behind this: {told:?}");
    give(&mut farm, source, 2..3);
    farm.say(leaving, &[token(0, ACCEPTED), token(1, ACCEPTED)].concat());
    assert_eq!(farm.given(leaving), []);
    farm.close(leaving);
    let next = node(&mut farm, 1, 1);
    assert_eq!(farm.given(next), [2]);
    assert_eq!(farm.machine.counters().redispatched, 0);
}

#[test]
fn a_draining_node_gives_back_the_suspect_that_it_was_kept_for() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let lost = node(&mut farm, 0, 1);
    give(&mut farm, source, [0]);
    let busy = node(&mut farm, 1, 2);
    give(&mut farm, source, [1]);
    farm.close(lost);
    farm.say(busy, &plain(Kind::Drain, 0));
    farm.say(busy, &token(1, ACCEPTED));
    assert_eq!(farm.given(busy), [1]);
    let next = node(&mut farm, 2, 1);
    assert_eq!(farm.given(next), [0]);
}

#[test]
fn who_is_silent_is_asked_and_then_gone() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let (alive, silent) = (node(&mut farm, 0, 1), node(&mut farm, 1, 1));
    give(&mut farm, source, 0..2);
    farm.wait(500 * MILLI, &[alive, source]);
    assert!(farm.is_open(silent));
    farm.wait(200 * MILLI, &[alive, source]);
    assert_eq!(farm.closed, [silent]);
    assert_eq!(why_left(&mut farm, silent), Some(Error::Silent));
    farm.say(alive, &token(0, ACCEPTED));
    assert_eq!(farm.given(alive), [0, 1]);
    farm.wait(5000 * MILLI, &[alive, source]);
    assert!(farm.is_open(alive) && farm.is_open(source));
}

#[test]
fn an_event_that_takes_too_long_is_taken_away() {
    let mut farm = farm(ControllerConfig { deadline: Some(Duration::from_secs(1)), ..config() });
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 4));
    give(&mut farm, source, 0..4);
    for number in 0..3 {
        farm.wait(900 * MILLI, &[node, source]);
        farm.say(node, &token(number, ACCEPTED));
    }
    assert!(farm.is_open(node), "the time is that of one event, not of those before it too");
    farm.wait(1100 * MILLI, &[node, source]);
    assert_eq!(why_left(&mut farm, node), Some(Error::Overdue { event: 3 }));
}

#[test]
fn who_does_not_greet_is_sent_away() {
    let mut farm = farm(config());
    let peer = accepted(0);
    farm.open(peer);
    farm.wait(1900 * MILLI, &[]);
    assert!(farm.is_open(peer));
    farm.wait(200 * MILLI, &[]);
    assert_eq!(why_left(&mut farm, peer), Some(Error::NoGreeting));
    farm.open(peer);
    farm.say(peer, &plain(Kind::Ping, 1));
    assert_eq!(why_left(&mut farm, peer), Some(Error::NoGreeting));
    farm.open(peer);
    farm.say(peer, &hello(Role::Controller, 0, 0).encode());
    assert_eq!(why_left(&mut farm, peer), Some(Error::WrongRole { role: Role::Controller }));
}

#[test]
fn connections_without_a_greeting_are_bounded() {
    let mut farm = farm(ControllerConfig { nodes_max: 1, ..config() });
    (0..GREETING_MAX).for_each(|number| farm.open(accepted(number)));
    assert_eq!(farm.closed, []);
    farm.open(accepted(GREETING_MAX));
    assert_eq!(farm.closed, [accepted(0)], "the oldest: whoever comes to work greets at once");
    farm.say(accepted(GREETING_MAX), &hello(Role::Node, 0, 1).encode());
    farm.say(accepted(1), &hello(Role::Node, 1, 1).encode());
    assert_eq!(why_left(&mut farm, accepted(1)), Some(Error::Full { max: 1 }));
    let full = Error::Full { max: 1 }.code() as usize;
    assert_eq!((farm.machine.counters().ended[full], Error::REASONS[full]), (2, "full"));
    let greeting: Vec<usize> = farm.machine.greetings.hosts.values().map(VecDeque::len).collect();
    assert_eq!(greeting, [GREETING_MAX as usize - 2]);
    (2..GREETING_MAX).for_each(|number| farm.close(accepted(number)));
    assert!(farm.machine.greetings.hosts.is_empty());
}

#[test]
fn idle_sources_make_room_when_all_places_are_taken_and_can_come_again() {
    let mut farm = farm(ControllerConfig { sources_max: 3, silence: Duration::from_secs(3600), ..config() });
    let idle = farm.machine.config.source_idle;
    let node = node(&mut farm, 0, 1);
    let [stranger, busy, giver] = [0, 1, 2].map(|number| source(&mut farm, number));
    give(&mut farm, giver, [0]);
    farm.say(node, &token(0, ACCEPTED));
    give(&mut farm, busy, [1]);
    farm.wait(idle - MILLI, &[]);
    let come = |farm: &mut Farm, number: u32| {
        farm.open(accepted(100 + number));
        farm.say(accepted(100 + number), &hello(Role::Source, number, 0).encode());
    };
    come(&mut farm, 3);
    assert_eq!(farm.closed, [accepted(103)], "nobody has been idle for long enough");
    farm.wait(MILLI, &[]);
    farm.closed.clear();
    come(&mut farm, 4);
    assert_eq!(farm.closed, [stranger], "one that never gave goes before one that did");
    assert_eq!(why_left(&mut farm, stranger), Some(Error::Idle { max: 3 }));
    come(&mut farm, 5);
    assert_eq!(farm.closed[1..], [giver], "one that gave long ago goes too");
    come(&mut farm, 6);
    assert_eq!(farm.closed[2..], [accepted(106)], "nobody goes who waits for a verdict");
    farm.wait(idle, &[]);
    farm.closed.clear();
    come(&mut farm, 0);
    assert_eq!(farm.closed, [accepted(104)], "who was ended can come again");
    assert!(
        Error::REASONS[Error::Idle { max: 3 }.code() as usize] == "idle" && !Error::Idle { max: 3 }.is_misbehaviour()
    );
}

#[test]
fn paused_it_gives_nothing_and_takes_tokens() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 2));
    give(&mut farm, source, [0]);
    farm.handle(Input::Command(Command::Pause));
    give(&mut farm, source, 1..3);
    farm.say(node, &token(0, ACCEPTED));
    assert_eq!((farm.given(node), farm.tokens(source).len()), (vec![0], 1));
    farm.wait(1000 * MILLI, &[source, node]);
    farm.handle(Input::Command(Command::Resume));
    assert_eq!(farm.given(node), [1, 2]);
    assert!(farm.machine.counters().dead_time_ns >= 1_000_000_000);
}

#[test]
fn nodes_without_credits_make_room_when_all_places_are_taken() {
    let mut farm = farm(ControllerConfig { nodes_max: 3, ..config() });
    let [spent, empty, busy] = [(0, 1), (1, 0), (2, 1)].map(|(number, credits)| node(&mut farm, number, credits));
    let giver = source(&mut farm, 0);
    give(&mut farm, giver, [0, 1]);
    assert_eq!((farm.given(spent), farm.given(busy)), (vec![0], vec![1]));
    let come = |farm: &mut Farm, number: u32| {
        farm.open(accepted(100 + number));
        farm.say(accepted(100 + number), &hello(Role::Node, number, 1).encode());
    };
    come(&mut farm, 3);
    assert_eq!(farm.closed, [empty], "it can never take an event");
    assert_eq!(why_left(&mut farm, empty), Some(Error::NoCredits { max: 3 }));
    come(&mut farm, 4);
    assert_eq!(farm.closed[1..], [accepted(104)], "the others have an event or a credit");
    let last = Token { credits: 0, ..token_of(1, 0, ACCEPTED) };
    farm.say(spent, &last.encode());
    come(&mut farm, 5);
    assert_eq!(farm.closed[2..], [spent], "nor can one that has answered its last");
    let no_credits = Error::NoCredits { max: 3 };
    assert_eq!((Error::REASONS[no_credits.code() as usize], no_credits.is_misbehaviour()), ("no-credits", false));
}

#[test]
fn in_turn_nodes_without_credits_hold_up_nobody() {
    let mut farm = farm(ControllerConfig { policy: Policy::RoundRobin, ..config() });
    let [_, node] = [(0, 0), (1, 2)].map(|(number, credits)| node(&mut farm, number, credits));
    let giver = source(&mut farm, 0);
    give(&mut farm, giver, [0, 1]);
    assert_eq!(farm.given(node), [0, 1]);
}

#[test]
fn it_is_drained_when_every_source_has_said_so_and_nothing_is_in_hand() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 2));
    give(&mut farm, source, [0]);
    farm.handle(Input::Command(Command::Drain));
    farm.handle(Input::Command(Command::Pause));
    assert!(matches!(farm.take(source)[..], [Message::Drain]));
    farm.say(node, &token(0, ACCEPTED));
    assert!(!is_drained_told(&mut farm), "one may be on its way");
    give(&mut farm, source, [1]);
    farm.say(source, &plain(Kind::Drain, 0));
    assert!(!is_drained_told(&mut farm));
    farm.say(node, &token(1, ACCEPTED));
    assert!(is_drained_told(&mut farm));
    farm.wait(3000 * MILLI, &[source, node]);
    assert!(!is_drained_told(&mut farm), "told once");
}

#[test]
fn a_source_that_does_not_answer_to_drain_does_not_hold_it_up() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    farm.handle(Input::Command(Command::Drain));
    farm.wait(1000 * MILLI, &[source]);
    assert!(is_drained_told(&mut farm));
}

#[test]
fn it_is_not_drained_before_anything_has_come() {
    let mut farm = farm(config());
    node(&mut farm, 0, 2);
    farm.wait(1000 * MILLI, &[accepted(0)]);
    assert!(!is_drained_told(&mut farm));
    farm.handle(Input::Command(Command::Drain));
    assert!(is_drained_told(&mut farm));
}

#[test]
fn configured_it_gives_nothing_until_it_is_told_to_begin() {
    let mut farm = farm(ControllerConfig { configured: true, ..config() });
    let (node, source) = (node(&mut farm, 0, 2), source(&mut farm, 0));
    give(&mut farm, source, 0..2);
    assert!(farm.given(node).is_empty() && farm.machine.state() == State::Configured);
    farm.handle(Input::Command(Command::Pause));
    assert_eq!(farm.machine.state(), State::Configured, "what has not begun is not paused");
    farm.handle(Input::Command(Command::Resume));
    assert_eq!((farm.given(node), farm.machine.state()), (vec![0, 1], State::Running));
}

#[test]
fn after_it_was_drained_it_goes_on_when_it_is_told_to() {
    let mut farm = farm(config());
    let (node, source) = (node(&mut farm, 0, 2), source(&mut farm, 0));
    give(&mut farm, source, [0]);
    farm.handle(Input::Command(Command::Drain));
    farm.say(source, &plain(Kind::Drain, 0));
    assert_eq!(farm.machine.state(), State::Draining, "one is in hand");
    farm.say(node, &token(0, Verdict::Rejected));
    assert!(is_drained_told(&mut farm) && farm.machine.state() == State::Drained);
    farm.handle(Input::Command(Command::Run(9)));
    farm.handle(Input::Command(Command::Resume));
    assert!(farm.machine.state() == State::Running && farm.machine.counters().run == 9);
    assert!(!farm.is_open(source), "it cannot be told to go on, and begins anew");
    let source = super::source(&mut farm, 0);
    give(&mut farm, source, [1]);
    farm.take(node);
    farm.say(node, &token_of(9, 1, Verdict::Rejected).encode());
    farm.handle(Input::Command(Command::Drain));
    farm.say(source, &plain(Kind::Drain, 0));
    assert!(is_drained_told(&mut farm), "it is told each time");
}
