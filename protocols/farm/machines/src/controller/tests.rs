use super::*;
use crate::lines::OWED_MAX;
use crate::rig::{Rig, accepted, event, hello, message, plain, token, token_of};
use crate::wire::{APART, FLAG_CONFLICT, FLAG_DUPLICATE, FLAG_OUTPUT, Token, Verdict};
use crate::{Likeness, NoSupply, emulation, supply};
use alloc::vec;
use hodo_machine::Closed;

mod presence;
mod sizes;

type Farm = Rig<Controller<NoSupply>>;

const MILLI: Duration = Duration::from_millis(1);
const ACCEPTED: Verdict = Verdict::Accepted;

fn farm(config: ControllerConfig) -> Farm {
    Rig::new(Controller::new(config, NoSupply, Ledger::default()))
}

fn config() -> ControllerConfig {
    ControllerConfig { event_max: 1000, pool_bytes: 100_000, source_credits: 100, sources_max: 4, ..Default::default() }
}

fn node_of<S: Supply>(rig: &mut Rig<Controller<S>>, number: u32, hello: &Hello) -> Peer {
    let peer = accepted(number);
    rig.open(peer);
    rig.say(peer, &hello.encode());
    peer
}

fn node<S: Supply>(rig: &mut Rig<Controller<S>>, number: u32, credits: u32) -> Peer {
    node_of(rig, number, &hello(Role::Node, number, credits))
}

fn source(rig: &mut Farm, number: u32) -> Peer {
    let peer = accepted(100 + number);
    rig.open(peer);
    rig.say(peer, &hello(Role::Source, number, 0).encode());
    assert!(matches!(rig.take(peer)[..], [Message::Hello(Hello { role: Role::Controller, credits: 100, .. })]));
    peer
}

fn give(rig: &mut Farm, source: Peer, events: impl IntoIterator<Item = u64>) {
    events.into_iter().for_each(|number| rig.say(source, &event(number, b"abc")));
}

fn verdicts(rig: &mut Farm) -> Vec<(u64, Verdict, u8)> {
    let told = rig.drain_events().into_iter().filter_map(|event| match event {
        Event::Verdict(Final { event, verdict, attempts, .. }) => Some((event, verdict, attempts)),
        _ => None,
    });
    told.collect()
}

fn why_left(rig: &mut Farm, peer: Peer) -> Option<Error> {
    rig.drain_events().into_iter().find_map(|event| match event {
        Event::Left { peer: who, error, .. } if who == peer => Some(error),
        Event::Refused(who, error) if who == peer => Some(error),
        _ => None,
    })
}

fn is_drained_told(rig: &mut Farm) -> bool {
    rig.drain_events().iter().any(|event| matches!(event, Event::Drained))
}

#[test]
fn gives_no_more_than_there_are_credits_and_each_token_asks_for_one_more() {
    let mut farm = farm(ControllerConfig { credits_max: 3, ..config() });
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 10));
    give(&mut farm, source, 0..6);
    assert_eq!(farm.given(node), [0, 1, 2]);
    farm.say(node, &token(1, ACCEPTED));
    assert_eq!(farm.given(node), [3]);
    assert_eq!(farm.tokens(source), [token_of(1, 1, ACCEPTED)]);
    farm.say(node, &Token { credits: 200, ..token_of(1, 0, Verdict::Rejected) }.encode());
    assert_eq!(farm.given(node), [4], "three at a time is the most");
    assert_eq!(verdicts(&mut farm), [(1, ACCEPTED, 1), (0, Verdict::Rejected, 1)]);
}

#[test]
fn a_token_that_waits_for_longest_gets_the_next_event() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let nodes = [0, 1, 2].map(|number| node(&mut farm, number, 2));
    give(&mut farm, source, 0..6);
    assert_eq!(nodes.map(|node| farm.given(node)), [[0, 1], [2, 3], [4, 5]], "in the order in which tokens came");
    for (node, number) in [(nodes[2], 4), (nodes[0], 1), (nodes[2], 5)] {
        farm.say(node, &token(number, ACCEPTED));
    }
    give(&mut farm, source, 6..9);
    assert_eq!(nodes.map(|node| farm.given(node)), [vec![7], vec![], vec![6, 8]]);
}

#[test]
fn round_robin_waits_for_the_node_in_turn() {
    let mut farm = farm(ControllerConfig { policy: Policy::RoundRobin, ..config() });
    let source = source(&mut farm, 0);
    let nodes = [0, 1].map(|number| node(&mut farm, number, 2));
    give(&mut farm, source, 0..6);
    assert_eq!(nodes.map(|node| farm.given(node)), [[0, 2], [1, 3]]);
    farm.say(nodes[1], &token(1, ACCEPTED));
    assert_eq!(nodes.map(|node| farm.given(node)), [[]; 2], "the other's turn, ready or not");
    farm.say(nodes[0], &token(0, ACCEPTED));
    assert_eq!(nodes.map(|node| farm.given(node)), [[4], [5]]);
}

