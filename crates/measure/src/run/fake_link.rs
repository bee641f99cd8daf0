use crate::{Completion, FarEnd, Link, LinkError, Loss, Operation, Outcome, Subscription, Usage};
use hodo_machine::{Instant, Random, Sampling, Spans, Stamp, Wait};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A function that decides the service of the n-th operation, which starts this many seconds after the beginning.
pub type Fate = Box<dyn FnMut(u64, f64) -> Service + Send>;

/// How a link treats one operation.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// How long the one server is busy with it.
    pub busy_ns: u64,
    /// How it ends.
    pub outcome: Outcome,
}

/// A link in virtual time whose truth is known: operations queue for one server, then travel for a while.
pub struct FakeLink {
    now: u64,
    fate: Fate,
    delay_ns: u64,
    server_free: u64,
    begun: u64,
    events: BinaryHeap<Reverse<(u64, u64, u64, u8)>>,
    /// The far end's report of the payload that it got; `None` if it reports nothing.
    pub far: Option<FarEnd>,
    /// The count of lost operations that never left this side; `None` if they leave it.
    unsent: Option<u64>,
    /// Live subscriptions, each with when its next update arrives and how far apart they are.
    pub subscribed: Vec<(Subscription, u64, u64)>,
    /// Subscriptions whose end has not been reported.
    unsubscribed: Vec<u64>,
    /// Updates that were lost, or skipped by the far end.
    missing: Loss,
    /// The time from which on nothing arrives.
    pub dead_from: u64,
    /// How long the far end takes to report.
    pub ask_ns: u64,
    /// The time from which on the far end, which reported until then, does not.
    pub mute_from: u64,
    /// Whether parts of an operation arrive all the time.
    pub progresses: bool,
    /// Whether answers are to open the window.
    pub opens_window: bool,
    /// Operations per channel and per size, for tests that look at them.
    pub channels: BTreeMap<u32, u64>,
    pub sizes: Vec<u32>,
    /// Whether stages are stamped, and which.
    pub stamps_stages: bool,
    /// The stage within which the far end serves, if it is not the last.
    pub around: Option<&'static str>,
    sampling: Sampling,
    stamps: Vec<Stamp>,
    served: Spans,
}

impl FakeLink {
    pub fn new(delay_ns: u64, fate: impl FnMut(u64, f64) -> Service + Send + 'static) -> Self {
        FakeLink {
            now: 1_000_000_007,
            fate: Box::new(fate),
            delay_ns,
            server_free: 0,
            begun: 0,
            events: BinaryHeap::new(),
            far: None,
            unsent: None,
            subscribed: Vec::new(),
            unsubscribed: Vec::new(),
            missing: Loss::default(),
            dead_from: u64::MAX,
            ask_ns: 2 * delay_ns,
            mute_from: u64::MAX,
            progresses: false,
            opens_window: false,
            channels: BTreeMap::new(),
            sizes: Vec::new(),
            stamps_stages: false,
            around: None,
            sampling: Sampling::NONE,
            stamps: Vec::new(),
            served: Spans::new(),
        }
    }

    /// Creates a link whose operations all keep the server busy for `busy_ns`, and are done.
    pub fn steady(delay_ns: u64, busy_ns: u64) -> Self {
        FakeLink::new(delay_ns, move |_, _| Service { busy_ns, outcome: Outcome::Done })
    }

    /// Creates a steady link that loses this share of operations, each given up after a millisecond.
    pub fn lossy(delay_ns: u64, busy_ns: u64, share: f64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        FakeLink::new(delay_ns, move |_, _| {
            let outcome = if random.unit() < share { Outcome::Lost } else { Outcome::Done };
            Service { busy_ns, outcome }
        })
    }

    /// Makes the link stamp stages.
    pub fn stamping(mut self) -> Self {
        self.stamps_stages = true;
        self
    }

    /// Makes the far end report what it received.
    pub fn telling(mut self) -> Self {
        self.far = Some(FarEnd { usage: Some(Usage::default()), ..FarEnd::default() });
        self
    }

    /// Makes this side refuse the lost operations and count them, after seven earlier ones.
    pub fn unsending(mut self) -> Self {
        self.unsent = Some(7);
        self
    }

    /// Returns when the next update arrives.
    fn next_update(&self) -> u64 {
        let next = self.subscribed.iter().map(|(_, next, _)| *next).min();
        next.filter(|next| *next < self.dead_from).unwrap_or(u64::MAX)
    }

