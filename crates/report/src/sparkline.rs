//! A curve in one line of text.

/// A share in which nothing was done, which little is not.
const NOTHING: char = '·';
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values, from 0 to their largest, in at most `width` characters; each stands for the mean of its share.
#[must_use]
pub fn sparkline(values: &[f64], width: usize) -> String {
    let cells = width.min(values.len());
    let means: Vec<f64> = (0..cells)
        .map(|cell| {
            let share = &values[cell * values.len() / cells..(cell + 1) * values.len() / cells];
            share.iter().sum::<f64>() / share.len() as f64
        })
        .collect();
    let largest = means.iter().copied().filter(|mean| mean.is_finite()).fold(0.0, f64::max);
    means.iter().map(|mean| if mean.is_finite() { bar(*mean, largest) } else { ' ' }).collect()
}

fn bar(value: f64, largest: f64) -> char {
    if value <= 0.0 {
        return NOTHING;
    }
    let level = (value / largest * BARS.len() as f64).ceil() as usize;
    BARS[level.clamp(1, BARS.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_from_zero_to_the_largest() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 4.0, 8.0], 9), "·▁▂▄█");
        assert_eq!(sparkline(&[5.0, 5.0, 5.0], 3), "███");
    }

    #[test]
    fn means_over_more_values_than_characters() {
        assert_eq!(sparkline(&[1.0, 1.0, 8.0, 8.0], 2), "▁█");
    }

    #[test]
    fn nothing_and_nonsense_draw_no_bars() {
        assert_eq!(sparkline(&[], 8), "");
        assert_eq!(sparkline(&[0.0, 0.0], 8), "··");
        assert_eq!(sparkline(&[f64::NAN, 1.0], 8), " █");
    }
}
