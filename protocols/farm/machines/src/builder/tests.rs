mod late;

use super::*;
use crate::inbound::Message;
use crate::rig::{Rig, accepted, event, hello, message, plain, token_of};
use crate::wire::Hello;
use alloc::vec;
use core::time::Duration;
use hodo_machine::Ends;

const MILLI: Duration = Duration::from_millis(1);
const UP: Peer = Peer(0);
/// The answer to a fragment of event 5 that came too late.
const LATE: Token = Token { flags: FLAG_LATE, ..token_of(1, 5, Verdict::Incomplete) };

fn config() -> BuilderConfig {
    BuilderConfig {
        patience: 100 * MILLI,
        fragment_max: 1000,
        pool_bytes: 4000,
        source_credits: 50,
        number: 7,
        ..BuilderConfig::new(Address::Node(1), 2)
    }
}

/// Creates a builder of two sources that has reached its controller.
fn builder(config: BuilderConfig) -> Rig<Builder> {
    let mut rig = Rig::new(Builder::new(config));
    reach(&mut rig);
    rig
}

fn reach(rig: &mut Rig<Builder>) {
    rig.open(UP);
    assert!(matches!(rig.take(UP)[..], [Message::Hello(Hello { role: Role::Builder, number: 7, .. })]));
    let event_max = rig.machine.config.fragment_max + 100;
    rig.say(UP, &Hello { event_max, ..hello(Role::Controller, 0, 100) }.encode());
    rig.say(UP, &plain(Kind::Run, 1));
}

fn source_at(rig: &mut Rig<Builder>, number: u32, place: u32) -> Peer {
    let peer = accepted(place);
    rig.open(peer);
    rig.say(peer, &hello(Role::Source, number, 0).encode());
    rig.say(peer, &plain(Kind::Run, 1));
    peer
}

fn sources(rig: &mut Rig<Builder>) -> [Peer; 2] {
    let peers = [0, 1].map(|number| source_at(rig, number, number));
    for peer in peers {
        assert!(matches!(rig.take(peer)[..], [Message::Hello(Hello { role: Role::Builder, credits: 50, .. })]));
    }
    peers
}

/// Returns the events that the controller received: kind, number and bytes of each.
fn built(rig: &mut Rig<Builder>) -> Vec<(Kind, u64, Vec<u8>)> {
    let messages = rig.take(UP).into_iter();
    messages
        .filter_map(|message| match message {
            Message::Event { kind, event, payload, .. } => Some((kind, event, payload.unwrap_or_default().to_vec())),
            _ => None,
        })
        .collect()
}

fn verdict(rig: &mut Rig<Builder>, event: u64, verdict: Verdict) {
    rig.say(UP, &token_of(1, event, verdict).encode());
}

fn errors(rig: &mut Rig<Builder>) -> Vec<Error> {
    let events = rig.drain_events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Left { error, .. } | Event::Refused(_, error) => Some(error),
            _ => None,
        })
        .collect()
}

#[test]
fn an_event_is_its_fragments_in_order_and_each_source_gets_its_token() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(second, &event(5, b"bcd"));
    assert_eq!(built(&mut rig), []);
    rig.say(first, &event(5, b"a"));
    let bytes = b"\0\0\0\0\x01\0\0\0a\x01\0\0\0\x03\0\0\0bcd".to_vec();
    assert_eq!(built(&mut rig), [(Kind::Event, 5, bytes)]);
    assert_eq!((rig.tokens(first), rig.tokens(second)), (vec![], vec![]), "it has no verdict yet");
    verdict(&mut rig, 5, Verdict::Accepted);
    for peer in [first, second] {
        assert_eq!(rig.tokens(peer), [token_of(1, 5, Verdict::Accepted)]);
    }
    let counters = rig.machine.counters();
    assert_eq!((counters.complete, counters.fragments, counters.answered), (1, 2, 1));
    assert_eq!((counters.events_open, counters.events_waiting, counters.sources), (0, 0, 2));
}

