//! Quantities as people write them: `32K`, `1G`, `200ms`, `5%`, `0,2-3`, `spin:50us`; and their averages and spread.

pub mod statistics;
pub mod text;

use hodo_machine::Wait;
use std::net::SocketAddr;
use std::time::Duration;

/// The shortest and the longest time that an option takes.
const DURATION_MIN: Duration = Duration::from_millis(1);
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// More processors than any machine has.
const CPU_MAX: usize = 4095;

/// Parses a number of bytes: a whole number, or with K, M or G as powers of 1024, also as KiB, MiB and GiB.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn bytes(text: &str) -> Result<u64, String> {
    let short = text.strip_suffix("iB").filter(|short| short.ends_with(['K', 'M', 'G'])).unwrap_or(text);
    let (digits, power) = match short.char_indices().last() {
        Some((at, 'K' | 'k')) => (&short[..at], 1),
        Some((at, 'M' | 'm')) => (&short[..at], 2),
        Some((at, 'G' | 'g')) => (&short[..at], 3),
        _ => (short, 0),
    };
    let wrong = || format!("`{text}` is not a size in bytes; write 64, 32K or 1M (K, M, G are powers of 1024)");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1024_u64.pow(power)).ok_or_else(wrong)
}

/// Parses the bytes of a socket buffer.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn buffer(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        size @ 1024..=0x4000_0000 => Ok(usize::try_from(size).expect("at most 1 GiB")),
        _ => Err(format!("{text} is not in 1K..=1G")),
    }
}

/// Parses a rate per second: a number, or with K, M, G or T as powers of 1000, with or without `/s`.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn rate(text: &str) -> Result<f64, String> {
    let short = text.strip_suffix("/s").unwrap_or(text);
    let (digits, factor) = match short.char_indices().last() {
        Some((at, 'K' | 'k')) => (&short[..at], 1e3),
        Some((at, 'M' | 'm')) => (&short[..at], 1e6),
        Some((at, 'G' | 'g')) => (&short[..at], 1e9),
        Some((at, 'T' | 't')) => (&short[..at], 1e12),
        _ => (short, 1.0),
    };
    let number = decimal(digits).filter(|number| *number > 0.0);
    number.map(|number| number * factor).ok_or_else(|| {
        format!("`{text}` is not a rate above 0; write 5000, 10K, 1G or 2.5G (K, M, G, T are powers of 1000)")
    })
}

/// Parses the bits per second of a line or a pace, from 1 kbit/s to 1 Pbit/s: `1G`, also as `1Gbps` or `1Gbit/s`.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn line_rate(text: &str) -> Result<f64, String> {
    let units = ["bit/s", "bps", "b/s", "bit"];
    let rate = rate(units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text).trim_end())?;
    if (1e3..=1e15).contains(&rate) { Ok(rate) } else { Err(format!("{text} is not in 1K..=1000T bits per second")) }
}

/// Parses a span of time with its unit, from 1 ms to 24 h; a bare number is seconds.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = if decimal(text).is_some() { span(&format!("{text}s"))? } else { span(text)? };
    if (DURATION_MIN..=DURATION_MAX).contains(&span) { Ok(span) } else { Err(format!("{text} is not in 1ms..=24h")) }
}

/// Parses a warm-up: none, or a span of time up to 24 h.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn warmup(text: &str) -> Result<Duration, String> {
    let span = if text == "0" { Duration::ZERO } else { span(text)? };
    if span <= DURATION_MAX { Ok(span) } else { Err(format!("{text} is not in 0..=24h")) }
}

/// Parses a span of time with its unit, however short.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn span(text: &str) -> Result<Duration, String> {
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let wrong = || match unit {
        "" if !digits.is_empty() => format!("`{text}` has no unit; write {text}s for seconds, or {text}ms, {text}us"),
        _ => format!("`{text}` is not a duration; write 2s, 200ms, 50us, 5m or 1h"),
    };
    let nanos_per_unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(wrong()),
    };
    let nanos = (decimal(digits).ok_or_else(wrong)? * nanos_per_unit).round();
    // 2^63 ns are 292 years; below that the conversion is exact enough.
    if nanos < 9.2e18 { Ok(Duration::from_nanos(nanos as u64)) } else { Err(wrong()) }
}

/// Parses a share in percent, with or without the sign: above 0, below 100.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = decimal(text.strip_suffix('%').unwrap_or(text));
    number
        .filter(|number| *number > 0.0 && *number < 100.0)
        .ok_or_else(|| format!("`{text}` is not a percentage above 0 and below 100; write 95 or 5%"))
}

