use hodo_measure::{Limit, Measurement, Test};

/// Achieved over limit, of the figure that the test is about; 1 is the best for rates and times alike.
pub fn share_of_limit(found: &Measurement, limit: &Limit) -> Option<f64> {
    let operations = || Some(found.rate.operations_per_s.median / limit.operations_per_s?);
    let payload = || Some(found.rate.payload_bits_per_s.median / limit.payload_bits_per_s?);
    let time = || Some(limit.latency_ns? / found.latency_ns.as_ref()?.p50 as f64);
    let share = match found.test {
        Test::Latency => time().or_else(operations),
        Test::Open => operations(),
        Test::Rate | Test::Random | Test::Channels | Test::Updates => payload().or_else(operations),
    };
    share.filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unmeasured;
    use hodo_measure::{Binding, Latency, LimitKind, State};

    fn found(test: Test) -> Measurement {
        let mut found = unmeasured::any(test, State::Stable);
        found.rate.operations_per_s.median = 500.0;
        found.rate.payload_bits_per_s.median = 900.0;
        found.latency_ns = Some(Latency { p50: 2000, ..Latency::default() });
        found
    }

    fn limit() -> Limit {
        Limit {
            payload_bits_per_s: Some(1000.0),
            operations_per_s: Some(1000.0),
            latency_ns: Some(1500.0),
            kind: LimitKind::Line,
            binds: Binding::Line,
            formula: String::new(),
            assumes: String::new(),
            spread: None,
            saw: None,
        }
    }

    #[test]
    fn each_test_has_its_figure() {
        for (test, share) in [(Test::Rate, 0.9), (Test::Channels, 0.9), (Test::Open, 0.5), (Test::Latency, 0.75)] {
            assert_eq!(share_of_limit(&found(test), &limit()), Some(share), "{test}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let unknown = Limit { payload_bits_per_s: None, operations_per_s: None, latency_ns: None, ..limit() };
        assert_eq!(share_of_limit(&found(Test::Rate), &unknown), None);
        let zero = Limit { payload_bits_per_s: Some(0.0), ..limit() };
        assert_eq!(share_of_limit(&found(Test::Rate), &zero), None);
    }
}
