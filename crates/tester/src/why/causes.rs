//! The causes that a rate can have, and by what factor each of them predicts that an experiment changes it.

use super::trials::Knob;
use hodo_measure::{Binding, Measurement};

/// A prediction that is met within this share held.
pub(super) const HELD_WITHIN: f64 = 0.15;

/// Returns whether a prediction held.
pub(super) fn held(predicted: f64, found: f64) -> bool {
    (found / predicted - 1.0).abs() <= HELD_WITHIN
}

/// An experiment and the factor by which it changed the rate of operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub(super) knob: Knob,
    pub(super) factor: f64,
}

/// The causes that are compared.
const ALL: [Binding; 10] = [
    Binding::Line,
    Binding::Window,
    Binding::RoundTrip,
    Binding::Schedule,
    Binding::Cpu,
    Binding::FarEnd,
    Binding::Loss,
    Binding::Buffer,
    Binding::Quota,
    Binding::Others,
];
/// The error, in powers of e, that speaks as much against a cause as that the row's own counters do not show it.
const UNSEEN: f64 = 0.2;
/// Causes that never go without leaving their trace in the counters.
const ALWAYS_SEEN: [Binding; 5] = [Binding::Loss, Binding::Quota, Binding::Others, Binding::Schedule, Binding::FarEnd];
/// The largest error of one experiment that counts.
const ERROR_MAX: f64 = 0.7;
/// A cause whose predictions are worse than this on average explains nothing.
const FITS: f64 = 0.35;
/// A factor that differs from 1 by this much is a change.
const CHANGE: f64 = 0.2;

/// The causes, and what has been found so far.
pub(super) struct Causes {
    observed: Binding,
    is_lone: bool,
    found: Vec<Found>,
}

impl Causes {
    /// Begins with what a row's counters say.
    pub(super) fn of(base: &Measurement) -> Causes {
        let observed = base.limit.as_ref().map_or(Binding::Unknown, |limit| limit.binds);
        Causes { observed, is_lone: base.in_flight() == Some(1), found: Vec::new() }
    }

    /// Adds what an experiment found.
    pub(super) fn add(&mut self, found: Found) {
        self.found.push(found);
    }

    pub(super) fn all(&self) -> &[Found] {
        &self.found
    }

    /// Returns the cause that explains best what has been found; the counters' own word before any experiment.
    pub(super) fn best(&self) -> Binding {
        let others = ALL.into_iter().filter(|cause| *cause != self.observed && self.is_possible(*cause));
        let scored = others.filter_map(|cause| Some((cause, self.error(cause)?)));
        let least = scored.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, error)| *error < FITS);
        let own =
            if self.observed == Binding::Unknown { f64::INFINITY } else { self.error(self.observed).unwrap_or(0.0) };
        least.filter(|(_, error)| error + UNSEEN < own).map_or(self.observed, |(cause, _)| cause)
    }

    /// Returns the factor that the leading cause predicts for an experiment; `None` if it predicts none.
    pub(super) fn predicted(&self, knob: Knob) -> Option<f64> {
        factor(self.best(), knob)
    }

    /// Returns whether a change that the leading cause predicted, and most others do not, came about.
    pub(super) fn is_confirmed(&self) -> bool {
        let best = self.best();
        self.found.iter().any(|found| {
            factor(best, found.knob).is_some_and(|factor| {
                (factor - 1.0).abs() > CHANGE && found.knob != Knob::Pace && held(factor, found.factor)
            })
        })
    }

    /// Returns whether everything that the leading cause predicted came about.
    pub(super) fn fits(&self) -> bool {
        let best = self.best();
        self.found.iter().all(|found| factor(best, found.knob).is_none_or(|factor| held(factor, found.factor)))
    }

    fn is_possible(&self, cause: Binding) -> bool {
        let fits_the_plan = match cause {
            Binding::RoundTrip => self.is_lone,
            Binding::Window => !self.is_lone,
            _ => true,
        };
        fits_the_plan && !ALWAYS_SEEN.contains(&cause)
    }

    /// Returns the mean error of a cause's predictions, in powers of e; `None` before any experiment that it predicts.
    fn error(&self, cause: Binding) -> Option<f64> {
        let errors: Vec<f64> = self
            .found
            .iter()
            .filter_map(|found| Some((found.factor / factor(cause, found.knob)?).ln().abs().min(ERROR_MAX)))
            .collect();
        (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64)
    }
}