/// Parses a number above zero.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn positive(text: &str) -> Result<f64, String> {
    decimal(text).filter(|number| *number > 0.0).ok_or_else(|| format!("`{text}` is not a number above 0"))
}

/// Parses an address of this host, or of another one by its numbers, and a port.
///
/// # Errors
/// A sentence that says what to write instead.
fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an address in numbers and a port, as 127.0.0.1:9203"))
}

/// Parses where the pages of a hub are: an address and a port, also as the hub prints it and as a browser shows it.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn pages(text: &str) -> Result<SocketAddr, String> {
    let Some(rest) = text.strip_prefix("http://") else { return socket_address(text) };
    socket_address(rest.split('/').next().unwrap_or_default())
}

/// Parses a word of 32 bits: decimal, or behind 0x hexadecimal, or behind 0b binary.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn word(text: &str) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => (lower.as_str(), 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(format!("`{text}` is not a number; write 16, 0x10 or 0b10000"));
    }
    u32::from_str_radix(digits, radix).map_err(|_| format!("{text} is over 32 bits; write at most 0xFFFFFFFF"))
}

/// Parses a word of 32 bits, or minus one of 31.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn signed_word(text: &str) -> Result<u32, String> {
    let Some(positive) = text.strip_prefix('-') else { return word(text) };
    match word(positive) {
        Ok(word) if word <= 1 << 31 => Ok(word.wrapping_neg()),
        _ => Err(format!("`{text}` is not a number from -0x80000000 to 0xFFFFFFFF")),
    }
}

/// Processors, in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus(pub Vec<usize>);

/// Parses processors: numbers and ranges, each once.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let wrong = || format!("`{text}` is not a list of processors; write 0,1 or 0-3,8 (0..={CPU_MAX}, each once)");
    let mut cpus = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let first: usize = first.parse().map_err(|_| wrong())?;
        let last: usize = last.parse().map_err(|_| wrong())?;
        if first > last || last > CPU_MAX {
            return Err(wrong());
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(wrong());
            }
            cpus.push(cpu);
        }
    }
    Ok(Cpus(cpus))
}

/// Parses how to wait: `adaptive`, `block`, `spin`, or `spin:50us` for spinning that long before blocking.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn wait(text: &str) -> Result<Wait, String> {
    match text.split_once(':') {
        None if text == "adaptive" => Ok(Wait::Adaptive),
        None if text == "block" => Ok(Wait::Block),
        None if text == "spin" => Ok(Wait::Spin),
        Some(("spin", time)) => match span(time)? {
            time if time >= Duration::from_micros(1) && time <= Duration::from_secs(1) => Ok(Wait::SpinThenBlock(time)),
            _ => Err(format!("spin:{time} is not in spin:1us..=spin:1s")),
        },
        _ => Err(format!("`{text}` is not a way to wait; write adaptive, block, spin or spin:50us")),
    }
}

/// Formats a span of time as the options take it.
#[must_use]
pub fn span_text(span: Duration) -> String {
    let nanos = span.as_nanos();
    for (unit, nanos_per_unit) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanos.is_multiple_of(nanos_per_unit) {
            return format!("{}{unit}", nanos / nanos_per_unit);
        }
    }
    format!("{nanos}ns")
}

