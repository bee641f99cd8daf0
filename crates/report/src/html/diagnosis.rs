//! The findings of a run or of its experiments, in sentences.

use super::grid;
use crate::units;
use hodo_measure::Diagnosis;
use maud::{Markup, html};

/// Returns the sentences of a diagnosis, with its experiments where there were any.
pub(super) fn section(diagnosis: &Diagnosis) -> Markup {
    let is_tried = !diagnosis.experiments.is_empty();
    html! {
        section #summary .block {
            h2 { @if is_tried { "Why it is not faster" } @else { "In short" } }
            @if is_tried { p { (capital(&diagnosis.text())) "." } }
            @for sentence in diagnosis.evidence.iter().chain([&diagnosis.advice]) { p { (capital(sentence)) } }
            @if is_tried { (experiments(diagnosis)) }
        }
    }
}

fn experiments(diagnosis: &Diagnosis) -> Markup {
    let rows = diagnosis.experiments.iter().map(|one| {
        let share = units::percent(one.found / one.predicted);
        vec![one.change.clone(), units::operations_per_s(one.predicted), units::operations_per_s(one.found), share]
    });
    grid(&["experiment", "predicted", "found", "of predicted"], &rows.collect::<Vec<_>>())
}

/// Returns a sentence with a capital at its beginning, unless that is a name between backticks.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
