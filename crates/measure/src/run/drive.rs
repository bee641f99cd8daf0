use super::Progress;
use super::accounts::{Accounts, Moment};
use super::recorder::{Recorded, Recorder, Tally};
use super::schedule::{Schedule, Share};
use super::shared::Shared;
use super::slots::{Ended, Slots, counted};
use super::stages::{Stages, Times};
use super::updates::Updates;
use crate::{Completion, Link, LinkError, Mode, Operation, Outcome, Test, Until};
use hodo_machine::{Instant, Sampling};
use std::time::Duration;

/// The longest interval between checks for an interrupt, and between progress reports.
const TICK: Duration = Duration::from_millis(100);

/// One link on its way through a plan: warm-up, repeats back to back, drain.
///
/// Time is read once for each batch of completions. The operations that take their places start at that moment, so
/// with a window of 1 an operation's time runs from the completion before it to its own, and holds the few nanoseconds
/// of counting. Whatever is timed (the counted part, a repeat, a piece of the run) goes from completion to completion:
/// it ends with the first batch at or after its due end. So a rate has no error from the operations that are under way
/// at the ends, however few fit in between.
pub(super) struct Drive<'a> {
    link: &'a mut (dyn Link + Send),
    shared: &'a Shared<'a>,
    /// The place among the links that are driven.
    place: usize,
    mode: Mode,
    /// Whether only one operation is in flight at a time.
    single: bool,
    /// The slot of the next operation if only one is in flight at a time: it starts right before the link is polled
    /// again.
    held: Option<u32>,
    slots: Slots,
    schedule: Option<Schedule>,
    /// The updates that the far end sends, where the plan measures those instead of operations.
    updates: Option<Updates>,
    recorder: Recorder,
    /// The stages, if the plan asks for them and the link stamps them.
    stages: Option<Stages>,
    accounts: Accounts,
    phase: Phase,
    closed: u32,
    /// When the warm-up or the repeat is over.
    due: Instant,
    /// Operations after which the repeat is over.
    count: u64,
    /// The last time at which an operation came to its end, or none was in flight.
    heard: Instant,
    tick: Instant,
    began: Instant,
    told: (u64, u64),
    done: Vec<Completion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Counted,
    Over,
}

/// The findings of driving one link.
pub(super) struct Found {
    pub recorded: Recorded,
    pub stages: Vec<Times>,
    pub accounts: Accounts,
    /// Operations done in the repeat that an error cut short.
    pub unfinished: Tally,
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
        single: plan.window == 1 && share.channels() == 1,
        held: None,
        slots,
        schedule,
        updates,
        recorder: Recorder::new(shared.may_exceed()),
        stages,
        accounts: Accounts::default(),
        phase: Phase::WarmUp,
        closed: 0,
        due: now + plan.warmup,
        count: match plan.until {
            Until::Count(count) => share.of(count),
            Until::Elapsed(_) => u64::MAX,
        },
        heard: now,
        tick: now + TICK,
        began: now,
        told: (0, 0),
        done: Vec::with_capacity(1024),
    };
    let outcome = drive.measure(share);
    drive.finish(outcome)
}

