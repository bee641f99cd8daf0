//! How far each source has come, and for whom an event still waits.

use super::assembly::Key;
use crate::controller::sources::FAR;
use crate::recent::Recent;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Timers};

/// How much later than the next one a fragment may come: threads of one program give theirs in any order.
pub(super) const REORDER: Duration = Duration::from_millis(250);
/// Runs that are remembered.
const RUNS_MAX: usize = 64;
/// The position of one that has come to the end of all runs.
const END: Key = (u32::MAX, u64::MAX);

/// The spans for which fragments are waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// For a source that is gone.
    pub(super) patience: Duration,
    /// For one that is there, and gives nothing.
    pub(super) behind: Duration,
    /// For a fragment that its source has passed.
    pub(super) passed: Duration,
}

impl Waits {
    pub(super) fn new(patience: Duration, behind: Duration, datagrams: bool) -> Self {
        // Over datagrams parts are lost, and come again.
        Waits { patience, behind, passed: if datagrams { patience } else { REORDER } }
    }
}

/// The presence of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// It has not been here in this run, which does not begin without it.
    Awaited,
    Here,
    /// It is gone, and waited for until [`Timer::Gone`].
    Away,
    /// It is not waited for before it comes back.
    Gone,
    /// It is there and gave nothing for too long: it is not waited for before it gives.
    Behind,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    stands: Stands,
    /// The lowest number that may still come of it: it has passed those before.
    next: Key,
    /// When any of its data came, or it.
    heard: Instant,
    instance: u64,
}

impl Stream {
    fn is_waited_for(&self) -> bool {
        matches!(self.stands, Stands::Awaited | Stands::Here | Stands::Away)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    /// All that are waited for have passed this event.
    Passed(Key),
    Gone(u32),
    /// Whoever is behind is looked for.
    Look,
    /// Sources that are to end are told up to which number they give.
    End,
}

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// An event that may wait for nobody any more.
    Passed(Key),
    /// A source is not waited for any more.
    Gone(u32),
    /// Those that are behind are to be looked for.
    Look,
    /// Sources that are to end have waited for others long enough.
    End,
}

/// The streams of the sources, and the events that lack fragments.
#[derive(Debug)]
pub(super) struct Streams {
    sources: Vec<Stream>,
    waits: Waits,
    /// Sources that are not waited for.
    not_waited_for: usize,
    /// Whether a run begins without those that have not come, once they were waited for as those that are gone.
    begins_without: bool,
    /// The last run that has begun at a builder before this one, as far as controller and sources say.
    begun: Option<u32>,
    /// Runs that have begun here.
    runs: Recent<u32, RUNS_MAX>,
    /// Events that lack fragments, and since when.
    open: BTreeMap<Key, Instant>,
    /// The least position of all that are waited for, and how many have it.
    floor: Key,
    at_floor: usize,
    timers: Timers<Timer>,
    /// Nothing is due before this.
    not_before: Instant,
}

impl Streams {
    pub(super) fn new(sources: u32, waits: Waits, begins_without: bool) -> Self {
        let stream = Stream { stands: Stands::Awaited, next: (0, 0), heard: Instant::ZERO, instance: 0 };
        Streams {
            sources: alloc::vec![stream; sources as usize],
            waits,
            not_waited_for: 0,
            begins_without,
            begun: None,
            runs: Recent::default(),
            open: BTreeMap::new(),
            floor: (0, 0),
            at_floor: sources as usize,
            timers: Timers::default(),
            not_before: Instant::ZERO,
        }
    }

    /// Events that lack fragments.
    pub(super) fn open(&self) -> &BTreeMap<Key, Instant> {
        &self.open
    }

    /// Notes a run that has begun, at a builder before this one.
    pub(super) fn begun(&mut self, now: Instant, run: u32) {
        self.begun = self.begun.max(Some(run));
        if self.open.keys().next().is_some_and(|(first, _)| *first == run) {
            self.begin_without(now);
        }
    }

