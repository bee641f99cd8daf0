use super::flights::Flights;
use hodo_machine::Instant;
use std::time::Duration;

/// The operations in flight at first: what almost any queue on the way has capacity for.
const FIRST: u32 = 4;
/// The operations in flight at the least.
const LEAST: u32 = 2;
/// Operations that end in a round at least, so that chance alone does not make many losses of few.
const ROUND: u64 = 256;
/// Operations that end at least in a round without a loss.
const CALM: u64 = 32;
/// The length of a round at least.
const SPAN: Duration = Duration::from_millis(5);
/// Losses with which a round ends earlier.
const MANY: u64 = 32;
/// The share of operations that may be lost beyond the usual one.
const TOLERATED: f64 = 1.0 / 16.0;
/// The part of the usual losses that is remembered after a round: they may have had the same cause after all.
const REMEMBERED: f64 = 31.0 / 32.0;
/// The part of the answers a second that must be left after the window was closed, or it is opened again.
const LEFT: f64 = 0.9;
/// The part of a window that is closed beside what was lost, so that the queue is empty for a moment.
const BELOW: u32 = 8;
/// The part of a window that is opened in a step.
const STEP: u32 = 16;
/// Rounds without many losses before the next step, at most.
const PATIENCE: u32 = 64;
/// The time without an answer, beside four usual answer times, after which what is in flight counts as lost for the window.
const SILENCE: Duration = Duration::from_millis(10);
/// That time while no answer time is known (RFC 6298).
const FIRST_SILENCE: Duration = Duration::from_secs(1);
/// The pace over that of the answers: a burst of these is spread, and the window is what binds.
const AHEAD: f64 = 17.0 / 16.0;

/// The operations that may be in flight where nothing below the link holds them back, as with datagrams: few at first, more with each
/// answer, fewer where more are lost for it.
///
/// A window that leaves as one burst fills every queue on its way, and the rest of it is lost. So each answer opens the window by one,
/// which doubles it in a round-trip, until all of `most` is open or, in a round of some hundred operations, more than a sixteenth
/// was lost. Then the window closes by that share and a little more, and from then on operations leave as evenly as answers come.
/// If fewer are lost afterwards, the queue was too short, and the window opens again in small steps, which are the rarer the more often
/// that ended in losses. If as many are lost and there are fewer answers, the losses have another cause: the window is as before, and so
/// many losses are usual.
#[derive(Debug)]
pub(super) struct Opening {
    most: u32,
    limit: u32,
    /// Each answer opens the window while it is smaller than this.
    doubles_to: u32,
    /// When the window was last changed in a step: operations that started earlier say nothing of it.
    changed: Instant,
    round: Round,
    /// The share of losses that has another cause than the window.
    usual: f64,
    /// The round before the window was first closed, while each since has closed it further.
    before: Option<Past>,
    /// The window that was closed last.
    peak: u32,
    calm: u32,
    patience: u32,
    /// The usual time of an answer, smoothed as TCP does.
    answer_ns: u64,
    /// When something was last answered, or the window was opened in spite of a silence.
    answered_at: Instant,
    /// The silence since the last answer.
    silence: Option<Silence>,
    /// The operations in flight, from the first loss on.
    flights: Option<Flights>,
}

#[derive(Debug)]
struct Round {
    began: Instant,
    /// The first answer to an operation that was started with this window.
    first: Option<Instant>,
    answered: u64,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Past {
    limit: u32,
    share: f64,
    answers_per_s: f64,
}

/// A time without answers, and the window before it.
#[derive(Debug, Clone, Copy)]
struct Silence {
    times: u32,
    limit: u32,
    doubles_to: u32,
    had_losses: bool,
}

impl Opening {
    /// Creates a window that opens to `most` operations.
    pub fn new(most: u32, now: Instant) -> Self {
        Opening {
            most,
            limit: FIRST.min(most),
            doubles_to: most,
            changed: now,
            round: Round::new(now),
            usual: 0.0,
            before: None,
            peak: most,
            calm: 0,
            patience: 1,
            answer_ns: 0,
            answered_at: now,
            silence: None,
            flights: None,
        }
    }

