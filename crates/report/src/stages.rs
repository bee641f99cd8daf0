//! The stages of operations, as lines under the rows of a table.

use crate::layout::{Align, Cell, Column, Tone, clean, render};
use crate::units;
use hodo_measure::{Measurement, Side, Stage};

/// Returns, for each row of a table, lines with the stages of its measurement; empty if it has none. Stages of the far
/// end are indented, because they are inside the one before them.
pub(crate) fn lines(group: &[&Measurement], color: bool) -> Vec<String> {
    let stages: Vec<&Stage> = group.iter().flat_map(|m| &m.stages).collect();
    if stages.is_empty() {
        return vec![String::new(); group.len()];
    }
    let text = render(&columns(&stages), color);
    let mut drawn = text.lines();
    // The heading stands over the first.
    let mut heading = drawn.next();
    let mut under = |m: &&Measurement| {
        let heading = if m.stages.is_empty() { None } else { heading.take() };
        let rows: Vec<&str> = heading.into_iter().chain(drawn.by_ref().take(m.stages.len())).collect();
        rows.iter().map(|row| format!("    {row}\n")).collect()
    };
    group.iter().map(&mut under).collect()
}

fn columns(stages: &[&Stage]) -> Vec<Column> {
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
        column("p50", Align::Right, &|stage| units::time_ns(stage.p50_ns as f64)),
        column("p99", Align::Right, &|stage| units::time_ns(stage.p99_ns as f64)),
        column("share", Align::Right, &|stage| format!("{:.1} %", stage.share * 100.0)),
    ]
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
        assert_eq!(first.0, "      stage             side      p50      p99   share");
        assert_eq!(first.1, second);
        assert_eq!(second.lines().count(), with.stages.len());
        assert!(second.contains("\n        queue           far    121 ns   146 ns   2.0 %\n"), "{second}");
    }
}