impl Drive<'_> {
    fn measure(&mut self, share: Share) -> Result<(), LinkError> {
        self.ask(Moment::First)?;
        if self.shared.plan.warmup.is_zero() {
            self.read_local(0);
            self.count_from_here()?;
        }
        let now = self.link.now();
        if self.updates.is_some() {
            self.subscribe(share)?;
        } else if let Some(schedule) = &mut self.schedule {
            *schedule = Schedule::new(share, self.shared.plan.rate.unwrap_or(1.0), now);
        } else {
            self.fill(share.channels(), now);
        }
        while self.phase != Phase::Over {
            self.turn()?;
            if self.phase == Phase::Counted && self.closed >= self.shared.enough() {
                self.phase = Phase::Over;
            }
        }
        self.read_local(1);
        if self.updates.is_some() {
            // Updates do not wait for the drain: those after the counted time are not of this run.
            self.accounts.link[1] = self.link.losses();
        }
        self.ask(Moment::End)?;
        self.drain()?;
        self.ask(Moment::Last)
    }

    /// Fills every channel's window, one operation of each channel after the other.
    fn fill(&mut self, channels: u32, now: Instant) {
        for _ in 0..self.shared.plan.window {
            for channel in 0..channels {
                if let Some(slot) = self.slots.take(channel) {
                    self.begin(slot, now);
                }
            }
        }
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
        let warm = some && self.phase == Phase::WarmUp && now >= self.due;
        let resume = self.chores(now, warm);
        if some {
            // A link that only gives up has not been heard of.
            if self.done.iter().any(|completion| completion.outcome != Outcome::Lost) {
                self.heard = now;
            }
            self.settle(now, resume)?;
        }
        if warm {
            self.count_from_here()?;
        } else if some && self.phase == Phase::Counted {
            self.recorder.note(now);
            if self.count == u64::MAX && now >= self.due {
                self.close_repeat(now);
            }
        }
        // Only now, because what had ended before the link broke counts.
        polled?;
        self.arrivals(now);
        self.check(now)
    }

    /// Returns the time until which the link may wait for something to happen.
    fn until(&self) -> Instant {
        let due = match &self.schedule {
            Some(schedule) if self.phase != Phase::Over && !self.slots.all_busy() => schedule.next_due(),
            _ => Instant::MAX,
        };
        // While operations end, ticks are seen as they do; only a silent link has to be left for one.
        (self.tick + TICK).min(due).min(self.heard + self.patience())
    }

    /// Does what takes time while no operation waits to be started. Returns the time at which the next ones start.
    fn chores(&mut self, now: Instant, warm: bool) -> Instant {
        let tick = now >= self.tick;
        if tick {
            self.tick = now + TICK;
            self.tell(now);
        }
        if warm {
            self.read_local(0);
        }
        if tick || warm { self.link.now() } else { now }
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
            Outcome::Done | Outcome::Lost | Outcome::Refused => {}
        }
        let Some(ended) = self.slots.end(tag)? else { return Ok(()) };
        match completion.outcome {
            Outcome::Done if self.phase != Phase::Over => {
                self.recorder.done(now.nanos_since(ended.started), ended.size);
                if let Some(stages) = &mut self.stages {
                    stages.done(tag, now);
                }
            }
            Outcome::Done | Outcome::Recovered | Outcome::Update { .. } | Outcome::Unsubscribed => {}
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

    fn recovered(&mut self, tag: u64) {
        if self.slots.of_this_run(tag) {
            self.accounts.recovered += u64::from(counted(tag));
            if self.phase != Phase::Over {
                self.recorder.late(self.slots.size_of(tag));
            }
        }
    }

    #[inline]
    fn replace(&mut self, ended: Ended, now: Instant) {
        match &mut self.schedule {
            _ if self.phase == Phase::Over => self.slots.release(ended),
            // A single operation's time begins when it is handed over, not before its predecessor was accounted for.
            None if self.single => self.held = Some(ended.slot),
            None => self.begin(ended.slot, now),
            Some(schedule) if schedule.waiting(ended.channel, now) => {
                let due = schedule.start(ended.channel);
                self.begin(ended.slot, due);
            }
            Some(_) => self.slots.release(ended),
        }
    }

    #[inline]
    fn begin(&mut self, slot: u32, at: Instant) {
        let begun = self.slots.begin(slot, at);
        if let Some(stages) = &mut self.stages {
            stages.started(begun.tag, at);
        }
        self.link.start(Operation { tag: begun.tag, channel: begun.channel, size: begun.size, mode: self.mode });
    }

    /// Starts what has become due, as far as there is room.
    fn arrivals(&mut self, now: Instant) {
        let Some(mut schedule) = self.schedule.take_if(|_| self.phase != Phase::Over) else { return };
        // With no room at all there is nothing to be found; what waits is started when something ends.
        while !self.slots.all_busy() && schedule.next_due() <= now {
            let Some(channel) = schedule.arrive() else { continue };
            if let Some(slot) = self.slots.take(channel) {
                let due = schedule.start(channel);
                self.begin(slot, due);
            }
        }
        self.schedule = Some(schedule);
    }

    /// Ends the warm-up. Operations that ended before are forgotten; those in flight go on.
    fn count_from_here(&mut self) -> Result<(), LinkError> {
        // Before the question, because what is started when its answer is there is new to the far end's counters.
        self.slots.count_from_here();
        self.ask(Moment::Start)?;
        self.accounts.link[0] = self.link.losses();
        let now = self.link.now();
        self.recorder.restart(now);
        if let Some(stages) = &mut self.stages {
            stages.restart();
        }
        self.phase = Phase::Counted;
        self.began = now;
        self.due = now;
        self.plan_repeat(now);
        Ok(())
    }

    fn close_repeat(&mut self, now: Instant) {
        let tally = self.recorder.close(now);
        self.closed += 1;
        self.shared.close(self.place, tally);
        self.plan_repeat(now);
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
        if self.updates.is_none() && self.slots.in_flight() == 0 && self.held.is_none() {
            self.heard = now;
        } else if now >= self.heard + stall {
            return Err(LinkError::Stalled { millis: u64::try_from(stall.as_millis()).unwrap_or(u64::MAX) });
        }
        if self.shared.halted() || self.shared.watch.interrupted() {
            return Err(LinkError::Interrupted);
        }
        Ok(())
    }

    /// Returns how long nothing may end or arrive before the far end counts as stalled.
    fn patience(&self) -> Duration {
        self.shared.plan.stall + self.updates.as_ref().map_or(Duration::ZERO, |updates| updates.spacing)
    }

    fn tell(&mut self, now: Instant) {
        let warming_up = self.phase == Phase::WarmUp;
        let done = if warming_up { (0, 0) } else { self.recorder.so_far() };
        let since = (done.0 - self.told.0, done.1 - self.told.1);
        self.told = done;
        let elapsed_s = (now - self.began).as_secs_f64();
        let progress = Progress { warming_up, repeats: self.closed, elapsed_s, ..Progress::default() };
        self.shared.tell(self.place == 0, since.0, since.1, progress);
    }

    /// Waits for the operations in flight and the end of subscriptions, so that the link can be used for the next plan.
    fn drain(&mut self) -> Result<(), LinkError> {
        self.held = None;
        self.link.unsubscribe();
        self.link.flush();
        self.heard = self.link.now();
        while self.slots.in_flight() > 0 || self.updates.as_ref().is_some_and(|updates| updates.live > 0) {
            self.turn()?;
        }
        Ok(())
    }

    /// Reads this side's process and machine at the start (0) or the end (1) of the counted time, once for all links.
    fn read_local(&mut self, at: usize) {
        if self.place == 0 {
            self.accounts.local[at] = self.shared.watch.local_usage();
            self.accounts.host_s[at] = self.shared.watch.host_s();
            self.accounts.machine[at] = self.shared.watch.machine_busy_s();
            self.accounts.programs_s[at] = self.shared.watch.programs_s();
            self.accounts.processors[at] = self.shared.watch.processors_busy_s();
        }
        self.accounts.tcp[at] = self.link.tcp();
    }

    /// Reads the far end's counters. A far end that reported none the first time gets no further request.
    fn ask(&mut self, moment: Moment) -> Result<(), LinkError> {
        if moment != Moment::First && self.accounts.far_at(Moment::First).is_none() {
            return Ok(());
        }
        let until = self.link.now() + self.shared.plan.stall;
        let told = self.link.far_end(until, &mut self.done);
        let now = self.link.now();
        self.settle(now, now)?;
        self.accounts.far[moment as usize] = told?;
        self.heard = now;
        Ok(())
    }

    fn finish(mut self, outcome: Result<(), LinkError>) -> Found {
        let error = outcome.err();
        if let Some(error) = &error {
            self.shared.halt();
            if self.accounts.local[1].is_none() {
                self.read_local(1);
            }
            // The operations in flight when nothing more came have given no sign in time.
            if matches!(error, LinkError::Stalled { .. }) {
                self.accounts.lost += self.slots.counted_in_flight();
            }
        }
        if self.updates.is_none() || error.is_some() {
            self.accounts.link[1] = self.link.losses();
        }
        self.accounts.started = self.slots.started();
        let cut_short = self.phase == Phase::Counted && error.is_some();
        let unfinished = if cut_short { self.recorder.close(self.heard) } else { Tally::default() };
        let excess = if cut_short { 0 } else { self.closed.saturating_sub(self.shared.enough()) };
        Found {
            recorded: self.recorder.finish(excess as usize),
            stages: self.stages.map_or_else(Vec::new, Stages::finish),
            accounts: self.accounts,
            unfinished,
            error,
        }
    }
}
