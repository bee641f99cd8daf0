//! The round-trip of a single small operation, for the bound of window over round-trip.

use crate::Opened;
use crate::placement::Placement;
use hodo_io::affinity;
use hodo_machine::Wait;
use hodo_measure::{Mode, Plan, Repeats, Size, Test, Until, Unwatched};
use std::time::Duration;

/// How long one batch of operations is watched.
const BATCH: Duration = Duration::from_millis(20);
/// A batch may meet processors that sleep more deeply than those of the next.
const BATCHES: usize = 5;

/// Round-trips of one link by what they depend on, so that measurements that differ in size alone have the same bound.
#[derive(Debug, Default)]
pub struct RoundTrips {
    known: Vec<(Wait, Placement, f64)>,
}

impl RoundTrips {
    /// The round-trip with this wait and placement: probed over the open link where it is not known yet.
    pub fn of(&mut self, plan: &Plan, placement: &Placement, opened: &mut Opened) -> Option<f64> {
        self.of_batches(plan.wait, placement, || batch(opened, plan))
    }

    /// The least of the batches' medians: the window's bound is an upper one, and a full window lets nobody fall asleep.
    fn of_batches(
        &mut self,
        wait: Wait,
        placement: &Placement,
        mut median_ns: impl FnMut() -> Option<f64>,
    ) -> Option<f64> {
        if let Some((.., known)) = self.known.iter().find(|(w, p, _)| (*w, p) == (wait, placement)) {
            return Some(*known);
        }
        let least = (0..BATCHES).map_while(|_| median_ns()).reduce(f64::min)?;
        self.known.push((wait, placement.clone(), least));
        Some(least)
    }
}

/// The median over one batch, with the plan's wait.
fn batch(opened: &mut Opened, plan: &Plan) -> Option<f64> {
    let probe = Plan {
        test: Test::Latency,
        mode: Mode::Both,
        size: Size::Fixed(1),
        window: 1,
        channels: 1,
        rate: None,
        until: Until::Elapsed(BATCH),
        warmup: Duration::ZERO,
        repeats: Repeats::Fixed(1),
        stages: false,
        ..plan.clone()
    };
    let Opened { links, cpus, .. } = opened;
    let run = affinity::keep(|| {
        if let Some(Some(cpu)) = cpus.first() {
            // Where that fails, the run itself says so.
            let _ = affinity::pin_thread(*cpu);
        }
        hodo_measure::run(links, &probe, &Unwatched)
    });
    run.latency.map(|latency| latency.p50 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(cpu: usize) -> Placement {
        Placement { here: vec![cpu], ..Placement::default() }
    }

    #[test]
    fn the_step_between_two_states_of_sleep_is_not_seen() {
        let mut found = [60e3, 31e3, 30e3, 62e3, 61e3, 90e3, 91e3].into_iter();
        let mut trips = RoundTrips::default();
        for _ in 0..3 {
            assert_eq!(trips.of_batches(Wait::Block, &on(0), || found.next()), Some(30e3));
        }
        assert_eq!(trips.of_batches(Wait::Spin, &on(0), || found.next()), Some(90e3), "another wait is another bound");
        assert_eq!(trips.of_batches(Wait::Block, &on(1), || Some(40e3)), Some(40e3), "and so is another place");
        assert_eq!(trips.of_batches(Wait::Block, &on(0), || None), Some(30e3));
    }

    #[test]
    fn what_could_not_be_probed_is_not_known() {
        let mut trips = RoundTrips::default();
        assert_eq!(trips.of_batches(Wait::Block, &on(0), || None), None);
        assert_eq!(trips.of_batches(Wait::Block, &on(0), || Some(1e3)), Some(1e3), "it is tried again");
    }
}
