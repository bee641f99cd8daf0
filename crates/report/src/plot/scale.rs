//! Maps values to places on an axis, and chooses its ticks.

use crate::units;

/// The quantity that an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    BitsPerS,
    OperationsPerS,
    TimeNs,
    Bytes,
    Count,
    Percent,
    Seconds,
    /// How many times as fast as something else.
    Times,
    /// 1 / (1 - p) for the percentile p.
    Tail,
}

/// An axis: its ends, and whether it is logarithmic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    unit: Unit,
    log: bool,
    /// Whether zero has a place below the low end of a logarithmic axis: a curve goes down to it, and not across.
    zero: bool,
    low: f64,
    high: f64,
}

/// The ratio of sizes under which a logarithmic axis would hardly have a power of two to name.
const NARROW_BYTES: f64 = 4.0;
/// The share of a logarithmic axis that lies between zero and its low end.
const ABOVE_ZERO: f64 = 0.1;
/// The ratio of largest to smallest over which a linear axis would hide the small.
const LOG_FROM_RATIO: f64 = 30.0;

impl Scale {
    /// Fits an axis to these values: from 0, or logarithmic if they span much. `None` without a usable value.
    pub(super) fn fitting(unit: Unit, values: impl Iterator<Item = f64>) -> Option<Scale> {
        let always_log = matches!(unit, Unit::Count | Unit::Tail);
        let (mut low, mut high, mut zero) = (f64::INFINITY, 0.0f64, false);
        for value in values.filter(|value| value.is_finite() && *value >= 0.0) {
            if value > 0.0 {
                (low, high) = (low.min(value), high.max(value));
            } else {
                zero = true;
            }
        }
        if high <= 0.0 {
            return None;
        }
        let has_powers = unit == Unit::Bytes && !(high / low > 1.0 && high / low < NARROW_BYTES);
        if always_log || has_powers {
            let pad = if unit == Unit::Tail { 1.0 } else { (high / low).powf(0.03).max(1.1) };
            return Some(Scale { unit, log: true, zero: false, low: low / pad, high: (high * pad).max(low * 1.5) });
        }
        if high / low > LOG_FROM_RATIO && unit != Unit::Percent && unit != Unit::Seconds {
            return Some(Scale { unit, log: true, zero, low: nice_below(low), high: nice_above(high) });
        }
        let high = if unit == Unit::Seconds { high } else { linear_top(high) };
        Some(Scale { unit, log: false, zero: false, low: 0.0, high })
    }

    /// Creates a linear axis from 0 to `high`.
    pub(super) const fn from_zero(unit: Unit, high: f64) -> Scale {
        Scale { unit, log: false, zero: false, low: 0.0, high }
    }

    /// Returns the place of a value: 0 at the low end, 1 at the high one; `None` if it has none.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let along = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let place = match self.zero {
            true if value == 0.0 => 0.0,
            true => ABOVE_ZERO + (1.0 - ABOVE_ZERO) * along.max(0.0),
            false => along,
        };
        place.is_finite().then_some(place.clamp(0.0, 1.0))
    }

    /// Returns the values of ticks, with labels: at most about `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let values = match (self.unit, self.log) {
            (Unit::Bytes, true) => self.powers(2.0, most),
            (Unit::Tail, _) => self.tail_ticks(),
            (_, true) => self.decades(most),
            (_, false) => self.steps(most),
        };
        let zero = self.zero.then_some(0.0);
        zero.into_iter().chain(values).map(|value| (value, self.label(value))).collect()
    }

    fn powers(&self, base: f64, most: usize) -> Vec<f64> {
        let (first, last) = ((self.low.ln() / base.ln()).ceil() as i32, (self.high.ln() / base.ln()).floor() as i32);
        let stride = ((last - first) as usize / most.max(1) + 1) as i32;
        (first..=last).step_by(stride as usize).map(|power| base.powi(power)).collect()
    }

    fn decades(&self, most: usize) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        if decades > 3.0 {
            return self.powers(10.0, most);
        }
        let factors: &[f64] = if decades > 1.5 { &[1.0, 3.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.low.log10().floor() as i32;
        let within = |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
        (first..=first + 4)
            .flat_map(|power| factors.iter().map(move |f| f * 10f64.powi(power)))
            .filter(within)
            .collect()
    }

    fn tail_ticks(&self) -> Vec<f64> {
        let tens = (1..=9).map(|power| 10f64.powi(power));
        std::iter::once(2.0).chain(tens).filter(|value| *value <= self.high * 1.001).collect()
    }

    fn steps(&self, most: usize) -> Vec<f64> {
        let least = (self.high - self.low) / most.max(1) as f64;
        let step = if self.unit == Unit::Bytes { least.log2().ceil().exp2() } else { nice_above(least) };
        let count = ((self.high - self.low) / step * 1.000_001).floor() as u32;
        (0..=count).map(|index| self.low + step * f64::from(index)).collect()
    }

    fn label(&self, value: f64) -> String {
        trimmed(&self.unit.text(value))
    }
}