    /// Returns whether one more operation may be in flight.
    #[inline]
    pub fn has_capacity(&self, in_flight: usize) -> bool {
        let overtaken = self.flights.as_ref().map_or(0, Flights::overtaken);
        in_flight < self.limit as usize + overtaken
    }

    /// Returns the time between two operations in nanoseconds, if they leave evenly.
    #[inline]
    pub fn spacing_ns(&self) -> Option<f64> {
        let is_even = self.flights.is_some() && self.limit >= self.doubles_to;
        is_even.then(|| self.answer_ns as f64 / (AHEAD * f64::from(self.limit)))
    }

    /// Notes that an operation was started.
    #[inline]
    pub fn started(&mut self, slot: u32, now: Instant) {
        if let Some(flights) = &mut self.flights {
            flights.started(slot, now);
        }
    }

    /// Notes the answer to an operation.
    #[inline]
    pub fn answered(&mut self, slot: u32, started: Instant, now: Instant) {
        let took_ns = now.nanos_since(started);
        self.answer_ns =
            if self.answer_ns == 0 { took_ns } else { self.answer_ns - self.answer_ns / 16 + took_ns / 16 };
        self.answered_at = now;
        if self.limit < self.doubles_to {
            self.limit += 1;
        }
        let is_of_round = started >= self.changed;
        if is_of_round {
            self.round.first.get_or_insert(now);
            self.round.answered += 1;
        }
        if let Some(flights) = &mut self.flights {
            let was_overtaken = flights.answered(slot, started);
            self.round.lost -= u64::from(was_overtaken && is_of_round).min(self.round.lost);
            self.round.lost += flights.overtake(self.answer_ns, self.changed);
            if let Some(silence) = self.silence.take()
                && was_overtaken
            {
                self.go_on_after(silence, now);
            }
        }
        self.end_round(now);
    }

    /// Notes the loss of an operation. The operations `in_flight` are read at the first loss only.
    pub fn lost(&mut self, slot: u32, started: Instant, now: Instant, in_flight: impl Iterator<Item = (u32, Instant)>) {
        let flights = self.flights.get_or_insert_with(|| Flights::new(in_flight));
        let is_known = flights.ended(slot);
        self.round.lost += u64::from(!is_known && started >= self.changed);
        self.end_round(now);
    }

    /// Notes that an operation was not lost, only late.
    pub fn recovered(&mut self) {
        self.round.lost = self.round.lost.saturating_sub(1);
    }

    /// Returns when the silence is too long to wait for an answer any more.
    pub fn silent_at(&self) -> Instant {
        let once = match self.answer_ns {
            0 => FIRST_SILENCE,
            answer_ns => SILENCE + Duration::from_nanos(4 * answer_ns),
        };
        self.answered_at + once * (1 << self.silence.map_or(0, |silence| silence.times).min(10))
    }

    /// Opens the window in spite of a silence: all that is in flight may have been lost, and only something new can show it.
    pub fn silent(&mut self, now: Instant, in_flight: impl Iterator<Item = (u32, Instant)>) {
        let (limit, doubles_to, had_losses) = (self.limit, self.doubles_to, self.flights.is_some());
        let silence = self.silence.get_or_insert(Silence { times: 0, limit, doubles_to, had_losses });
        silence.times += 1;
        self.doubles_to = (silence.limit / 2).max(FIRST).min(self.most);
        self.flights.get_or_insert_with(|| Flights::new(in_flight)).overtake_all();
        self.limit = FIRST.min(self.most);
        (self.answered_at, self.before) = (now, None);
        self.begin_round(now);
    }

    /// Restores the window: what was in flight in the silence was not lost.
    fn go_on_after(&mut self, silence: Silence, now: Instant) {
        (self.limit, self.doubles_to) = (silence.limit, silence.doubles_to);
        if !silence.had_losses {
            self.flights = None;
        }
        self.begin_round(now);
    }

    /// Begins a round of the operations that are started from now on.
    fn begin_round(&mut self, now: Instant) {
        (self.changed, self.round) = (now, Round::new(now));
    }

