//! Snapshots of a run that goes on: its counters at even intervals of the counted time, for whoever follows it.

use super::drive::Found;
use super::recorder::Tally;
use super::timeline::whole_nanos;
use crate::{Histogram, TcpTimes};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How a run is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// The counted time from one snapshot to the next.
    pub every: Duration,
    /// Whether snapshots hold the times of operations, which takes some 40 us for each.
    pub with_times: bool,
}

/// The counters of a run since its counted time began. The first one of a run holds zeros and what the counters of the transport were then,
/// the last one all that the run has counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The counted time so far.
    pub t_s: f64,
    /// Operations completed.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
    /// Operations given up.
    pub given_up: u64,
    /// Operations that arrived after they had been given up.
    pub recovered: u64,
    /// Packets that this side sent again since the link was opened; `None` if too many sockets would have to be asked.
    pub retransmitted: Option<u64>,
    /// The report of this side's TCP since the link was opened; `None` if there is none, or too many sockets would have to be asked.
    pub tcp: Option<TcpTimes>,
    /// The times of the operations, if they are requested.
    pub times: Option<Box<Histogram>>,
}

impl Snapshot {
    /// Adds the counters of another link.
    fn add(&mut self, other: &Snapshot) {
        self.t_s = self.t_s.max(other.t_s);
        self.operations += other.operations;
        self.payload_bytes += other.payload_bytes;
        self.given_up += other.given_up;
        self.recovered += other.recovered;
        self.retransmitted = self.retransmitted.zip(other.retransmitted).map(|(mine, others)| mine + others);
        self.tcp = self.tcp.zip(other.tcp).map(|(mine, others)| mine.and(others));
        if let Some((mine, others)) = self.times.as_mut().zip(other.times.as_ref()) {
            mine.merge(others);
        }
    }

    /// Returns the snapshot of the whole counted time, with the times of all operations.
    pub(super) fn last(found: &[Found], total: &Tally, times: &Histogram, settings: SnapshotSettings) -> Snapshot {
        let tcp = |link: &Found| link.accounts.parts.last().and_then(|[_, end]| end.tcp);
        let tcp = found.iter().map(tcp).reduce(|mine, others| Some(mine?.and(others?))).flatten();
        let sum = |of: fn(&Found) -> u64| found.iter().map(of).sum();
        Snapshot {
            t_s: whole_nanos(total.elapsed_s),
            operations: total.operations,
            payload_bytes: total.payload_bytes,
            given_up: sum(|link| link.accounts.lost),
            recovered: sum(|link| link.accounts.recovered),
            retransmitted: Some(sum(|link| link.accounts.link[1].retransmitted)),
            tcp,
            times: settings.with_times.then(|| Box::new(times.clone())),
        }
    }
}

/// The latest snapshot of each link of a run.
pub(super) struct Snapshots {
    pub settings: Option<SnapshotSettings>,
    links: Mutex<Links>,
}

struct Links {
    /// The number and the counters of each link's latest snapshot.
    latest: Vec<Option<(u64, Snapshot)>>,
    /// The number of the latest snapshot of all links together.
    passed_on: Option<u64>,
}

impl Snapshots {
    pub fn new(settings: Option<SnapshotSettings>, links: usize) -> Self {
        Snapshots { settings, links: Mutex::new(Links { latest: vec![None; links], passed_on: None }) }
    }

    /// Adds the snapshot of this number of a link. Returns the sum over all links once each of them has come as far.
    pub fn add(&self, link: usize, number: u64, snapshot: Snapshot) -> Option<Snapshot> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.latest.len() == 1 {
            return Some(snapshot);
        }
        links.latest[link] = Some((number, snapshot));
        let number_of = |latest: &Option<(u64, Snapshot)>| latest.as_ref().map(|(number, _)| *number);
        let all = links.latest.iter().map(number_of).min().flatten()?;
        if links.passed_on.is_some_and(|passed_on| all <= passed_on) {
            return None;
        }
        links.passed_on = Some(all);
        let mut each = links.latest.iter().flatten().map(|(_, snapshot)| snapshot);
        let mut sum = each.next()?.clone();
        each.for_each(|snapshot| sum.add(snapshot));
        Some(sum)
    }

    /// Notes that a link takes no more snapshots: the others no longer wait for it.
    pub fn end(&self, link: usize) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, _)) = &mut links.latest[link] {
            *number = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(operations: u64) -> Snapshot {
        Snapshot { operations, retransmitted: Some(1), ..Snapshot::default() }
    }

    #[test]
    fn the_snapshot_of_one_link_is_passed_on_at_once() {
        let snapshots = Snapshots::new(None, 1);
        assert_eq!(snapshots.add(0, 0, snapshot(0)), Some(snapshot(0)));
        assert_eq!(snapshots.add(0, 5, snapshot(9)), Some(snapshot(9)));
    }

    #[test]
    fn several_links_wait_for_the_slowest_and_not_for_one_that_has_ended() {
        let snapshots = Snapshots::new(None, 2);
        assert_eq!(snapshots.add(0, 0, snapshot(0)), None);
        assert_eq!(snapshots.add(1, 0, snapshot(0)).map(|all| all.retransmitted), Some(Some(2)));
        assert_eq!(snapshots.add(1, 1, snapshot(5)), None);
        assert_eq!(snapshots.add(1, 2, snapshot(9)), None);
        assert_eq!(snapshots.add(0, 2, snapshot(10)).map(|all| all.operations), Some(19));
        snapshots.end(1);
        assert_eq!(snapshots.add(0, 3, snapshot(20)).map(|all| all.operations), Some(29));
    }

    #[test]
    fn a_report_that_one_link_lacks_is_not_known() {
        let mut sum = snapshot(1);
        sum.add(&Snapshot { t_s: 2.0, retransmitted: None, ..snapshot(2) });
        assert_eq!((sum.operations, sum.t_s, sum.retransmitted), (3, 2.0, None));
    }
}
