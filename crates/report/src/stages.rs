//! The stages of operations, as lines under the rows of a table.

use crate::layout::{Align, Cell, Column, Tone, clean, render};
use crate::units;
use hodo_measure::{Measurement, Side, Stage};

/// Returns, for each row of a table, lines with the stages of its measurement and their sum; empty if it has none. Stages of the far
/// end are indented, because they are inside the one before them and add up to it.
pub(crate) fn lines(group: &[&Measurement], color: bool) -> Vec<String> {
    let stages: Vec<Stage> = group.iter().flat_map(|m| m.stages.iter().cloned().chain(sum(&m.stages))).collect();
    if stages.is_empty() {
        return vec![String::new(); group.len()];
    }
    let text = render(&columns(&stages), color);
    let mut drawn = text.lines();
    // The heading stands over the first.
    let mut heading = drawn.next();
    let mut under = |m: &&Measurement| {
        let heading = if m.stages.is_empty() { None } else { heading.take() };
        let lines = if m.stages.is_empty() { 0 } else { m.stages.len() + 1 };
        let rows: Vec<&str> = heading.into_iter().chain(drawn.by_ref().take(lines)).collect();
        rows.iter().map(|row| format!("    {row}\n")).collect()
    };
    group.iter().map(&mut under).collect()
}

/// Returns the sum of this side's stages, in which those of the far end are; `None` without stages.
pub(crate) fn sum(stages: &[Stage]) -> Option<Stage> {
    let local = stages.iter().filter(|stage| stage.side == Side::Local);
    let (mean_ns, share) = local.fold((0.0, 0.0), |sum, stage| (sum.0 + stage.mean_ns, sum.1 + stage.share));
    let first = stages.first()?.clone();
    Some(Stage { name: "together".into(), side: Side::Local, mean_ns, p50_ns: None, p99_ns: None, share, ..first })
}

fn columns(stages: &[Stage]) -> Vec<Column> {
    let column = |head, align, cell: &dyn Fn(&Stage) -> String| Column {
        head: ["", head],
        align,
        keep: 0,
        cells: stages.iter().map(|stage| Cell { text: cell(stage), tone: Tone::Quiet, sort: None }).collect(),
    };
    vec![
        column("stage", Align::Left, &|stage| match stage.side {
            Side::Local => clean(&stage.name),
            Side::Remote => format!("  {}", clean(&stage.name)),
        }),
        column("side", Align::Left, &|stage| match stage.side {
            Side::Local => "here".into(),
            Side::Remote => "far".into(),
        }),
        column("mean", Align::Right, &|stage| units::time_ns(stage.mean_ns)),
        column("p50", Align::Right, &|stage| time(stage.p50_ns)),
        column("p99", Align::Right, &|stage| time(stage.p99_ns)),
        column("share", Align::Right, &|stage| format!("{:.1} %", stage.share * 100.0)),
    ]
}

/// Returns a time in its unit, or a dash where it is not known.
pub(crate) fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| units::UNKNOWN.into(), |ns| units::time_ns(ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use hodo_measure::Mode;

    #[test]
    fn each_row_has_its_own_and_the_first_the_heading() {
        let (without, with) = (sample::rate("tcp", Mode::Send, 64), sample::latency(64));
        let under = lines(&[&without, &with, &without, &with], false);
        assert_eq!((under[0].as_str(), under[2].as_str()), ("", ""));
        let (first, second) = (under[1].split_once('\n').expect("a heading"), &under[3]);
        assert_eq!(first.0, "      stage              side     mean      p50      p99    share");
        assert_eq!(first.1, second);
        assert_eq!(second.lines().count(), with.stages.len() + 1);
        assert!(second.contains("\n        queue            far    122 ns   121 ns   146 ns    2.0 %\n"), "{second}");
        assert!(second.contains("\n        network, waking  far   1.96 µs        –        –   32.0 %\n"), "{second}");
        assert!(second.ends_with("\n      together           here  6.12 µs        –        –  100.0 %\n"), "{second}");
    }
}