    /// Begins a run: all sources are waited for, without end unless it has begun before.
    fn begin_run(&mut self, now: Instant, run: u32) {
        for (number, stream) in (0..).zip(&mut self.sources) {
            if matches!(stream.stands, Stands::Away | Stands::Gone) {
                stream.stands = Stands::Awaited;
                self.timers.cancel(Timer::Gone(number));
            }
        }
        self.find_floor(now);
        if self.begins_without || self.begun == Some(run) {
            self.begin_without(now);
        }
    }

    /// Notes an event of which the first fragment has come.
    pub(super) fn begin(&mut self, now: Instant, key: Key) {
        if self.runs.insert(key.0) {
            self.begin_run(now, key.0);
        }
        self.open.insert(key, now);
        if self.timers.at(Timer::Look).is_none() {
            self.timers.arm(Timer::Look, now + self.waits.behind);
        }
        if key < self.floor {
            self.timers.arm(Timer::Passed(key), now + wait_for_passed(&self.sources, &self.waits, key));
        }
    }

    /// Notes that an event has gone on.
    pub(super) fn end(&mut self, key: Key) {
        self.open.remove(&key);
        self.timers.cancel(Timer::Passed(key));
    }

    /// Returns whether events wait for a source.
    pub(super) fn waits_for(&self, source: u32) -> bool {
        self.sources.get(source as usize).is_some_and(Stream::is_waited_for)
    }

    /// Returns whether an event may still get its fragment of a source.
    pub(super) fn may_come(&self, source: u32, key: Key) -> bool {
        self.sources.get(source as usize).is_some_and(|stream| stream.is_waited_for() && stream.next <= key)
    }

    /// Returns whether a source has never been here, so that no event goes on without it.
    pub(super) fn is_awaited(&self, source: u32) -> bool {
        self.sources.get(source as usize).is_some_and(|stream| stream.stands == Stands::Awaited)
    }

    /// Returns how many sources are not waited for.
    pub(super) fn not_waited_for(&self) -> usize {
        self.not_waited_for
    }

    /// Notes a source that has greeted, and up to where it has the verdicts on all that it had, where it had any.
    pub(super) fn joined(&mut self, now: Instant, source: u32, instance: u64, resumes: Option<Key>) {
        if self.sources.iter().all(|stream| stream.stands != Stands::Here) {
            // All were gone, and come again.
            self.expect_again(now, Stands::Gone);
        }
        let Some(stream) = self.sources.get_mut(source as usize) else { return };
        if stream.stands != Stands::Behind || stream.instance != instance {
            stream.stands = Stands::Here;
        }
        (stream.next, stream.heard, stream.instance) = (resumes.unwrap_or((0, 0)), now, instance);
        self.timers.cancel(Timer::Gone(source));
        self.find_floor(now);
        if let Some((run, _)) = resumes {
            self.begun(now, run);
        }
    }

    /// Notes that the connection of a source is gone.
    pub(super) fn left(&mut self, now: Instant, source: u32) {
        let Some(stream) = self.sources.get_mut(source as usize) else { return };
        if stream.stands == Stands::Here {
            stream.stands = Stands::Away;
            self.timers.arm(Timer::Gone(source), now + self.waits.patience);
        }
    }

    /// Waits for those that have never been here as for those that are gone.
    fn begin_without(&mut self, now: Instant) {
        self.expect_again(now, Stands::Awaited);
    }

    /// Waits for those that stand like this as for those that have just gone.
    fn expect_again(&mut self, now: Instant, stands: Stands) {
        for (number, stream) in (0..).zip(&mut self.sources) {
            if stream.stands == stands {
                stream.stands = Stands::Away;
                self.timers.arm(Timer::Gone(number), now + self.waits.patience);
            }
        }
    }

    /// Notes that something of a source's data has come, or could not come.
    pub(super) fn heard(&mut self, at: Instant, source: u32) {
        if let Some(stream) = self.sources.get_mut(source as usize) {
            stream.heard = stream.heard.max(at);
        }
    }

