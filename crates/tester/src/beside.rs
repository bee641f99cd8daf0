//! Two flows at the same time, each with a row of its own: both directions, or a latency under load.

use crate::placement::Placement;
use crate::{Benchmark, Error};
use hodo_measure::{Beside, Measurement, Plan, Repeats, State, Until, Verdict};

/// Another flow that runs while a benchmark's own does.
#[derive(Debug, Clone)]
pub struct OtherFlow {
    /// The other flow: one plan for all, or one for each of the benchmark that it runs beside.
    pub benchmark: Box<Benchmark>,
    /// Whether each plan is measured alone first, so that the two can be compared.
    pub is_compared: bool,
}

impl OtherFlow {
    /// Returns the plan that runs beside the one with this index.
    pub(crate) fn plan(&self, index: usize) -> Result<Plan, Error> {
        let plans = self.benchmark.plans()?;
        Ok(plans.get(index).unwrap_or(&plans[0]).clone())
    }

    /// Checks that the two can run at the same time.
    pub(crate) fn check(&self, own: &Benchmark) -> Result<(), Error> {
        for benchmark in [own, &self.benchmark] {
            let link = &benchmark.link;
            if link.simulated {
                let text = format!(
                    "{link}: a simulated link carries one flow; take a link between programs, as {}",
                    link.scheme
                );
                return Err(Error::Usage(text));
            }
            let is_timed =
                matches!((benchmark.timing.until, benchmark.timing.repeats), (Until::Elapsed(_), Repeats::Fixed(_)));
            if !is_timed {
                let text = "two flows at the same time last equally long: take --duration and --repeat, neither --count nor --interval";
                return Err(Error::Usage(text.to_owned()));
            }
        }
        self.benchmark.check(&self.benchmark.plans()?)
    }
}

/// Returns the placements of two flows of which each has fewer threads than there are processors: they begin on different ones.
pub(crate) fn placements(mut of_all: Placement) -> [Placement; 2] {
    let first = of_all.clone();
    if !of_all.here.is_empty() {
        of_all.here.rotate_left(1);
    }
    [first, of_all]
}

/// Returns a flow as the other one sees it before anything is measured.
pub(crate) fn planned((benchmark, plan): (&Benchmark, &Plan)) -> Beside {
    let verdict = Verdict { state: State::Interrupted, text: String::new() };
    Beside::of(&plan.unmeasured(benchmark.link.scheme, &benchmark.link.to_string(), verdict))
}

/// Says in each of two rows how fast the other one was at the same time.
pub(crate) fn pair(rows: [&mut Measurement; 2]) {
    let [first, second] = rows;
    let each = [Beside::of(second), Beside::of(first)];
    for (row, beside) in [first, second].into_iter().zip(each) {
        row.verdict.text = format!("{}; {beside}", row.verdict.text);
        row.beside = Some(beside);
    }
}
