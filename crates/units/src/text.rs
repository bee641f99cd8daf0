//! Formats numbers for people: a few digits, a prefix, a unit. A number that is not finite becomes a dash.
//!
//! The last functions are for formulas, which are ASCII and have the digits that a reader computes with.

/// The text for an unknown value.
pub const UNKNOWN: &str = "–";

const PREFIXES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// Formats operations per second, as `157.2 k/s`.
#[must_use]
pub fn operations_per_s(value: f64) -> String {
    scaled(value, 4, |prefix| if prefix.is_empty() { "/s".into() } else { format!(" {prefix}/s") })
}

/// Formats bits per second, as `941.5 Mbit/s`.
#[must_use]
pub fn bits_per_s(value: f64) -> String {
    scaled(value, 4, |prefix| format!(" {prefix}bit/s"))
}

/// Formats a time given in nanoseconds, as `6.20 µs`.
#[must_use]
pub fn time_ns(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    let rounded = round_to(value, 3);
    let (unit_ns, unit) = match rounded {
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", digits(rounded / unit_ns, if unit_ns > 1.0 { 3 } else { 1 }))
}

/// Formats a share, as `94.1 %`: three digits below 100 %, whole percents above.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        v if !v.is_finite() => UNKNOWN.into(),
        0.0 => "0 %".into(),
        v if v < 0.001 => "<0.001 %".into(),
        v if v < 1.0 => format!("{value:.3} %"),
        v if v < 99.95 => format!("{value:.1} %"),
        _ => format!("{value:.0} %"),
    }
}

/// Formats a number and half the width of its interval, to the first digit of the latter: `1.7 ± 0.1`.
#[must_use]
pub fn with_uncertainty(value: f64, half_width: f64) -> String {
    if !value.is_finite() || !half_width.is_finite() {
        return UNKNOWN.into();
    }
    let decimals = (-half_width.log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{value:.decimals$} ± {half_width:.decimals$}")
}

/// Formats a size, exact if that is short: `1500 B`, `32 KiB`, `1 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if count >= unit && count.is_multiple_of(unit) && count / unit < 10_000 {
            return format!("{} {name}", count / unit);
        }
    }
    match UNITS.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) if count >= 100_000 => format!("{:.1} {name}", count as f64 / *unit as f64),
        _ => format!("{count} B"),
    }
}

/// Formats a count in groups of three digits: `12,345`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Rounds to a number of significant digits.
#[must_use]
pub fn round_to(value: f64, significant: usize) -> f64 {
    format!("{value:.*e}", significant - 1).parse().unwrap_or(value)
}

fn scaled(value: f64, significant: usize, unit: impl Fn(&str) -> String) -> String {
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    let rounded = round_to(value, significant);
    let (scale, prefix) = PREFIXES.into_iter().find(|(scale, _)| rounded.abs() >= *scale).unwrap_or((1.0, ""));
    format!("{}{}", digits(rounded / scale, significant), unit(prefix))
}

/// Formats `value`, below 1000 or so, with this many significant digits.
#[must_use]
pub fn digits(value: f64, significant: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let whole = if value.abs() >= 1.0 { value.abs().log10().floor() as usize + 1 } else { 1 };
    format!("{value:.*}", significant.saturating_sub(whole))
}

/// Formats a rate of events for a column that names its unit: `750.0`, `3676`, `123.5k`, `12.35M`.
#[must_use]
pub fn events(value: f64) -> String {
    match value {
        v if v >= 9_999_500.0 => format!("{:.2}M", v * 1e-6),
        v if v >= 99_995.0 => format!("{:.1}k", v * 1e-3),
        v if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

/// Formats a time given in seconds: `12.3 s`, `4 min 05 s`, `3 h 07 min`.
#[must_use]
pub fn seconds(value: f64) -> String {
    let whole = value.max(0.0) as u64;
    match whole {
        0..60 => format!("{value:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats bits per second without trailing zeros: `941.5 Mbit/s`, `10 Gbit/s`.
#[must_use]
pub fn format_rate(bits_per_s: f64) -> String {
    let text = self::bits_per_s(bits_per_s);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Formats operations per second in a formula, as `3676/s`.
#[must_use]
pub fn formula_rate(operations_per_s: f64) -> String {
    if operations_per_s >= 100.0 { format!("{operations_per_s:.0}/s") } else { format!("{operations_per_s:.3}/s") }
}

/// Formats a ratio in a formula: four decimals, without trailing zeros.
#[must_use]
pub fn formula_ratio(ratio: f64) -> String {
    ((ratio * 1e4).round() / 1e4).to_string()
}

/// Formats bytes in a formula, where their number may be a mean.
#[must_use]
pub fn formula_bytes(bytes: f64) -> String {
    if bytes.fract() == 0.0 { format!("{bytes:.0}") } else { format!("{bytes:.1}") }
}

/// Formats nanoseconds in a formula, as `100.00 us`.
#[must_use]
pub fn formula_time(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.2} us", ns / 1e3)
    } else {
        format!("{:.3} ms", ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_four_digits_and_a_prefix() {
        assert_eq!(operations_per_s(157_243.0), "157.2 k/s");
        assert_eq!(operations_per_s(999_990.0), "1.000 M/s");
        assert_eq!(operations_per_s(12.0), "12.00/s");
        assert_eq!(bits_per_s(941_482_379.0), "941.5 Mbit/s");
        assert_eq!(bits_per_s(73.12e9), "73.12 Gbit/s");
        assert_eq!(bits_per_s(0.0), "0 bit/s");
        assert_eq!(bits_per_s(f64::NAN), UNKNOWN);
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time_ns(6_204.0), "6.20 µs");
        assert_eq!(time_ns(999.6), "1.00 µs");
        assert_eq!(time_ns(412.0), "412 ns");
        assert_eq!(time_ns(123_456_789.0), "123 ms");
    }

    #[test]
    fn an_uncertainty_has_one_digit_and_its_number_no_more_than_that() {
        assert_eq!(with_uncertainty(1.7123, 0.1), "1.7 ± 0.1");
        assert_eq!(with_uncertainty(1.2, 0.0358), "1.20 ± 0.04");
        assert_eq!(with_uncertainty(41.6, 3.2), "42 ± 3");
        assert_eq!(with_uncertainty(1.111_11, 0.0), "1.111 ± 0.000");
        assert_eq!(with_uncertainty(f64::NAN, 0.1), UNKNOWN);
    }

    #[test]
    fn sizes_are_exact_where_that_is_short() {
        assert_eq!(bytes(64), "64 B");
        assert_eq!(bytes(32_768), "32 KiB");
        assert_eq!(bytes(32_012), "32012 B");
        assert_eq!(bytes(1_000_000), "976.6 KiB");
        assert_eq!(bytes(1 << 20), "1 MiB");
        assert_eq!(bytes(807_076 << 10), "788.2 MiB");
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!(percent(0.941), "94.1 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.000_12), "0.012 %");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn columns_and_times_are_short() {
        assert_eq!([0.0, 3.25, 3676.4, 123_456.0, 12_345_678.0].map(events), ["0", "3.2", "3676", "123.5k", "12.35M"]);
        assert_eq!([12.34, 245.0, 11_220.0].map(seconds), ["12.3 s", "4 min 05 s", "3 h 07 min"]);
        assert_eq!(
            [941.4824e6, 10e9, 2.5e9, 999.0].map(format_rate),
            ["941.5 Mbit/s", "10 Gbit/s", "2.5 Gbit/s", "999 bit/s"]
        );
    }
}
