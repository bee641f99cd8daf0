use super::assembly::Key;
use crate::Error;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use hodo_machine::Instant;

/// Between two looks at whether sources hold the others back.
const SAMPLE: Duration = Duration::from_millis(1);

/// The mark of a source that has given its last event.
const ENDED: Key = (u32::MAX, u64::MAX);

/// How long fragments are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// A source that has closed its connection, to come again.
    pub(crate) patience: Duration,
    /// A source that is connected, or silent, to give something.
    pub(crate) behind: Duration,
    /// Sources that have never come, after the first one came.
    pub(crate) start_without: Option<Duration>,
    /// A fragment whose number its source has passed: it is late where a program gives out of order, or was lost as a datagram.
    pub(crate) order: Duration,
}

/// The sources of a builder: which of them events wait for, and how long each has held the others back.
#[derive(Debug)]
pub(crate) struct Sources {
    waits: Waits,
    states: Vec<SourceState>,
    /// When the first source came.
    began: Option<Instant>,
    /// Whether it was reported which the run has started without.
    has_started: bool,
    /// Where sources of this run were told to end.
    told_end: Option<Key>,
    /// Since when the sources of `holding` hold the others back.
    sampled: Instant,
    holding: Vec<usize>,
    held_back_ns: u64,
    counted_gone: u64,
}

#[derive(Debug, Clone, Default)]
struct SourceState {
    presence: Presence,
    /// Which program it is.
    instance: u64,
    /// How far its stream has come: the highest number of the run that it is in.
    mark: Option<Key>,
    /// When it last gave something, or could give something again.
    progress: Instant,
    /// Whether it has given anything over this connection.
    has_given: bool,
    /// The state before this connection, which counts for nothing if it gives nothing, and whether events waited for it then.
    before: Presence,
    was_waited_for: bool,
    /// Whether one more fragment of any size would be taken, and whether none is, as far as can be known.
    has_room: bool,
    is_full: bool,
    /// Events that wait for its fragment.
    lacking: u64,
    counters: SourceCounters,
}

/// The counters of one source of a builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceCounters {
    /// Events that went on, or were given up, without its fragment.
    pub missing: u64,
    /// Fragments of it whose events had gone on without them.
    pub late: u64,
    /// Nanoseconds during which others could give nothing, since events waited for its fragments.
    pub held_back_ns: u64,
    /// Times that it gave nothing for too long, and counted as gone.
    pub counted_gone: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Presence {
    /// It has not come since the run began.
    #[default]
    Never,
    Connected,
    /// The connection was closed at this instant.
    Left(Instant),
    /// It was silent for too long, and its connection was ended.
    Silent,
    /// It gave nothing for too long, and counts as gone until it gives something.
    Behind {
        is_told: bool,
    },
}

impl Sources {
    pub(crate) fn new(count: u32, waits: Waits) -> Self {
        Sources {
            waits,
            states: alloc::vec![SourceState::default(); count as usize],
            began: None,
            has_started: false,
            told_end: None,
            sampled: Instant::ZERO,
            holding: Vec::new(),
            held_back_ns: 0,
            counted_gone: 0,
        }
    }

    /// Notes that a source has greeted. Returns whether events may wait less long for it than when it was away.
    pub(crate) fn joined(&mut self, now: Instant, source: u32, instance: u64) -> bool {
        if self.states.iter().all(|state| !self.is_waited_for(now, state)) {
            // A run begins, and all that come with it are waited for.
            self.states.iter_mut().for_each(|state| state.presence = Presence::Never);
            (self.began, self.has_started, self.told_end) = (Some(now), false, None);
        }
        let before = self.states.get(source as usize);
        let was_waited_for = before.is_some_and(|state| self.is_waited_for(now, state));
        let Some(state) = self.states.get_mut(source as usize) else { return false };
        let is_first = state.presence == Presence::Never;
        (state.before, state.was_waited_for) = (state.presence, was_waited_for);
        // One that comes again and again without giving anything gains no time.
        if is_first || state.has_given {
            state.progress = now;
        }
        if !matches!(state.presence, Presence::Behind { .. }) {
            state.presence = Presence::Connected;
        }
        let is_sooner = is_first || !state.has_given;
        (state.instance, state.mark, state.has_given) = (instance, None, false);
        (state.has_room, state.is_full) = (true, false);
        is_sooner
    }

