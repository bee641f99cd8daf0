use super::PathFacts;
use std::time::Duration;

/// A subject that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The largest packet that the path takes.
    PathMtu,
    /// The share of processor time that the control group allows.
    Quota,
    /// Both ends on one processor.
    OneProcessor,
    /// Other programs on the processors.
    Neighbour,
    /// Segmentation, receive and checksum offloads.
    Offloads,
    /// Packets that the queue discipline dropped.
    QueueDrops,
    /// Packets that the interface lost.
    CardDrops,
    /// Packets that processors dropped before the stack.
    Softnet,
    /// Limits of socket buffers.
    SocketLimits,
    /// The congestion control of new connections.
    CongestionControl,
    /// Delay of interrupts.
    Coalescence,
    /// Entries of the card's rings.
    Rings,
    /// Processors that serve the interrupts.
    Affinity,
    /// Receive queues.
    ReceiveQueues,
    /// The cost of reading the clock.
    ClockSource,
    /// Waking an idle processor.
    WakeUp,
    /// Processor time that the hypervisor gave to other machines.
    Steal,
    /// The frequency of processors that have just been idle.
    Governor,
}

impl Topic {
    /// Returns the name that documents and people use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Topic::PathMtu => "path_mtu",
            Topic::Quota => "quota",
            Topic::OneProcessor => "one_processor",
            Topic::Neighbour => "neighbour",
            Topic::Offloads => "offloads",
            Topic::QueueDrops => "queue_drops",
            Topic::CardDrops => "card_drops",
            Topic::Softnet => "softnet",
            Topic::SocketLimits => "socket_limits",
            Topic::CongestionControl => "congestion_control",
            Topic::Coalescence => "coalescence",
            Topic::Rings => "rings",
            Topic::Affinity => "affinity",
            Topic::ReceiveQueues => "receive_queues",
            Topic::ClockSource => "clock_source",
            Topic::WakeUp => "wake_up",
            Topic::Steal => "steal",
            Topic::Governor => "governor",
        }
    }
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A setting, a limit, a load or a loss that somebody can take away.
    Fault,
    /// A property of this host as it is built or chosen: to be known, and to be worked around.
    Cost,
}

impl Kind {
    /// Returns the word of documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Fault => "fault",
            Kind::Cost => "cost",
        }
    }
}

/// The origin of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The price was measured here.
    Measured,
    /// The price follows from what was read, by a formula in docs/doctor.md.
    Derived,
}

impl Basis {
    /// Returns the word of documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Derived => "derived",
        }
    }
}

/// The price of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The price in words, with its unit.
    pub text: String,
    /// The share of the rate that is lost where the finding binds, from 0 to 1.
    pub rate_share: Option<f64>,
    /// The time that is added to an operation.
    pub time: Option<Duration>,
    /// The origin of the figure.
    pub basis: Basis,
}

impl Price {
    /// Creates the price of a finding that takes this share of the rate.
    pub(super) fn of_rate(share: f64, basis: Basis, text: String) -> Price {
        Price { text, rate_share: Some(share.clamp(0.0, 1.0)), time: None, basis }
    }

    /// Creates the price of a finding that adds time to an operation.
    pub(super) fn of_time(time: Duration, basis: Basis, text: String) -> Price {
        Price { text, rate_share: None, time: Some(time), basis }
    }

    /// Returns the share of its speed that an operation loses: of its rate, or of the time of a round-trip that takes
    /// `ROUND_TRIP` without the finding.
    #[must_use]
    pub fn share(&self) -> f64 {
        let of_time = self.time.map(|time| time.as_secs_f64() / (time + ROUND_TRIP).as_secs_f64());
        self.rate_share.into_iter().chain(of_time).fold(0.0, f64::max)
    }
}

/// A round-trip over loopback or one switch, with which times are compared.
const ROUND_TRIP: Duration = Duration::from_micros(30);

/// A finding: something that costs here.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The evidence: what was read or measured, with its numbers.
    pub evidence: String,
    /// The price.
    pub price: Price,
    /// The remedy: a command, or a sentence where none helps.
    pub remedy: String,
}

/// The outcome of judging a subject.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It costs.
    Found(Finding),
    /// It costs nothing worth a word; the text says what was read.
    Fine(String),
    /// It could not be judged; the text says why.
    Unknown(String),
}

/// The judgement on a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The subject.
    pub topic: Topic,
    /// The interface or far end that is judged; empty for the host.
    pub about: String,
    /// The outcome.
    pub outcome: Outcome,
}

/// All judgements: findings first, faults before costs, each ranked by price; then what is fine and what is unknown.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The path, if one was examined.
    pub path: Option<PathFacts>,
    /// The findings, ranked.
    pub findings: Vec<(Topic, String, Finding)>,
    /// The subjects that are fine: subject, interface, what was read.
    pub fine: Vec<(Topic, String, String)>,
    /// The subjects that could not be judged: subject, interface, why.
    pub unknown: Vec<(Topic, String, String)>,
}

impl Report {
    /// Ranks answers.
    pub(super) fn of(path: Option<PathFacts>, answers: impl IntoIterator<Item = Answer>) -> Report {
        let mut report = Report { path, ..Report::default() };
        for Answer { topic, about, outcome } in answers {
            match outcome {
                Outcome::Found(finding) => report.findings.push((topic, about, finding)),
                Outcome::Fine(text) => report.fine.push((topic, about, text)),
                Outcome::Unknown(text) => report.unknown.push((topic, about, text)),
            }
        }
        report.findings.sort_by(|(one_topic, _, one), (other_topic, _, other)| {
            let by_price = other.price.share().total_cmp(&one.price.share());
            one.kind.cmp(&other.kind).then(by_price).then(one_topic.cmp(other_topic))
        });
        report
    }
}
