//! Rates in bits per second, as people write them. Prefixes are decimal: a kilobit is 1,000 bits.

use super::LimitError;

const PREFIXES: [(char, f64); 4] = [('T', 1e12), ('G', 1e9), ('M', 1e6), ('k', 1e3)];

/// Parses a rate in bits per second from `1G`, `100M`, `2.5Gbit`, `984395kbit/s` or a plain number.
///
/// `bps` is refused, because `tc` means bytes by it and everybody else means bits.
///
/// # Errors
/// [`LimitError::UnreadableRate`] if the text is no rate, or the rate is not finite and above 0.
pub fn parse_rate(text: &str) -> Result<f64, LimitError> {
    let unreadable = || LimitError::UnreadableRate(text.into());
    let number_and_prefix = without(without(text.trim(), "/s"), "bit").trim_end();
    let (number, factor) = match number_and_prefix.chars().last() {
        Some(last) if last.is_ascii_alphabetic() => {
            let matching = PREFIXES.iter().find(|(prefix, _)| prefix.eq_ignore_ascii_case(&last));
            (&number_and_prefix[..number_and_prefix.len() - 1], matching.ok_or_else(unreadable)?.1)
        }
        _ => (number_and_prefix, 1.0),
    };
    let number: f64 = number.trim_end().parse().map_err(|_| unreadable())?;
    let rate = number * factor;
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(unreadable()) }
}

/// Returns a rate as the options take it: `2.5G`.
pub(super) fn short_rate(bits_per_s: f64) -> String {
    let (prefix, factor) = PREFIXES.into_iter().find(|(_, factor)| bits_per_s >= *factor).unwrap_or((' ', 1.0));
    format!("{}{prefix}", bits_per_s / factor).trim_end().to_owned()
}

fn without<'a>(text: &'a str, suffix: &str) -> &'a str {
    text.strip_suffix(suffix).unwrap_or(text)
}
