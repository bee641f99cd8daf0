use super::*;
use crate::emulation::{Accept, Spread};
use crate::inbound::Message;
use crate::rig::{Rig, accepted, event, hello, message, plain};
use alloc::vec;

const MILLI: Duration = Duration::from_millis(1);

fn config(decide: Decide) -> NodeConfig {
    NodeConfig {
        controllers: vec![Address::Node(1)],
        number: 5,
        credits: 3,
        weight: 1,
        event_max: 1000,
        decide,
        silence: 600 * MILLI,
        instance: 1,
    }
}

fn emulated(time: Spread, output: &'static [u8]) -> Decide {
    let output = Bytes::from_static(output);
    Decide::Emulated(Decisions { accept: Accept::Every(2), output, time, seed: 1 })
}

fn node(decide: Decide) -> Rig<Node> {
    let mut rig = Rig::new(Node::new(config(decide)));
    assert_eq!(rig.opens, [Peer(0)]);
    greet(&mut rig, Peer(0));
    rig
}

fn greet(rig: &mut Rig<Node>, peer: Peer) {
    rig.open(peer);
    assert!(matches!(rig.take(peer)[..], [Message::Hello(Hello { role: Role::Node, credits: 3, .. })]));
    rig.say(peer, &hello(Role::Controller, 0, 0).encode());
}

fn left(rig: &mut Rig<Node>) -> Option<Error> {
    rig.drain_events().into_iter().find_map(|event| match event {
        Event::Left(_, error) => Some(error),
        _ => None,
    })
}

fn jobs(rig: &mut Rig<Node>) -> Vec<Job> {
    let events = rig.drain_events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Work { job, .. } => Some(job),
            _ => None,
        })
        .collect()
}

fn decide(rig: &mut Rig<Node>, job: Job, verdict: Verdict, output: &'static [u8]) {
    let began = rig.now;
    let output = Bytes::from_static(output);
    rig.handle(Input::Command(Command::Decided { job, verdict, output, began }));
}

#[test]
fn an_emulator_decides_one_event_after_the_other() {
    let mut rig = node(emulated(Spread::Fixed(10_000_000), b"out"));
    rig.say(Peer(0), &[plain(Kind::Run, 7), event(2, b"a"), event(3, b"b")].concat());
    rig.wait(9 * MILLI, &[]);
    assert_eq!(rig.tokens(Peer(0)), []);
    rig.wait(2 * MILLI, &[]);
    let [token] = rig.tokens(Peer(0))[..] else { panic!("one is decided") };
    assert_eq!((token.event, token.run, token.verdict, token.length), (2, 7, Verdict::Accepted, 3));
    rig.wait(10 * MILLI, &[]);
    let [token] = rig.tokens(Peer(0))[..] else { panic!("the other too") };
    assert_eq!((token.event, token.verdict, token.waited_us, token.decided_us), (3, Verdict::Rejected, 10_000, 10_000));
}

/// Times of nothing at all come between others.
#[test]
fn decisions_that_take_no_time_do_not_stop_it() {
    let mut rig = node(emulated(Spread::Uniform(0, 1), b""));
    for number in 0..300 {
        rig.say(Peer(0), &event(number, b"a"));
        rig.wait(Duration::from_nanos(2), &[]);
        assert_eq!(rig.tokens(Peer(0)).len(), 1);
    }
}

#[test]
fn more_events_than_credits_end_the_connection_and_it_is_made_again() {
    let mut rig = node(Decide::Application);
    rig.say(Peer(0), &[event(0, b""), event(1, b""), event(2, b""), event(3, b"")].concat());
    assert_eq!(left(&mut rig), Some(Error::OverCredit { max: 3 }));
    assert_eq!((&rig.closed[..], &rig.opens[..]), (&[Peer(0)][..], &[][..]));
    rig.wait(100 * MILLI, &[]);
    greet(&mut rig, Peer(0));
    rig.say(Peer(0), &event(0, b""));
    assert_eq!(jobs(&mut rig).len(), 1);
}

/// Uses the number of an earlier connection for another one.
#[test]
fn an_answer_to_what_an_earlier_connection_gave_is_not_sent() {
    let mut rig = node(Decide::Application);
    rig.say(Peer(0), &event(0, b""));
    let old = jobs(&mut rig)[0];
    rig.close(Peer(0));
    rig.wait(100 * MILLI, &[]);
    greet(&mut rig, Peer(0));
    rig.say(Peer(0), &event(0, b""));
    let new = jobs(&mut rig)[0];
    decide(&mut rig, old, Verdict::Accepted, b"");
    assert_eq!(rig.tokens(Peer(0)), []);
    decide(&mut rig, new, Verdict::Failed, b"");
    assert_eq!(rig.tokens(Peer(0)).len(), 1);
}

