use super::*;
use crate::emulation::{Generator, GeneratorConfig, Spread};
use crate::inbound::Message;
use crate::rig::{Rig, hello, plain, token, token_of};
use crate::supply::NoSupply;
use crate::wire::{FLAG_ENDS, Token};
use alloc::vec::Vec;

const MILLI: Duration = Duration::from_millis(1);
const PEER: Peer = Peer(0);

fn source() -> Rig<Source<NoSupply>> {
    let rig = Rig::new(Source::new(SourceConfig::new(Address::Node(1), 3, 1), NoSupply));
    assert_eq!(rig.opens, [PEER]);
    rig
}

fn greet<S: Supply>(rig: &mut Rig<Source<S>>, credits: u32, window: u64) {
    rig.open(PEER);
    assert!(matches!(rig.take(PEER)[..], [Message::Hello(Hello { role: Role::Source, number: 3, .. })]));
    rig.say(PEER, &Hello { window, event_max: 100, ..hello(Role::Controller, 0, credits) }.encode());
}

fn give(rig: &mut Rig<Source<NoSupply>>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        rig.handle(Input::Command(Command::Event { number, payload: Bytes::from_static(&[7; 10]) }));
    }
}

fn answered(rig: &mut Rig<Source<NoSupply>>) -> Vec<(u64, bool)> {
    let events = rig.drain_events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Answered { event, duplicate, .. } => Some((event, duplicate)),
            _ => None,
        })
        .collect()
}

fn left(rig: &mut Rig<Source<NoSupply>>) -> Option<Error> {
    rig.drain_events().into_iter().find_map(|event| match event {
        Event::Left(error) => Some(error),
        _ => None,
    })
}

#[test]
fn keeps_within_credits_and_window() {
    let mut rig = source();
    give(&mut rig, 0..9);
    greet(&mut rig, 3, 0);
    assert_eq!(rig.given(PEER), [0, 1, 2]);
    rig.say(PEER, &token(1, Verdict::Accepted));
    assert_eq!((rig.given(PEER), answered(&mut rig)), ([3].to_vec(), [(1, false)].to_vec()));
    rig.close(PEER);
    rig.wait(50 * MILLI, &[]);
    greet(&mut rig, 100, 25);
    assert_eq!(rig.given(PEER), [0, 2], "what has no token is sent again, 25 bytes at most");
}

#[test]
fn whatever_order_tokens_come_in_nothing_is_left_behind() {
    let mut rig = source();
    give(&mut rig, 0..1000);
    greet(&mut rig, 1000, 0);
    for number in (1..1000).rev() {
        rig.say(PEER, &token(number, Verdict::Accepted));
    }
    assert_eq!(rig.machine.kept(), 1);
    give(&mut rig, 1000..1100);
    for number in 1000..1100 {
        rig.say(PEER, &token(number, Verdict::Rejected));
    }
    assert_eq!((rig.machine.kept(), rig.machine.progress()), (1, (1100, 1099)), "only what has no token is kept");
}

#[test]
fn tokens_never_asked_for_end_the_connection() {
    let mut rig = source();
    give(&mut rig, 0..2);
    greet(&mut rig, 1, 0);
    for wrong in [token(1, Verdict::Accepted), token_of(2, 0, Verdict::Accepted).encode().to_vec()] {
        rig.say(PEER, &wrong);
        assert!(matches!(left(&mut rig), Some(Error::Unasked { .. })));
        rig.wait(1000 * MILLI, &[]);
        greet(&mut rig, 1, 0);
    }
    rig.say(PEER, &token(0, Verdict::Accepted));
    rig.say(PEER, &token(0, Verdict::Accepted));
    assert_eq!(rig.closed.len(), 3, "and one that comes twice");
}

#[test]
fn an_event_that_is_too_large_is_told_and_the_next_goes_on() {
    let mut rig = source();
    rig.handle(Input::Command(Command::Event { number: 0, payload: Bytes::from_static(&[0; 101]) }));
    give(&mut rig, [1]);
    greet(&mut rig, 5, 0);
    assert_eq!(rig.given(PEER), [1]);
    assert!(rig.drain_events().contains(&Event::TooLarge { event: 0, size: 101, max: 100 }));
}

