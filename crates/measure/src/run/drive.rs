mod follow;
mod readings;
mod starts;

use super::accounts::{Accounts, Reading};
use super::gate::Gate;
use super::recorder::{Recorded, Recorder, Tally};
use super::schedule::{Schedule, Share};
use super::shared::Shared;
use super::slots::{Slots, counted};
use super::stages::{Stages, Times};
use super::updates::Updates;
use crate::{Completion, Counters, Link, LinkError, Mode, Outcome, Repeats, Test, Until};
use hodo_machine::{Instant, Sampling};
use std::time::Duration;

/// The longest interval between checks for an interrupt, and between progress reports.
const TICK: Duration = Duration::from_millis(100);

/// One link on its way through a plan: warm-up, repeats back to back, drain.
///
/// Time is read once for each batch of completions. The operations that take their places start at that moment, so
/// with a window of 1 an operation's time runs from the completion before it to its own, and holds the few nanoseconds
/// of counting. Whatever is timed (the counted part, a repeat) goes from completion to completion:
/// it ends with the first batch at or after its due end. So a rate has no error from the operations that are under way
/// at the ends, however few fit in between. After a pause a repeat begins with the first batch of completions, which is not counted.
pub(super) struct Drive<'a> {
    link: &'a mut (dyn Link + Send),
    shared: &'a Shared<'a>,
    /// The place among the links that are driven.
    place: usize,
    mode: Mode,
    /// Whether only one operation is in flight at a time.
    single: bool,
    /// Whether operations are replaced only once all of them have ended.
    in_rounds: bool,
    /// The slot of the next operation if only one is in flight at a time: it starts right before the link is polled
    /// again.
    held: Option<u32>,
    slots: Slots,
    schedule: Option<Schedule>,
    /// The gate that starts operations at the plan's pace, and as answers open the window.
    gate: Option<Gate>,
    /// The updates that the far end sends, where the plan measures those instead of operations.
    updates: Option<Updates>,
    recorder: Recorder,
    /// The stages, if the plan asks for them and the link stamps them.
    stages: Option<Stages>,
    accounts: Accounts,
    /// The counters at the start of the part of the counted time that is under way.
    opened: Option<Reading>,
    phase: Phase,
    closed: u32,
    /// When the warm-up or the repeat is over.
    due: Instant,
    /// Operations after which the repeat is over.
    count: u64,
    /// The last time at which an operation came to its end, or none was in flight.
    heard: Instant,
    /// Whether operations have been sent without a window since, of which none has arrived yet.
    unheard: bool,
    /// Polls of the link since then.
    silent_polls: u32,
    /// The counters of host and link, as read before the present silence, if there is one, and when.
    counters: (Instant, Counters),
    channels: u32,
    tick: Instant,
    /// When the warm-up began.
    began: Instant,
    /// The number of the latest snapshot, and when the next one is due.
    snapshots: u64,
    snapshot_due: Instant,
    done: Vec<Completion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    /// Over, and the counted time begins with the next completion.
    Warm,
    Counted,
    Paused,
    /// From the end of a pause until operations complete again.
    Resumed,
    Over,
}

/// The findings of driving one link.
pub(super) struct Found {
    pub recorded: Recorded,
    pub stages: Vec<Times>,
    pub accounts: Accounts,
    /// Operations done in the repeat that an error cut short.
    pub unfinished: Tally,
    /// The median of the operations in flight, if answers open the window.
    pub in_flight_median: Option<u64>,
    pub error: Option<LinkError>,
}

