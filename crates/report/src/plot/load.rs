use super::chart::{Chart, Point, Series};
use super::scale::Unit;
use crate::units;
use hodo_measure::{LoadPoint, Slo};

/// Returns the chart of p50 and p99 over the rates that a search tried.
pub(crate) fn load_chart(slo: &Slo) -> Chart {
    let series = |color, label: &str, of: fn(&LoadPoint) -> Option<u64>| {
        let point = |point: &LoadPoint| {
            let y = of(point)? as f64;
            let word = if point.held { "held" } else { "not held" };
            let tip = format!("{}: {label} {}, {word}", units::operations_per_s(point.rate), units::time_ns(y));
            Some(Point { x: point.rate, y, tip, ..Point::default() })
        };
        let points = slo.curve.iter().filter_map(point).collect();
        Series { label: label.to_owned(), color, shown: true, dots: true, points }
    };
    Chart {
        title: "Times over load".to_owned(),
        note: String::new(),
        x_label: "operations per second asked for",
        x_unit: Unit::OperationsPerS,
        unit: Unit::TimeNs,
        limit: None,
        series: vec![series(0, "p50", |point| point.p50_ns), series(1, "p99", |point| point.p99_ns)],
    }
}