#[test]
fn round_robin_passes_over_a_node_that_leaves() {
    let mut farm = farm(ControllerConfig { policy: Policy::RoundRobin, ..config() });
    let source = source(&mut farm, 0);
    let nodes = [0, 1].map(|number| node(&mut farm, number, 4));
    farm.say(nodes[0], &plain(Kind::Drain, 0));
    give(&mut farm, source, 0..3);
    assert_eq!(nodes.map(|node| farm.given(node)), [vec![], vec![0, 1, 2]]);
}

#[test]
fn least_outstanding_evens_out() {
    let mut farm = farm(ControllerConfig { policy: Policy::LeastOutstanding, ..config() });
    let source = source(&mut farm, 0);
    let first = node(&mut farm, 0, 8);
    give(&mut farm, source, 0..3);
    let second = node(&mut farm, 1, 8);
    give(&mut farm, source, 3..7);
    assert_eq!((farm.given(first), farm.given(second)), (vec![0, 1, 2, 6], vec![3, 4, 5]));
}

#[test]
fn weights_share_events_out() {
    let mut farm = farm(ControllerConfig { policy: Policy::Weighted, ..config() });
    let source = source(&mut farm, 0);
    let light = node(&mut farm, 0, 64);
    let heavy = node_of(&mut farm, 1, &Hello { weight: 3, ..hello(Role::Node, 1, 64) });
    give(&mut farm, source, 0..40);
    assert_eq!((farm.given(light).len(), farm.given(heavy).len()), (10, 30));
}

#[test]
fn partial_events_are_counted_among_those_with_a_verdict() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 10));
    for (number, kind) in (0..).zip([Kind::Event, Kind::Partial, Kind::Partial, Kind::Skip]) {
        farm.say(source, &message(kind, number, if kind == Kind::Skip { b"" } else { b"abc" }));
    }
    for (number, verdict) in [(0, ACCEPTED), (1, ACCEPTED), (2, Verdict::Rejected)] {
        assert_eq!(farm.machine.counters().partial, u64::from(number == 2), "not before the verdict");
        farm.say(node, &token(number, verdict));
    }
    let counts = farm.machine.counts();
    assert_eq!((farm.machine.counters().partial, counts.accepted, counts.rejected, counts.incomplete), (2, 2, 1, 1));
}

#[test]
fn nodes_are_told_of_a_change_of_the_run() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 8));
    give(&mut farm, source, [0]);
    farm.handle(Input::Command(Command::Run(2)));
    farm.say(source, &plain(Kind::Run, 2));
    give(&mut farm, source, [0, 1]);
    let told = farm.take(node);
    let told: Vec<u64> = told
        .iter()
        .filter_map(|message| match message {
            Message::Run(run) => Some(1000 + u64::from(*run)),
            Message::Event { event, .. } => Some(*event),
            _ => None,
        })
        .collect();
    assert_eq!(told, [1001, 0, 1002, 0, 1]);
    farm.say(node, &token_of(2, 0, ACCEPTED).encode());
    assert_eq!(farm.tokens(source), [token_of(2, 0, ACCEPTED)]);
}

#[test]
fn a_token_never_asked_for_ends_the_node_and_others_get_what_it_had() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let wrong = node(&mut farm, 0, 2);
    give(&mut farm, source, 0..2);
    let right = node(&mut farm, 1, 2);
    farm.say(wrong, &token(7, ACCEPTED));
    assert_eq!(farm.closed, [wrong]);
    assert!(matches!(farm.take(wrong)[..], [.., Message::Refused(10)]));
    assert_eq!(why_left(&mut farm, wrong), Some(Error::Unasked { event: 7 }));
    assert_eq!(farm.given(right), [0], "one suspect at a time");
    farm.say(right, &token(0, ACCEPTED));
    assert_eq!(farm.given(right), [1]);
    farm.say(right, &token(1, ACCEPTED));
    assert_eq!(verdicts(&mut farm), [(0, ACCEPTED, 2), (1, ACCEPTED, 2)]);
    let counters = farm.machine.counters();
    assert_eq!((counters.unasked, counters.misbehaved, counters.redispatched), (1, 1, 2));
}

#[test]
fn output_is_taken_of_a_node_that_has_the_event_alone() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let (busy, idle) = (node(&mut farm, 0, 1), node(&mut farm, 1, 0));
    give(&mut farm, source, [0]);
    let claim = |event, length| Token { length, flags: FLAG_OUTPUT, ..token_of(1, event, ACCEPTED) }.encode();
    farm.say(idle, &claim(0, 1000));
    assert_eq!(why_left(&mut farm, idle), Some(Error::Unasked { event: 0 }));
    farm.say(busy, &claim(0, 1000));
    assert!(farm.is_open(busy));
    farm.say(busy, &[7; 1000]);
    assert_eq!(verdicts(&mut farm), [(0, ACCEPTED, 1)]);
}

