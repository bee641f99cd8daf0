//! The options of a farm's URI: how its events are dispatched, and what its nodes do with them.

use hodo_farm::Policy;
use hodo_farm::emulation::{Accept, Decisions, Spread};
use hodo_farm::node::{Decide, NodeConfig};
use hodo_farm::wire::NODES_PORT;
use hodo_machine::Address;
use hodo_sim::options::{quantity, span};
use hodo_tester::{Error, Uri};
use std::time::Duration;

/// The default number of events that a node may be ahead of an equally fast one.
const AHEAD: u64 = 64;
/// Events that each node takes at once at the most: the controller has it as its window.
const CREDITS: u32 = 65_536;
/// A controller that is silent for this long is gone: it is quiet between measurements.
const SILENCE: Duration = Duration::from_secs(60);
/// The most that a token may carry here.
const OUTPUT_MAX: u64 = 16 << 20;

/// Options of a farm's URI, and what they take.
const OPTIONS: &[(&str, &str)] = &[
    ("policy", "token-fifo, round-robin, least-outstanding or weighted: who gets the next event"),
    (
        "ahead",
        "a number: of equal nodes none gets so many events more than another; 0 for tokens strictly in their order",
    ),
    ("accept", "a part of all events from 0 to 1, as 0.005, or every:200"),
    ("output", "bytes behind the token of an accepted event up to 16M, as 64K"),
    ("time", "how long a decision takes: 0, 1ms, uniform:1ms..5ms, exponential:1ms or normal:1ms,100us"),
];

/// The options of a farm's URI.
#[derive(Debug, Clone)]
pub(crate) struct FarmOptions {
    /// The policy that chooses the node of the next event.
    pub(crate) policy: Policy,
    /// How far a node may be ahead of the others; `None` for tokens strictly in their order.
    pub(crate) ahead: Option<u64>,
    accept: Accept,
    output: u32,
    time: Spread,
}

impl FarmOptions {
    /// Parses the options of a URI, and returns those that are not a farm's beside them.
    pub(crate) fn and_others(uri: &Uri) -> Result<(FarmOptions, Vec<(String, String)>), Error> {
        let mut options = FarmOptions {
            policy: Policy::TokenFifo,
            ahead: Some(AHEAD),
            accept: Accept::Fraction(0.005),
            output: 0,
            time: Spread::Fixed(0),
        };
        let mut others = Vec::new();
        for (name, value) in &uri.options {
            match OPTIONS.iter().find(|(known, _)| known == name) {
                Some((_, takes)) => options.take(name, value).ok_or_else(|| {
                    Error::Usage(format!("`{uri}`: option `{name}` cannot be `{value}`: it takes {takes}"))
                })?,
                None => others.push((name.clone(), value.clone())),
            }
        }
        Ok((options, others))
    }

