mod alterations;
mod faults;

use super::*;
use crate::end::{CREDIT_MAX, Edition};
use crate::formula;
use alloc::vec::Vec;

/// Two ends and the lines between them.
pub(super) struct Pair {
    pub one: BitEnd,
    pub other: BitEnd,
    /// The latest levels from `one` and from `other`.
    pub sent: [Line; 2],
    /// Levels on their way from `one`, and from `other`.
    there: VecDeque<Line>,
    back: VecDeque<Line>,
}

impl Pair {
    fn new(settings: &Settings, clock: Clock) -> Self {
        Pair::over(settings, clock, 1)
    }

    /// Creates a pair with a cable of `steps`.
    fn over(settings: &Settings, clock: Clock, steps: usize) -> Self {
        let end = || BitEnd::new(settings.clone(), clock);
        let cable = || VecDeque::from(alloc::vec![Line::default(); steps]);
        Pair { one: end(), other: end(), sent: [Line::default(); 2], there: cable(), back: cable() }
    }

    fn running(settings: &Settings) -> Self {
        let mut pair = Pair::new(settings, Clock::default());
        pair.run_until_running();
        pair
    }

    /// Moves on by a step; `disturb` changes the levels that `one` sends.
    fn step_with(&mut self, disturb: impl FnOnce(Line) -> Line) {
        let arriving = [self.back.pop_front(), self.there.pop_front()];
        let [to_one, to_other] = arriving.map(|line| line.expect("a cable holds a step or more"));
        let sent = [self.one.step(to_one), self.other.step(to_other)];
        for (line, before) in sent.iter().zip(self.sent) {
            assert!(line.data == before.data || line.strobe == before.strobe, "both change at {:?}", self.one.now());
        }
        for end in [&self.one, &self.other] {
            assert!(end.end().credit() <= CREDIT_MAX && end.end().promised() <= CREDIT_MAX);
        }
        self.sent = sent;
        self.there.push_back(disturb(sent[0]));
        self.back.push_back(sent[1]);
    }

    fn step(&mut self) {
        self.step_with(|line| line);
    }

    fn run_until_running(&mut self) {
        let give_up = self.one.now() + Picos::from_nanos(200_000);
        while self.one.end().state() != State::Run || self.other.end().state() != State::Run {
            self.step();
            assert!(self.one.now() < give_up, "{:?} {:?}", self.one.end().state(), self.other.end().state());
        }
    }

    fn steps(&mut self, n: u32) {
        for _ in 0..n {
            self.step();
        }
    }
}

pub(super) fn packet(size: usize, seed: u8) -> Vec<u8> {
    (0..size).map(|at| (at as u8).wrapping_mul(37).wrapping_add(seed)).collect()
}

#[test]
fn start_up_takes_the_times_of_the_standard() {
    for (edition, run_us) in [(Edition::Of2008, 20.4..20.8), (Edition::Rev1, 20.4..20.8)] {
        let mut pair = Pair::new(&Settings { edition, ..Settings::default() }, Clock::default());
        let mut entered: Vec<(State, f64)> = Vec::new();
        while pair.one.end().state() != State::Run {
            pair.step();
            let state = pair.one.end().state();
            if entered.last().is_none_or(|(last, _)| *last != state) {
                entered.push((state, pair.one.now().0 as f64 / 1e6));
            }
        }
        let at = |state| entered.iter().find(|(entered, _)| *entered == state).map(|(_, at)| *at);
        assert_eq!(at(State::ErrorWait), Some(6.4));
        assert_eq!(at(State::Started), Some(19.2));
        let run = at(State::Run).expect("it runs");
        assert!(run_us.contains(&run), "{edition:?}: Run at {run} us");
    }
}

#[test]
fn the_rate_is_10_mbit_per_s_until_run() {
    let mut pair = Pair::new(&Settings::default(), Clock::default());
    let mut last = Picos::ZERO;
    let mut before = Line::default();
    while pair.one.end().state() != State::Run {
        pair.step();
        let line = pair.sent[0];
        if line != before {
            let gap = pair.one.now() - last;
            assert!(last == Picos::ZERO || gap == START_UP_BIT, "{gap:?}");
            (last, before) = (pair.one.now(), line);
        }
    }
}

#[test]
fn every_pair_of_neighbours_arrives() {
    let mut pair = Pair::running(&Settings::default());
    // Each byte beside each, with ends between some of them.
    let mut sent: Vec<Code> = Vec::new();
    for first in 0..=255_u8 {
        for second in 0..=255_u8 {
            sent.push(Code::Data(first));
            sent.push(Code::Data(second));
        }
        sent.push(if first % 2 == 0 { Code::Eop } else { Code::Eep });
    }
    let mut to_push = sent.iter();
    let mut next = to_push.next();
    let mut received = Vec::new();
    while received.len() < sent.len() {
        while let Some(nchar) = next.filter(|nchar| pair.one.push(**nchar)) {
            let _ = nchar;
            next = to_push.next();
        }
        pair.step();
        received.extend(pair.other.pop());
        assert_eq!(pair.one.end().state(), State::Run);
    }
    assert!(received == sent);
    let statistics = pair.other.statistics();
    assert_eq!((statistics.errors, statistics.received.eeps), (Default::default(), 128));
}

