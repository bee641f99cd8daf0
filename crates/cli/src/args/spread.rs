use super::units;
use hodo_catalog::farm::emulation::{Accept, Spread};

/// A spread of sizes: `32000`, `32K`, `uniform:1K..64K`, `exponential:32K`, `normal:32K,1K`.
pub fn sizes(text: &str) -> Result<Spread, String> {
    spread(text, &|text| units::bytes(text).map(|bytes| bytes as f64), "32K")
}

/// A spread of times: `0`, `1ms`, `uniform:1ms..5ms`, `exponential:1ms`, `normal:1ms,100us`.
pub fn times(text: &str) -> Result<Spread, String> {
    let nanos = |text: &str| if text == "0" { Ok(0.0) } else { units::span(text).map(|span| span.as_nanos() as f64) };
    spread(text, &nanos, "1ms")
}

fn spread(text: &str, unit: &dyn Fn(&str) -> Result<f64, String>, example: &str) -> Result<Spread, String> {
    let (name, rest) = text.split_once(':').unwrap_or(("fixed", text));
    let wrong =
        || format!("`{text}` is no spread: take {example}, uniform:A..B, exponential:MEAN or normal:MEAN,DEVIATION");
    Ok(match name {
        "fixed" => Spread::Fixed(unit(rest)? as u64),
        "exponential" => Spread::Exponential(unit(rest)?),
        "uniform" => {
            let (low, high) = rest.split_once("..").ok_or_else(wrong)?;
            let (low, high) = (unit(low)? as u64, unit(high)? as u64);
            if low > high {
                return Err(format!("`{text}`: {low} is more than {high}"));
            }
            Spread::Uniform(low, high)
        }
        "normal" => {
            let (mean, deviation) = rest.split_once(',').ok_or_else(wrong)?;
            Spread::Normal(unit(mean)?, unit(deviation)?)
        }
        _ => return Err(wrong()),
    })
}

/// Which events are accepted: a part of all from 0 to 1, or `every:200`.
pub fn accept(text: &str) -> Result<Accept, String> {
    if let Some(count) = text.strip_prefix("every:") {
        return count.parse().map(Accept::Every).map_err(|_| format!("`{text}`: every:N takes a whole number"));
    }
    match text.parse() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(Accept::Fraction(part)),
        _ => Err(format!("`{text}` is no part of all events: take 0.005, or every:200")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