    /// Delivers the updates that have arrived; one that is refused was skipped by the far end.
    fn update(&mut self, done: &mut Vec<Completion>) {
        while self.next_update() <= self.now {
            let (subscription, next, spacing) =
                self.subscribed.iter_mut().min_by_key(|each| each.1).expect("one is due");
            let tag = u64::from(subscription.channel);
            *next += *spacing;
            match (self.fate)(self.begun, 0.0).outcome {
                Outcome::Lost => self.missing.lost += 1,
                Outcome::Refused => self.missing.overrun += 1,
                _ => done.push(Completion { tag, outcome: Outcome::Update { took_ns: self.delay_ns } }),
            }
            self.begun += 1;
        }
    }

    fn deliver(&mut self, until: u64, done: &mut Vec<Completion>) {
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= until
        {
            let Reverse((at, _, tag, kind)) = self.events.pop().expect("peeked");
            if at >= self.dead_from {
                continue;
            }
            let outcome = [Outcome::Done, Outcome::Lost, Outcome::Recovered, Outcome::Refused][usize::from(kind)];
            if let Some(far) = self.far.as_mut().filter(|_| matches!(outcome, Outcome::Done | Outcome::Recovered)) {
                far.received += 1;
            }
            done.push(Completion { tag, outcome });
        }
    }
}

impl Link for FakeLink {
    fn start(&mut self, operation: Operation) {
        let Service { busy_ns, outcome } = (self.fate)(self.begun, (self.now - 1_000_000_007) as f64 / 1e9);
        self.begun += 1;
        self.server_free = self.server_free.max(self.now) + busy_ns;
        let at = self.server_free + self.delay_ns;
        let tag = operation.tag;
        self.served.record(busy_ns);
        if self.sampling.takes(tag) {
            let stages = [
                ("queue", self.server_free - busy_ns),
                ("service", self.server_free),
                ("travel", self.server_free + self.delay_ns),
            ];
            self.stamps.extend(stages.map(|(stage, at)| Stamp { stage, tag, at: Instant::from_nanos(at) }));
        }
        let mut event = |at, kind| self.events.push(Reverse((at, self.begun, tag, kind)));
        match outcome {
            Outcome::Done => event(at, 0),
            Outcome::Lost => {
                event(at + 1_000_000, 1);
                self.unsent = self.unsent.map(|count| count + 1);
            }
            Outcome::Recovered => {
                event(at + 1_000_000, 1);
                event(at + 1_500_000, 2);
            }
            Outcome::Refused => event(at, 3),
            Outcome::Withdrawn
            | Outcome::Update { .. }
            | Outcome::Unsubscribed
            | Outcome::Sent
            | Outcome::Arrived { .. } => {
                panic!("no operation ends so")
            }
        }
        *self.channels.entry(operation.channel).or_default() += 1;
        if self.sizes.len() < 100_000 {
            self.sizes.push(operation.size);
        }
    }

    fn poll(&mut self, _: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let next = self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        self.now = self.now.max(next.min(self.next_update()).min(until.as_nanos()));
        self.deliver(self.now, done);
        self.update(done);
        done.extend(self.unsubscribed.drain(..).map(|tag| Completion { tag, outcome: Outcome::Unsubscribed }));
        Ok(())
    }

    /// Begins updates, 1 us apart without a rate.
    fn subscribe(&mut self, subscription: Subscription) -> Result<(), LinkError> {
        let first = self.now + self.delay_ns + subscription.first_after.as_nanos() as u64;
        let spacing = subscription.rate.map_or(1_000, |rate| (1e9 / rate) as u64);
        self.subscribed.push((subscription, first, spacing));
        Ok(())
    }

    fn unsubscribe(&mut self) {
        self.unsubscribed =
            self.subscribed.drain(..).map(|(subscription, ..)| u64::from(subscription.channel)).collect();
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn opens_window(&self) -> bool {
        self.opens_window
    }

    fn progress(&self) -> Instant {
        if self.progresses { self.now() } else { Instant::ZERO }
    }

    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        if self.far.is_some() && self.now >= self.mute_from {
            self.now = until.as_nanos();
            self.deliver(self.now, done);
            return Ok(None);
        }
        if self.far.is_some() {
            self.now += self.ask_ns;
            self.deliver(self.now, done);
        }
        // The process has used a tenth of the time, and a duplicate comes with every hundredth operation.
        let mut far = self.far.clone();
        if let Some(far) = &mut far {
            far.usage = Some(Usage { user_s: self.now as f64 * 1e-10, ..Usage::default() });
            far.loss.duplicated = far.received / 100;
            far.stages = vec![("service", self.served.clone())];
        }
        Ok(far)
    }

    fn losses(&self) -> Loss {
        Loss { refused: self.unsent.unwrap_or_default(), ..self.missing }
    }

    fn stage_of_far_end(&self) -> Option<&'static str> {
        self.around
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.sampling = if self.stamps_stages { taken } else { Sampling::NONE };
        self.stamps_stages
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        stamps.append(&mut self.stamps);
    }
}