/// Formats processors as the options take them.
#[must_use]
pub fn cpus_text(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Parses a plain decimal number: digits and at most one point, no sign and no exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain && text.bytes().any(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_in_1024() {
        for (text, expected) in [
            ("0", 0),
            ("64", 64),
            ("32K", 32 << 10),
            ("32k", 32 << 10),
            ("1M", 1 << 20),
            ("2G", 2 << 30),
            ("64KiB", 64 << 10),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5K", "1KB", "1 K", "0x10", "é", "99999999999999999999", "99999999999G"] {
            let wrong = bytes(text).unwrap_err();
            assert!(wrong.contains(&format!("`{text}`")) && wrong.contains("32K"), "{wrong}");
        }
    }

    #[test]
    fn pages_are_found_as_the_hub_says_where_they_are() {
        let expected = Ok("127.0.0.1:9203".parse().unwrap());
        for text in
            ["127.0.0.1:9203", "http://127.0.0.1:9203", "http://127.0.0.1:9203/", "http://127.0.0.1:9203/metrics"]
        {
            assert_eq!(pages(text), expected, "{text}");
        }
        for text in ["", "localhost:9203", "127.0.0.1", "http://", "https://127.0.0.1:9203"] {
            let wrong = pages(text).unwrap_err();
            assert!(wrong.contains("127.0.0.1:9203"), "{wrong}");
        }
    }

    #[test]
    fn buffers_have_a_range() {
        assert_eq!(buffer("4M"), Ok(4 << 20));
        assert!(buffer("1").unwrap_err().contains("1K..=1G"));
        assert!(buffer("2G").unwrap_err().contains("1K..=1G"));
    }

    #[test]
    fn rates_count_in_1000() {
        for (text, expected) in
            [("5000", 5e3), ("10K", 1e4), ("1G", 1e9), ("2.5G", 2.5e9), ("0.5", 0.5), ("1T", 1e12), ("2K/s", 2e3)]
        {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "0G", "-1", "G", ".", "1e9", "inf", "NaN", "1..2"] {
            assert!(rate(text).unwrap_err().contains("1000"), "{text}");
        }
    }

    #[test]
    fn lines_are_written_in_several_ways() {
        for text in ["1G", "1Gbps", "1Gbit/s", "1 Gbit/s", "1Gb/s", "1000M"] {
            assert_eq!(line_rate(&text.replace(' ', "")), Ok(1e9), "{text}");
        }
        assert!(line_rate("1GbE").unwrap_err().contains("`1GbE`"));
    }

    #[test]
    fn a_bare_number_is_seconds_of_a_duration_and_elsewhere_lacks_its_unit() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert!(span("5").unwrap_err().contains("write 5s for seconds"));
    }

    #[test]
    fn times_have_a_unit() {
        for (text, nanos) in [
            ("50ns", 50),
            ("50us", 50_000),
            ("50µs", 50_000),
            ("200ms", 200_000_000),
            ("2s", 2_000_000_000),
            ("1.5s", 1_500_000_000),
            ("5m", 300_000_000_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(span(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "s", "-1s", "2 s", "2sec", "1e3s", "999999999999h"] {
            assert!(span(text).unwrap_err().contains("200ms"), "{text}");
        }
    }

    #[test]
    fn durations_have_a_range() {
        assert_eq!(duration("1ms"), Ok(DURATION_MIN));
        assert_eq!(duration("24h"), Ok(DURATION_MAX));
        for text in ["999us", "0s", "25h"] {
            assert_eq!(duration(text), Err(format!("{text} is not in 1ms..=24h")));
        }
        assert_eq!(warmup("0"), Ok(Duration::ZERO));
        assert!(warmup("25h").is_err());
    }

    #[test]
    fn percentages_lie_between_0_and_100() {
        assert_eq!(percent("5%"), Ok(5.0));
        assert_eq!(percent("99.9"), Ok(99.9));
        for text in ["0", "100", "%", "-5%", "5%%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_have_32_bits() {
        for (text, expected) in [("0", 0), ("16", 16), ("0x10", 16), ("0XfF", 255), ("0b101", 5), ("0x00000000001", 1)]
        {
            assert_eq!(word(text), Ok(expected), "{text}");
        }
        for text in ["", "0x", "ff", "+1", "-1", " 1", "1.0", "0b2", "x10", "é"] {
            assert!(word(text).unwrap_err().contains("0x10"), "{text}");
        }
        assert!(word("0x100000000").unwrap_err().contains("over 32 bits"));
        assert_eq!(signed_word("-1"), Ok(u32::MAX));
        assert_eq!(signed_word("-0x80000000"), Ok(0x8000_0000));
        assert_eq!(signed_word("5"), Ok(5));
        assert!(signed_word("-0x80000001").is_err() && signed_word("--1").is_err());
    }

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpus("1,0"), Ok(Cpus(vec![1, 0])));
        assert_eq!(cpus("0-2,8"), Ok(Cpus(vec![0, 1, 2, 8])));
        for text in ["", "a", "1,", "2-1", "0,0", "0-2,1", "5000", "-1"] {
            assert!(cpus(text).unwrap_err().contains("0-3,8"), "{text}");
        }
        assert_eq!(cpus_text(&[0, 3]), "0,3");
    }

    #[test]
    fn ways_to_wait() {
        assert_eq!(wait("adaptive"), Ok(Wait::Adaptive));
        assert_eq!(wait("block"), Ok(Wait::Block));
        assert_eq!(wait("spin"), Ok(Wait::Spin));
        assert_eq!(wait("spin:50us"), Ok(Wait::SpinThenBlock(Duration::from_micros(50))));
        for text in ["", "never", "spin:", "spin:0us", "spin:2s", "spin:5", "block:5us"] {
            assert!(wait(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_print_as_they_are_read() {
        for text in ["2s", "200ms", "50us", "7ns", "1500ms"] {
            assert_eq!(span_text(span(text).unwrap()), text);
        }
    }
}
