//! The table of measurements: the terminal's columns, sorted and chosen by the script.

use super::badge;
use crate::columns::{OF_LIMIT, OVER_TIME, PAYLOAD_RATE, VERDICT, columns};
use crate::figure;
use crate::layout::{Align, Cell, Column, known};
use crate::units::UNKNOWN;
use hodo_measure::Measurement;
use maud::{Markup, PreEscaped, html};

/// Returns the table, a row for each measurement with the place of its test among `groups`.
pub(super) fn table(measurements: &[Measurement], groups: &[Vec<&Measurement>]) -> Markup {
    let all: Vec<&Measurement> = measurements.iter().collect();
    let mut columns = known(columns(&all));
    // What is read first stands in front, so that a phone shows it without scrolling.
    columns.sort_by_key(|column| match column.head {
        ["", "mode" | "size"] => 0,
        PAYLOAD_RATE => 1,
        VERDICT => 2,
        OVER_TIME => 4,
        _ => 3,
    });
    let group_of = |m: &Measurement| groups.iter().position(|group| group.iter().any(|other| std::ptr::eq(*other, m)));
    html! {
        table #table {
            thead {
                tr {
                    @for name in ["protocol", "test"] { th.left.fixed scope="col" { (sort(name)) } }
                    @for column in &columns { th scope="col" class=(side(column)) { (sort(&heading(column))) } }
                }
            }
            tbody {
                @for (row, m) in measurements.iter().enumerate() {
                    tr title="Show in full" data-group=(group_of(m).unwrap_or_default()) {
                        @for text in [figure::protocol_text(m), m.test.to_string()] {
                            td.name.left.fixed title=(text) data-sort=(text) { (text) }
                        }
                        @for column in &columns { (cell(m, column, &column.cells[row])) }
                    }
                }
            }
        }
    }
}

fn heading(column: &Column) -> String {
    column.head.join(" ").trim().replace(" %", "\u{a0}%")
}

fn sort(name: &str) -> Markup {
    html! { button type="button" title="Sort" { (name) } }
}

const fn side(column: &Column) -> &'static str {
    match column.align {
        Align::Left => "left",
        Align::Right => "right",
    }
}

fn cell(m: &Measurement, column: &Column, cell: &Cell) -> Markup {
    let text = (!matches!(cell.text.as_str(), "" | UNKNOWN)).then_some(cell.text.as_str());
    let key = cell.sort.map(|number| number.to_string()).or(text.map(str::to_owned));
    html! {
        td class=(side(column)) data-sort=[key] {
            @match column.head {
                OVER_TIME => (sparkline(m)),
                OF_LIMIT => { @if let Some(share) = cell.sort { (meter(share)) } (cell.text) },
                VERDICT => (badge(m.verdict.state)),
                _ => (cell.text),
            }
        }
    }
}

fn meter(share: f64) -> Markup {
    html! { span.meter { i style={ "width: " (format!("{:.0}", (share * 100.0).clamp(0.0, 100.0))) "%" } {} } }
}

/// Returns the rate over the run as a small line, from 0 to its highest.
fn sparkline(m: &Measurement) -> Markup {
    let rates = figure::interval_rates(m);
    let [.., (end, _)] = rates.as_slice() else { return html! { (UNKNOWN) } };
    let high = rates.iter().map(|(_, rate)| *rate).fold(f64::MIN_POSITIVE, f64::max);
    let place = |(t, rate): &(f64, f64)| format!("{:.1} {:.1}", t / end * 94.0 + 1.0, 20.0 - rate / high * 17.0);
    let line = format!("M{}", rates.iter().map(place).collect::<Vec<_>>().join("L"));
    html! {
        (PreEscaped(format!(r#"<svg class="spark" viewBox="0 0 96 22" role="img" aria-label="rate over time"><path d="{line}"/></svg>"#)))
    }
}