    #[inline]
    fn end_round(&mut self, now: Instant) {
        let Round { began, answered, lost, .. } = self.round;
        let least = if lost == 0 { CALM } else { ROUND };
        let is_whole = answered + lost >= least.max(self.limit.into()) && began + SPAN <= now;
        if is_whole || lost >= MANY.max(u64::from(self.limit) / 16) {
            self.judge(now);
        }
    }

    /// Opens or closes the window by what the round has shown.
    fn judge(&mut self, now: Instant) {
        let found = self.round.past(self.limit, now);
        if found.share <= self.usual + TOLERATED {
            self.before = None;
            self.usual *= REMEMBERED;
            self.round = Round::new(now);
            return self.open(now);
        }
        match self.before {
            Some(before) if found.share > before.share / 2.0 && found.answers_per_s < LEFT * before.answers_per_s => {
                (self.limit, self.usual, self.before) = (before.limit, found.share, None);
                (self.doubles_to, self.patience, self.peak) = (self.most, 1, self.most);
            }
            _ => self.close(found),
        }
        self.begin_round(now);
    }

    /// Closes the window by the share that was lost for it.
    fn close(&mut self, found: Past) {
        self.before.get_or_insert(found);
        let is_first = self.limit < self.doubles_to || self.doubles_to == self.most;
        self.patience = if is_first { 1 } else { (2 * self.patience).min(PATIENCE) };
        let kept = f64::from(self.limit) * (1.0 - (found.share - self.usual));
        (self.peak, self.calm) = (self.limit, 0);
        self.limit = (kept as u32 * (BELOW - 1) / BELOW).clamp(LEAST.min(self.most), self.most);
        self.doubles_to = self.limit;
    }

    /// Opens the window by a step, if there have been enough rounds without many losses.
    fn open(&mut self, now: Instant) {
        self.calm += 1;
        if self.limit < self.doubles_to || self.limit == self.most || self.calm < self.patience {
            return;
        }
        if self.limit > self.peak {
            self.patience = 1;
        }
        self.limit = (self.limit + (self.limit / STEP).max(1)).min(self.most);
        (self.doubles_to, self.changed, self.calm) = (self.limit, now, 0);
    }
}

impl Round {
    fn new(now: Instant) -> Self {
        Round { began: now, first: None, answered: 0, lost: 0 }
    }