/// Drives one link through the plan, and keeps what was measured whatever happens.
pub(super) fn drive(link: &mut (dyn Link + Send), shared: &Shared<'_>, place: usize, share: Share) -> Found {
    let plan = shared.plan;
    let now = link.now();
    let updates = Updates::of(plan);
    let in_slots = if updates.is_some() { 0 } else { share.channels() };
    let slots = Slots::new(plan, in_slots, plan.seed.wrapping_add(u64::from(share.index) << 32), now);
    let stages = if plan.stages {
        Stages::begin(link, u64::from(share.channels()) * u64::from(plan.window))
    } else {
        link.sample_stages(Sampling::NONE);
        None
    };
    let schedule = plan.rate.filter(|_| plan.test == Test::Open).map(|rate| Schedule::new(share, rate, now));
    let mut drive = Drive {
        link,
        shared,
        place,
        mode: plan.mode,
        single: plan.window == 1 && share.channels() == 1 && plan.pace.is_none(),
        in_rounds: plan.rounds && plan.window * share.channels() > 1,
        held: None,
        slots,
        schedule,
        gate: None,
        updates,
        recorder: Recorder::new(shared.may_exceed()),
        stages,
        accounts: Accounts::default(),
        opened: None,
        phase: Phase::WarmUp,
        closed: 0,
        due: now + plan.warmup,
        count: match plan.until {
            Until::Count(count) => share.of(count),
            Until::Elapsed(_) => u64::MAX,
        },
        heard: now,
        unheard: false,
        silent_polls: 0,
        counters: (now, Counters::default()),
        channels: share.channels(),
        tick: now + TICK,
        began: now,
        snapshots: 0,
        snapshot_due: Instant::MAX,
        done: Vec::with_capacity(1024),
    };
    let outcome = drive.measure(share);
    drive.finish(outcome)
}