#[test]
fn where_output_would_take_too_much_memory_the_node_that_has_the_most_goes() {
    const KIB: usize = 1 << 10;
    let large = ControllerConfig { event_max: 16 << 20, output_bytes: 300 << 10, ..config() };
    let mut farm = farm(ControllerConfig { pool_bytes: 1 << 30, ..large });
    let source = source(&mut farm, 0);
    let nodes = [0, 1, 2].map(|number| node(&mut farm, number, 1));
    give(&mut farm, source, 0..3);
    for (event, &node) in (0..).zip(&nodes) {
        farm.say(node, &Token { length: 1 << 20, flags: FLAG_OUTPUT, ..token_of(1, event, ACCEPTED) }.encode());
    }
    // 64 KiB each, then 128 KiB for the first.
    nodes.iter().for_each(|node| farm.say(*node, &[0; 10 * KIB]));
    farm.say(nodes[0], &[0; 60 * KIB]);
    assert!(nodes.iter().all(|node| farm.is_open(*node)));
    farm.say(nodes[1], &[0; 60 * KIB]);
    assert_eq!(farm.closed, [nodes[0]], "the second has as much now, and the first went for it");
    assert_eq!(why_left(&mut farm, nodes[0]), Some(Error::OverData { max: 300 << 10 }));
    farm.say(nodes[2], &[0; 60 * KIB]);
    assert!(farm.is_open(nodes[1]) && farm.is_open(nodes[2]));
}

#[test]
fn only_a_controller_quarantines_and_only_builders_miss_fragments() {
    for verdict in [Verdict::Quarantined, Verdict::Incomplete] {
        let mut farm = farm(config());
        let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 2));
        give(&mut farm, source, [0]);
        farm.say(node, &token(0, verdict));
        assert_eq!(why_left(&mut farm, node), Some(Error::NoVerdict { code: verdict as u8 }));
    }
}

#[test]
fn who_sends_more_than_its_credit_is_sent_away() {
    let mut farm = farm(ControllerConfig { source_credits: 100, ..config() });
    let by_count = source(&mut farm, 0);
    give(&mut farm, by_count, 0..101);
    assert_eq!(why_left(&mut farm, by_count), Some(Error::OverCredit { max: 100 }));
    let by_bytes = source(&mut farm, 1);
    (0..26).for_each(|number| farm.say(by_bytes, &event(1000 + number, &[0; 1000])));
    assert_eq!(why_left(&mut farm, by_bytes), Some(Error::OverCredit { max: 25_000 }));
    assert_eq!(farm.machine.counts().taken_in, 125, "what was within it is kept");
}

#[test]
fn an_event_over_the_bound_is_refused_before_its_bytes_are_kept() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    farm.say(source, &Header::new(Kind::Event, 1001, 0).encode());
    assert_eq!(why_left(&mut farm, source), Some(Error::TooLarge { size: 1001, max: 1000 }));
    let stranger = accepted(0);
    farm.open(stranger);
    farm.say(stranger, &Header::new(Kind::Event, 1000, 0).encode());
    assert_eq!(why_left(&mut farm, stranger), Some(Error::Unexpected { kind: 2 }), "not from one unknown");
    let server = accepted(7);
    farm.open(server);
    farm.say(server, b"HTTP/1.1 400 Bad Request\r\nServer: another\r\n");
    assert_eq!(why_left(&mut farm, server), Some(Error::NotFarm { first: *b"HTTP" }));
    let node = node(&mut farm, 1, 1);
    farm.say(node, &Header::new(Kind::Event, 10, 0).encode());
    assert_eq!(why_left(&mut farm, node), Some(Error::Unexpected { kind: 2 }), "a node gives none");
}

#[test]
fn an_event_that_comes_again_has_one_verdict_and_a_token_for_each() {
    let mut farm = farm(config());
    let first = source(&mut farm, 0);
    give(&mut farm, first, [5]);
    farm.close(first);
    let again = source(&mut farm, 0);
    let other = source(&mut farm, 1);
    give(&mut farm, again, [5]);
    give(&mut farm, other, [5]);
    let node = node(&mut farm, 0, 1);
    assert_eq!(farm.given(node), [5]);
    farm.say(node, &token(5, ACCEPTED));
    let duplicate = Token { flags: FLAG_DUPLICATE, ..token_of(1, 5, ACCEPTED) };
    assert_eq!((farm.tokens(again), farm.tokens(other)), (vec![duplicate], vec![duplicate]));
    give(&mut farm, other, [5]);
    let decided = Token { flags: FLAG_DUPLICATE, ..token_of(1, 5, Verdict::Rejected) };
    assert_eq!(farm.tokens(other), [decided]);
    let counts = farm.machine.counts();
    assert_eq!((counts.taken_in, counts.accepted, counts.duplicates), (1, 1, 3));
}

/// Returns the conflicts: the event, who gave it, and the data.
fn conflicts(rig: &mut Farm) -> Vec<(u64, u32, Vec<u8>)> {
    let told = rig.drain_events().into_iter().filter_map(|event| match event {
        Event::Verdict(last) if last.owner != Owner::Itself => Some((last.event, last.node, last.data.to_vec())),
        _ => None,
    });
    told.collect()
}