#[test]
fn fragments_are_of_runs_that_the_controller_has_opened() {
    let mut rig = Rig::new(Builder::new(config()));
    let early = source_at(&mut rig, 0, 0);
    assert!(matches!(rig.take(early)[..], [Message::Hello(_), Message::Drain]), "no run is open yet");
    rig.say(early, &event(5, b"a"));
    assert!(!rig.is_open(early), "what was on its way comes again");
    let early = source_at(&mut rig, 0, 1);
    reach(&mut rig);
    assert!(!rig.is_open(early), "it is told to give by a new connection");
    errors(&mut rig);
    let [first, second] = sources(&mut rig);
    rig.say(first, &plain(Kind::Run, 2));
    rig.say(first, &event(5, b"a"));
    assert_eq!(errors(&mut rig), [Error::NoSuchRun { run: 2 }]);
    assert_eq!(rig.machine.counters().events_open, 0);
    rig.say(UP, &plain(Kind::Run, 2));
    assert!(rig.is_open(second), "others go on");
    rig.say(second, &plain(Kind::Run, 2));
    rig.say(second, &event(5, b"a"));
    assert_eq!((errors(&mut rig), rig.machine.counters().events_open), (vec![], 1));
}

#[test]
fn what_a_source_has_passed_is_missing_and_flagged() {
    let mut rig = builder(config());
    assert_eq!(rig.machine.absent(), [0, 1]);
    let [first, second] = sources(&mut rig);
    assert_eq!(rig.machine.absent(), []);
    rig.say(first, &event(5, b"a"));
    rig.wait(1000 * MILLI, &[UP, first, second]);
    rig.say(second, &event(6, b"b"));
    rig.wait(streams::REORDER - MILLI, &[UP, first, second]);
    assert_eq!(built(&mut rig), [], "its threads may give in another order");
    rig.wait(2 * MILLI, &[UP, first, second]);
    assert_eq!(built(&mut rig), [(Kind::Partial, 5, b"\0\0\0\0\x01\0\0\0a".to_vec())]);
    assert!(rig.drain_events().contains(&Event::Incomplete { run: 1, event: 5, missing: 1 }));
    rig.say(second, &event(5, b"late"));
    rig.say(second, &event(5, b"late"));
    verdict(&mut rig, 5, Verdict::Rejected);
    assert_eq!(rig.tokens(first), [token_of(1, 5, Verdict::Rejected)]);
    assert_eq!(rig.tokens(second), [LATE; 2], "the verdict is not on who was late");
    let counters = rig.machine.counters();
    assert_eq!((counters.incomplete, counters.lost_fragments, counters.complete), (1, 1, 0));
    assert_eq!((counters.late_fragments, counters.duplicate_fragments), (1, 1));
}

#[test]
fn or_given_up() {
    let mut rig = builder(BuilderConfig { incomplete: Incomplete::Drop, ..config() });
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(second, &event(6, b"b"));
    rig.wait(streams::REORDER, &[UP, first, second]);
    assert_eq!(built(&mut rig), [(Kind::Skip, 5, vec![])]);
    verdict(&mut rig, 5, Verdict::Incomplete);
    assert_eq!(rig.tokens(first), [token_of(1, 5, Verdict::Incomplete)], "it was not late");
}

#[test]
fn a_source_that_has_nothing_of_an_event_says_so() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &plain(Kind::Skip, 5));
    rig.say(second, &event(5, b"b"));
    assert_eq!(built(&mut rig), [(Kind::Partial, 5, b"\x01\0\0\0\x01\0\0\0b".to_vec())]);
    rig.say(first, &message(Kind::Partial, 6, b"half"));
    rig.say(second, &event(6, b"b"));
    assert!(matches!(built(&mut rig)[..], [(Kind::Partial, 6, _)]), "part of a fragment is not all of it");
    [first, second].into_iter().for_each(|peer| rig.say(peer, &plain(Kind::Skip, 7)));
    assert_eq!(built(&mut rig), [(Kind::Skip, 7, vec![])]);
}