#[test]
fn time_codes_pass_packets() {
    let mut pair = Pair::running(&Settings::default());
    for code in 0..=255 {
        pair.one.push_packet(&packet(20, code));
        pair.one.send_time_code(code);
        pair.steps(40);
        assert_eq!(pair.other.pop_time_code(), Some(code));
        while pair.other.pop().is_some() {}
    }
}

#[test]
fn a_host_that_takes_nothing_gets_56_nchars() {
    let mut pair = Pair::running(&Settings::default());
    pair.one.push_packet(&packet(100, 0));
    pair.steps(4_000);
    assert_eq!((pair.other.received(), pair.one.end().credit(), pair.one.to_send()), (56, 0, 45));
    for _ in 0..8 {
        pair.other.pop();
    }
    pair.steps(200);
    assert_eq!((pair.other.received(), pair.one.to_send()), (56, 37));
}

/// Returns the data rates of both directions in bit/s after a start-up that does not count, and the FCTs sent back for each N-char.
fn rates(pair: &mut Pair, size: usize, packets: u64, against: bool) -> (f64, f64) {
    let packet = packet(size, 3);
    let mut counted = [0_u64; 2];
    let mut started = None;
    loop {
        for end in [Some(&mut pair.one), against.then_some(&mut pair.other)].into_iter().flatten() {
            if end.to_send() < 200 {
                assert!(end.push_packet(&packet));
            }
        }
        pair.step();
        for (count, end) in counted.iter_mut().zip([&mut pair.other, &mut pair.one]) {
            while let Some(nchar) = end.pop() {
                // From the end of one packet to the end of another, so that whole packets are counted.
                *count += u64::from(nchar == Code::Eop);
            }
        }
        if started.is_none() && counted[0] > 20 && (counted[1] > 20 || !against) {
            (started, counted) = (Some(pair.one.now()), [0; 2]);
        }
        if let Some(start) = started.filter(|_| counted[0] >= packets) {
            let seconds = (pair.one.now() - start).0 as f64 * 1e-12;
            let rate = |packets: u64| (packets * 8 * size as u64) as f64 / seconds;
            return (rate(counted[0]), rate(counted[1]));
        }
    }
}

#[test]
fn both_directions_reach_the_formula() {
    for (size, packets, within) in [(1, 4_000, 2e-3), (8, 4_000, 1e-3), (60, 4_000, 1e-3), (1024, 1_500, 1e-3)] {
        let mut pair = Pair::running(&Settings::default());
        let (there, back) = rates(&mut pair, size, packets, true);
        let expected = formula::both_ways(200e6, size as u64);
        for rate in [there, back] {
            assert!((rate / expected - 1.0).abs() < within, "{size} bytes: {rate} for {expected}");
        }
    }
}

#[test]
fn one_direction_reaches_the_formula_at_several_rates() {
    for divider in [1, 2, 5] {
        let clock = Clock { divider, ..Clock::default() };
        let mut pair = Pair::new(&Settings::default(), clock);
        pair.run_until_running();
        let (there, _) = rates(&mut pair, 60, 1_000, false);
        let expected = formula::one_way(clock.rate_bps(), 60);
        assert!((there / expected - 1.0).abs() < 1e-3, "divider {divider}: {there} for {expected}");
    }
}

#[test]
fn fcts_are_an_eighth_of_the_nchars_and_seven() {
    let mut pair = Pair::running(&Settings::default());
    for _ in 0..200 {
        pair.one.push_packet(&packet(60, 0));
    }
    while pair.one.to_send() > 0 {
        pair.step();
        while pair.other.pop().is_some() {}
    }
    for _ in 0..400 {
        pair.step();
        while pair.other.pop().is_some() {}
    }
    let sent = pair.one.statistics().sent;
    assert_eq!((sent.data, sent.eops, pair.other.statistics().sent.fcts), (12_000, 200, 12_200 / 8 + 7));
    assert_eq!(pair.one.statistics().received.fcts, 12_200 / 8 + 7);
}

#[test]
fn a_long_cable_is_bound_by_credit() {
    let steps = 800;
    let mut pair = Pair::over(&Settings::default(), Clock::default(), steps);
    pair.run_until_running();
    let (there, _) = rates(&mut pair, 1024, 400, false);
    // Both ways on the cable; two bits confirm the last N-char, then an FCT may have to wait for a NULL, and is confirmed in turn.
    let cable_s = 2.0 * steps as f64 * 5e-9;
    let limit = |bits: f64| formula::credit_limit(200e6, 1024, 56, cable_s + bits * 5e-9);
    assert!(there < limit(2.0 + 4.0 + 2.0) && there > limit(2.0 + 8.0 + 4.0 + 2.0 + 10.0), "{there}");
}
