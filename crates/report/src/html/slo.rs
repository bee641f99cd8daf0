//! The curve of times over load on which a search found the highest rate.

use super::{Table, extra, pictures};
use crate::plot::load_chart;
use crate::units::{self, UNKNOWN};
use hodo_measure::Slo;
use maud::{Markup, html};

/// Returns the answer, the curve and its points.
pub(super) fn section(slo: &Slo) -> Markup {
    html! {
        section.block {
            h2 { "Highest rate that holds " (slo.conditions.join(" and ")) }
            p { (slo.text) }
            div.charts { (pictures::plot(&load_chart(slo))) }
        }
        (extra(&points(slo)))
    }
}

fn points(slo: &Slo) -> Table {
    let time = |ns: Option<u64>| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| units::time_ns(ns as f64));
    let rows = slo.curve.iter().map(|point| {
        vec![
            units::operations_per_s(point.rate),
            units::operations_per_s(point.operations_per_s),
            time(point.p50_ns),
            time(point.p99_ns),
            units::count(point.lost),
            format!("{} of {}", point.repeats_held, point.repeats),
            point.missed.clone().unwrap_or_else(|| "held".to_owned()),
        ]
    });
    Table {
        title: "Rates that were tried".to_owned(),
        note: "Each rate is an open loop of its own.".to_owned(),
        columns: ["rate", "completed", "p50", "p99", "lost", "repeats that held", ""].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
