//! Runs that are followed by snapshots of their counters.

use super::*;
use crate::{Snapshot, SnapshotSettings};
use std::sync::Mutex;

/// A watch that collects snapshots, and pauses after so many repeats.
struct Follower {
    every: Duration,
    pauses: u32,
    snapshots: Mutex<Vec<Snapshot>>,
}

impl Watch for Follower {
    fn snapshots(&self) -> Option<SnapshotSettings> {
        Some(SnapshotSettings { every: self.every, with_times: true })
    }

    fn snapshot(&self, snapshot: Snapshot) {
        self.snapshots.lock().expect("no panic").push(snapshot);
    }

    fn pauses_after(&self, repeats: u32) -> bool {
        repeats <= self.pauses
    }
}

/// Runs a plan over links and returns also its snapshots.
fn followed(mut links: Vec<Box<dyn Link + Send>>, plan: &Plan, pauses: u32) -> (Run, Vec<Snapshot>) {
    let follower = Follower { every: Duration::from_millis(50), pauses, snapshots: Mutex::default() };
    let found = run(&mut links, plan, &follower);
    (found, follower.snapshots.into_inner().expect("no panic"))
}

/// Returns the operations between each two snapshots.
fn operations(snapshots: &[Snapshot]) -> Vec<u64> {
    snapshots.windows(2).map(|pair| pair[1].operations - pair[0].operations).collect()
}

#[test]
fn snapshots_come_at_even_intervals_and_end_with_the_totals() {
    for pauses in [0, 2] {
        let (found, snapshots) = followed(vec![Box::new(FakeLink::steady(8_000, 2_000))], &plan(), pauses);
        assert_eq!(
            snapshots[0],
            Snapshot { times: snapshots[0].times.clone(), retransmitted: Some(0), ..Snapshot::default() }
        );
        let last = snapshots.last().expect("there are some");
        assert_eq!((last.operations, last.payload_bytes), (found.operations, found.payload_bytes));
        near(last.t_s, found.elapsed_s);
        let even = operations(&snapshots);
        assert!(even[..5].iter().all(|count| count.abs_diff(5_000) <= 2), "{even:?}");
        for snapshot in &snapshots {
            assert_eq!(snapshot.times.as_ref().map(|times| times.count()), Some(snapshot.operations));
        }
    }
}

#[test]
fn a_silence_is_intervals_without_operations() {
    let mut still_ns = Some(400_000_000);
    let link = FakeLink::new(80_000, move |_, started_s| {
        let still_ns = still_ns.take_if(|_| started_s >= 0.1).unwrap_or(0);
        Service { busy_ns: 20_000 + still_ns, outcome: Outcome::Done }
    });
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(1)), repeats: Repeats::Fixed(1), ..plan() };
    let (found, snapshots) = followed(vec![Box::new(link)], &plan, 0);
    let silent = operations(&snapshots).into_iter().filter(|count| *count == 0).count();
    assert!((6..=8).contains(&silent), "{:?}", operations(&snapshots));
    assert_eq!(operations(&snapshots).iter().sum::<u64>(), found.operations);
}

#[test]
fn several_links_are_one_run() {
    let links: Vec<Box<dyn Link + Send>> =
        (0..2).map(|_| Box::new(FakeLink::steady(100_000, 1_000)) as Box<dyn Link + Send>).collect();
    let (found, snapshots) = followed(links, &Plan { channels: 4, ..plan() }, 0);
    let last = snapshots.last().expect("there are some");
    assert_eq!((last.operations, last.payload_bytes), (found.operations, found.payload_bytes));
    assert_eq!(last.times.as_ref().map(|times| times.count()), Some(found.operations));
    assert!(snapshots.windows(2).all(|pair| pair[0].operations <= pair[1].operations));
}

#[test]
fn what_is_given_up_is_in_the_snapshots() {
    let outcome = |number| if number % 10 == 0 { Outcome::Lost } else { Outcome::Done };
    let link = FakeLink::new(10_000, move |number, _| Service { busy_ns: 10_000, outcome: outcome(number) });
    let (found, snapshots) = followed(vec![Box::new(link)], &plan(), 0);
    let last = snapshots.last().expect("there are some");
    assert_eq!((last.given_up, last.recovered), (found.loss.lost, 0));
    assert!(last.given_up > 0);
}
