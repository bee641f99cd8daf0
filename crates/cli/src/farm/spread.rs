use hodo_farm_host::machines::emulation::Spread;
pub use hodo_farm_link::accept;
use hodo_farm_link::spread;
use hodo_measure::units;

/// Parses a spread of sizes: `32000`, `32K`, `uniform:1K..64K`, `exponential:32K`, `normal:32K,1K`.
pub fn sizes(text: &str) -> Result<Spread, String> {
    spread(text, &|text| units::bytes(text).map(|bytes| bytes as f64), "32K")
}

/// Parses a spread of times: `0`, `1ms`, `uniform:1ms..5ms`, `exponential:1ms`, `normal:1ms,100us`.
pub fn times(text: &str) -> Result<Spread, String> {
    let nanos = |text: &str| if text == "0" { Ok(0.0) } else { units::span(text).map(|span| span.as_nanos() as f64) };
    spread(text, &nanos, "1ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_farm_host::machines::emulation::Accept;

    #[test]
    fn reads_what_its_help_says() {
        assert_eq!(sizes("32K"), Ok(Spread::Fixed(32 << 10)));
        assert_eq!(sizes("uniform:1K..64K"), Ok(Spread::Uniform(1 << 10, 64 << 10)));
        assert_eq!(times("0"), Ok(Spread::Fixed(0)));
        assert_eq!(times("exponential:1ms"), Ok(Spread::Exponential(1e6)));
        assert_eq!(times("normal:1ms,100us"), Ok(Spread::Normal(1e6, 1e5)));
        assert!(sizes("uniform:5..1").is_err() && sizes("gauss:1").is_err());
        assert_eq!(accept("0.005"), Ok(Accept::Fraction(0.005)));
        assert_eq!(accept("every:200"), Ok(Accept::Every(200)));
        assert!(accept("2").is_err() && accept("every:x").is_err());
    }
}