#[test]
fn it_leaves_when_what_it_has_is_answered_and_nothing_is_on_its_way() {
    let mut rig = node(Decide::Application);
    rig.say(Peer(0), &event(0, b""));
    rig.handle(Input::Command(Command::Drain));
    assert!(matches!(rig.take(Peer(0))[..], [Message::Drain]));
    rig.say(Peer(0), &event(1, b""));
    for job in jobs(&mut rig) {
        decide(&mut rig, job, Verdict::Accepted, b"data");
    }
    assert!(rig.is_open(Peer(0)), "more may be on its way");
    rig.say(Peer(0), &plain(Kind::Drain, 0));
    assert!(matches!(rig.drain_events()[..], [Event::Drained]));
    assert_eq!((rig.tokens(Peer(0)).len(), &rig.closed[..]), (2, &[Peer(0)][..]));
    rig.wait(5000 * MILLI, &[]);
    assert_eq!(rig.opens, []);
}

#[test]
fn with_nobody_there_it_is_drained_at_once() {
    let mut rig = Rig::new(Node::new(config(Decide::Application)));
    rig.handle(Input::Closed(Peer(0), Closed::Refused));
    rig.opens.clear();
    rig.handle(Input::Command(Command::Drain));
    assert!(matches!(rig.drain_events()[..], [Event::Left(..), Event::Drained]));
    rig.wait(1000 * MILLI, &[]);
    assert_eq!(rig.opens, []);
    rig.open(accepted(0));
    assert_eq!(rig.closed, [accepted(0)]);
}

#[test]
fn a_controller_that_does_not_greet_or_falls_silent_is_left() {
    let mut rig = Rig::new(Node::new(config(Decide::Application)));
    rig.open(Peer(0));
    rig.wait(2200 * MILLI, &[Peer(0)]);
    assert_eq!(left(&mut rig), Some(Error::NoGreeting));
    greet(&mut rig, Peer(0));
    rig.wait(500 * MILLI, &[]);
    assert_eq!(left(&mut rig), None);
    rig.wait(200 * MILLI, &[]);
    assert_eq!(left(&mut rig), Some(Error::Silent));
}

/// Puts an event before the controller's question, which stands behind it.
#[test]
fn it_tells_that_it_is_there_while_a_long_event_is_on_its_way() {
    let mut rig = node(Decide::Application);
    rig.say(Peer(0), &Header::new(Kind::Event, 1000, 0).encode());
    for _ in 0..20 {
        rig.say(Peer(0), &[0; 10]);
        rig.wait(50 * MILLI, &[]);
    }
    let pings = rig.take(Peer(0)).iter().filter(|message| matches!(message, Message::Ping(_))).count();
    assert!(pings >= 8, "{pings}");
}

#[test]
fn tokens_that_are_not_read_are_held_back_and_bounded() {
    let mut rig = node(emulated(Spread::Fixed(0), b"out"));
    rig.handle(Input::Blocked(Peer(0)));
    rig.say(Peer(0), &event(0, b"x"));
    assert_eq!(rig.tokens(Peer(0)), []);
    rig.handle(Input::Drained(Peer(0)));
    assert_eq!(rig.tokens(Peer(0)).len(), 1);
    rig.handle(Input::Blocked(Peer(0)));
    let many = event(0, b"x").repeat(1000);
    (0..5).for_each(|_| rig.say(Peer(0), &many));
    assert_eq!(left(&mut rig), Some(Error::OverCredit { max: 3 }));
    let tokens = rig.tokens(Peer(0));
    assert!(tokens.len() > 2000 && tokens.iter().all(|token| token.length == 3), "what is owed is whole to the end");
}

#[test]
fn a_connection_that_ends_twice_is_made_again_once() {
    let mut rig = node(Decide::Application);
    rig.machine.handle(rig.now, Input::Received(Peer(0), b"HTTP/1.1 200 OK"));
    rig.close(Peer(0));
    assert_eq!(rig.closed, []);
    rig.wait(1000 * MILLI, &[]);
    assert_eq!(rig.opens, [Peer(0)]);
}

#[test]
fn what_is_no_event_is_none() {
    for wrong in
        [message(Kind::Skip, 0, b""), plain(Kind::Counters, 0), hello(Role::Controller, 0, 0).encode().to_vec()]
    {
        let mut rig = node(Decide::Application);
        rig.say(Peer(0), &wrong);
        assert!(matches!(left(&mut rig), Some(Error::Unexpected { .. })));
    }
}

#[test]
fn one_that_decides_nothing_sends_no_tokens_and_reports_what_came() {
    let mut rig = Rig::new(Node::new(config(Decide::Nobody)));
    rig.open(Peer(0));
    assert!(matches!(rig.take(Peer(0))[..], [Message::Hello(Hello { flags: FLAG_NO_TOKENS, .. })]));
    rig.say(Peer(0), &hello(Role::Controller, 0, 0).encode());
    for number in 0..10 {
        rig.say(Peer(0), &event(number, b"abcd"));
    }
    assert!(rig.take(Peer(0)).is_empty() && left(&mut rig).is_none(), "more than its credits, and none is answered");
    rig.handle(Input::Command(Command::Report { peer: Peer(0), value: 1, process: FarCounters::default() }));
    let [Message::Counters(body)] = &rig.take(Peer(0))[..] else { panic!("no counters") };
    let FarCounters { events, bytes, tokens, .. } = FarCounters::decode(body).unwrap();
    assert_eq!((events, bytes, tokens), (10, 40, 0));
}