#[test]
fn a_fragment_that_comes_again_is_answered_and_counted() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    (0..2).for_each(|_| rig.say(first, &event(5, b"a")));
    rig.say(second, &event(5, b"b"));
    verdict(&mut rig, 5, Verdict::Accepted);
    assert_eq!(rig.tokens(first).len(), 2);
    rig.say(second, &event(5, b"b"));
    let tokens = rig.tokens(second);
    assert_eq!((tokens.len(), tokens[1].flags), (2, FLAG_DUPLICATE));
    assert_eq!((rig.machine.counters().duplicate_fragments, built(&mut rig).len()), (2, 1));
}

#[test]
fn a_fragment_that_is_late_has_no_part_in_a_verdict_that_is_there() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(second, &event(6, b"b"));
    rig.wait(streams::REORDER, &[UP, first, second]);
    verdict(&mut rig, 5, Verdict::Accepted);
    rig.say(second, &event(5, b"late"));
    assert_eq!(rig.tokens(second), [LATE]);
    assert_eq!((rig.machine.counters().late_fragments, rig.machine.counters().conflicts), (1, 0));
}

/// Gives other data of the second source under a number of its own, and returns what the controller gets.
fn gives_other_data(rig: &mut Rig<Builder>, second: Peer) -> Vec<Message> {
    rig.take(UP);
    rig.say(second, &event(5, b"other"));
    rig.say(second, &event(6, b"more"));
    rig.take(UP)
}

#[test]
fn other_data_under_a_number_of_its_source_go_to_the_quarantine() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(second, &event(5, b"b"));
    let early = gives_other_data(&mut rig, second);
    let apart = b"\x01\0\0\0\x05\0\0\0other";
    assert!(
        matches!(&early[..], [Message::Apart(1), Message::Event { kind: Kind::Event, event: 5, payload: Some(bytes), .. }]
        if bytes[..] == *apart)
    );
    assert!(rig.drain_events().contains(&Event::Conflict { run: 1, event: 5, source: 1 }));
    rig.say(first, &event(5, b"a"));
    let whole = rig.take(UP);
    assert!(
        matches!(&whole[..], [Message::Run(1), Message::Event { event: 5, payload: Some(bytes), .. }] if bytes.len() == 18)
    );
    // Each has a token of its own, in any order.
    let flags = FLAG_CONFLICT | FLAG_DUPLICATE;
    rig.say(UP, &Token { flags, ..token_of(1, 5, Verdict::Quarantined) }.encode());
    assert_eq!(
        (rig.tokens(first), rig.tokens(second)),
        (vec![], vec![Token { flags: FLAG_CONFLICT, ..token_of(1, 5, Verdict::Quarantined) }])
    );
    verdict(&mut rig, 5, Verdict::Accepted);
    for peer in [first, second] {
        assert_eq!(rig.tokens(peer), [token_of(1, 5, Verdict::Accepted)]);
    }
    // The verdict changes nothing about it.
    assert!(matches!(gives_other_data(&mut rig, second)[..], [Message::Apart(1), Message::Event { event: 5, .. }]));
    rig.say(second, &event(5, b"b"));
    assert_eq!(rig.tokens(second), [Token { flags: FLAG_DUPLICATE, ..token_of(1, 5, Verdict::Rejected) }]);
    assert_eq!((rig.machine.counters().conflicts, rig.machine.counters().duplicate_fragments), (2, 2));
    let held = rig.machine.assembly.in_hand(1);
    rig.say(UP, &Token { flags, ..token_of(1, 5, Verdict::Quarantined) }.encode());
    assert_eq!(held - rig.machine.assembly.in_hand(1), 5 + 64, "its memory is given back");
    assert!(rig.machine.apart.is_empty());
}

