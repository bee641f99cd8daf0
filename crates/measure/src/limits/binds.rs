//! The word for what binds a row: the bound that it reached, or what was observed beside it.
//!
//! A bound binds where the row reached 90 % of it. Where it did not, the first of these that was observed does: an end that stood still, a
//! quota, others on the processors, the processors, losses, a buffer, the far end's reading, the window where nearly all of it was in use. Else
//! the row says `unknown`. Each has a threshold that it passes only where it explains the rate, because a wrong word costs more than none.

mod observations;

use super::row::share;
use super::{OnTheWire, Path};
use crate::{Binding, Limit, LimitKind, Measurement, Test};
use observations::Observations;

/// A bound binds where at least this share of it was reached ...
pub const REACHED: f64 = 0.9;
/// ... and a window, or any bound of a simulation, where this share was and nothing else was observed.
const NEARLY_REACHED: f64 = 0.75;
/// Without any bound, a rate this near to that of a line of Ethernet looks like one.
const LOOKS_LIKE: std::ops::RangeInclusive<f64> = 0.97..=1.01;

/// Returns a limit with what binds, by what the row reached and by what was observed beside it. `lines` are those of Ethernet that could be
/// there, if the row's own is not known.
pub(super) fn judged(mut limit: Limit, found: &Measurement, wire: &OnTheWire, lines: &[Path]) -> Limit {
    let reached = share(found, &limit).unwrap_or(0.0);
    let observations = Observations::of(found, wire);
    let least = limit.binds;
    let mut saw = vec![match limit.kind {
        LimitKind::PlainLoop => format!("{reached:.2} of the plain loop"),
        _ => format!("{:.0} % of the limit set by `{}`", reached * 100.0, least.word()),
    }];
    let is_bound = limit.kind != LimitKind::PlainLoop;
    let is_reached = is_bound && reached >= REACHED;
    let observed = if is_reached { None } else { observations.word() };
    let is_nearly =
        (least == Binding::Window && is_bound || limit.kind == LimitKind::Model) && reached >= NEARLY_REACHED;
    // A line that is full has a queue before it: losses, or a full buffer, whose packets met none are what holds the rate, and that is like
    // a line's by chance.
    let is_chance = matches!(observed, Some((Binding::Loss | Binding::Buffer, _))) && !observations.may_have_queue();
    let like = looks_like(found, wire, lines).filter(|_| !is_chance);
    limit.binds = match observed {
        _ if is_reached => least,
        // A full line fills its queue, and that drops; a full buffer is what fills it.
        Some((Binding::Loss | Binding::Buffer, _)) if like.is_some() => Binding::Line,
        Some((binds, why)) => {
            saw.push(why);
            // Which of the two was there first cannot be told.
            if binds == Binding::Cpu && like.is_some() { Binding::Unknown } else { binds }
        }
        None if found.test == Test::Latency => Binding::RoundTrip,
        None if is_nearly => least,
        None if like.is_some() => Binding::Line,
        None => Binding::Unknown,
    };
    saw.extend(like);
    saw.extend(observations.texts());
    saw.extend(in_flight(found));
    limit.saw = Some(saw.join("; "));
    limit
}

/// Returns how much of the window was open, where answers open it and did not open all.
fn in_flight(found: &Measurement) -> Option<String> {
    let (median, most) = found.in_flight_median.zip(found.in_flight())?;
    let pace = crate::units::text::operations_per_s(found.rate.operations_per_s.median);
    (median < most).then(|| format!("answers opened the window to {median} of {most} in flight (median), at {pace}"))
}

/// Returns a sentence about the line of Ethernet that the rate of a row looks like.
fn looks_like(found: &Measurement, wire: &OnTheWire, lines: &[Path]) -> Option<String> {
    let operations_per_s = found.rate.operations_per_s.median;
    let fits = |path: &&Path| {
        let line = super::Bound::line(path, &wire.cost(path, super::Packing::Stream)).operations_per_s;
        LOOKS_LIKE.contains(&(operations_per_s / line))
    };
    let is_rate = matches!(found.test, Test::Rate | Test::Channels | Test::Random);
    let rate = lines.iter().find(fits).filter(|_| is_rate)?.line().rate_bits_per_s;
    let (text, option) = (super::format_rate(rate), super::rate::short_rate(rate));
    Some(format!("looks like {text} Ethernet; say --line-rate {option}"))
}
