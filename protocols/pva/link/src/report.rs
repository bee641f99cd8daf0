//! The report of a far end, as the reply to a call of the channel [`REPORT`].
//!
//! The argument is a structure with `stages`, a bool: whether the stages of this client's requests are followed from now on. Fields of
//! the reply:
//!
//! | field | what |
//! |---|---|
//! | `now_ns` | the far end's clock |
//! | `usage` | `known`, and what its process has used; `polling_s` is not a number where that is not known |
//! | `decode`, `source`, `encode`, `send` | [`Stages`] of all requests that were followed: `sum_ns`, and the buckets of [`Spans`] |

use hodo_machine::{Instant, Spans};
use hodo_measure::{FarEnd, Usage};
use hodo_pva::server::Stages;
use hodo_pva::{Array, Scalar, Type, Value};

/// The channel that is called.
pub(crate) const REPORT: &str = "hodo:report";

/// The report of a far end, and its clock.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The far end's clock in nanoseconds.
    pub(crate) now_ns: u64,
    pub(crate) far_end: FarEnd,
}

/// Returns the argument of a call.
pub(crate) fn question(stages: bool) -> Value {
    let mut value = Value::of(Type::structure("", [("stages", Scalar::Bool)].map(|(name, of)| (name, of.into()))));
    value.set("stages", stages).expect("the type was made with this field");
    value
}

/// Tells whether the one who calls asks for stages.
pub(crate) fn asks_for_stages(argument: Option<&Value>) -> bool {
    argument.and_then(|value| value.get("stages")?.as_i64()).is_some_and(|stages| stages != 0)
}

/// Returns the reply to a call.
pub(crate) fn reply(now: Instant, usage: Option<Usage>, stages: Option<&Stages>) -> Value {
    let scalars = |fields: &[(&'static str, Scalar)]| {
        Type::structure("", fields.iter().map(|(name, of)| (*name, Type::from(*of))).collect::<Vec<_>>())
    };
    let usage_type = scalars(&[
        ("known", Scalar::Bool),
        ("user_s", Scalar::F64),
        ("system_s", Scalar::F64),
        ("voluntary_switches", Scalar::U64),
        ("involuntary_switches", Scalar::U64),
        ("max_rss_bytes", Scalar::U64),
        ("polling_s", Scalar::F64),
    ]);
    let stage = || {
        let (buckets, counts) = (Type::array(Scalar::U16), Type::array(Scalar::U32));
        Type::structure("", [("sum_ns", Scalar::U64.into()), ("buckets", buckets), ("counts", counts)])
    };
    let nothing = Stages::default();
    let stages = stages.unwrap_or(&nothing).named();
    let front = [("now_ns", Scalar::U64.into()), ("usage", usage_type)];
    let fields = front.into_iter().chain(stages.iter().map(|(name, _)| (*name, stage())));
    let mut value = Value::of(Type::structure("", fields.collect::<Vec<_>>()));
    let mut set = |path: &str, datum: hodo_pva::Datum| {
        value.set(path, datum).expect("the type was made with this field");
    };
    set("now_ns", now.as_nanos().into());
    if let Some(usage) = usage {
        set("usage.known", true.into());
        set("usage.user_s", usage.user_s.into());
        set("usage.system_s", usage.system_s.into());
        set("usage.voluntary_switches", usage.voluntary_switches.into());
        set("usage.involuntary_switches", usage.involuntary_switches.into());
        set("usage.max_rss_bytes", usage.max_rss_bytes.into());
        set("usage.polling_s", usage.polling_s.unwrap_or(f64::NAN).into());
    }
    for (name, spans) in stages {
        let (buckets, counts): (Vec<u16>, Vec<u32>) = spans.buckets().unzip();
        set(&format!("{name}.sum_ns"), spans.sum_ns().into());
        set(&format!("{name}.buckets"), buckets.into());
        set(&format!("{name}.counts"), counts.into());
    }
    value
}

/// Reads a reply; `None` if it is not one of ours.
pub(crate) fn read(value: &Value) -> Option<Report> {
    let count = |path: &str| value.get(path)?.as_i64().map(i64::cast_unsigned);
    let number = |path: &str| value.get(path)?.as_f64();
    let usage = Usage {
        user_s: number("usage.user_s")?,
        system_s: number("usage.system_s")?,
        voluntary_switches: count("usage.voluntary_switches")?,
        involuntary_switches: count("usage.involuntary_switches")?,
        max_rss_bytes: count("usage.max_rss_bytes")?,
        // An older far end has no such field.
        polling_s: number("usage.polling_s").filter(|seconds| !seconds.is_nan()),
    };
    let usage = (count("usage.known")? != 0).then_some(usage);
    let stages = Stages::default().named().map(|(name, _)| Some((name, spans(value, name)?)));
    let stages = stages.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Report { now_ns: count("now_ns")?, far_end: FarEnd { usage, stages, ..FarEnd::default() } })
}

fn spans(value: &Value, name: &str) -> Option<Spans> {
    let array = |field: &str| value.get(&format!("{name}.{field}"))?.as_array();
    let (buckets, counts): (&Array, &Array) = (array("buckets")?, array("counts")?);
    let mut spans = Spans::new();
    for (bucket, count) in buckets.iter::<u16>()?.zip(counts.iter::<u32>()?) {
        spans.add_bucket(bucket, count);
    }
    spans.add_sum_ns(value.get(&format!("{name}.sum_ns"))?.as_i64()?.cast_unsigned());
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_told() {
        let usage = Usage {
            user_s: 1.5,
            system_s: 0.25,
            voluntary_switches: 7,
            involuntary_switches: 1,
            max_rss_bytes: 1 << 40,
            polling_s: Some(0.5),
        };
        let mut stages = Stages::default();
        (0..1000).for_each(|n| stages.source.record(n * n));
        let read_back = read(&reply(Instant::from_nanos(5), Some(usage), Some(&stages))).expect("it is one of ours");
        assert_eq!((read_back.now_ns, read_back.far_end.usage), (5, Some(usage)));
        assert_eq!(read_back.far_end.stages, stages.named().map(|(name, spans)| (name, spans.clone())));
        let nothing = read(&reply(Instant::ZERO, None, None)).expect("it is one of ours");
        assert_eq!((nothing.far_end.usage, nothing.far_end.stages[0].1.count()), (None, 0));
        assert!(read(&question(true)).is_none());
        assert!(asks_for_stages(Some(&question(true))) && !asks_for_stages(Some(&question(false))));
        assert!(!asks_for_stages(None));
    }
}