#[test]
fn of_a_built_event_only_the_sources_of_other_data_are_told_of_them() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    for (number, of_whom) in [(5, 1 << 1), (6, 0)] {
        rig.say(first, &event(number, b"a"));
        rig.say(second, &event(number, b"other"));
        let token = Token { flags: FLAG_CONFLICT, ..token_of(1, number, Verdict::Quarantined) };
        rig.say(UP, &token.with_sources(of_whom).encode());
        let same = Token { flags: FLAG_DUPLICATE, ..token_of(1, number, Verdict::Rejected) };
        let of_first = if of_whom == 0 { token } else { same };
        assert_eq!(
            (rig.tokens(first), rig.tokens(second)),
            (vec![of_first], vec![token]),
            "of an earlier controller all"
        );
    }
    rig.take(UP);
    // Whether it comes again the controller knows: this builder had the different one alone.
    for (again, flags) in [(&b"other"[..], FLAG_CONFLICT), (b"first", FLAG_DUPLICATE)] {
        rig.say(second, &event(5, again));
        rig.wait(streams::REORDER, &[UP, first, second]);
        assert!(matches!(rig.take(UP)[..], [Message::Event { kind: Kind::Partial, event: 5, .. }]));
        let token = Token { flags, ..token_of(1, 5, Verdict::Rejected) };
        rig.say(UP, &token.encode());
        assert_eq!(rig.tokens(second), [token]);
    }
}

#[test]
fn what_is_for_the_quarantine_is_kept_for_the_next_controller() {
    let mut rig = builder(config());
    let [_, second] = sources(&mut rig);
    rig.say(second, &plain(Kind::Skip, 5));
    gives_other_data(&mut rig, second);
    rig.close(UP);
    rig.wait(100 * MILLI, &[second]);
    reach(&mut rig);
    assert!(matches!(rig.take(UP)[..], [Message::Apart(1), Message::Event { event: 5, .. }, ..]));
}

#[test]
fn a_second_instance_of_a_source_that_is_there_is_refused() {
    let mut rig = builder(config());
    let [first, _] = sources(&mut rig);
    let other = accepted(9);
    rig.open(other);
    rig.say(other, &Hello { instance: 2, ..hello(Role::Source, 0, 0) }.encode());
    assert_eq!(errors(&mut rig), [Error::Replaced { number: 0 }]);
    assert!(rig.is_open(first) && !rig.is_open(other));
    // It may come when the first one is gone, and give again what that has given.
    rig.say(first, &event(5, b"a"));
    rig.close(first);
    rig.open(other);
    rig.say(other, &Hello { instance: 2, ..hello(Role::Source, 0, 0) }.encode());
    rig.say(other, &plain(Kind::Run, 1));
    rig.say(other, &event(5, b"a"));
    assert_eq!((rig.machine.counters().duplicate_fragments, rig.machine.counters().conflicts), (1, 0));
}

#[test]
fn a_source_that_comes_again_replaces_itself_and_gets_the_tokens() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    let again = source_at(&mut rig, 0, 9);
    assert_eq!((rig.closed.clone(), errors(&mut rig)), (vec![first], vec![Error::Replaced { number: 0 }]));
    rig.say(again, &event(5, b"a"));
    rig.say(second, &event(5, b"b"));
    verdict(&mut rig, 5, Verdict::Accepted);
    assert_eq!(rig.tokens(again), [token_of(1, 5, Verdict::Accepted)]);
    assert_eq!(rig.machine.counters().sources, 2);
}

#[test]
fn only_sources_that_are_expected_are_taken() {
    let mut rig = builder(config());
    source_at(&mut rig, 2, 0);
    assert_eq!(errors(&mut rig), [Error::NoSuchSource { number: 2, sources: 2 }]);
    rig.open(accepted(0));
    rig.say(accepted(0), &hello(Role::Node, 0, 1).encode());
    assert_eq!(errors(&mut rig), [Error::WrongRole { role: Role::Node }]);
    rig.open(accepted(0));
    rig.say(accepted(0), &event(1, b"a"));
    assert_eq!(errors(&mut rig), [Error::Unexpected { kind: 2 }]);
}

