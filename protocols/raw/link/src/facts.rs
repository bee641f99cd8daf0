//! The facts of a far end as its greeting has them: a line for each that is known, as `kernel=6.1.0-18-amd64`.

use hodo_machine::Bytes;
use hodo_measure::FarEndFacts;
use hodo_raw::wire::{GREETING, GREETING_MAX, PROOF};

/// Bytes of one fact at most.
const FACT_MAX: usize = 40;
/// Bytes of all facts at most.
const FACTS_MAX: usize = GREETING_MAX - GREETING - PROOF;

/// Returns the facts as bytes. A fact that is too long, or for which a greeting has no space, is left out.
pub(crate) fn encode(facts: &FarEndFacts) -> Bytes {
    let FarEndFacts { wait, placement, scheduling, kernel, congestion_control, line_bits_per_s } = facts;
    let line = line_bits_per_s.map(|bits| bits.to_string());
    let named = [
        ("wait", wait),
        ("placement", placement),
        ("kernel", kernel),
        ("congestion", congestion_control),
        ("line", &line),
        ("scheduling", scheduling),
    ];
    let known = named.into_iter().filter_map(|(name, fact)| fact.as_ref().map(|fact| (name, fact)));
    let lines = known
        .filter(|(_, fact)| fact.len() <= FACT_MAX)
        .map(|(name, fact)| format!("{name}={}\n", fact.replace('\n', " ")));
    let text =
        lines.fold(String::new(), |text, line| if text.len() + line.len() <= FACTS_MAX { text + &line } else { text });
    Bytes::from(text.into_bytes())
}

/// Returns the facts in these bytes of a peer, without what a terminal would not print; `None` if there are none. Facts
/// with other names are passed over.
pub(crate) fn decode(bytes: &[u8]) -> Option<FarEndFacts> {
    let text = String::from_utf8_lossy(bytes);
    let mut facts = FarEndFacts::default();
    for (name, fact) in text.lines().filter_map(|line| line.split_once('=')) {
        let printed: String = fact.chars().filter(|character| !character.is_control()).take(FACT_MAX).collect();
        match name {
            "wait" => facts.wait = Some(printed),
            "placement" => facts.placement = Some(printed),
            "scheduling" => facts.scheduling = Some(printed),
            "kernel" => facts.kernel = Some(printed),
            "congestion" => facts.congestion_control = Some(printed),
            "line" => facts.line_bits_per_s = printed.parse().ok(),
            _ => {}
        }
    }
    (facts != FarEndFacts::default()).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> FarEndFacts {
        FarEndFacts {
            wait: Some("spin:50us".into()),
            placement: Some("cpu 0,1".into()),
            scheduling: Some("SCHED_FIFO 10".into()),
            kernel: Some("6.1.0-18-amd64".into()),
            congestion_control: Some("cubic".into()),
            line_bits_per_s: Some(10_000_000_000),
        }
    }

    #[test]
    fn facts_are_these_bytes_and_come_back() {
        let bytes = encode(&facts());
        assert_eq!(
            bytes,
            "wait=spin:50us\nplacement=cpu 0,1\nkernel=6.1.0-18-amd64\ncongestion=cubic\nline=10000000000\nscheduling=SCHED_FIFO 10\n"
        );
        assert_eq!(decode(&bytes), Some(facts()));
        assert_eq!((encode(&FarEndFacts::default()).len(), decode(b"")), (0, None));
    }

    #[test]
    fn the_longest_fit_a_greeting() {
        let long = Some("x".repeat(FACT_MAX));
        let all = FarEndFacts {
            wait: long.clone(),
            placement: long.clone(),
            scheduling: long.clone(),
            kernel: long.clone(),
            congestion_control: long,
            line_bits_per_s: Some(u64::MAX),
        };
        assert!(encode(&all).len() <= FACTS_MAX, "{}", encode(&all).len());
        assert_eq!(
            decode(&encode(&all)),
            Some(FarEndFacts { scheduling: None, ..all.clone() }),
            "there is no space for it"
        );
        let usual = FarEndFacts { scheduling: Some("SCHED_OTHER, nice 19".into()), placement: None, ..all };
        assert_eq!(decode(&encode(&usual)), Some(usual));
        assert_eq!(encode(&FarEndFacts { wait: Some("x".repeat(FACT_MAX + 1)), ..FarEndFacts::default() }), "");
    }

    #[test]
    fn a_peer_cannot_tell_a_terminal_what_to_do() {
        let told = decode(b"kernel=\x1b[2J6.1\xff\nline=fast\nwhat=else\nno fact\n").expect("a kernel");
        assert_eq!(told, FarEndFacts { kernel: Some("[2J6.1\u{fffd}".into()), ..FarEndFacts::default() });
    }
}