#[test]
fn other_data_under_a_number_are_stored_and_told_when_they_are_committed() {
    let mut farm = farm(ControllerConfig { uncommitted_max: Some(10), ..config() });
    let (first, second, node) = (source(&mut farm, 0), source(&mut farm, 1), node(&mut farm, 0, 1));
    give(&mut farm, first, [5]);
    farm.say(second, &event(5, b"in hand"));
    farm.say(node, &token(5, Verdict::Rejected));
    farm.say(second, &event(5, b"decided"));
    give(&mut farm, second, [5]);
    assert_eq!(conflicts(&mut farm), [(5, 1, b"in hand".to_vec()), (5, 1, b"decided".to_vec())]);
    assert_eq!(farm.tokens(second), []);
    assert_eq!(farm.machine.counters().uncommitted_bytes, 14);
    farm.handle(Input::Command(Command::Committed(2)));
    let conflict = Token { flags: FLAG_CONFLICT, ..token_of(1, 5, Verdict::Quarantined) };
    assert_eq!((farm.tokens(first), farm.tokens(second)), (vec![token_of(1, 5, Verdict::Rejected)], vec![conflict]));
    farm.handle(Input::Command(Command::Committed(3)));
    let duplicate = Token { flags: FLAG_DUPLICATE, ..token_of(1, 5, Verdict::Rejected) };
    assert_eq!(farm.tokens(second), [conflict, duplicate]);
    let counts = farm.machine.counts();
    assert_eq!((counts.taken_in, counts.rejected, counts.in_hand()), (1, 1, 0));
    assert_eq!((counts.conflicts, counts.duplicates, counts.unchecked), (2, 1, 0));
    assert_eq!((farm.machine.counters().uncommitted, farm.given(node).len()), (0, 1), "nobody decides on them");
    // The same again, as after a connection that broke, are there once.
    farm.say(second, &event(5, b"decided"));
    assert_eq!((conflicts(&mut farm), farm.tokens(second)), (vec![], vec![conflict]));
    assert_eq!((farm.machine.counts().conflicts, farm.machine.counts().duplicates), (2, 2));
}

#[test]
fn a_counter_that_rolls_over_swallows_nothing_whatever_is_forgotten() {
    let mut ledger = Ledger::default();
    ledger.recover(1, Verdict::Rejected, &[0..1000, 1000..2000]).unwrap();
    let mut farm = Rig::new(Controller::new(config(), NoSupply, ledger));
    let first = source(&mut farm, 0);
    give(&mut farm, first, [(1 << 28) - 2, (1 << 28) - 1, 0, 1]);
    let told: Vec<u64> = conflicts(&mut farm).into_iter().map(|(event, _, _)| event).collect();
    assert_eq!(told, [0, 1], "nobody knows any more what they were, but it has not kept them");
    // One that comes later may have: it gives again what is a little behind, and from the beginning.
    let later = source(&mut farm, 1);
    give(&mut farm, later, [2, 3, 2000, 4]);
    let counts = farm.machine.counts();
    assert_eq!((counts.conflicts, counts.duplicates, counts.unchecked), (2, 3, 3));
}

#[test]
fn what_the_controller_has_forgotten_the_application_compares_before_anybody_is_told() {
    let mut ledger = Ledger::with_memory(0);
    ledger.recover(1, Verdict::Rejected, &[0..1000, 1000..2000]).unwrap();
    let mut farm =
        Rig::new(Controller::new(ControllerConfig { uncommitted_max: Some(10), ..config() }, NoSupply, ledger));
    let (first, second) = (source(&mut farm, 0), source(&mut farm, 1));
    give(&mut farm, first, [5, 6, 7]);
    farm.say(second, &event(5, b"other"));
    farm.say(second, &event(8, b"not compared"));
    let finals: Vec<Final> = farm.drain_events().into_iter().filter_map(verdict).collect();
    assert!(finals.iter().all(|last| last.owner == Owner::Unknown { anew: false }));
    let known = [Content::of(b"abc"), Content::Nothing, Content::Unknown, Content::of(b"abc")];
    let compared: Vec<Likeness> = finals.iter().zip(known).map(|(last, known)| last.compared(known)).collect();
    assert_eq!(compared, [Likeness::Same, Likeness::Other, Likeness::Unknown, Likeness::Other]);
    for likeness in compared {
        farm.handle(Input::Command(Command::Compared(likeness)));
    }
    assert_eq!(farm.tokens(first), [], "nothing is committed");
    let told: Vec<(u64, u32)> = farm.drain_events().iter().filter_map(accused).collect();
    assert_eq!(told, [(6, 0), (5, 1)]);
    farm.handle(Input::Command(Command::Committed(5)));
    let duplicate = |number| Token { flags: FLAG_DUPLICATE, ..token_of(1, number, Verdict::Rejected) };
    let conflict = |number| Token { flags: FLAG_CONFLICT, ..token_of(1, number, Verdict::Quarantined) };
    assert_eq!(farm.tokens(first), [duplicate(5), conflict(6), duplicate(7)]);
    assert_eq!(farm.tokens(second), [conflict(5), duplicate(8)], "one was committed without an outcome");
    let counts = farm.machine.counts();
    assert_eq!((counts.conflicts, counts.duplicates, counts.unchecked, counts.taken_in), (2, 3, 2, 2000));
    // Other data that are in quarantine are there once; and one that begins anew to count has other data in any case.
    farm.say(second, &event(5, b"other"));
    assert_eq!(farm.tokens(second), [conflict(5)]);
    give(&mut farm, second, [(1 << 20) + 9, 9]);
    let anew = farm.drain_events().into_iter().filter_map(verdict).find(|last| last.event == 9).unwrap();
    assert_eq!([Content::Unknown, anew.content].map(|known| anew.compared(known)), [Likeness::Other, Likeness::Same]);
    assert_eq!((farm.machine.counts().conflicts, farm.machine.counts().duplicates), (2, 4));
}

