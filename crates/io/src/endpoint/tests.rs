//! The endpoint's loop over a transport that follows a script.

use super::script::{MESSAGE_MAX, Script, pattern};
use super::*;
use crate::clock;
use hodo_machine::{Address, Bytes, Peer, Random};
use std::collections::BTreeMap;

/// The time that each poll of the machine takes.
const POLL: Duration = Duration::from_micros(5);
const STEPS_MAX: u32 = 100_000;

/// A machine that sends numbered bytes to several peers, the first of them first, and checks what it is told.
struct Talker {
    random: Random,
    lines: Vec<Line>,
    /// The bytes that were sent over each connection that this machine has closed.
    sent: BTreeMap<(Peer, u32), u64>,
    deadline: Option<Instant>,
    elapsed: u32,
    events: u32,
}

/// A peer of the machine.
#[derive(Default)]
struct Line {
    /// The number of connections so far, and those that are still to be made.
    number: u32,
    to_make: u32,
    state: State,
    blocked: bool,
    place: u64,
    /// The bytes that are still to be sent over this connection, and those of a message at most.
    left: u64,
    size_max: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Away,
    Opening,
    There,
}

impl Talker {
    fn new(seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 1);
        let line = |_| Line { to_make: 1 + random.below(4) as u32, ..Line::default() };
        let lines = (0..1 + seed % 5).map(line).collect();
        Talker { random, lines, sent: BTreeMap::new(), deadline: None, elapsed: 0, events: 0 }
    }

    fn line(&mut self, peer: Peer) -> &mut Line {
        &mut self.lines[peer.0 as usize]
    }

    fn is_done(&self) -> bool {
        self.lines.iter().all(|line| line.to_make == 0 && line.state == State::Away)
    }

    /// Returns what is to be done about one peer.
    fn poll_line(&mut self, peer: Peer, out: &mut Outbox) -> Option<Output<u32>> {
        let Talker { random, lines, sent, .. } = self;
        let line = &mut lines[peer.0 as usize];
        match line.state {
            State::Away if line.to_make > 0 => {
                let most = [1_000, 100_000, 8_000_000][random.below(3) as usize];
                let (number, to_make, left) = (line.number + 1, line.to_make - 1, random.below(most));
                let size_max = [most / 1000, MESSAGE_MAX as u64][random.below(2) as usize];
                *line = Line { number, to_make, left, size_max, state: State::Opening, ..Line::default() };
                Some(Output::Open(peer, Address::Node(peer.0)))
            }
            // Also one that is held back.
            State::There if line.left == 0 => {
                sent.insert((peer, line.number), line.place);
                line.state = State::Away;
                Some(Output::Close(peer))
            }
            State::There if !line.blocked => {
                let size = line.left.min(1 + random.below(line.size_max)) as usize;
                let bytes = pattern(line.place, size);
                if random.chance(0.3) {
                    out.share(Bytes::from_static(bytes));
                } else {
                    out.copy(bytes);
                }
                line.place += size as u64;
                line.left -= size as u64;
                Some(Output::Send(peer))
            }
            _ => None,
        }
    }
}

impl Machine for Talker {
    type Command = ();
    type Event = u32;

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                assert_eq!(self.line(peer).state, State::Opening);
                self.line(peer).state = State::There;
            }
            Input::Received(peer, _) => assert_eq!(self.line(peer).state, State::There),
            Input::Closed(peer, _) => {
                assert_ne!(self.line(peer).state, State::Away, "told once, and not after a close");
                self.line(peer).state = State::Away;
            }
            Input::Blocked(peer) => {
                assert_eq!((self.line(peer).state, self.line(peer).blocked), (State::There, false));
                self.line(peer).blocked = true;
            }
            Input::Drained(peer) => {
                assert_eq!((self.line(peer).state, self.line(peer).blocked), (State::There, true));
                self.line(peer).blocked = false;
            }
            Input::Elapsed => {
                let deadline = self.deadline.take().expect("a deadline is told once");
                assert!(deadline <= now);
                self.elapsed += 1;
            }
            Input::Landed(..) | Input::Command(()) => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<u32> {
        clock::script(clock::scripted() + POLL);
        if self.random.chance(0.02) {
            self.events += 1;
            return Output::Event(self.events);
        }
        for number in 0..self.lines.len() as u32 {
            if let Some(output) = self.poll_line(Peer(number), out) {
                return output;
            }
        }
        let next = now + Duration::from_nanos(self.random.below(2_000_000));
        Output::Idle(Some(*self.deadline.get_or_insert(next)))
    }
}

