//! Messages over the control queue pair: lines as in the [greeting](crate::greeting), at most [`MESSAGE`] bytes each.
//!
//! | message | from | content |
//! |---|---|---|
//! | `ask=report` | client | asks for the far end's counters, its usage and its time |
//! | `now=… received=…` | far end | a [`Report`] |
//! | `ask=subscribe channel=…` | client | an [`Order`] for updates |
//! | `ask=unsubscribe` | client | ends all subscriptions |

use hodo_measure::{FarEnd, Loss, Subscription, Usage};
use hodo_roce::Counters;
use hodo_roce_host::exchange::Request;
use std::time::Duration;

/// Bytes of a message at most.
pub(crate) const MESSAGE: u32 = 512;
/// Messages that may wait at either end.
pub(crate) const MESSAGES: u32 = 32;
/// Orders for updates that are on their way before the ones before them have been acknowledged.
pub(crate) const UNCONFIRMED: u32 = MESSAGES / 2;

/// A control message of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Report,
    Subscribe(Subscription),
    Unsubscribe,
}

/// The answer of the far end to [`Order::Report`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    /// The time on the far end's clock.
    pub(crate) now_ns: u64,
    pub(crate) far_end: FarEnd,
}

impl Order {
    pub(crate) fn request(&self) -> Request {
        match self {
            Order::Report => Request::default().with("ask", &"report"),
            Order::Unsubscribe => Request::default().with("ask", &"unsubscribe"),
            Order::Subscribe(subscription) => {
                let Subscription { channel, size, rate, first_after, queue } = subscription;
                let request = Request::default()
                    .with("ask", &"subscribe")
                    .with("channel", channel)
                    .with("size", size)
                    .with("first_after", &first_after.as_nanos())
                    .with("queue", queue);
                rate.iter().fold(request, |request, rate| request.with("rate", rate))
            }
        }
    }

    /// Reads an order of a peer; `None` if it is none.
    pub(crate) fn of(request: &Request) -> Option<Order> {
        match request.get::<String>("ask")?.as_str() {
            "report" => Some(Order::Report),
            "unsubscribe" => Some(Order::Unsubscribe),
            "subscribe" => Some(Order::Subscribe(Subscription {
                channel: request.get("channel")?,
                size: request.get("size")?,
                rate: request.get("rate").filter(|rate: &f64| rate.is_finite() && *rate > 0.0),
                first_after: Duration::from_nanos(request.get("first_after")?),
                queue: request.get("queue")?,
            })),
            _ => None,
        }
    }
}

impl Report {
    /// Creates the report of this process.
    pub(crate) fn new(now_ns: u64, received: u64, overrun: u64, counters: &Counters) -> Report {
        let loss = Loss { overrun, ..losses(counters) };
        Report { now_ns, far_end: FarEnd { usage: Some(Usage::of_process()), received, loss, ..FarEnd::default() } }
    }

    pub(crate) fn request(&self) -> Request {
        let FarEnd { usage, received, loss, .. } = &self.far_end;
        let request = Request::default()
            .with("now", &self.now_ns)
            .with("received", received)
            .with("overrun", &loss.overrun)
            .with("retransmitted", &loss.retransmitted)
            .with("naks", &loss.naks)
            .with("not_ready", &loss.not_ready);
        usage.iter().fold(request, |request, usage| {
            let request = usage
                .polling_s
                .iter()
                .fold(request, |request, seconds| request.with("polling_ns", &((seconds * 1e9) as u64)));
            request
                .with("user_ns", &((usage.user_s * 1e9) as u64))
                .with("system_ns", &((usage.system_s * 1e9) as u64))
                .with("voluntary", &usage.voluntary_switches)
                .with("involuntary", &usage.involuntary_switches)
                .with("rss", &usage.max_rss_bytes)
        })
    }

    /// Reads a report of a peer; `None` if it is none.
    pub(crate) fn of(request: &Request) -> Option<Report> {
        let seconds = |name| request.get::<u64>(name).map(|ns| ns as f64 * 1e-9);
        let usage = seconds("user_ns").zip(seconds("system_ns")).map(|(user_s, system_s)| Usage {
            user_s,
            system_s,
            voluntary_switches: request.get("voluntary").unwrap_or(0),
            involuntary_switches: request.get("involuntary").unwrap_or(0),
            max_rss_bytes: request.get("rss").unwrap_or(0),
            polling_s: seconds("polling_ns"),
        });
        let count = |name| request.get(name).unwrap_or(0);
        let loss = Loss {
            overrun: count("overrun"),
            retransmitted: count("retransmitted"),
            naks: count("naks"),
            not_ready: count("not_ready"),
            ..Loss::default()
        };
        let far_end = FarEnd { usage, received: request.get("received")?, loss, ..FarEnd::default() };
        Some(Report { now_ns: request.get("now")?, far_end })
    }
}

/// Returns the counters of an adapter as a result has them.
pub(crate) fn losses(counters: &Counters) -> Loss {
    Loss {
        retransmitted: counters.retransmitted,
        naks: counters.out_of_order,
        not_ready: counters.receiver_not_ready,
        ..Loss::default()
    }
}