#[test]
fn a_built_event_of_which_only_the_whole_is_known_is_kept_as_it_was_built() {
    let mut ledger = Ledger::default();
    ledger.recover(1, Verdict::Rejected, &[0..500, 500..1000]).unwrap();
    ledger.recover_content(1, 5, Content::of(b"of the whole"));
    let mut farm = Rig::new(Controller::new(config(), NoSupply, ledger));
    let builder = accepted(200);
    farm.open(builder);
    farm.say(builder, &hello(Role::Builder, 0, 0).encode());
    farm.take(builder);
    let whole = [[0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat();
    farm.say(builder, &event(5, &whole));
    assert_eq!(conflicts(&mut farm), [(5, 0, whole)]);
    let [token] = farm.tokens(builder)[..] else { panic!("there is one for it") };
    assert_eq!(token, Token { flags: FLAG_CONFLICT, ..token_of(1, 5, Verdict::Rejected) }, "nobody is named");
}

#[test]
fn a_built_event_that_the_application_has_called_other_data_is_there_once() {
    let mut ledger = Ledger::with_memory(0);
    ledger.recover(1, Verdict::Rejected, &[0..500, 500..1000]).unwrap();
    let config = ControllerConfig { uncommitted_max: Some(10), ..config() };
    let mut farm = Rig::new(Controller::new(config, NoSupply, ledger));
    let builder = accepted(200);
    farm.open(builder);
    farm.say(builder, &hello(Role::Builder, 0, 0).encode());
    farm.take(builder);
    let whole = b"\0\0\0\0\x01\0\0\0a\x01\0\0\0\x01\0\0\0b";
    for times in 1..4 {
        farm.say(builder, &event(5, whole));
        if times == 1 {
            farm.handle(Input::Command(Command::Compared(Likeness::Other)));
        }
        assert_eq!(conflicts(&mut farm).len(), usize::from(times == 1));
        farm.handle(Input::Command(Command::Committed(1)));
        let [token] = farm.tokens(builder)[..] else { panic!("there is one for each") };
        assert!(token.flags == FLAG_CONFLICT && [0, 1].into_iter().all(|source| token.is_of_source(source)));
        let counts = farm.machine.counts();
        assert_eq!((counts.conflicts, counts.duplicates), (1, times - 1));
    }
}

fn verdict(event: Event) -> Option<Final> {
    if let Event::Verdict(last) = event { Some(last) } else { None }
}

/// Returns who has given other data, and under which number.
fn accused(event: &Event) -> Option<(u64, u32)> {
    if let Event::Conflict { event, number, .. } = *event { Some((event, number)) } else { None }
}

#[test]
fn a_builder_may_have_fewer_fragments_than_the_one_before_but_no_others() {
    let mut farm = farm(config());
    let fragment =
        |source: u32, data: &[u8]| [&source.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat();
    let whole = [fragment(0, b"a"), fragment(1, b"b")].concat();
    let builder = |farm: &mut Farm, number: u32| {
        let peer = accepted(200 + number);
        farm.open(peer);
        farm.say(peer, &Hello { instance: u64::from(number), ..hello(Role::Builder, 0, 0) }.encode());
        farm.take(peer);
        peer
    };
    let first = builder(&mut farm, 1);
    farm.say(first, &event(5, &whole));
    farm.close(first);
    let second = builder(&mut farm, 2);
    for (kind, payload) in [
        (Kind::Event, whole.clone()),
        (Kind::Partial, fragment(1, b"b")),
        (Kind::Skip, vec![]),
        (Kind::Partial, fragment(1, b"x")),
        (Kind::Event, [fragment(0, b"y"), fragment(1, b"b")].concat()),
    ] {
        farm.say(second, &message(kind, 5, &payload));
    }
    // Each is in quarantine by itself, and the builder learns whose it is.
    assert_eq!(conflicts(&mut farm), [(5, 1, b"x".to_vec()), (5, 0, b"y".to_vec())]);
    let told: Vec<Token> = farm.tokens(second).into_iter().filter(|token| token.flags == FLAG_CONFLICT).collect();
    assert_eq!(
        told.iter().map(|token| [0, 1].map(|source| token.is_of_source(source))).collect::<Vec<_>>(),
        [[false, true], [true, false]]
    );
    // Many that are empty are one piece of data.
    let empty: Vec<u8> = (0..100).flat_map(|source| fragment(source, b"")).collect();
    farm.say(second, &event(5, &empty));
    assert_eq!(conflicts(&mut farm), [(5, 0, empty)]);
    // A fragment of one source alone, whose number another of its fragments has.
    farm.take(second);
    farm.say(second, &plain(Kind::Run, APART | 1));
    farm.say(second, &event(5, &fragment(1, b"apart")));
    assert_eq!(conflicts(&mut farm), [(5, 1, b"apart".to_vec())]);
    let flags = FLAG_CONFLICT | FLAG_DUPLICATE;
    let not_kept = Token { flags, ..token_of(1, 5, Verdict::Rejected) };
    assert_eq!(farm.tokens(second), [not_kept], "there is no store");
    farm.say(second, &plain(Kind::Run, 1));
    farm.say(second, &event(6, &whole));
    let counts = farm.machine.counts();
    assert_eq!((counts.conflicts, counts.duplicates, counts.unchecked, counts.taken_in), (4, 3, 0, 2));
}

#[test]
fn what_is_for_the_quarantine_comes_of_builders_in_open_runs() {
    let apart = plain(Kind::Run, APART | 1);
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    farm.say(source, &apart);
    assert_eq!(why_left(&mut farm, source), Some(Error::Unexpected { kind: Kind::Run.code() }));
    for (run, payload, why) in [
        (APART | 2, &[0; 8][..], Error::NoSuchRun { run: 2 }),
        (APART | 1, &[0; 7], Error::Truncated),
        ((2 * APART) | 1, &[0; 8], Error::NoSuchRun { run: u32::MAX }),
    ] {
        let peer = accepted(300);
        farm.open(peer);
        farm.say(peer, &hello(Role::Builder, 0, 0).encode());
        farm.say(peer, &plain(Kind::Run, run));
        farm.say(peer, &event(5, payload));
        assert_eq!(why_left(&mut farm, peer), Some(why));
    }
    assert_eq!(farm.machine.counts().conflicts, 0);
}

/// Lets a source flap while no node is there: no connection leaves a trace.
#[test]
fn claims_of_connections_that_are_gone_are_forgotten() {
    let mut farm = farm(config());
    for _ in 0..20 {
        let source = source(&mut farm, 0);
        give(&mut farm, source, 0..10);
        farm.close(source);
    }
    assert!(farm.machine.accounts.claims.values().all(|claims| claims.len() <= 1));
}

#[test]
fn new_events_over_new_connections_do_not_fill_memory() {
    let mut farm = farm(config());
    let mut number = 0;
    for _ in 0..20 {
        let source = accepted(200);
        farm.open(source);
        farm.say(source, &hello(Role::Source, 0, 0).encode());
        for _ in 0..25 {
            farm.say(source, &event(number, &[0; 1000]));
            number += 1;
        }
        if farm.is_open(source) {
            farm.close(source);
        }
    }
    let held: usize = farm.machine.waiting.iter().map(|held| held.payload.len()).sum();
    assert!(held <= 100_000, "{held}");
    let node = node(&mut farm, 0, 64);
    while let [first, ..] = farm.given(node)[..] {
        let count = farm.machine.counts().in_hand().min(64);
        (first..first + count).for_each(|number| farm.say(node, &token(number, ACCEPTED)));
    }
    assert_eq!(farm.machine.accounts.orphaned, 0);
    source(&mut farm, 0);
}

#[test]
fn an_event_that_nodes_fail_over_goes_to_others_and_is_quarantined_after_so_many() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let nodes = [0, 1].map(|number| node(&mut farm, number, 1));
    give(&mut farm, source, [0]);
    farm.say(nodes[0], &token(0, Verdict::Failed));
    let second = nodes.into_iter().find(|node| farm.given(*node).len() == 1 && *node != nodes[0]);
    let at = second.unwrap_or(nodes[0]);
    farm.close(at);
    let last = nodes[usize::from(at == nodes[0])];
    assert_eq!(farm.given(last), [0]);
    farm.say(last, &token(0, Verdict::Failed));
    assert_eq!(verdicts(&mut farm), [(0, Verdict::Quarantined, 3)]);
    assert_eq!(farm.tokens(source), [token_of(1, 0, Verdict::Quarantined)]);
    give(&mut farm, source, [1]);
    assert_eq!(farm.given(last), [1], "a node that failed over one event gets the next");
}

/// Lets nodes die over a poison: they are blamed for it alone, and the events beside it are decided.
#[test]
fn a_poison_takes_no_other_event_with_it() {
    let mut farm = farm(ControllerConfig { deaths_max: 3, ..config() });
    let source = source(&mut farm, 0);
    let mut nodes: Vec<Peer> = (0..4).map(|number| node(&mut farm, number, 4)).collect();
    give(&mut farm, source, 0..16);
    let mut next = 4;
    for _ in 0..40 {
        for peer in &mut nodes {
            let events = farm.given(*peer);
            if events.contains(&2) {
                farm.close(*peer);
                *peer = node(&mut farm, next, 4);
                next += 1;
            } else {
                events.into_iter().for_each(|number| farm.say(*peer, &token(number, ACCEPTED)));
            }
        }
    }
    let counts = farm.machine.counts();
    assert_eq!((counts.accepted, counts.quarantined, counts.in_hand()), (15, 1, 0));
    assert_eq!(next, 7, "three nodes died");
    assert!(verdicts(&mut farm).contains(&(2, Verdict::Quarantined, 3)));
}

#[test]
fn a_suspect_waits_for_a_node_that_has_nothing_else_and_has_it_alone() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let lost = node(&mut farm, 0, 1);
    give(&mut farm, source, [0]);
    let busy = node(&mut farm, 1, 2);
    give(&mut farm, source, [1]);
    farm.close(lost);
    give(&mut farm, source, [2]);
    assert_eq!(farm.given(busy), [1], "it is kept for the suspect");
    farm.say(busy, &token(1, ACCEPTED));
    assert_eq!(farm.given(busy), [0], "and gets that alone");
    farm.say(busy, &token(0, ACCEPTED));
    assert_eq!(farm.given(busy), [2]);
}

#[test]
fn a_suspect_is_not_held_up_by_a_node_that_does_not_read() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let lost = node(&mut farm, 0, 1);
    give(&mut farm, source, [0]);
    let slow = node(&mut farm, 1, 2);
    farm.handle(Input::Blocked(slow));
    farm.close(lost);
    assert_eq!(farm.given(slow), []);
    farm.handle(Input::Drained(slow));
    assert_eq!(farm.given(slow), [0]);
}