    /// Notes what a source has given: it has passed all before. A count that begins anew begins the stream anew.
    pub(super) fn gave(&mut self, now: Instant, source: u32, (run, event): Key) {
        let Some(stream) = self.sources.get_mut(source as usize) else { return };
        stream.heard = now;
        let was_waited_for = stream.is_waited_for();
        if stream.stands == Stands::Behind {
            stream.stands = Stands::Here;
        }
        let (before, next) = (stream.next, (run, event.saturating_add(1)));
        if run == before.0 && next.1 <= before.1 && before.1 - next.1 < FAR {
            if !was_waited_for {
                self.find_floor(now);
            }
            return;
        }
        stream.next = next;
        self.at_floor -= usize::from(was_waited_for && before == self.floor);
        if !was_waited_for || next < self.floor || self.at_floor == 0 {
            self.find_floor(now);
        }
    }

    /// Finds the least position anew. Events before it lack only what was passed.
    fn find_floor(&mut self, now: Instant) {
        let before = self.floor;
        let waited_for = self.sources.iter().filter(|stream| stream.is_waited_for());
        self.floor = waited_for.clone().map(|stream| stream.next).min().unwrap_or(END);
        self.not_waited_for = self.sources.len() - waited_for.clone().count();
        self.at_floor = waited_for.filter(|stream| stream.next == self.floor).count();
        if before < self.floor {
            for key in self.open.range(before..self.floor).map(|(key, _)| *key) {
                self.timers.arm_by(Timer::Passed(key), now + wait_for_passed(&self.sources, &self.waits, key));
            }
        }
    }

    /// Returns the highest number to which any source has come.
    pub(super) fn farthest(&self) -> u64 {
        self.sources.iter().map(|stream| stream.next.1).max().unwrap_or_default()
    }

    /// Waits for other sources that are to end.
    pub(super) fn end_later(&mut self, now: Instant) {
        self.timers.arm_by(Timer::End, now + self.waits.patience);
    }

    /// Waits for none of them any more.
    pub(super) fn has_ended(&mut self) {
        self.timers.cancel(Timer::End);
    }

    /// Takes what is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if now < self.not_before {
            return None;
        }
        Some(match self.timers.pop_due(now)? {
            Timer::Passed(key) => Due::Passed(key),
            Timer::Look => Due::Look,
            Timer::End => Due::End,
            Timer::Gone(source) => {
                if let Some(stream) = self.sources.get_mut(source as usize) {
                    stream.stands = Stands::Gone;
                }
                self.find_floor(now);
                Due::Gone(source)
            }
        })
    }

    /// Returns when something is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next().map(|deadline| deadline.max(self.not_before))
    }

    /// Gives nothing up for as long again.
    pub(super) fn wait_on(&mut self, now: Instant) {
        self.not_before = now + self.waits.patience;
    }

    /// Gives nothing up for as long again, and blames nobody: the sources were told to give nothing.
    pub(super) fn stop(&mut self, now: Instant) {
        self.wait_on(now);
        self.sources.iter_mut().for_each(|stream| stream.heard = stream.heard.max(now));
    }

    /// Returns since when an event has waited for a source that is there and gives nothing.
    fn waited_since(&self, stream: &Stream) -> Option<Instant> {
        let (_, since) = self.open.range(stream.next..).next().filter(|_| stream.stands == Stands::Here)?;
        Some(stream.heard.max(*since))
    }

    /// Counts a source as gone that is there and behind for too long; returns whether it is.
    pub(super) fn is_behind(&mut self, now: Instant, source: u32) -> bool {
        let Some(stream) = self.sources.get(source as usize) else { return false };
        let is_behind = self.waited_since(stream).is_some_and(|since| now - since >= self.waits.behind);
        if is_behind {
            self.sources[source as usize].stands = Stands::Behind;
            self.find_floor(now);
        }
        is_behind
    }

    /// Looks again when the next one may be behind for too long.
    pub(super) fn look_again(&mut self, now: Instant) {
        if !self.open.is_empty() {
            let since = self.sources.iter().filter_map(|stream| self.waited_since(stream)).min();
            self.timers.arm(Timer::Look, since.unwrap_or(now) + self.waits.behind);
        }
    }
}

/// Returns how long an event waits whose fragments were passed. One of another run says little: there may be several at once.
fn wait_for_passed(sources: &[Stream], waits: &Waits, (run, _): Key) -> Duration {
    let is_elsewhere = |stream: &Stream| stream.is_waited_for() && stream.next.0 != run;
    if sources.iter().any(is_elsewhere) { waits.patience } else { waits.passed }
}