impl Drive<'_> {
    fn measure(&mut self, share: Share) -> Result<(), LinkError> {
        self.accounts.far[0] = self.ask(true)?;
        if self.shared.plan.warmup.is_zero() {
            self.count_from_here()?;
        }
        let now = self.link.now();
        (self.began, self.tick) = (now, now + TICK);
        if self.updates.is_some() {
            self.subscribe(share)?;
        } else if let Some(schedule) = &mut self.schedule {
            *schedule = Schedule::new(share, self.shared.plan.rate.unwrap_or(1.0), now);
        } else {
            self.gate =
                Gate::new(self.shared.plan, share, self.link.opens_window() && !self.shared.plan.unbounded, now);
            self.fill(now);
        }
        while self.phase != Phase::Over {
            self.turn()?;
            if self.phase == Phase::Counted && self.closed >= self.shared.enough() {
                self.phase = Phase::Over;
            }
            if self.phase == Phase::Paused {
                self.pause()?;
            }
        }
        let end = self.read_local();
        if self.updates.is_some() {
            // Updates do not wait for the drain: those after the counted time are not of this run.
            self.accounts.link[1] = self.link.losses();
        }
        self.end_part(end)?;
        self.drain()?;
        self.accounts.far[1] = self.ask(false)?;
        Ok(())
    }

    /// Lets the caller of the run have the machine for itself, with nothing in flight, and goes on.
    fn pause(&mut self) -> Result<(), LinkError> {
        let end = self.read_local();
        self.end_part(end)?;
        let held = self.held.take();
        self.drain()?;
        self.shared.pause(self.place == 0)?;
        if self.closed >= self.shared.enough() {
            self.phase = Phase::Over;
            // Nothing is counted of the part that begins here, so that the run ends as any other.
            self.opened = None;
            return Ok(());
        }
        let local = self.read_local();
        let far = self.ask(false)?;
        self.opened = Some(Reading { far, ..local });
        self.phase = Phase::Resumed;
        let now = self.link.now();
        self.heard = now;
        self.held = held;
        self.fill(now);
        Ok(())
    }

    /// Subscribes every channel.
    fn subscribe(&mut self, share: Share) -> Result<(), LinkError> {
        self.heard = self.link.now();
        for subscription in share.subscriptions(self.shared.plan) {
            self.link.subscribe(subscription)?;
            if let Some(updates) = &mut self.updates {
                updates.live += 1;
            }
        }
        Ok(())
    }

    /// Polls the link once: counts what has ended, and starts what is due.
    fn turn(&mut self) -> Result<(), LinkError> {
        let until = self.until();
        if let Some(slot) = self.held.take() {
            let now = self.link.now();
            self.begin(slot, now);
        }
        let polled = self.link.poll(self.shared.plan.wait, until, &mut self.done);
        let now = self.link.now();
        let some = !self.done.is_empty();
        // A link that only gives up has not been heard of.
        let heard =
            some && self.done.iter().any(|completion| !matches!(completion.outcome, Outcome::Lost | Outcome::Sent));
        // What is timed in rounds is whole rounds.
        let is_whole = !self.in_rounds || self.done.len() >= self.slots.in_flight();
        let warm = some && is_whole && self.phase == Phase::WarmUp && now >= self.due;
        let begins = some && is_whole && self.phase == Phase::Warm;
        let resume = self.chores(now);
        let (in_flight, counted) = (self.slots.in_flight(), self.phase == Phase::Counted);
        if some {
            self.settle(now, resume)?;
        }
        if warm {
            self.count_from_here()?;
        } else if begins {
            self.begin_to_count(Some(now));
        } else if some && counted {
            self.note(now, heard, in_flight, is_whole);
        } else if heard && is_whole && self.phase == Phase::Resumed {
            self.recorder.resume(now);
            (self.phase, self.due) = (Phase::Counted, now);
            self.plan_repeat(now);
        }
        if heard {
            (self.heard, self.unheard, self.silent_polls) = (now, false, 0);
        } else {
            self.silent_polls += 1;
        }
        // Only now, because what had ended before the link broke counts.
        polled?;
        self.next_round();
        self.arrivals(now);
        if self.is_open() {
            self.release(now);
        }
        self.check(now)
    }

    /// Notes that operations have ended at `now`, in a repeat, which may be over with them if they are the last of a round.
    #[inline]
    fn note(&mut self, now: Instant, heard: bool, in_flight: usize, is_whole: bool) {
        if let Some(from) = self.recorder.note(now, heard, is_whole) {
            self.silence_ended(from, now, in_flight);
        }
        if is_whole && self.count == u64::MAX && now >= self.due {
            self.close_repeat(now);
        }
    }

    /// Returns the time until which the link may wait for something to happen.
    fn until(&self) -> Instant {
        let due = match (&self.schedule, &self.gate) {
            _ if !self.is_open() => Instant::MAX,
            (Some(schedule), _) if !self.slots.all_busy() => schedule.next_due(),
            (None, Some(gate)) => gate.next_due(self.slots.in_flight()),
            _ => Instant::MAX,
        };
        // While operations end, ticks are seen as they do; only a silent link has to be left for one.
        (self.tick + TICK).min(due).min(self.snapshot_due).min(self.last_heard() + self.patience())
    }

    /// Returns whether operations that end have successors.
    fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Over | Phase::Paused)
    }

    /// Does what takes time while no operation waits to be started. Returns the time at which the next ones start.
    fn chores(&mut self, now: Instant) -> Instant {
        let tick = now >= self.tick;
        if tick {
            self.sample();
            self.tick = now + TICK;
            self.tell(now);
            // In a silence the counters from before it stand.
            if self.heard >= self.counters.0 {
                self.counters = (now, self.read_counters());
            }
        }
        let is_followed = now >= self.snapshot_due;
        if is_followed {
            self.follow(now);
        }
        if tick || is_followed { self.link.now() } else { now }
    }

    /// Counts the operations that ended at `now`, and starts their successors at `resume`.
    fn settle(&mut self, now: Instant, resume: Instant) -> Result<(), LinkError> {
        if let Some(stages) = &mut self.stages {
            stages.fetch(self.link);
        }
        let mut done = std::mem::take(&mut self.done);
        for completion in done.drain(..) {
            self.ended(completion, now, resume)?;
        }
        self.done = done;
        Ok(())
    }

    #[inline]
    fn ended(&mut self, completion: Completion, now: Instant, resume: Instant) -> Result<(), LinkError> {
        let tag = completion.tag;
        match completion.outcome {
            Outcome::Update { .. } | Outcome::Unsubscribed => {
                self.updated(completion.outcome, now);
                return Ok(());
            }
            Outcome::Recovered => {
                self.recovered(tag);
                return Ok(());
            }
            Outcome::Arrived { count } => {
                if self.is_counting() {
                    self.recorder.arrived(count, self.shared.plan.size.bounds().1);
                }
                self.close_full_repeat(now);
                return Ok(());
            }
            Outcome::Withdrawn => {
                if let Some(ended) = self.slots.withdraw(tag)? {
                    self.slots.release(ended);
                }
                return Ok(());
            }
            Outcome::Done | Outcome::Lost | Outcome::Refused | Outcome::Sent => {}
        }
        let Some(ended) = self.slots.end(tag)? else { return Ok(()) };
        if let Some(gate) = &mut self.gate {
            match completion.outcome {
                Outcome::Done | Outcome::Sent => gate.answered(ended, now),
                _ => gate.lost(ended, now, &self.slots),
            }
        }
        match completion.outcome {
            Outcome::Done if self.is_counting() => {
                let took_ns = now.nanos_since(ended.started);
                self.recorder.done(took_ns, ended.size);
                if self.schedule.is_some() {
                    self.recorder.scheduled(now, took_ns);
                }
                if let Some(stages) = &mut self.stages {
                    stages.done(tag, now);
                }
            }
            Outcome::Sent => {
                self.accounts.sent += u64::from(self.phase == Phase::Counted);
                self.unheard = true;
            }
            Outcome::Done
            | Outcome::Recovered
            | Outcome::Withdrawn
            | Outcome::Update { .. }
            | Outcome::Unsubscribed
            | Outcome::Arrived { .. } => {}
            Outcome::Lost => {
                self.accounts.lost += u64::from(counted(tag));
                self.recorder.gone();
            }
            Outcome::Refused => {
                self.accounts.refused += u64::from(counted(tag));
                self.recorder.gone();
            }
        }
        self.close_full_repeat(now);
        self.replace(ended, resume);
        Ok(())
    }

    /// Counts an update that has arrived, or the end of a subscription.
    #[inline]
    fn updated(&mut self, outcome: Outcome, now: Instant) {
        let Some(updates) = &mut self.updates else { return };
        match outcome {
            Outcome::Update { took_ns } if self.phase != Phase::Over => {
                self.recorder.done(took_ns, updates.size);
                if !updates.spacing.is_zero() {
                    self.recorder.scheduled(now, took_ns);
                }
                self.close_full_repeat(now);
            }
            Outcome::Unsubscribed => updates.live = updates.live.saturating_sub(1),
            _ => {}
        }
    }

    /// Closes a repeat that has its count of operations.
    #[inline]
    fn close_full_repeat(&mut self, now: Instant) {
        if self.phase == Phase::Counted && self.recorder.ended() >= self.count {
            self.close_repeat(now);
            if self.closed >= self.shared.enough() {
                self.phase = Phase::Over;
            }
        }
    }

    /// Returns whether operations that end are counted, be it only in the warm-up, whose counts are forgotten.
    fn is_counting(&self) -> bool {
        matches!(self.phase, Phase::WarmUp | Phase::Counted)
    }

    fn recovered(&mut self, tag: u64) {
        if self.slots.of_this_run(tag) {
            self.accounts.recovered += u64::from(counted(tag));
            if let Some(gate) = &mut self.gate {
                gate.recovered();
            }
            if self.is_counting() {
                self.recorder.late(self.slots.size_of(tag));
            }
        }
    }

    /// Ends the warm-up. Operations that ended before are forgotten; those in flight go on.
    fn count_from_here(&mut self) -> Result<(), LinkError> {
        // Before the question, because what is started when its answer is there is new to the far end's counters.
        self.slots.count_from_here();
        let asked = self.link.now();
        let far = self.ask(false)?;
        self.opened = Some(Reading { far, ..Reading::default() });
        self.accounts.link[0] = self.link.losses();
        self.counters = (self.link.now(), self.read_counters());
        if self.link.now() - asked < TICK || self.slots.in_flight() == 0 {
            self.begin_to_count(None);
        } else {
            // The answer stood behind much else: an operation that began long ago ends next, and is no part of the counted time.
            self.phase = Phase::Warm;
        }
        Ok(())
    }

    /// Begins to count, from the completions that came at `since` on, or from now on.
    fn begin_to_count(&mut self, since: Option<Instant>) {
        // The far end's answer may have stood behind much else; this side is read only now.
        let far = self.opened.take().and_then(|opened| opened.far);
        self.opened = Some(Reading { far, ..self.read_local() });
        let now = since.unwrap_or_else(|| self.link.now());
        self.forget(now);
        self.phase = Phase::Counted;
        self.tick = now + TICK;
        self.due = now;
        self.plan_repeat(now);
        self.begin_snapshots(now);
    }

    /// Forgets what has been recorded so far.
    fn forget(&mut self, now: Instant) {
        self.recorder.restart(now);
        if let Some(stages) = &mut self.stages {
            stages.restart();
        }
        if let Some(gate) = &mut self.gate {
            gate.restart();
        }
    }

    fn close_repeat(&mut self, now: Instant) {
        let tally = self.recorder.close(now);
        self.sample();
        self.closed += 1;
        self.shared.close(self.place, tally);
        self.plan_repeat(now);
        // All links pause or none: whether repeats are enough for a confidence is known only once the slowest has closed this one.
        let is_last = matches!(self.shared.plan.repeats, Repeats::Fixed(count) if self.closed >= count);
        let may_pause = self.schedule.is_none() && self.updates.is_none() && !is_last;
        if may_pause && self.shared.watch.pauses_after(self.closed) {
            self.phase = Phase::Paused;
        }
        if self.phase == Phase::Paused || self.closed >= self.shared.enough() {
            self.silence_lasts(now);
        }
    }

    /// Sets the end of the next repeat: on the plan's grid, unless an operation has taken longer than a repeat.
    fn plan_repeat(&mut self, now: Instant) {
        if let Until::Elapsed(span) = self.shared.plan.until {
            self.due = self.due + span;
            if self.due <= now {
                self.due = now + span;
            }
        }
    }

    /// Checks whether the link has stalled or the run is to end early.
    fn check(&mut self, now: Instant) -> Result<(), LinkError> {
        let stall = self.patience();
        let waits = self.slots.in_flight() > 0 || self.held.is_some() || self.unheard;
        if self.updates.is_none() && !waits {
            self.heard = now;
        } else if now >= self.last_heard() + stall {
            return Err(LinkError::Stalled { millis: millis(stall) });
        }
        if self.shared.halted() || self.shared.watch.interrupted() {
            return Err(LinkError::Interrupted);
        }
        Ok(())
    }

    /// Returns when an operation, or a part of one, last came to its end.
    fn last_heard(&self) -> Instant {
        self.heard.max(self.link.progress())
    }

    /// Returns how long nothing may end or arrive before the far end counts as stalled.
    fn patience(&self) -> Duration {
        self.shared.plan.stall + self.updates.as_ref().map_or(Duration::ZERO, |updates| updates.spacing)
    }

    /// Waits for the operations in flight and the end of subscriptions, so that the link can be used for the next plan.
    fn drain(&mut self) -> Result<(), LinkError> {
        self.held = None;
        self.link.withdraw();
        self.link.unsubscribe();
        self.link.flush();
        self.heard = self.link.now();
        while self.slots.in_flight() > 0 || self.updates.as_ref().is_some_and(|updates| updates.live > 0) {
            self.turn()?;
        }
        Ok(())
    }

    fn finish(mut self, outcome: Result<(), LinkError>) -> Found {
        let error = outcome.err();
        self.shared.snapshots.end(self.place);
        if matches!(self.phase, Phase::WarmUp | Phase::Warm) {
            // Nothing of a warm-up counts, although the run ended in it.
            self.forget(self.began);
        }
        if let Some(error) = &error {
            self.shared.halt();
            if let Some(start) = self.opened.take() {
                let end = self.read_local();
                self.accounts.parts.push([start, end]);
            }
            // The operations in flight when nothing more came have given no sign in time.
            if matches!(error, LinkError::Stalled { .. }) {
                self.accounts.lost += self.slots.counted_in_flight();
                if self.phase == Phase::Counted {
                    self.silence_lasts(self.link.now());
                }
            }
        }
        if self.updates.is_none() || error.is_some() {
            self.accounts.link[1] = self.link.losses();
        }
        self.accounts.started = self.slots.started();
        let cut_short = self.phase == Phase::Counted && error.is_some();
        // Without a window it was sent to the end.
        let end = if self.shared.plan.unbounded { self.link.now() } else { self.heard };
        let unfinished = if cut_short { self.recorder.close(end) } else { Tally::default() };
        let excess = if cut_short { 0 } else { self.closed.saturating_sub(self.shared.enough()) };
        Found {
            recorded: self.recorder.finish(excess as usize),
            stages: self.stages.map_or_else(Vec::new, Stages::finish),
            accounts: self.accounts,
            unfinished,
            in_flight_median: self.gate.as_ref().and_then(Gate::in_flight_median),
            error,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