    /// Notes that the connection of a source has ended, and why.
    pub(crate) fn left(&mut self, now: Instant, source: u32, error: &Error) {
        let (is_silent, is_misbehaviour) = (*error == Error::Silent, error.is_misbehaviour());
        let Some(state) = self.states.get_mut(source as usize) else { return };
        state.presence = match state.presence {
            Presence::Behind { is_told } => Presence::Behind { is_told },
            _ if !state.has_given && (is_misbehaviour || !state.was_waited_for) => state.before,
            _ if is_silent => Presence::Silent,
            _ => Presence::Left(now),
        };
    }

    /// Tells whether events that begin now would wait for a source that has come.
    fn is_waited_for(&self, now: Instant, state: &SourceState) -> bool {
        match state.presence {
            Presence::Connected => true,
            Presence::Left(at) => at + self.waits.patience > now && state.mark != Some(ENDED),
            Presence::Silent => state.progress + self.waits.behind > now,
            Presence::Never | Presence::Behind { .. } => false,
        }
    }

    /// Notes that a source gives something.
    pub(crate) fn progress(&mut self, now: Instant, source: u32) {
        let Some(state) = self.states.get_mut(source as usize) else { return };
        (state.progress, state.has_given) = (now, true);
        if matches!(state.presence, Presence::Behind { .. }) {
            state.presence = Presence::Connected;
        }
    }