impl Unit {
    /// Returns a value with its unit.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Unit::BitsPerS => units::bits_per_s(value),
            Unit::OperationsPerS => units::operations_per_s(value),
            Unit::TimeNs => units::time_ns(value),
            Unit::Bytes => units::bytes(value as u64),
            Unit::Count => units::count(value as u64),
            Unit::Percent => format!("{} %", units::round_to(value, 3)),
            Unit::Times => format!("{} ×", units::round_to(value, 3)),
            Unit::Seconds => format!("{} s", units::round_to(value, 6)),
            // As many digits as tell this percentile from the next.
            Unit::Tail => format!("{:.*} %", (value.log10() as usize).max(1), 100.0 - 100.0 / value),
        }
    }
}

/// Shortens `10.00 Gbit/s` to `10 Gbit/s`, and zero to a plain 0.
fn trimmed(label: &str) -> String {
    let number_end = label.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(label.len());
    let (number, unit) = label.split_at(number_end);
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    if number == "0" && !unit.contains('%') { number.to_owned() } else { format!("{number}{unit}") }
}

const NICE: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

fn nice_above(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    NICE.into_iter().map(|nice| nice * decade).find(|nice| *nice >= value * 0.999_999).unwrap_or(10.0 * decade)
}

fn nice_below(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    NICE.into_iter().rev().map(|nice| nice * decade).find(|nice| *nice <= value * 1.000_001).unwrap_or(decade)
}

/// Returns the end of a linear axis: a little over the largest value, at a quarter of a nice step.
fn linear_top(high: f64) -> f64 {
    let step = nice_above(high / 5.0) / 2.0;
    (high * 1.04 / step).ceil() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, values: &[f64], most: usize) -> Vec<String> {
        let scale = Scale::fitting(unit, values.iter().copied()).unwrap();
        scale.ticks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(labels(Unit::Bytes, &[64.0, 1_048_576.0], 6), ["64 B", "512 B", "4 KiB", "32 KiB", "256 KiB"]);
    }

    /// Takes the means of sizes that are drawn up to 16 KiB, which are all between 8 and 15 KiB.
    #[test]
    fn sizes_that_are_near_each_other_have_more_than_one_tick() {
        let sizes = [8_200.0, 9_216.0, 14_336.0];
        assert_eq!(labels(Unit::Bytes, &sizes, 6), ["0", "4 KiB", "8 KiB", "12 KiB"]);
        assert_eq!(labels(Unit::Bytes, &[64.0], 6), ["64 B"]);
    }

    #[test]
    fn a_wide_range_is_logarithmic_and_a_narrow_one_starts_at_zero() {
        assert_eq!(
            labels(Unit::BitsPerS, &[4e8, 5e10], 6),
            ["300 Mbit/s", "1 Gbit/s", "3 Gbit/s", "10 Gbit/s", "30 Gbit/s"]
        );
        assert_eq!(labels(Unit::TimeNs, &[6_000.0, 9_000.0], 5), ["0", "2 µs", "4 µs", "6 µs", "8 µs", "10 µs"]);
    }

    #[test]
    fn a_silence_is_at_the_bottom_of_a_logarithmic_axis() {
        let values = [250e3, 0.0, 16e6];
        assert_eq!(labels(Unit::BitsPerS, &values, 6), ["0", "300 kbit/s", "1 Mbit/s", "3 Mbit/s", "10 Mbit/s"]);
        let scale = Scale::fitting(Unit::BitsPerS, values.into_iter()).unwrap();
        let places = [0.0, 200e3, 20e6].map(|value| scale.place(value).unwrap());
        assert_eq!(places, [0.0, ABOVE_ZERO, 1.0]);
    }

    #[test]
    fn tails_are_percentiles() {
        assert_eq!(labels(Unit::Tail, &[1.0, 1e4], 9), ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn nothing_has_no_scale_and_one_value_has_a_place() {
        assert_eq!(Scale::fitting(Unit::BitsPerS, [0.0, f64::NAN].into_iter()), None);
        let scale = Scale::fitting(Unit::Bytes, [64.0].into_iter()).unwrap();
        assert!(scale.place(64.0).unwrap() > 0.0);
        assert_eq!(scale.place(f64::NAN), None);
    }
}
