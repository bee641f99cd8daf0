//! The bottleneck of a link, by experiment: one change at a time, with the rate predicted before and found after.
//!
//! The row that is asked about is measured first. What its counters say is a suspicion; each change of the plan then moves the rate as that
//! suspicion predicts, or speaks for another. See [`causes`] for what each of them predicts.

mod causes;
mod sentences;
mod trials;

pub use sentences::{sentences, summary};

use crate::{Benchmark, Error, Observer};
use causes::{Causes, Found};
use hodo_measure::{Confidence, Diagnosis, Document, Experiment, Measurement, Plan};
use std::sync::atomic::{AtomicBool, Ordering};
use trials::{Trial, trials};

/// Measures what the benchmark plans and then each experiment, adds their rows and the diagnosis to the document, and returns the diagnosis.
///
/// # Errors
/// [`Error::Usage`] if the benchmark is not possible or plans several measurements, [`Error::Failed`] if the first one failed. An experiment
/// that is not possible on this link is left out.
pub fn why(
    benchmark: &Benchmark,
    document: &mut Document,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Diagnosis, Error> {
    let [plan] = <[Plan; 1]>::try_from(benchmark.plans()?).map_err(|plans| {
        Error::Usage(format!(
            "that are {} measurements; choose one with --test, --mode, --sizes and --window",
            plans.len()
        ))
    })?;
    benchmark.check(std::slice::from_ref(&plan))?;
    benchmark.run(std::slice::from_ref(&plan), document, observer, stop)?;
    let base = document.measurements.last().cloned().filter(|base| base.operations > 0);
    let base = base.ok_or_else(|| Error::Failed("nothing was measured, so there is nothing to explain".to_owned()))?;
    let mut causes = Causes::of(&base);
    let mut experiments = Vec::new();
    for trial in trials(benchmark, &plan, &base) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(found) = tried(&trial, document, observer, stop) else { continue };
        let predicted = causes.predicted(trial.knob);
        let found = Found { knob: trial.knob, factor: found / base.rate.operations_per_s.median };
        if let Some(predicted) = predicted {
            let [predicted, found] = [predicted, found.factor].map(|factor| factor * base.rate.operations_per_s.median);
            experiments.push(Experiment { change: trial.change, predicted, found });
        }
        causes.add(found);
    }
    let diagnosis = diagnosis(&base, &causes, experiments);
    document.diagnosis = Some(diagnosis.clone());
    Ok(diagnosis)
}

/// Returns the operations per second of an experiment; `None` if this link cannot make it.
fn tried(trial: &Trial, document: &mut Document, observer: &dyn Observer, stop: &AtomicBool) -> Option<f64> {
    let plans = trial.benchmark.plans().ok()?;
    trial.benchmark.check(&plans).ok()?;
    let before = document.measurements.len();
    let ran = trial.benchmark.run(&plans, document, observer, stop);
    if let Err(why) = &ran {
        observer.say(&format!("{}: {why}; this experiment is left out", trial.change));
    }
    let row: Option<Measurement> = document.measurements.get(before).cloned();
    if ran.is_err() || row.as_ref().is_none_or(|row| row.operations == 0) {
        document.measurements.truncate(before);
        return None;
    }
    row.map(|row| row.rate.operations_per_s.median)
}

fn diagnosis(base: &Measurement, causes: &Causes, experiments: Vec<Experiment>) -> Diagnosis {
    let bottleneck = causes.best();
    let confidence = match (causes.is_confirmed(), causes.fits()) {
        (true, true) => Confidence::High,
        (_, true) | (true, _) => Confidence::Medium,
        _ => Confidence::Low,
    };
    Diagnosis {
        bottleneck,
        confidence,
        evidence: sentences::evidence(base, bottleneck, &experiments),
        advice: sentences::advice(bottleneck, base, causes.all()),
        experiments,
    }
}