#[test]
fn a_suspect_does_not_wait_at_a_node_without_credits() {
    let mut farm = farm(config());
    let source = source(&mut farm, 0);
    let lost = node(&mut farm, 0, 1);
    give(&mut farm, source, [0]);
    let mean = node(&mut farm, 1, 0);
    farm.close(lost);
    let last = node(&mut farm, 2, 1);
    assert_eq!((farm.given(mean), farm.given(last)), (vec![], vec![0]));
}

#[test]
fn a_node_that_is_blocked_gets_its_events_later() {
    for policy in Policy::ALL {
        let mut farm = farm(ControllerConfig { policy, ..config() });
        let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 4));
        farm.handle(Input::Blocked(node));
        give(&mut farm, source, 0..3);
        assert_eq!(farm.given(node), []);
        farm.handle(Input::Drained(node));
        assert_eq!(farm.given(node), [0, 1, 2], "{policy:?}");
    }
}

#[test]
fn no_event_is_given_while_too_many_bytes_wait_for_their_commit() {
    let bounds = ControllerConfig { uncommitted_max: Some(100), uncommitted_bytes_max: 1500, ..config() };
    let mut farm = farm(bounds);
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 2));
    give(&mut farm, source, 0..9);
    let output = |number| {
        let token = Token { flags: FLAG_OUTPUT, length: 800, ..token_of(1, number, ACCEPTED) };
        [&token.encode()[..], &[7; 800]].concat()
    };
    assert_eq!(farm.given(node), [0, 1]);
    farm.say(node, &token(0, Verdict::Rejected));
    farm.say(node, &output(1));
    assert_eq!((farm.given(node), farm.machine.counters().uncommitted_bytes), (vec![2, 3], 800));
    farm.say(node, &output(2));
    farm.say(node, &output(3));
    assert_eq!((farm.given(node), farm.machine.counters().uncommitted_bytes), (vec![], 2400));
    farm.handle(Input::Command(Command::Committed(2)));
    assert_eq!((farm.given(node), farm.machine.counters().uncommitted_bytes), (vec![], 1600), "1 is committed");
    farm.handle(Input::Command(Command::Committed(3)));
    assert_eq!((farm.given(node), farm.machine.counters().uncommitted_bytes), (vec![4, 5], 800));
}

