//! Formats numbers for people: a few digits, a prefix, a unit. A number that is not finite becomes a dash.

/// The text for an unknown value.
pub(crate) const UNKNOWN: &str = "–";

const PREFIXES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// Formats operations per second, as `157.2 k/s`.
pub(crate) fn operations_per_s(value: f64) -> String {
    scaled(value, 4, |prefix| if prefix.is_empty() { "/s".into() } else { format!(" {prefix}/s") })
}

/// Formats bits per second, as `941.5 Mbit/s`.
pub(crate) fn bits_per_s(value: f64) -> String {
    scaled(value, 4, |prefix| format!(" {prefix}bit/s"))
}

/// Formats a time given in nanoseconds, as `6.20 µs`.
pub(crate) fn time_ns(value: f64) -> String {
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
pub(crate) fn percent(share: f64) -> String {
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

/// Formats a size, exact if that is short: `1500 B`, `32 KiB`, `1 MiB`.
pub(crate) fn bytes(count: u64) -> String {
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
pub(crate) fn count(value: u64) -> String {
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
pub(crate) fn round_to(value: f64, significant: usize) -> f64 {
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
pub(crate) fn digits(value: f64, significant: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let whole = if value.abs() >= 1.0 { value.abs().log10().floor() as usize + 1 } else { 1 };
    format!("{value:.*}", significant.saturating_sub(whole))
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
}