fn endpoint(seed: u64) -> Endpoint<Talker, Script> {
    clock::script(Instant::from_nanos(1_000_000_000));
    Endpoint::new(Talker::new(seed), Script::new(seed), Clock::start())
}

/// Runs a turn, and returns how many events came.
fn turn(endpoint: &mut Endpoint<Talker, Script>) -> u32 {
    let (mut last, mut count) = (None, 0);
    let told = &mut |event| {
        assert!(last.is_none_or(|last| event == last + 1), "in order");
        last = Some(event);
        count += 1;
    };
    endpoint.step(Wait::Block, Instant::MAX, told).expect("the script has no error");
    count
}

#[test]
fn all_arrives_in_order_and_every_deadline_is_told_whatever_the_transport_does() {
    let mut most = (0, Duration::ZERO);
    for seed in 0..200 {
        let (mut endpoint, mut events, mut steps) = (endpoint(seed), 0, 0);
        while !(endpoint.machine().is_done() && endpoint.transport().is_quiet()) {
            let (deadline, elapsed) = (endpoint.machine().deadline, endpoint.machine().elapsed);
            events += turn(&mut endpoint);
            let (machine, now) = (endpoint.machine(), endpoint.last_turn());
            let was_told = machine.elapsed > elapsed;
            assert!(was_told || deadline.is_none_or(|deadline| deadline > now), "seed {seed}: {deadline:?} at {now:?}");
            steps += 1;
            assert!(steps < STEPS_MAX, "seed {seed}: some peer waits for ever");
        }
        let (machine, script) = (endpoint.machine(), endpoint.transport());
        assert_eq!(machine.sent, script.arrived, "seed {seed}");
        assert_eq!(machine.events, events, "seed {seed}");
        most = (most.0.max(script.sent_max), most.1.max(script.unheard_max));
    }
    // What came and what has elapsed are two reasons for work between two receives.
    let bytes = 2 * (TURN_BYTES + BATCH_BYTES + MESSAGE_MAX);
    let span = 2 * (TURN_SPAN + 2 * BATCH_MESSAGES as u32 * POLL);
    assert!(most.0 <= bytes && most.1 <= span, "{most:?}");
    assert!(most.0 > BATCH_BYTES && most.1 > TURN_SPAN, "the bound is reached: {most:?}");
}

#[test]
fn an_error_of_the_transport_ends_the_turn() {
    let mut endpoint = endpoint(1);
    let outcome = (0..STEPS_MAX).find_map(|_| {
        endpoint.transport.fails = Some(libc::ENOBUFS);
        endpoint.turn(Wait::Block, Instant::MAX, &mut |_| {}).err()
    });
    assert_eq!(outcome, Some(DriverError::System(libc::ENOBUFS)));
}

/// A machine that tells what it was given.
#[derive(Default)]
struct Teller(u32);

impl Machine for Teller {
    type Command = ();
    type Event = u32;

    fn handle(&mut self, _now: Instant, _input: Input<'_, ()>) {}

    fn poll(&mut self, _now: Instant, _out: &mut Outbox) -> Output<u32> {
        match std::mem::take(&mut self.0) {
            0 => Output::Idle(None),
            given => Output::Event(given),
        }
    }
}

#[test]
fn a_machine_that_was_changed_from_outside_is_polled_before_the_next_wait() {
    clock::script(Instant::from_nanos(1_000_000_000));
    let mut endpoint = Endpoint::new(Teller::default(), Script::new(0), Clock::start());
    let mut told = Vec::new();
    endpoint.step(Wait::Never, Instant::MAX, &mut |event| told.push(event)).expect("the script has no error");
    endpoint.machine_mut().0 = 7;
    endpoint.step(Wait::Never, Instant::MAX, &mut |event| told.push(event)).expect("the script has no error");
    assert_eq!(told, [7]);
}