/// Gives an event that never fits, because the far end has less room than its largest event: it is not waited for.
#[test]
fn an_event_over_the_window_does_not_hold_up_the_others() {
    let mut rig = source();
    rig.handle(Input::Command(Command::Event { number: 0, payload: Bytes::from_static(&[0; 60]) }));
    give(&mut rig, [1]);
    greet(&mut rig, 5, 50);
    assert_eq!(rig.given(PEER), [1]);
}

#[test]
fn a_far_end_that_drains_gets_nothing_new_and_is_told_so() {
    let mut rig = source();
    greet(&mut rig, 10, 0);
    give(&mut rig, [0]);
    rig.take(PEER);
    rig.say(PEER, &plain(Kind::Drain, 0));
    assert!(matches!(rig.take(PEER)[..], [Message::Drain]));
    give(&mut rig, [1]);
    rig.say(PEER, &token(0, Verdict::Accepted));
    assert_eq!((rig.given(PEER), rig.machine.kept()), (Vec::new(), 1));
    rig.close(PEER);
    rig.wait(50 * MILLI, &[]);
    greet(&mut rig, 10, 0);
    assert_eq!(rig.given(PEER), [1], "who comes next gets it");
}

#[test]
fn reaches_the_far_end_again_with_patience() {
    let mut rig = source();
    for span in [50, 100, 200, 400, 800, 800] {
        rig.handle(Input::Closed(PEER, hodo_machine::Closed::Refused));
        rig.opens.clear();
        rig.wait((span * 3 / 4 - 1) * MILLI, &[]);
        assert_eq!(rig.opens, []);
        rig.wait((span / 4 + 2) * MILLI, &[]);
        assert_eq!(rig.opens, [PEER]);
    }
    rig.open(PEER);
    rig.wait(2100 * MILLI, &[PEER]);
    assert_eq!(left(&mut rig).map(|_| rig.closed.len()), Some(1), "no greeting");
}

#[test]
fn once_it_has_left_it_stays_away() {
    let mut rig = source();
    rig.handle(Input::Command(Command::Leave));
    rig.open(PEER);
    assert_eq!(rig.closed, [PEER]);
    let mut rig = source();
    greet(&mut rig, 1, 0);
    rig.machine.handle(rig.now, Input::Command(Command::Leave));
    rig.close(PEER);
    rig.wait(5000 * MILLI, &[]);
    assert_eq!(rig.opens, []);
}

#[test]
fn duplicates_are_told_as_such() {
    let mut rig = source();
    give(&mut rig, [0]);
    greet(&mut rig, 1, 0);
    rig.say(PEER, &Token { flags: FLAG_DUPLICATE, ..token_of(1, 0, Verdict::Rejected) }.encode());
    assert_eq!(answered(&mut rig), [(0, true)]);
}

#[test]
fn an_event_whose_number_is_on_its_way_waits_for_that_one_and_conflicts_are_told_as_such() {
    let mut rig = source();
    greet(&mut rig, 100, 0);
    give(&mut rig, [0, 1, 2, 1, 3]);
    assert_eq!(rig.given(PEER), [0, 1, 2], "which of the two a token is for could not be told");
    rig.say(PEER, &token(0, Verdict::Rejected));
    assert_eq!(rig.given(PEER), []);
    rig.say(PEER, &token(1, Verdict::Rejected));
    assert_eq!(rig.given(PEER), [1, 3]);
    rig.drain_events();
    rig.say(PEER, &Token { flags: FLAG_CONFLICT, ..token_of(1, 1, Verdict::Quarantined) }.encode());
    let (run, event, verdict) = (1, 1, Verdict::Quarantined);
    assert_eq!(
        rig.drain_events(),
        [Event::Answered { run, event, verdict, duplicate: false, conflict: true, late: false }]
    );
}