#[test]
fn its_memory_is_bounded_by_credits_and_windows() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    (0..3).for_each(|number| rig.say(first, &event(number, &[0; 1000])));
    (0..51).for_each(|number| rig.say(second, &event(number, b"")));
    assert_eq!(errors(&mut rig), [Error::OverCredit { max: 2000 }, Error::OverCredit { max: 50 }]);
    for round in 1..9 {
        let first = source_at(&mut rig, 0, 0);
        (0..2).for_each(|number| rig.say(first, &event(100 * round + number, &[0; 1000])));
        if rig.is_open(first) {
            rig.close(first);
        }
    }
    assert!(errors(&mut rig).contains(&Error::OverCredit { max: 10_400 }), "nor is it filled over many connections");
}

#[test]
fn with_no_controller_it_holds_on_to_what_it_has() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.close(UP);
    [first, second].into_iter().for_each(|peer| rig.say(peer, &event(5, b"a")));
    rig.wait(60 * MILLI, &[first, second]);
    reach(&mut rig);
    assert_eq!(built(&mut rig).len(), 1);
    rig.close(UP);
    rig.wait(60 * MILLI, &[first, second]);
    reach(&mut rig);
    assert_eq!(built(&mut rig).len(), 1, "without a token it is given again");
    verdict(&mut rig, 5, Verdict::Accepted);
    assert_eq!(rig.tokens(first).len(), 1);
    assert!(rig.machine.counters().dead_time_ns > 0);
}

#[test]
fn an_event_that_the_controller_does_not_take_is_given_up() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    [first, second].into_iter().for_each(|peer| rig.say(peer, &event(5, &[0; 600])));
    assert_eq!(built(&mut rig), [(Kind::Skip, 5, vec![])]);
    assert!(rig.drain_events().contains(&Event::TooLarge { run: 1, event: 5, size: 1216, max: 1100 }));
    verdict(&mut rig, 5, Verdict::Incomplete);
    assert_eq!(rig.tokens(first), [token_of(1, 5, Verdict::Incomplete)]);
}

#[test]
fn a_controller_that_drains_has_the_sources_wait() {
    let mut rig = builder(config());
    let peers = sources(&mut rig);
    rig.say(UP, &plain(Kind::Drain, 0));
    assert!(matches!(rig.take(UP)[..], [Message::Drain]));
    for peer in peers {
        assert!(matches!(rig.take(peer)[..], [Message::Drain]));
    }
    rig.close(UP);
    rig.wait(60 * MILLI, &peers);
    reach(&mut rig);
    assert_eq!(rig.closed, peers, "they come again, and give again");
}

#[test]
fn what_a_stopped_source_has_not_given_is_waited_for() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.say(first, &event(5, b"a"));
    rig.say(UP, &plain(Kind::Drain, 0));
    rig.wait(500 * MILLI, &[UP, first, second]);
    rig.close(UP);
    rig.wait(60 * MILLI, &[first, second]);
    reach(&mut rig);
    let [first, second] = [source_at(&mut rig, 0, 2), source_at(&mut rig, 1, 3)];
    rig.wait(90 * MILLI, &[UP, first, second]);
    [first, second].into_iter().for_each(|peer| rig.say(peer, &event(5, b"a")));
    assert!(matches!(built(&mut rig)[..], [(Kind::Event, 5, _)]));
}

