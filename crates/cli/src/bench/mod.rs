//! `hodo bench`: how fast is a link?

mod arguments;
mod drive;
mod far_end;
mod forms;
mod line;
mod outputs;
mod placement;
pub mod plan;
mod progress;
mod recorder;
mod round_trip;
mod share;
mod steps;
mod unmeasured;

pub use outputs::Outputs;
pub use progress::Progress;
pub use recorder::Recorder;
pub use steps::Steps;

use crate::args::{self, units::Cpus};
use crate::{Error, Outcome, congestion, environment, interrupt, terminal};
use hodo_measure::Plan;

/// Descriptors that a process needs beside its channels: files, libraries, pollers.
const DESCRIPTORS_BESIDE: u64 = 64;

/// Measures a link as the options say.
pub fn run(bench: &args::Bench) -> Result<Outcome, Error> {
    let plans = plan::plans(bench)?;
    check_machine(bench, &plans)?;
    let asked = &bench.measure;
    hodo_tester::check_options(&bench.link, asked.congestion.as_deref(), asked.cpu.is_some(), asked.wait)?;
    congestion::check(asked.congestion.as_deref())?;
    let outputs = Outputs::prepare(&bench.output, None)?;
    let stop = interrupt::flag()?;
    let progress = Progress::new(bench.progress, bench.quiet, plans.len());
    let stdout_is_taken = outputs.take_stdout();
    let environment = environment::of_host(arguments::effective(bench));
    progress.say(&format!("{}; {}", arguments::summary(bench), environment::clock_text(&environment)));
    let mut recorder = Recorder::new(environment, outputs);
    let ran = Steps {
        link: &bench.link,
        measure: &bench.measure,
        reconnect: bench.choice.reconnect,
        stop: &stop,
        progress: &progress,
        recorder: &mut recorder,
    }
    .run(&plans);
    if recorder.measurements().is_empty() {
        return ran.map(|()| Outcome::Failed);
    }
    // An error says itself why there is nothing; without one the table does.
    let has_some = recorder.measurements().iter().any(|measurement| measurement.operations > 0);
    if !bench.quiet && (has_some || ran.is_ok()) {
        let table = hodo_report::table(recorder.measurements(), terminal::style(stdout_is_taken));
        terminal::tell(&format!("\n{table}"), stdout_is_taken)?;
    }
    let outcome = recorder.finish();
    ran.and(outcome)
}

/// Whether this machine has the processors and may open the files that the plans need.
fn check_machine(bench: &args::Bench, plans: &[Plan]) -> Result<(), Error> {
    let online = online_cpus();
    if let Some(Cpus(cpus)) = &bench.measure.cpu
        && let Some(cpu) = cpus.iter().find(|cpu| !online.is_empty() && !online.contains(cpu))
    {
        let online = args::units::cpus_text(&online);
        return Err(Error::Usage(format!("--cpu {cpu}: this process may run on {online}")));
    }
    let channels = plans.iter().map(|plan| plan.channels).max().unwrap_or(1);
    let wanted = u64::from(channels) + DESCRIPTORS_BESIDE;
    let allowed = hodo_io::host::raise_descriptor_limit()
        .map_err(|why| Error::Failed(format!("the limit of open files cannot be read: {why}")))?;
    if !bench.link.simulated && allowed < wanted {
        return Err(Error::Usage(format!(
            "--channels {channels}: that needs {wanted} open files, and this process may have {allowed}; raise the limit with `ulimit -n {wanted}` as root, or take 1..={}",
            allowed.saturating_sub(DESCRIPTORS_BESIDE)
        )));
    }
    Ok(())
}

/// The processors that this process may run on; empty where the kernel does not tell.
fn online_cpus() -> Vec<usize> {
    hodo_io::affinity::allowed_cpus().unwrap_or_default()
}
