//! The round-trip of a row: its own operations, one at a time, right before and right after it.

use crate::Opened;
use hodo_io::affinity;
use hodo_measure::limits::OnTheWire;
use hodo_measure::{Plan, Repeats, Size, Test, Until, Unwatched};
use std::time::Duration;

/// The duration of one batch of operations.
const BATCH: Duration = Duration::from_millis(20);
/// The number of batches: one may meet processors that sleep more deeply than those of the next.
const BATCHES: usize = 2;

/// Measures the median times of the plan's operations one at a time, over the open link and with the plan's wait. An
/// operation of several messages is represented by one that fills a single message.
pub(crate) fn alone(opened: &mut Opened, plan: &Plan, wire: &OnTheWire) -> Vec<f64> {
    let messages = wire.messages_per_operation();
    let size = if messages > 1.0 { Size::Fixed((wire.payload_bytes / messages) as u32) } else { plan.size };
    let probe = Plan {
        test: Test::Latency,
        size,
        window: 1,
        unbounded: false,
        channels: 1,
        rounds: false,
        rate: None,
        pace: None,
        until: Until::Elapsed(BATCH),
        warmup: Duration::ZERO,
        repeats: Repeats::Fixed(1),
        stages: false,
        ..plan.clone()
    };
    (0..BATCHES).map_while(|_| batch(opened, &probe)).collect()
}

/// Returns the median over one batch.
fn batch(opened: &mut Opened, probe: &Plan) -> Option<f64> {
    let Opened { links, cpus, .. } = opened;
    let run = affinity::keep(|| {
        if let Some(Some(cpu)) = cpus.first() {
            // Where that fails, the run itself says so.
            let _ = affinity::pin_thread(*cpu);
        }
        hodo_measure::run(links, probe, &Unwatched)
    });
    run.latency.filter(|_| run.error.is_none()).map(|latency| latency.p50 as f64)
}
