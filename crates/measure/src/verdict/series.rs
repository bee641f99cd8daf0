//! A run cut into pieces of about the same length, and how much their rates vary.

use super::{NOISE_MAX, NOISE_PIECES};
use crate::Interval;
use crate::statistics::{coefficient_of_variation, median};

/// The most pieces in which slope, step and spread are judged: long enough to even out single hiccups.
pub(super) const PIECES_MAX: usize = 50;
/// Two levels are looked for in as many pieces as there are, because a piece that holds both hides them.
pub(super) const PIECES_FINE: usize = 200;
/// Longer pieces are made only if there are as many of them as this: of fewer, chance makes too many look even.
const PIECES_COARSE: usize = 12;
/// Fewer operations in a piece than this are no rate.
const OPERATIONS_MIN: u64 = 4;

/// Operations per second, piece by piece, all pieces about equally long.
pub(super) struct Series {
    pub rates: Vec<f64>,
    pub operations_per_piece: f64,
    bits_per_operation: f64,
}

impl Series {
    /// Cuts the run into at most so many pieces, of four operations or more each.
    pub fn new(intervals: &[Interval], pieces_max: usize) -> Self {
        let operations: u64 = intervals.iter().map(|interval| interval.operations).sum();
        let bytes: u64 = intervals.iter().map(|interval| interval.payload_bytes).sum();
        let pieces = pieces_max.min(usize::try_from(operations / OPERATIONS_MIN).unwrap_or(pieces_max));
        let together = intervals.len().div_ceil(pieces.max(1)).max(1);
        let mut from_s = 0.0;
        let mut rates = Vec::with_capacity(pieces_max);
        // The remainder at the end is too short to compare.
        for group in intervals.chunks_exact(together) {
            let to_s = group[together - 1].t_s;
            let done: u64 = group.iter().map(|interval| interval.operations).sum();
            if to_s > from_s {
                rates.push(done as f64 / (to_s - from_s));
            }
            from_s = to_s;
        }
        Series {
            operations_per_piece: operations as f64 / rates.len().max(1) as f64,
            bits_per_operation: if operations == 0 { 0.0 } else { bytes as f64 * 8.0 / operations as f64 },
            rates,
        }
    }

    /// Returns two rates in one unit: of payload where there is any.
    pub fn pair(&self, first: f64, second: f64) -> (String, String, &'static str) {
        let per = if self.bits_per_operation > 0.0 { self.bits_per_operation } else { 1.0 };
        let (first, second) = (first * per, second * per);
        let scales = [(1e9, "Gbit/s", "G/s"), (1e6, "Mbit/s", "M/s"), (1e3, "kbit/s", "k/s"), (1.0, "bit/s", "/s")];
        let larger = first.max(second);
        // A thousand of a unit still reads well; ten thousand does not.
        let fit = scales.into_iter().find(|(scale, ..)| larger >= 2.0 * scale).unwrap_or(scales[3]);
        let digits = |value: f64| {
            let scaled = value / fit.0;
            if scaled >= 100.0 { format!("{scaled:.0}") } else { format!("{scaled:.1}") }
        };
        let unit = if self.bits_per_operation > 0.0 { fit.1 } else { fit.2 };
        (digits(first), digits(second), unit)
    }
    /// Returns the series of fewer and longer pieces, unless they are too few.
    pub fn coarser<'a>(&self, intervals: &'a [Interval]) -> impl Iterator<Item = Series> + use<'a> {
        let pieces = self.rates.len();
        let of = move |pieces_max| Series::new(intervals, pieces_max);
        let is_coarser = move |series: &Series| (PIECES_COARSE..pieces).contains(&series.rates.len());
        [PIECES_MAX / 2, PIECES_MAX / 3].into_iter().map(of).filter(is_coarser)
    }

    /// Returns the standard deviation of the rates as a share of their mean.
    pub fn variation(&self) -> f64 {
        coefficient_of_variation(&self.rates)
    }

    /// Returns whether the rates vary so little that a step which matters would be seen.
    pub fn is_steady(&self) -> bool {
        self.variation() <= NOISE_MAX * (self.rates.len() as f64 / NOISE_PIECES).sqrt().min(1.0)
    }

    /// Returns whether the rates vary no more than those of as many arrivals at random, by three standard deviations of that.
    pub fn is_by_chance(&self) -> bool {
        let pieces = self.rates.len() as f64;
        self.variation().powi(2) <= (1.0 + 3.0 * (2.0 / pieces).sqrt()) / self.operations_per_piece
    }

    /// Returns the rates at both ends: the medians of a tenth of the pieces, and no fewer than three.
    pub fn ends(&self) -> (f64, f64) {
        let edge = (self.rates.len() / 10).max(3);
        (median(&self.rates[..edge]), median(&self.rates[self.rates.len() - edge..]))
    }
}