#[test]
fn sources_hear_of_a_verdict_when_it_is_committed() {
    let mut farm = farm(ControllerConfig { uncommitted_max: Some(2), ..config() });
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 4));
    give(&mut farm, source, 0..6);
    assert_eq!(farm.given(node), [0, 1, 2, 3]);
    (0..2).for_each(|number| farm.say(node, &token(number, ACCEPTED)));
    assert_eq!((farm.tokens(source).len(), farm.given(node)), (0, vec![4]), "two are told: no more is given");
    give(&mut farm, source, [0]);
    assert_eq!(farm.tokens(source), [], "a duplicate's verdict is not committed either");
    farm.handle(Input::Command(Command::Committed(1)));
    let told: Vec<u64> = farm.tokens(source).iter().map(|token| token.event).collect();
    assert_eq!((told, farm.given(node)), (vec![0], vec![5]));
    farm.handle(Input::Command(Command::Committed(u64::MAX)));
    let told: Vec<u64> = farm.tokens(source).iter().map(|token| token.event).collect();
    assert_eq!(told, [1, 0]);
    assert_eq!(farm.machine.counters().uncommitted, 0);
    farm.handle(Input::Command(Command::Drain));
    farm.say(source, &plain(Kind::Drain, 0));
    (2..6).for_each(|number| farm.say(node, &token(number, ACCEPTED)));
    assert!(!is_drained_told(&mut farm));
    farm.handle(Input::Command(Command::Committed(6)));
    assert!(is_drained_told(&mut farm));
}

