use super::status::Moment;
use std::sync::{Mutex, PoisonError};

/// Moments that are kept; then every second one is dropped.
const MOMENTS_MAX: usize = 400;
/// Seconds between two moments at first.
const SPACING_S: f64 = 0.25;

/// Progress of a farm at moments spread evenly over its run.
pub struct Timeline(Mutex<Kept>);

struct Kept {
    moments: Vec<Moment>,
    spacing_s: f64,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline(Mutex::new(Kept { moments: Vec::new(), spacing_s: SPACING_S }))
    }
}

impl Timeline {
    /// Keeps a moment. Returns the seconds until the next one is due.
    pub fn note(&self, moment: Moment) -> f64 {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.moments.len() == MOMENTS_MAX {
            let mut index = 0;
            kept.moments.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            kept.spacing_s *= 2.0;
        }
        kept.moments.push(moment);
        kept.spacing_s
    }

    /// Returns the moments so far.
    pub fn moments(&self) -> Vec<Moment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).moments.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_length_has_a_bounded_number_of_moments_evenly_over_it() {
        let timeline = Timeline::default();
        let (mut at_s, mut count) = (0.0, 0);
        while at_s < 20_000.0 {
            at_s += timeline.note(Moment { at_s, ..Moment::default() });
            count += 1;
        }
        let moments = timeline.moments();
        assert!(count < 5000 && (MOMENTS_MAX / 2..=MOMENTS_MAX).contains(&moments.len()), "{count}");
        let spans: Vec<f64> = moments.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
        let (least, most) = spans.iter().fold((f64::MAX, 0.0_f64), |(a, b), span| (a.min(*span), b.max(*span)));
        assert!(most <= 2.0 * least, "from {least} to {most}");
    }
}
