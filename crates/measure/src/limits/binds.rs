//! The word for what binds a row: the bound that it reached, or what was observed beside it.
//!
//! A bound binds only where the row reached 90 % of it. Where it did not, and no processor and no far end was observed to hold it back, the
//! row says `unknown` and what was observed.

use super::row::share;
use super::{Carrier, OnTheWire};
use crate::units::text::formula_time;
use crate::{Binding, Limit, LimitKind, Measurement};

/// A bound binds where at least this share of it was reached.
pub const REACHED: f64 = 0.9;
/// A processor is nearly full from here on.
const FULL_PERCENT: f64 = 90.0;
/// The far end's window binds where it held data back for this share of the time.
const HELD_BACK: f64 = 0.5;
/// Ticks of the processors' counters are 10 ms: over less time than this their load is not known.
const COUNTED_MIN_S: f64 = 0.2;

/// Returns a limit with what binds, by what the row reached and by what was observed beside it.
pub(super) fn judged(mut limit: Limit, found: &Measurement, wire: &OnTheWire) -> Limit {
    let reached = share(found, &limit).unwrap_or(0.0);
    let least = limit.binds;
    let mut saw = vec![match limit.kind {
        LimitKind::PlainLoop => format!("{reached:.2} of the plain loop"),
        _ => format!("{:.0} % of the bound of `{}`", reached * 100.0, least.word()),
    }];
    let processors = Processors::of(found);
    saw.extend(processors.text());
    saw.extend(tcp_text(found));
    limit.binds = match limit.kind {
        LimitKind::Model | LimitKind::Line if reached >= REACHED => least,
        LimitKind::Model => Binding::Unknown,
        _ if held_back(found, wire) => Binding::FarEnd,
        _ if processors.is_full() => Binding::Cpu,
        _ => Binding::Unknown,
    };
    limit.saw = Some(saw.join("; "));
    limit
}

/// Returns whether the far end's receive window held this side's data back for most of the time.
fn held_back(found: &Measurement, wire: &OnTheWire) -> bool {
    let Some(tcp) = &found.tcp else { return false };
    let in_all = found.elapsed_s * f64::from(tcp.connections.max(1));
    wire.carrier == Carrier::Tcp && in_all > 0.0 && tcp.receive_window_limited_s > HELD_BACK * in_all
}

fn tcp_text(found: &Measurement) -> Option<String> {
    let tcp = found.tcp.as_ref()?;
    let in_all = found.elapsed_s * f64::from(tcp.connections.max(1));
    let percent = |seconds: f64| if in_all > 0.0 { (100.0 * seconds / in_all).min(100.0) } else { 0.0 };
    let least = tcp.min_rtt_ns.map(|ns| format!(", least round-trip {}", formula_time(ns as f64))).unwrap_or_default();
    Some(format!(
        "TCP here: data on its way {:.0} % of the time, held by the far end's window {:.0} %, by this side's buffer \
         {:.0} %{least}",
        percent(tcp.busy_s),
        percent(tcp.receive_window_limited_s),
        percent(tcp.send_buffer_limited_s),
    ))
}

/// How busy the processors were, where that says anything: a side that polls is always busy.
struct Processors {
    busiest_percent: Option<f64>,
    /// The time of both ends' processes, where it is known: the rest is the work of others.
    own_percent: Option<f64>,
    polling: bool,
}

impl Processors {
    fn of(found: &Measurement) -> Processors {
        let known = found.elapsed_s >= COUNTED_MIN_S;
        let own = [found.cpu.local, found.cpu.remote].into_iter().flatten().map(|process| process.percent);
        Processors {
            busiest_percent: found.cpu.busiest_percent.filter(|_| known),
            own_percent: own.reduce(|one, other| one + other),
            polling: found.wait != "block",
        }
    }

    fn is_full(&self) -> bool {
        !self.polling && !self.is_of_others() && self.busiest_percent.is_some_and(|percent| percent >= FULL_PERCENT)
    }

    /// Returns whether most of what the busiest processor did was for neither end.
    fn is_of_others(&self) -> bool {
        self.own_percent.zip(self.busiest_percent).is_some_and(|(own, busiest)| own < busiest / 2.0)
    }

    fn text(&self) -> Option<String> {
        let percent = self.busiest_percent?;
        let but = if self.polling {
            ", which says nothing where a side polls"
        } else if self.is_of_others() {
            ", mostly for others"
        } else {
            ""
        };
        Some(format!("the busiest processor {percent:.0} % busy{but}"))
    }
}
