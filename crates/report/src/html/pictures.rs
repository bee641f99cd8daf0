//! The card of a test, and the plots of its measurements.

use super::badge;
use crate::columns::whole_percent;
use crate::figure::{self, Figure};
use crate::plot::{Bars, Chart, Picture, charts, node_bars, stage_bars};
use crate::units::UNKNOWN;
use hodo_measure::{Measurement, State};
use maud::{Markup, PreEscaped, html};

fn name(group: &[&Measurement]) -> String {
    format!("{} · {}", figure::protocol_text(group[0]), group[0].test)
}

/// Returns the card by which a test is chosen, with the best figure that it found.
pub(super) fn card(place: usize, group: &[&Measurement]) -> Markup {
    let (value, about) = best(group).unwrap_or_else(|| (UNKNOWN.into(), "nothing measured".into()));
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

fn best(group: &[&Measurement]) -> Option<(String, String)> {
    let figure = Figure::of(group[0]);
    let measured = group.iter().filter(|m| m.verdict.state != State::Failed);
    let values = measured.filter_map(|m| Some((m, figure.value(m)?)));
    let (m, value) = match figure {
        Figure::Latency => values.min_by(|a, b| a.1.total_cmp(&b.1))?,
        _ => values.max_by(|a, b| a.1.total_cmp(&b.1))?,
    };
    let size = figure::size_text(m);
    let share = m.share_of_limit.filter(|share| share.is_finite()).zip(m.limit.as_ref());
    let about = match (figure, share) {
        (Figure::Latency, _) => format!("p50 at {size}"),
        (_, Some((share, limit))) => {
            format!("at {size}, {} of {}", whole_percent(share), limit.kind.word())
        }
        (_, None) => format!("at {size}"),
    };
    Some((figure.text(value), about))
}

/// Returns the plots of a test, the most telling first.
pub(super) fn section(place: usize, group: &[&Measurement]) -> Markup {
    let drawn = Picture::in_order(group).into_iter().flat_map(|picture| charts(picture, group));
    html! {
        section.group data-group=(place) {
            h2 { (name(group)) }
            p.quiet { (figure::test_meaning(group[0].test)) " · " (group[0].link) }
            div.charts {
                @for chart in drawn { (plot(&chart)) }
                @for one in [stage_bars(group), node_bars(group)].into_iter().flatten() { (bars(&one)) }
            }
        }
    }
}

fn plot(chart: &Chart) -> Markup {
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
    figure(bars.title, bars.note, &legend, bars.svg.clone())
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