    /// Parses the options of a URI that may have no others.
    pub(crate) fn of(uri: &Uri) -> Result<FarmOptions, Error> {
        let (options, others) = FarmOptions::and_others(uri)?;
        let Some((name, _)) = others.first() else { return Ok(options) };
        let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
        Err(Error::Usage(format!(
            "`{uri}`: unknown option `{name}` of a farm; the known ones are {}",
            known.join(", ")
        )))
    }

    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "policy" => self.policy = Policy::from_name(value)?,
            "ahead" => self.ahead = Some(value.parse().ok()?).filter(|ahead| *ahead > 0),
            "accept" => self.accept = accept(value).ok()?,
            "output" => self.output = quantity(value, 1024, 0..=OUTPUT_MAX)? as u32,
            "time" => {
                let nanos =
                    |text: &str| span(text, 0..=NANOS_MAX).map(|span| span.as_nanos() as f64).ok_or_else(String::new);
                self.time = spread(value, &nanos, "1ms").ok()?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the configuration of the nodes: each connection that is opened to them gets one node.
    pub(crate) fn nodes(&self, event_max: u32) -> NodeConfig {
        let decisions = Decisions {
            accept: self.accept,
            output: vec![0xA5; self.output as usize].into(),
            time: self.time,
            seed: 1,
        };
        NodeConfig {
            credits: CREDITS,
            event_max,
            decide: Decide::Emulated(decisions),
            silence: SILENCE,
            ..NodeConfig::new(Vec::new())
        }
    }

    /// Returns the most data that a token brings.
    pub(crate) fn output_max(&self) -> u32 {
        self.output
    }

    /// Returns the data that a token brings on the average.
    pub(crate) fn output_mean(&self) -> f64 {
        let part = match self.accept {
            Accept::Fraction(part) => part,
            Accept::Every(0) => 0.0,
            Accept::Every(count) => (count as f64).recip(),
        };
        f64::from(self.output) * part
    }

    /// Returns how long a decision takes on the average, in nanoseconds.
    pub(crate) fn time_mean_ns(&self) -> f64 {
        self.time.mean()
    }
}

/// A day is more than any decision takes.
const NANOS_MAX: u64 = 86_400_000_000_000;

/// Returns the addresses of the nodes of a URI: hosts with commas between them, over which the channels are spread.
pub(crate) fn addresses(uri: &Uri) -> Result<Vec<Address>, Error> {
    if !uri.path.is_empty() && uri.path != "/" {
        return Err(Error::Usage(format!("`{uri}`: a farm has no path; write farm://host:port")));
    }
    let address = |host: &str| {
        hodo_io::resolve(host, NODES_PORT)
            .map(Address::Tcp)
            .map_err(|error| Error::Usage(format!("`{host}` in `{uri}` cannot be resolved: {error}")))
    };
    uri.authority.split(',').map(address).collect()
}

/// Parses a spread of quantities: `32K`, `uniform:1K..64K`, `exponential:32K`, `normal:32K,1K`, each in this unit.
///
/// # Errors
/// A sentence that says what is wrong, with this example.
pub fn spread(text: &str, unit: &dyn Fn(&str) -> Result<f64, String>, example: &str) -> Result<Spread, String> {
    let (name, rest) = text.split_once(':').unwrap_or(("fixed", text));
    let wrong = || {
        format!(
            "`{text}` is not a distribution; write {example}, uniform:A..B, exponential:MEAN or normal:MEAN,DEVIATION"
        )
    };
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

/// Parses which events are accepted: a part of all from 0 to 1, or `every:200`.
///
/// # Errors
/// A sentence that says what is wrong and what to write.
pub fn accept(text: &str) -> Result<Accept, String> {
    if let Some(count) = text.strip_prefix("every:") {
        return count.parse().map(Accept::Every).map_err(|_| format!("`{text}`: every:N takes a whole number"));
    }
    match text.parse() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(Accept::Fraction(part)),
        _ => Err(format!("`{text}` is not a share of the events; write 0.005, or every:200")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        hodo_tester::Catalog::new(&[&crate::FARM]).uri(text).unwrap()
    }

    fn of(query: &str) -> Result<FarmOptions, Error> {
        FarmOptions::of(&uri(&format!("farm://127.0.0.1:1?{query}")))
    }

    #[test]
    fn every_option_has_its_effect() {
        let options = of("policy=round-robin&ahead=0&accept=every:200&output=64K&time=uniform:1ms..3ms").unwrap();
        assert_eq!((options.policy, options.ahead), (Policy::RoundRobin, None));
        assert_eq!((options.output_max(), options.output_mean()), (65_536, 327.68));
        assert_eq!(options.time_mean_ns(), 2e6);
        let Decide::Emulated(decisions) = options.nodes(32_000).decide else { panic!("nodes of a link are emulated") };
        assert_eq!((decisions.accept, decisions.output.len()), (Accept::Every(200), 65_536));
        let plain = of("").unwrap();
        assert_eq!((plain.policy, plain.ahead, plain.output_mean()), (Policy::TokenFifo, Some(64), 0.0));
    }

    #[test]
    fn names_what_is_wrong() {
        for wrong in ["policy=fair", "ahead=-1", "accept=2", "output=1G", "time=soon", "time=uniform:5ms..1ms"] {
            let (name, value) = wrong.split_once('=').unwrap();
            let text = of(wrong).unwrap_err().to_string();
            assert!(text.contains(&format!("`{name}` cannot be `{value}`: it takes")), "{text}");
        }
        let unknown = of("nodes=20").unwrap_err().to_string();
        assert!(unknown.contains("`nodes`") && unknown.contains("policy, ahead"), "{unknown}");
    }

    #[test]
    fn hosts_have_commas_between_them() {
        let all = addresses(&uri("farm://127.0.0.1,127.0.0.2:7")).unwrap();
        let text: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["127.0.0.1:5502", "127.0.0.2:7"]);
        assert!(addresses(&uri("farm://127.0.0.1/x")).is_err());
    }
}