    /// Holds against no source that it has given nothing until now.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.states.iter_mut().for_each(|state| state.progress = state.progress.max(now));
    }

    /// Notes that the stream of a source has come to a number; returns those that it has passed with it.
    pub(crate) fn reached(&mut self, source: u32, key: Key) -> Option<Range<Key>> {
        let state = self.states.get_mut(source as usize)?;
        let before = state.mark;
        state.mark = match before {
            Some((run, event)) if run == key.0 => Some((run, event.max(key.1))),
            _ => Some(key),
        };
        let first = before.map_or((0, 0), |(run, event)| (run, event.saturating_add(1)));
        (before < Some(key) && first < key).then_some(first..key)
    }

    /// Notes how much more a source may give.
    pub(crate) fn set_room(&mut self, now: Instant, source: u32, has_room: bool, is_full: bool) {
        let Some(state) = self.states.get_mut(source as usize) else { return };
        if has_room && !state.has_room {
            state.progress = state.progress.max(now);
        }
        (state.has_room, state.is_full) = (has_room, is_full);
    }

    /// Returns the number behind the last event of a run that any source has come to, or at which others have ended; 0 if they are in
    /// another run.
    pub(crate) fn end(&self, run: u32) -> u64 {
        let marks = self.states.iter().filter_map(|state| state.mark.filter(|mark| *mark != ENDED));
        let ends = marks.map(|(of, event)| (of, event.saturating_add(1))).chain(self.told_end);
        ends.max().filter(|(of, _)| *of == run).map_or(0, |(_, end)| end)
    }

    /// Notes that sources were told to end at a number, so that those that are to end later do so there, too.
    pub(crate) fn told_end(&mut self, run: u32, end: u64) {
        self.told_end = self.told_end.max(Some((run, end)));
    }

    /// Notes that a source has given its last event: it has passed all numbers.
    pub(crate) fn ended(&mut self, source: u32) {
        if let Some(state) = self.states.get_mut(source as usize) {
            state.mark = Some(ENDED);
        }
    }

    /// Returns when a source last gave something.
    pub(crate) fn progress_at(&self, source: u32) -> Instant {
        self.states.get(source as usize).map_or(Instant::ZERO, |state| state.progress)
    }

    /// Returns until when an event waits for the fragment of a source: it has waited since `first`, and a stream has last passed its
    /// number at `passed`.
    pub(crate) fn until(&self, now: Instant, source: usize, key: Key, first: Instant, passed: Instant) -> Instant {
        let state = &self.states[source];
        let Waits { patience, behind, start_without, order } = self.waits;
        match state.presence {
            Presence::Never => self.began.zip(start_without).map_or(Instant::MAX, |(began, span)| began + span),
            Presence::Behind { .. } => Instant::ZERO,
            _ if state.mark > Some(key) => passed + order,
            Presence::Left(at) => at + patience,
            // What is with the controller keeps it from giving.
            Presence::Connected if !state.has_room => state.progress.max(first).max(now) + behind,
            Presence::Connected | Presence::Silent => state.progress.max(first) + behind,
        }
    }

    /// Counts a source as gone where an event has waited for it in vain although it is there. Returns whether that is new.
    pub(crate) fn give_up(&mut self, source: usize, key: Key) -> bool {
        let state = &mut self.states[source];
        let is_behind = matches!(state.presence, Presence::Connected | Presence::Silent) && state.mark <= Some(key);
        if is_behind {
            state.presence = Presence::Behind { is_told: false };
            state.counters.counted_gone += 1;
            self.counted_gone += 1;
        }
        is_behind
    }

    /// Tells whether this program has to be told that it gave nothing for too long, which is done once.
    pub(crate) fn tell(&mut self, source: u32, instance: u64) -> bool {
        let state = self.states.get_mut(source as usize);
        let Some(SourceState { presence: Presence::Behind { is_told }, instance: known, .. }) = state else {
            return false;
        };
        *known == instance && !core::mem::replace(is_told, true)
    }

    /// Returns the time for which a source may give nothing.
    pub(crate) const fn behind(&self) -> Duration {
        self.waits.behind
    }

    /// Notes that an event waits for a source's fragment.
    pub(crate) fn lacks(&mut self, source: usize) {
        self.states[source].lacking += 1;
    }

    /// Notes that it does so no more.
    pub(crate) fn lacks_no_more(&mut self, source: usize) {
        let lacking = &mut self.states[source].lacking;
        *lacking = lacking.saturating_sub(1);
    }

    /// Counts an event that goes on without a source's fragment.
    pub(crate) fn missing(&mut self, source: usize) {
        self.lacks_no_more(source);
        self.states[source].counters.missing += 1;
    }

    /// Counts a fragment that came too late.
    pub(crate) fn late(&mut self, source: u32) {
        if let Some(state) = self.states.get_mut(source as usize) {
            state.counters.late += 1;
        }
    }

    /// Returns the sources that have never come although events wait for them.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = u32> + '_ {
        let is_awaited = |state: &SourceState| state.presence == Presence::Never && state.lacking > 0;
        (0..).zip(&self.states).filter(move |(_, state)| is_awaited(state)).map(|(number, _)| number)
    }

    /// Returns, once, the sources that have never come and that the run starts without.
    pub(crate) fn starts_without(&mut self, now: Instant) -> impl Iterator<Item = u32> + '_ {
        let starts = self.began.zip(self.waits.start_without).map(|(began, span)| began + span);
        let is_over = !self.has_started && starts.is_some_and(|at| at <= now);
        self.has_started |= is_over;
        let never = (0..).zip(&self.states).filter(|(_, state)| state.presence == Presence::Never);
        never.filter(move |_| is_over).map(|(number, _)| number)
    }

    /// Adds up the time during which some sources hold back the others.
    pub(crate) fn account(&mut self, now: Instant) {
        let span = now.nanos_since(self.sampled);
        if span < SAMPLE.as_nanos() as u64 {
            return;
        }
        self.sampled = now;
        self.held_back_ns += if self.holding.is_empty() { 0 } else { span };
        for source in self.holding.drain(..) {
            self.states[source].counters.held_back_ns += span;
        }
        if self.states.iter().any(|state| state.is_full) {
            let holds = |state: &SourceState| {
                state.lacking > 0 && !state.is_full && !matches!(state.presence, Presence::Behind { .. })
            };
            let holding = self.states.iter().enumerate().filter(|(_, state)| holds(state));
            self.holding.extend(holding.map(|(source, _)| source));
        }
    }

    /// Returns the nanoseconds during which any source held back the others, and how often one counted as gone.
    pub(crate) const fn totals(&self) -> (u64, u64) {
        (self.held_back_ns, self.counted_gone)
    }

    /// Returns the counters of each source.
    pub(crate) fn counters(&self) -> impl Iterator<Item = SourceCounters> + '_ {
        self.states.iter().map(|state| state.counters)
    }
}