#[test]
fn ends_when_the_last_event_has_its_verdict() {
    struct Two(u64);
    impl Supply for Two {
        fn next(&mut self, _: Instant) -> Next {
            self.0 += 1;
            let payload = Bytes::new();
            if self.0 > 2 {
                Next::Ended
            } else {
                Next::Event(crate::EventData { number: self.0, payload, partial: true })
            }
        }
    }
    let mut rig = Rig::new(Source::new(SourceConfig::new(Address::Node(1), 3, 1), Two(0)));
    greet(&mut rig, 10, 0);
    assert_eq!(rig.given(PEER), [1, 2]);
    rig.say(PEER, &token(2, Verdict::Accepted));
    assert!(!rig.drain_events().contains(&Event::Ended));
    rig.say(PEER, &token(1, Verdict::Accepted));
    assert!(rig.drain_events().contains(&Event::Ended));
}

#[test]
fn a_supply_that_has_nothing_ends_at_once() {
    struct Nothing;
    impl Supply for Nothing {
        fn next(&mut self, _: Instant) -> Next {
            Next::Ended
        }
    }
    let mut rig = Rig::new(Source::new(SourceConfig::new(Address::Node(1), 3, 1), Nothing));
    greet(&mut rig, 10, 0);
    assert!(rig.drain_events().contains(&Event::Ended), "a run that goes on may be done already");
}

/// Creates a source of a builder that has its sources end together: it has given one event, and makes the next one after a while.
fn of_builder() -> Rig<Source<Generator>> {
    let config = GeneratorConfig {
        first: 0,
        step: 1,
        count: None,
        size: Spread::Fixed(10),
        rate: Some(1e-3),
        poisson: false,
        pool: 1,
        numbered: false,
        seed: 1,
    };
    let supply = Generator::new(config, crate::Ranges::default());
    let mut rig = Rig::new(Source::new(SourceConfig::new(Address::Node(1), 3, 1), supply));
    reach_builder(&mut rig, FLAG_ENDS);
    assert_eq!(rig.given(PEER), [0]);
    rig
}

fn reach_builder(rig: &mut Rig<Source<Generator>>, flags: u8) {
    rig.open(PEER);
    rig.take(PEER);
    rig.say(PEER, &Hello { flags, event_max: 100, ..hello(Role::Builder, 0, 100) }.encode());
}

fn has_ended(rig: &mut Rig<Source<Generator>>) -> bool {
    rig.drain_events().contains(&Event::Ended)
}

#[test]
fn one_that_is_to_end_gives_what_the_others_have() {
    let mut rig = of_builder();
    rig.handle(Input::Command(Command::End));
    assert!(matches!(rig.take(PEER)[..], [Message::Ends(1)]));
    rig.say(PEER, &token(0, Verdict::Accepted));
    rig.wait(150 * MILLI, &[PEER]);
    assert!(matches!(rig.take(PEER)[..], [Message::Ends(1)]), "its question may have been lost");
    assert!(!has_ended(&mut rig));
    // Others have more, which it makes at once, whatever its rate.
    rig.say(PEER, &plain(Kind::Drain, 4));
    assert_eq!(rig.given(PEER), [1, 2, 3]);
    rig.say(PEER, &plain(Kind::Drain, 9));
    assert_eq!((rig.given(PEER), has_ended(&mut rig)), ([].to_vec(), false));
    (1..4).for_each(|number| rig.say(PEER, &token(number, Verdict::Accepted)));
    assert!(has_ended(&mut rig) && rig.machine.has_ended());
}

#[test]
fn or_ends_where_it_is() {
    for flags in [FLAG_ENDS, 0] {
        let mut rig = of_builder();
        rig.handle(Input::Command(Command::End));
        rig.say(PEER, &token(0, Verdict::Accepted));
        assert!(!has_ended(&mut rig));
        rig.close(PEER);
        rig.wait(100 * MILLI, &[]);
        // Of another builder it asks anew, unless that knows nothing of it.
        reach_builder(&mut rig, flags);
        if flags == 0 {
            assert!(rig.take(PEER).is_empty());
        } else {
            assert!(matches!(rig.take(PEER)[..], [Message::Ends(1)]));
            rig.say(PEER, &plain(Kind::Drain, 1));
        }
        assert!(has_ended(&mut rig));
    }
    let mut rig = source();
    greet(&mut rig, 3, 0);
    rig.handle(Input::Command(Command::End));
    assert!(rig.drain_events().contains(&Event::Ended), "a controller has each end by itself");
}
