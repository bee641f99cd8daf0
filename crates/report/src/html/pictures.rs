//! The card of a test, and the plots of its measurements.

use super::badge;
use crate::figure::{self, Figure};
use crate::plot::{Bars, Chart, Picture, charts, node_bars, waterfalls};
use crate::units::UNKNOWN;
use hodo_measure::{Measurement, State};
use maud::{Markup, PreEscaped, html};

fn name(group: &[&Measurement]) -> String {
    format!("{} · {}", figure::protocol_text(group[0]), group[0].test)
}

/// Returns the card by which a test is chosen, with a figure of the size that it is about.
pub(super) fn card(place: usize, group: &[&Measurement]) -> Markup {
    let (value, about) = quoted(group);
    let mut states: Vec<State> = Vec::new();
    for m in group {
        if !states.contains(&m.verdict.state) {
            states.push(m.verdict.state);
        }
    }
    html! {
        button.test type="button" title=(group[0].link) data-group=(place) aria-pressed=(place == 0) {
            span.name { (name(group)) }
            span.value { (value) }
            span.about { (about) }
            span.state { @for state in states { (badge(state)) } }
        }
    }
}

/// Returns the figure of a test and what it is of; where no row of that size is stable, that, and the best of the others. The size is the one
/// that the test is about, and not that of the luckiest row: the smallest for times and operations, the largest for payload.
fn quoted(group: &[&Measurement]) -> (String, String) {
    let is_of_smallest = matches!(Figure::of(group[0]), Figure::Latency | Figure::OperationRate);
    let sizes = group.iter().filter_map(|m| figure::mean_size(m));
    let size = if is_of_smallest { sizes.reduce(f64::min) } else { sizes.reduce(f64::max) };
    let of_size = || group.iter().copied().filter(move |m| figure::mean_size(m) == size);
    let quotable = |m: &Measurement| m.verdict.state == State::Stable && !figure::is_over_the_line(m);
    let found = best_of(of_size().filter(|m| quotable(m))).map(|(m, value)| (value, about(m)));
    let doubtful = || {
        let (m, value) = best_of(of_size().filter(|m| m.verdict.state != State::Failed))?;
        let why = if m.verdict.state == State::Stable { "over the line's limit" } else { m.verdict.state.word() };
        Some(("not stable".to_owned(), format!("{value} at {}, {why}", figure::size_text(m))))
    };
    found.or_else(doubtful).unwrap_or_else(|| (UNKNOWN.into(), "nothing measured".into()))
}

fn best_of<'a>(rows: impl Iterator<Item = &'a Measurement>) -> Option<(&'a Measurement, String)> {
    let values = rows.filter_map(|m| Some((m, Figure::of(m), Figure::of(m).value(m)?)));
    let (m, figure, value) = values.reduce(|best, next| {
        let is_better = if next.1 == Figure::Latency { next.2 < best.2 } else { next.2 > best.2 };
        if is_better { next } else { best }
    })?;
    Some((m, figure.text(value)))
}

fn about(m: &Measurement) -> String {
    let figure = Figure::of(m);
    let size = figure::size_text(m);
    match (figure, figure::reached_text(m)) {
        (Figure::Latency, _) => format!("p50 at {size}"),
        (_, Some(reached)) => format!("at {size}, {reached}"),
        (_, None) => format!("at {size}"),
    }
}

/// Returns the plots of a test, the most telling first.
pub(super) fn section(place: usize, group: &[&Measurement]) -> Markup {
    let drawn = Picture::in_order(group).into_iter().flat_map(|picture| charts(picture, group));
    html! {
        section.group data-group=(place) {
            h2 { (name(group)) }
            p.quiet { (figure::test_meaning(group[0].test)) " · " (figure::link_text(group)) }
            div.charts {
                @for chart in drawn { (plot(&chart)) }
                @for one in waterfalls(group).into_iter().chain(node_bars(group)) { (bars(&one)) }
            }
        }
    }
}

/// Returns a chart with its legend.
pub(super) fn plot(chart: &Chart) -> Markup {
    let hidden = chart.series.iter().filter(|series| !series.shown).count();
    let legend = html! {
        div.legend.short {
            @for series in &chart.series {
                button.more[!series.shown] type="button" title="Show or hide" aria-pressed=(series.shown) {
                    span.swatch.(color(series.color)) {}
                    (series.label)
                }
            }
            @if let Some(limit) = &chart.limit { span.key { span.swatch {} (limit) } }
            @if hidden > 0 { button.all type="button" { "+ " (hidden) " more" } }
        }
    };
    figure(&chart.title, &chart.note, &legend, chart.element())
}

fn bars(bars: &Bars) -> Markup {
    let legend = html! {
        div.legend {
            @for key in &bars.keys {
                span.key { span.(if key.dashed { "swatch" } else { "box" }).(color(key.color)) {} (key.label) }
            }
        }
    };
    figure(&bars.title, bars.note, &legend, bars.svg.clone())
}

fn color(place: usize) -> String {
    format!("c{}", place % 8)
}

fn figure(title: &str, note: &str, legend: &Markup, svg: String) -> Markup {
    html! {
        figure {
            div.chart-head { h3 { (title) } span.quiet { (note) } }
            (legend)
            (PreEscaped(svg))
        }
    }
}