    fn past(&self, limit: u32, now: Instant) -> Past {
        // The share is of a whole window at least, because losses show together.
        let share = self.lost as f64 / (self.answered + self.lost).max(limit.into()) as f64;
        let lasted_s = self.first.map_or(0.0, |first| (now - first).as_secs_f64());
        Past { limit, share, answers_per_s: self.answered as f64 / lasted_s.max(f64::MIN_POSITIVE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Duration = Duration::from_millis(1);

    /// A window over a line that answers after a millisecond, and loses what is more than its queue has capacity for.
    struct Line {
        opening: Opening,
        now: Instant,
        queue: u32,
        in_flight: Vec<(u32, Instant)>,
        slot: u32,
        started: usize,
        answered: usize,
        lost: usize,
    }

    impl Line {
        fn new(most: u32, queue: u32) -> Line {
            let now = Instant::ZERO + ANSWER;
            Line {
                opening: Opening::new(most, now),
                now,
                queue,
                in_flight: Vec::new(),
                slot: 0,
                started: 0,
                answered: 0,
                lost: 0,
            }
        }

        fn capacity(&self) -> u32 {
            (0..).find(|count| !self.opening.has_capacity(*count as usize)).expect("a window has an end")
        }

        fn start(&mut self) {
            while self.opening.has_capacity(self.in_flight.len()) {
                self.slot += 1;
                self.opening.started(self.slot, self.now);
                self.in_flight.push((self.slot, self.now));
            }
        }

        /// Fills the window, lets an answer time pass, and answers what the queue had capacity for. The rest is given up.
        fn round(&mut self) {
            self.start();
            self.now = self.now + ANSWER;
            let all = std::mem::take(&mut self.in_flight);
            let (answered, lost) = all.split_at((self.queue as usize).min(all.len()));
            self.started += all.len();
            self.answered += answered.len();
            self.lost += lost.len();
            answered.iter().for_each(|(slot, started)| self.opening.answered(*slot, *started, self.now));
            let none = std::iter::empty::<(u32, Instant)>;
            lost.iter().for_each(|(slot, started)| self.opening.lost(*slot, *started, self.now, none()));
        }

        fn rounds(&mut self, count: u32) -> u32 {
            (0..count).for_each(|_| self.round());
            self.capacity()
        }
    }

    #[test]
    fn opens_by_an_answer_each_until_it_is_open() {
        let mut line = Line::new(100, u32::MAX);
        let each: Vec<u32> = (0..6).map(|_| line.rounds(1)).collect();
        assert_eq!(each, [8, 16, 32, 64, 100, 100]);
        assert_eq!(line.opening.spacing_ns(), None, "nothing was lost");
        assert_eq!([1, 2, 4].map(|most| Line::new(most, 9).rounds(9)), [1, 2, 4]);
    }

    #[test]
    fn settles_where_the_queue_is_full_and_looks_for_more_ever_more_seldom() {
        let mut line = Line::new(512, 50);
        line.rounds(40);
        (line.started, line.answered, line.lost) = (0, 0, 0);
        let found: Vec<u32> = (0..2_000).map(|_| line.rounds(1)).collect();
        assert!(found.iter().all(|capacity| (30..=56).contains(capacity)), "{found:?}");
        let share = line.lost as f64 / line.started as f64;
        assert!(share < 0.02, "{share} was lost");
        assert!(line.answered as f64 > 0.9 * 50.0 * 2_000.0, "{} of 100,000 got through", line.answered);
        assert!(line.opening.spacing_ns().is_some_and(|ns| ns < 1e6 / 30.0), "even, and ahead of the answers");
    }

    #[test]
    fn opens_again_when_the_queue_grows() {
        let mut line = Line::new(512, 10);
        assert!(line.rounds(500) <= 11);
        line.queue = u32::MAX;
        assert_eq!(line.rounds(2_000), 512);
    }

    #[test]
    fn losses_that_a_smaller_window_does_not_avoid_leave_it_open() {
        let mut line = Line::new(512, u32::MAX);
        for round in 0..400_u32 {
            line.start();
            line.now = line.now + ANSWER;
            for (number, (slot, started)) in (round..).zip(std::mem::take(&mut line.in_flight)) {
                match number % 5 {
                    0 => line.opening.lost(slot, started, line.now, std::iter::empty()),
                    _ => line.opening.answered(slot, started, line.now),
                }
            }
        }
        assert!(line.capacity() > 400, "{}", line.capacity());
    }

    /// Returns a window with 64 operations in flight, and when the silence is too long.
    fn silent() -> (Line, Instant) {
        let mut line = Line::new(64, u32::MAX);
        line.rounds(10);
        line.start();
        let at = line.opening.silent_at();
        assert_eq!(at, line.now + SILENCE + 4 * ANSWER);
        line.now = at;
        let in_flight = line.in_flight.clone();
        line.opening.silent(at, in_flight.into_iter());
        assert_eq!(line.capacity(), 64 + FIRST, "a few more, beside those that may be lost");
        (line, at)
    }

    #[test]
    fn a_far_end_that_was_only_late_finds_the_window_as_it_was() {
        let (mut line, at) = silent();
        assert!(line.opening.silent_at() > at + SILENCE + 4 * ANSWER, "it is looked for less often");
        line.start();
        let (slot, started) = line.in_flight[0];
        line.opening.answered(slot, started, line.now);
        assert_eq!((line.capacity(), line.opening.spacing_ns()), (64, None));
    }

    #[test]
    fn a_window_that_was_lost_begins_anew() {
        let (mut line, at) = silent();
        line.start();
        let (slot, started) = *line.in_flight.last().expect("one of the new ones");
        assert_eq!(started, at);
        line.opening.answered(slot, started, line.now + ANSWER);
        assert_eq!(line.capacity() as usize, 64 + FIRST as usize + 1, "the old ones are overtaken");
        for (slot, started) in line.in_flight.clone() {
            line.opening.lost(slot, started, line.now + ANSWER, std::iter::empty());
        }
        assert!(line.capacity() <= FIRST + 1);
    }
}