#[test]
fn it_is_drained_when_what_it_gave_is_decided() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    [first, second].into_iter().for_each(|peer| rig.say(peer, &event(5, b"a")));
    rig.say(first, &event(6, b"a"));
    rig.handle(Input::Command(Command::Drain));
    let drained = |rig: &mut Rig<Builder>| rig.drain_events().contains(&Event::Drained);
    [first, second].into_iter().for_each(|peer| rig.say(peer, &plain(Kind::Drain, 0)));
    rig.wait(101 * MILLI, &[UP, first, second]);
    assert!(!drained(&mut rig));
    verdict(&mut rig, 5, Verdict::Accepted);
    assert!(drained(&mut rig));
    assert!(matches!(built(&mut rig)[..], [(Kind::Event, 5, _)]), "the rest of 6 is for who comes next");
    assert_eq!(rig.tokens(first), [token_of(1, 5, Verdict::Accepted)], "so it keeps its fragment of 6");
    let third = source_at(&mut rig, 0, 3);
    assert!(matches!(rig.take(third)[..], [Message::Hello(_), Message::Drain]));
}

#[test]
fn who_is_silent_is_gone() {
    let mut rig = builder(config());
    let [first, second] = sources(&mut rig);
    rig.open(accepted(5));
    rig.wait(1500 * MILLI, &[UP, first]);
    assert_eq!((rig.closed.clone(), errors(&mut rig)), (vec![second], vec![Error::Silent]));
    rig.wait(1000 * MILLI, &[UP, first]);
    assert_eq!(errors(&mut rig), [Error::NoGreeting]);
    rig.wait(5000 * MILLI, &[first]);
    assert!(rig.closed.contains(&UP));
}

/// A source over datagrams and its builder, between which any datagram may be lost, doubled or late.
struct Lossy {
    builder: Rig<Builder>,
    source: crate::Source<crate::NoSupply>,
    out: Outbox,
    random: hodo_machine::Random,
    /// Datagrams on their way: when they come, and whether to the builder.
    wire: Vec<(Instant, bool, Vec<u8>)>,
    answered: Vec<u64>,
    loss: f64,
    /// Whether the controller decides.
    decides: bool,
    /// Whether what the builder gives is for the quarantine, and what was.
    is_apart: bool,
    apart: Vec<(u64, Vec<u8>)>,
    /// Events that the source was told to be in conflict.
    conflicts: Vec<u64>,
    /// Datagrams of segments that the source has sent, and those with data.
    segments: (usize, usize),
}

const FAR: Peer = accepted(0);

impl Lossy {
    fn new(seed: u64, loss: f64) -> Self {
        let config = BuilderConfig { datagrams: true, fragment_max: 5000, pool_bytes: 20_000, ..config() };
        let config =
            BuilderConfig { patience: Duration::from_secs(100), silence: Duration::from_secs(9), sources: 1, ..config };
        let source = crate::SourceConfig {
            datagram: Some(100),
            silence: Duration::from_secs(9),
            ..crate::SourceConfig::new(Address::Node(1), 0, 1)
        };
        let mut lossy = Lossy {
            builder: builder(config),
            source: crate::Source::new(source, crate::NoSupply),
            out: Outbox::new(),
            random: hodo_machine::Random::new(seed),
            wire: Vec::new(),
            answered: Vec::new(),
            loss,
            decides: true,
            is_apart: false,
            apart: Vec::new(),
            conflicts: Vec::new(),
            segments: (0, 0),
        };
        lossy.give(0);
        lossy
    }

    /// Gives thirty events, of sizes up to 4,000, of which each byte is so much more than the number.
    fn give(&mut self, more: u8) {
        for number in 0..30u64 {
            let payload = vec![number as u8 + more; (number as usize * 137) % 4000].into();
            let event = crate::source::Command::Event { number, payload };
            self.source.handle(self.builder.now, Input::Command(event));
        }
    }

    fn send(&mut self, to_builder: bool, bytes: &[u8]) {
        for _ in 0..1 + u8::from(self.random.chance(0.1)) {
            if !self.random.chance(self.loss) {
                let at = self.builder.now + Duration::from_micros(self.random.below(2000));
                self.wire.push((at, to_builder, bytes.to_vec()));
            }
        }
    }

    fn is_done(&self) -> bool {
        self.answered.len() == 30 && self.source.kept() == 0
    }