/// Returns the factor by which an experiment changes the rate of operations where this cause binds; `None` where that depends on more.
fn factor(cause: Binding, knob: Knob) -> Option<f64> {
    use Binding::{Buffer, Cpu, FarEnd, Line, Loss, Others, Quota, RoundTrip, Schedule, Window};
    match knob {
        // What an operation costs changes with how many of them a wake-up finds.
        Knob::Pace => (!matches!(cause, Quota | Others)).then_some(0.9),
        Knob::RateTwice => (cause == Schedule).then_some(2.0),
        Knob::WindowTwice => match cause {
            Window | RoundTrip => Some(2.0),
            Cpu | FarEnd | Loss | Quota | Others => None,
            _ => Some(1.0),
        },
        Knob::WindowHalf => match cause {
            Window => Some(0.5),
            Cpu | FarEnd | Loss | Quota | Others => None,
            _ => Some(1.0),
        },
        Knob::SizeTwice => match cause {
            Line | Buffer => Some(0.5),
            // Of a loss it matters what waits for what came again: a stream, or one request.
            Cpu | FarEnd | Loss | Quota | Others => None,
            _ => Some(1.0),
        },
        // Each stream has a congestion window, a buffer and a window of its own.
        Knob::TwoChannels => match cause {
            Window | RoundTrip | Buffer => Some(2.0),
            Line | Schedule => Some(1.0),
            _ => None,
        },
        // Losses by chance make two runs of one plan differ by more than either changes.
        Knob::Spin | Knob::OneProcessor => matches!(cause, Line | Buffer | Schedule | FarEnd).then_some(1.0),
        Knob::Congestion => (!matches!(cause, Loss | Buffer | Cpu | Quota | Others)).then_some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(observed: Binding, is_lone: bool, found: &[(Knob, f64)]) -> Causes {
        let found = found.iter().map(|&(knob, factor)| Found { knob, factor }).collect();
        Causes { observed, is_lone, found }
    }

    #[test]
    fn the_counters_come_first_and_the_experiments_decide() {
        assert_eq!(causes(Binding::Window, false, &[]).best(), Binding::Window);
        let line = [(Knob::WindowTwice, 1.01), (Knob::WindowHalf, 0.98), (Knob::SizeTwice, 0.5)];
        assert_eq!(causes(Binding::Unknown, false, &line).best(), Binding::Line);
        let window = [(Knob::WindowTwice, 1.9), (Knob::WindowHalf, 0.52), (Knob::SizeTwice, 0.97)];
        let found = causes(Binding::Unknown, false, &window);
        assert_eq!(found.best(), Binding::Window);
        assert!(found.is_confirmed() && found.fits());
        // Counters that the experiments contradict.
        assert_eq!(causes(Binding::Line, false, &window).best(), Binding::Window);
    }

    #[test]
    fn a_buffer_is_told_from_a_line_by_a_second_stream() {
        let first = [(Knob::WindowTwice, 1.0), (Knob::SizeTwice, 0.5)];
        for (second, expected) in [(1.0, Binding::Line), (2.0, Binding::Buffer)] {
            let found = [first.as_slice(), &[(Knob::TwoChannels, second)]].concat();
            assert_eq!(causes(Binding::Unknown, false, &found).best(), expected);
        }
    }

    #[test]
    fn nothing_is_named_that_explains_nothing() {
        let odd = [(Knob::WindowTwice, 0.3), (Knob::WindowHalf, 3.0), (Knob::SizeTwice, 4.0)];
        assert_eq!(causes(Binding::Unknown, false, &odd).best(), Binding::Unknown);
        // Losses leave their trace in the counters.
        assert_ne!(causes(Binding::Unknown, false, &[(Knob::SizeTwice, 0.5)]).best(), Binding::Loss);
    }
}
