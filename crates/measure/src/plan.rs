use crate::{Cpu, Loss, Measurement, Rate, Verdict};
use hodo_machine::Wait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The question that a measurement answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// As many operations as the window allows, of one size.
    Rate,
    /// One operation at a time.
    Latency,
    /// Sizes drawn uniformly between the current minimum and the maximum; the minimum rises step by step.
    Random,
    /// The rate test over many channels at once.
    Channels,
    /// Operations due on a schedule, whatever the link does; latency counts from the due time.
    Open,
    /// The far end sends to subscriptions, one a channel, at a rate or as fast as it can; nothing is asked for one by
    /// one.
    Updates,
}

impl Test {
    /// Returns whether operations start as others end, by a window, and not one by one or on a schedule.
    #[must_use]
    pub const fn is_closed_loop(self) -> bool {
        matches!(self, Test::Rate | Test::Random | Test::Channels)
    }
}

/// Which way the payload goes, seen from this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Out and back: the far end answers with as much as it got.
    Both,
    /// From here to the far end.
    Send,
    /// From the far end to here.
    Receive,
}

/// Bytes of payload per operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Always this many.
    Fixed(u32),
    /// Uniformly between these two, both included.
    Uniform {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

impl Size {
    /// Returns the smallest and the largest size.
    #[must_use]
    pub const fn bounds(self) -> (u32, u32) {
        match self {
            Size::Fixed(size) => (size, size),
            Size::Uniform { min, max } => (min, max),
        }
    }

    /// Returns the mean size.
    #[must_use]
    pub fn mean(self) -> f64 {
        let (min, max) = self.bounds();
        f64::midpoint(f64::from(min), f64::from(max))
    }
}

/// When a repeat has gone on for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The repeat ends after this time.
    Elapsed(Duration),
    /// The repeat ends after this many operations.
    Count(u64),
}

/// How often the counted part is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Repeats {
    /// A fixed number of repeats.
    Fixed(u32),
    /// Until the confidence interval of the median rate is this narrow.
    Confidence {
        /// Level of the interval in percent, as 95.
        percent: f64,
        /// The interval's whole width as a share of the median, as 0.05.
        width: f64,
        /// The most repeats.
        max: u32,
    },
}

impl Repeats {
    /// Returns the most repeats that there can be.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Repeats::Fixed(count) | Repeats::Confidence { max: count, .. } => count,
        }
    }
}

/// One measurement, before it is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The kind of test.
    pub test: Test,
    /// Which way the payload goes.
    pub mode: Mode,
    /// Bytes of payload per operation.
    pub size: Size,
    /// Operations in flight per channel; of [`Test::Updates`], updates that may wait at the far end for each. Without a window, those that are
    /// handed to the link at a time.
    pub window: u32,
    /// Whether operations are sent without waiting for any to be known to have arrived: a link of datagrams, whose far end counts.
    pub unbounded: bool,
    /// Channels.
    pub channels: u32,
    /// Operations per packet, where the protocol concatenates; else 1.
    pub batch: u32,
    /// Whether the channels go round by round: all fill their windows, and fill them again when every operation of all channels has
    /// ended. Otherwise each operation that ends is replaced at once. Only where operations have no schedule.
    pub rounds: bool,
    /// Operations per second in all, for [`Test::Open`] and, where it is not as fast as the far end can,
    /// [`Test::Updates`].
    pub rate: Option<f64>,
    /// The most payload bits per second on all channels, for closed loops; `None` for as fast as they go.
    pub pace: Option<f64>,
    /// When one repeat is over.
    pub until: Until,
    /// Time before the counted part.
    pub warmup: Duration,
    /// How often the counted part is repeated.
    pub repeats: Repeats,
    /// How this side waits.
    pub wait: Wait,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Whether the stages of operations are stamped. That takes readings of the clock, which their times then hold.
    pub stages: bool,
    /// No completion for this long means that the far end has stalled.
    pub stall: Duration,
}

impl Plan {
    /// Returns how long one repeat takes, if that follows from the plan: else zero.
    #[must_use]
    pub fn repeat_lasts(&self) -> Duration {
        match self.until {
            Until::Elapsed(duration) => duration,
            Until::Count(count) => {
                let seconds = self.rate.map_or(0.0, |rate| count as f64 / rate);
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
        }
    }

    /// Creates a plan of one operation of this size, on one channel.
    #[must_use]
    pub const fn one(mode: Mode, size: u32) -> Plan {
        Plan {
            test: Test::Latency,
            mode,
            size: Size::Fixed(size),
            window: 1,
            unbounded: false,
            channels: 1,
            batch: 1,
            rounds: false,
            rate: None,
            pace: None,
            until: Until::Count(1),
            warmup: Duration::ZERO,
            repeats: Repeats::Fixed(1),
            wait: Wait::Adaptive,
            seed: 1,
            stages: false,
            stall: Duration::from_secs(5),
        }
    }

    /// Returns a measurement of this plan over the link with this URI in which nothing has been measured.
    #[must_use]
    pub fn unmeasured(&self, protocol: &str, link: &str, verdict: Verdict) -> Measurement {
        let (min, max) = self.size.bounds();
        let drawn = matches!(self.size, Size::Uniform { .. });
        Measurement {
            protocol: protocol.to_owned(),
            link: link.to_owned(),
            test: self.test,
            mode: self.mode,
            size_bytes: (!drawn).then_some(u64::from(max)),
            size_min_bytes: drawn.then_some(u64::from(min)),
            size_max_bytes: drawn.then_some(u64::from(max)),
            window: (!self.unbounded).then_some(self.window),
            channels: self.channels,
            batch: self.batch,
            rounds: self.rounds,
            rate_asked: self.scheduled_rate(),
            pace_asked: self.pace,
            in_flight_median: None,
            beside: None,
            connection: None,
            wait: self.wait.to_string(),
            seed: self.seed,
            repeats: 0,
            operations: 0,
            payload_bytes: 0,
            elapsed_s: 0.0,
            rate: Rate::default(),
            sent: None,
            latency_ns: None,
            cpu: Cpu::default(),
            simulation: None,
            shortfall_s: None,
            tcp: None,
            loss: Loss::default(),
            limit: None,
            share_of_limit: None,
            times_plain_loop: None,
            plain_loop: None,
            stages: Vec::new(),
            clock_difference: None,
            verdict,
            observed: None,
            stalls: Vec::new(),
            intervals: Vec::new(),
            far_intervals: None,
            published: Vec::new(),
            nodes: Vec::new(),
            receivers: Vec::new(),
            fairness: None,
        }
    }

    /// Returns the operations per second that are due, where the test has a schedule.
    #[must_use]
    pub fn scheduled_rate(&self) -> Option<f64> {
        self.rate.filter(|_| matches!(self.test, Test::Open | Test::Updates))
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Rate => "rate",
            Test::Latency => "latency",
            Test::Random => "random",
            Test::Channels => "channels",
            Test::Open => "open",
            Test::Updates => "updates",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Both => "both",
            Mode::Send => "send",
            Mode::Receive => "receive",
        })
    }
}