    /// Carries out what the source wants.
    fn pump(&mut self) -> Option<Instant> {
        let now = self.builder.now;
        loop {
            match self.source.poll(now, &mut self.out) {
                Output::Send(_) => {
                    let bytes: Vec<u8> =
                        self.out.pieces().iter().flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    assert!(bytes.len() <= 1400);
                    if bytes[3] >> 4 == Kind::Segment.code() {
                        self.segments.0 += 1;
                        self.segments.1 += usize::from(bytes.len() > crate::wire::SEGMENT);
                    }
                    self.send(true, &bytes);
                }
                Output::Event(crate::source::Event::Answered { event, conflict, .. }) => {
                    if conflict { &mut self.conflicts } else { &mut self.answered }.push(event);
                }
                Output::Event(crate::source::Event::Left(error)) => {
                    panic!("{error}: {:?} {:?} {:?}", self.answered, self.conflicts, self.builder.machine.counters())
                }
                Output::Event(_) => {}
                Output::Open(peer, address) => {
                    self.source.handle(now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Close(_) => panic!("it stays"),
                Output::Idle(deadline) => return deadline,
            }
        }
    }

    /// Puts the builder's messages on the wire, and has the controller accept the built events.
    fn answer(&mut self) {
        for message in self.builder.take(FAR) {
            let bytes = match message {
                Message::Hello(hello) => hello.encode().to_vec(),
                Message::Token(token, _) => token.encode().to_vec(),
                Message::Ping(value) => plain(Kind::Ping, value),
                Message::Pong => plain(Kind::Pong, 0),
                Message::Here(run, event) => crate::wire::Lacks::here(run, event).encode(),
                Message::Lacks(run, event, parts) => crate::wire::Lacks { run, event, parts }.encode(),
                other => panic!(
                    "{other:?} {:?} {:?} {} {:?}",
                    self.answered,
                    self.conflicts,
                    self.source.kept(),
                    self.builder.now
                ),
            };
            self.send(false, &bytes);
        }
        if !self.decides {
            return;
        }
        for message in self.builder.take(UP) {
            let (event, bytes) = match message {
                Message::Run(_) | Message::Apart(_) => {
                    self.is_apart = matches!(message, Message::Apart(_));
                    continue;
                }
                Message::Event { kind: Kind::Event, event, payload: Some(bytes), .. } => (event, bytes),
                _ => continue,
            };
            if self.is_apart {
                self.apart.push((event, bytes[FRAGMENT..].to_vec()));
                let flags = FLAG_CONFLICT | FLAG_DUPLICATE;
                let token = Token { flags, ..token_of(1, event, Verdict::Quarantined) };
                self.builder.say(UP, &token.encode());
                continue;
            }
            assert_eq!(bytes.len(), FRAGMENT + (event as usize * 137) % 4000);
            assert!(bytes[FRAGMENT..].iter().all(|byte| *byte == event as u8));
            verdict(&mut self.builder, event, Verdict::Accepted);
        }
    }

    fn run(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..1_000_000 {
            let deadline = self.pump();
            self.answer();
            if until(self) {
                return;
            }
            let first = (0..self.wire.len()).min_by_key(|index| self.wire[*index].0);
            let next =
                first.map(|index| self.wire[index].0).filter(|at| deadline.is_none_or(|deadline| *at <= deadline));
            let Some(at) = next else {
                let span = deadline.expect("something is left to be done") - self.builder.now;
                self.builder.wait(span.max(Duration::from_nanos(1)), &[UP]);
                self.source.handle(self.builder.now, Input::Elapsed);
                continue;
            };
            let (_, to_builder, bytes) = self.wire.swap_remove(first.expect("it is the first"));
            self.builder.wait(at - self.builder.now, &[UP]);
            if !to_builder {
                self.source.handle(at, Input::Received(UP, &bytes));
            } else if self.builder.is_open(FAR) {
                self.builder.say(FAR, &bytes);
            } else {
                self.builder.open(FAR);
                self.builder.say(FAR, &bytes);
            }
        }
        panic!(
            "no end: {:?} {:?} {:?} {}",
            self.builder.machine.counters(),
            self.answered,
            self.conflicts,
            self.source.kept()
        );
    }
}

#[test]
fn over_datagrams_every_fragment_comes_whatever_is_lost() {
    for seed in 0..60 {
        let mut lossy = Lossy::new(seed, [0.0, 0.05, 0.3][seed as usize % 3]);
        lossy.run(Lossy::is_done);
        let mut answered = lossy.answered.clone();
        answered.sort_unstable();
        assert_eq!(answered, (0..30).collect::<Vec<u64>>(), "seed {seed}");
        let counters = lossy.builder.machine.counters();
        assert_eq!((counters.complete, counters.incomplete, counters.bad_datagrams), (30, 0, 0), "seed {seed}");
    }
}

/// The source gives other data under each of its numbers again, and then the first ones. Event 0 has no bytes.
#[test]
fn over_datagrams_other_data_under_a_number_go_to_the_quarantine_whatever_is_lost() {
    for seed in 0..60 {
        let mut lossy = Lossy::new(seed, [0.0, 0.05, 0.3][seed as usize % 3]);
        lossy.run(Lossy::is_done);
        lossy.answered.clear();
        // What is still on its way of the first ones would be taken for answers.
        let later = lossy.builder.now + 5 * MILLI;
        lossy.run(|lossy| lossy.builder.now >= later);
        lossy.give(100);
        lossy.run(|lossy| lossy.conflicts.len() == 29 && lossy.source.kept() == 0);
        lossy.apart.sort_unstable();
        let expected = (1..30u64).map(|number| (number, vec![number as u8 + 100; (number as usize * 137) % 4000]));
        assert!(lossy.apart == expected.collect::<Vec<_>>(), "seed {seed}");
        let later = lossy.builder.now + 5 * MILLI;
        lossy.run(|lossy| lossy.builder.now >= later);
        lossy.answered.clear();
        lossy.give(0);
        lossy.run(Lossy::is_done);
        assert_eq!((lossy.conflicts.len(), lossy.apart.len()), (29, 29), "seed {seed}");
        let counters = lossy.builder.machine.counters();
        assert_eq!((counters.complete, counters.conflicts), (30, 29), "seed {seed}");
    }
}

/// Shows it for a window of 20,000 bytes.
#[test]
fn over_datagrams_what_waits_for_its_verdict_is_asked_for_and_not_sent_again() {
    let mut lossy = Lossy::new(1, 0.0);
    lossy.decides = false;
    lossy.run(|lossy| lossy.builder.machine.counters().fragments == 16);
    let (_, once) = lossy.segments;
    let later = lossy.builder.now + Duration::from_secs(8);
    lossy.run(|lossy| lossy.builder.now >= later);
    assert_eq!((lossy.segments.1, lossy.source.sent_again()), (once, 0));
    let asked = lossy.segments.0 - once;
    assert!((16 * 8..=16 * 11).contains(&asked), "each 800 ms: {asked}");
    lossy.decides = true;
    lossy.run(Lossy::is_done);
    assert_eq!(lossy.source.sent_again(), 0);
}

#[test]
fn datagrams_that_make_no_sense_are_counted_and_let_go() {
    let mut rig = builder(BuilderConfig { datagrams: true, ..config() });
    let [first, _] = sources(&mut rig);
    let before = rig.machine.counters().bad_datagrams;
    for wrong in [&b"no datagram of ours"[..], b"", b"\xD0", &plain(Kind::Segment, 1), &event(1, b"abc")] {
        rig.say(first, wrong);
    }
    assert_eq!(rig.machine.counters().bad_datagrams - before, 5);
    assert!(rig.is_open(first));
    assert_eq!(rig.machine.counters().fragments, 0);
}
