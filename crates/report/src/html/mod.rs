//! One page, complete in itself: it works offline, asks nothing of the network, and escapes every name.
//!
//! Everything on it is written here, so that it can be read without JavaScript too. The script only chooses what is
//! shown, sorts, switches between light and dark, and shows the values of the point under the pointer.

mod diagnosis;
mod facts;
mod pictures;
mod rows;
mod slo;

use crate::figure;
use crate::layout::clean;
use hodo_measure::{Document, Measurement, State};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../../html/page.css");
const SCRIPT: &str = include_str!("../../html/page.js");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// A table of facts that measurements have no place for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The heading.
    pub title: String,
    /// A sentence under the heading.
    pub note: String,
    /// The heads of the columns; the first one names the rows.
    pub columns: Vec<String>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<String>>,
}

/// Returns the page, complete in one file: style, script and data are inside.
///
/// The data is the document as JSON, without the stored histograms.
#[must_use]
pub fn html(document: &Document) -> String {
    html_with(document, &[])
}

/// Returns the page with more tables.
#[must_use]
pub fn html_with(document: &Document, tables: &[Table]) -> String {
    let groups = figure::groups(&document.measurements);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title(document)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (top(document))
                main {
                    @if let Some(diagnosis) = &document.diagnosis { (diagnosis::section(diagnosis)) }
                    nav #tests .tests aria-label="Tests" { @for (place, group) in groups.iter().enumerate() { (pictures::card(place, group)) } }
                    @if let Some(slo) = &document.slo { (slo::section(slo)) }
                    div #pictures { @for (place, group) in groups.iter().enumerate() { (pictures::section(place, group)) } }
                    div #tables { @for table in tables { (extra(table)) } }
                    (measured(&document.measurements, &groups))
                    (facts::doubts(&document.measurements))
                    (facts::environment(&document.environment))
                    (facts::in_full(&document.measurements))
                }
                footer #footer .quiet { (facts::provenance(document)) }
                div #tip .tip role="status" hidden {}
                script #data type="application/json" { (PreEscaped(data(document))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn title(document: &Document) -> String {
    let mut protocols: Vec<String> = Vec::new();
    for protocol in document.measurements.iter().map(figure::protocol_text) {
        if !protocols.contains(&protocol) {
            protocols.push(protocol);
        }
    }
    let parts = [Some(protocols.join(", ")), document.environment.host.clone()];
    let known: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    clean(&format!("Hodoscope: {}", known.join(" on ")))
}

fn top(document: &Document) -> Markup {
    html! {
        header.top {
            div {
                h1 { "Hodoscope" }
                p #provenance .quiet { (facts::of_host(&document.environment)) }
            }
            div.tools {
                button #theme type="button" title="Switch between light and dark" { "Dark" }
                button #print type="button" { "Print" }
            }
        }
    }
}

fn extra(table: &Table) -> Markup {
    html! {
        section.block {
            h2 { (table.title) }
            p.quiet { (table.note) }
            (grid(&table.columns, &table.rows))
        }
    }
}

/// Returns the heads and cells of a table.
fn grid(columns: &[impl AsRef<str>], rows: &[Vec<String>]) -> Markup {
    // A column of words stands at its left side, as everywhere.
    let is_number = |cell: Option<&String>| cell.is_some_and(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
    let side = |column: usize| (!rows.iter().all(|row| is_number(row.get(column)))).then_some("left");
    html! {
        div.scroll {
            table {
                thead { tr { @for (place, head) in columns.iter().enumerate() { th class=[side(place)] { (head.as_ref()) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (place, cell) in row.iter().enumerate() { td class=[side(place)] { (cell) } } }
                    }
                }
            }
        }
    }
}

fn measured(measurements: &[Measurement], groups: &[Vec<&Measurement>]) -> Markup {
    html! {
        section.block aria-labelledby="table-head" {
            div.block-head {
                h2 #table-head { "Measurements" }
                label.choice { input #only type="checkbox" checked; " only the test chosen above" }
            }
            (legend(measurements))
            div.scroll { (rows::table(measurements, groups)) }
        }
    }
}

/// Returns what the verdicts that are there mean, and the heads that are not words.
fn legend(measurements: &[Measurement]) -> Markup {
    let has = |state: &State| measurements.iter().any(|m| m.verdict.state == *state);
    html! {
        p #legend .quiet {
            @for state in State::ALL.iter().filter(|state| has(state)) {
                span.entry { (badge(*state)) " " (figure::state_meaning(*state)) }
            }
            span.entry { "±: half of the confidence interval" }
            span.entry { "of limit: reached, of what could be" }
        }
    }
}

/// Returns a verdict's word in its colour.
fn badge(state: State) -> Markup {
    let class = match state {
        State::Stable => "good",
        State::Failed | State::Interrupted => "bad",
        _ => "doubt",
    };
    html! { span.badge.(class) { (state.word()) } }
}

fn data(document: &Document) -> String {
    let mut document = document.clone();
    for latency in document.measurements.iter_mut().filter_map(|m| m.latency_ns.as_mut()) {
        latency.histogram.clear();
    }
    escape_script(&serde_json::to_string(&document).expect("a document has string keys and no failing serializer"))
}

/// Escapes JSON so that it cannot end the script element that it is in, nor break a line of it.
fn escape_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests;