#[test]
fn events_that_were_given_up_are_incomplete_and_partial_ones_are_flagged() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 4));
    farm.say(source, &plain(Kind::Skip, 3));
    assert_eq!(farm.tokens(source), [token_of(1, 3, Verdict::Incomplete)]);
    farm.say(source, &message(Kind::Partial, 4, b"half"));
    assert!(matches!(farm.take(node)[..], [.., Message::Event { kind: Kind::Partial, event: 4, .. }]));
    farm.say(node, &token(4, ACCEPTED));
    let finals = farm.drain_events();
    let partial: Vec<_> = finals
        .iter()
        .filter_map(|event| match event {
            Event::Verdict(last) => Some((last.event, last.partial, last.attempts, last.data.len())),
            _ => None,
        })
        .collect();
    assert_eq!(partial, [(3, true, 0, 0), (4, true, 1, 4)]);
}

#[test]
fn a_node_that_is_opened_is_opened_again_once_however_it_went() {
    let config = ControllerConfig { nodes: vec![Address::Node(1)], ..config() };
    let mut farm = farm(config);
    assert_eq!(farm.opens, [Peer(0)]);
    farm.opens.clear();
    farm.handle(Input::Closed(Peer(0), Closed::Refused));
    farm.wait(100 * MILLI, &[]);
    farm.open(Peer(0));
    // Both before it gets to say anything.
    farm.machine.handle(farm.now, Input::Received(Peer(0), b"HTTP/1.1 200 OK"));
    farm.close(Peer(0));
    assert_eq!(farm.closed, [], "it is gone already, and its number may be another's");
    farm.wait(1000 * MILLI, &[]);
    assert_eq!(farm.opens, [Peer(0)]);
}

#[test]
fn what_is_made_here_ends_with_drained() {
    let generator = |count, done| {
        let size = emulation::Spread::Fixed(10);
        let (first, step, pool, seed) = (0, 1, 1, 1);
        let config = emulation::GeneratorConfig {
            first,
            step,
            count: Some(count),
            size,
            rate: None,
            poisson: false,
            pool,
            numbered: true,
            seed,
        };
        emulation::Generator::new(config, done)
    };
    let mut done = crate::Ranges::default();
    done.insert_range(0..2);
    let mut rig = Rig::new(Controller::new(config(), generator(4, done), Ledger::default()));
    let node = node(&mut rig, 0, 1);
    for number in [2, 3] {
        assert_eq!(rig.given(node), [number]);
        rig.say(node, &token(number, ACCEPTED));
    }
    assert!(matches!(rig.drain_events()[..], [.., Event::Drained]));
    let _: &dyn supply::Supply = &rig.machine.feed.supply;
}

#[test]
fn tokens_that_are_not_read_are_bounded() {
    let mut farm = farm(config());
    let (source, node) = (source(&mut farm, 0), node(&mut farm, 0, 1));
    give(&mut farm, source, [0]);
    farm.say(node, &token(0, ACCEPTED));
    farm.handle(Input::Blocked(source));
    let again = event(0, b"").repeat(1000);
    for _ in 0..100 {
        farm.say(source, &again);
    }
    assert_eq!(why_left(&mut farm, source), Some(Error::OverCredit { max: OWED_MAX as u64 }));
}

#[test]
fn a_node_without_tokens_is_refused_unless_it_is_to_be_measured() {
    let mute = Hello { flags: FLAG_NO_TOKENS, ..hello(Role::Node, 3, 1) };
    let mut strict = farm(config());
    let node = node_of(&mut strict, 0, &mute);
    assert_eq!(why_left(&mut strict, node), Some(Error::NoTokens));

    let mut farm = farm(ControllerConfig { without_tokens: true, ..config() });
    let (source, node) = (source(&mut farm, 0), node_of(&mut farm, 0, &mute));
    give(&mut farm, source, 0..5);
    assert_eq!(farm.given(node), [0, 1, 2, 3, 4], "nothing but the connection bounds it");
    assert_eq!(farm.tokens(source).len(), 5, "what was given counts as rejected");
    farm.handle(Input::Blocked(node));
    give(&mut farm, source, 5..7);
    assert!(farm.given(node).is_empty());
    farm.handle(Input::Drained(node));
    assert_eq!(farm.given(node), [5, 6], "its one credit is good again at once");
    let counters = FarCounters { events: 6, ..FarCounters::default() }.encode();
    let head = Header::new(Kind::Counters, counters.len() as u32, 0).encode();
    farm.say(node, &[&head[..], &counters[..]].concat());
    let [share] = farm.machine.shares()[..] else { panic!("one node") };
    assert_eq!((share.given, share.answered), (7, 6));
    farm.close(node);
    assert_eq!(farm.machine.counts().rejected, 7, "what it had is not given again");
}
