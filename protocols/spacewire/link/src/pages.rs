//! The pages of a bridge in real time: how far its network has fallen behind the clock.

use hodo_spacewire_host::bridge::SHORTFALL_METRIC;
use hodo_tester::{Error, Uri};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a bridge may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pages of a bridge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages(SocketAddr);

impl Pages {
    /// Returns the pages at an address, which are found to be those of a bridge.
    pub(crate) fn of(uri: &Uri, place: &str) -> Result<Pages, Error> {
        let address = place.parse().map_err(|_| {
            Error::Usage(format!(
                "`{uri}`: pages={place}: write address and port of the bridge's pages, as 127.0.0.1:9209"
            ))
        })?;
        let pages = Pages(address);
        pages.shortfall_s().map(|_| pages).ok_or_else(|| {
            Error::Failed(format!(
                "`{uri}`: no bridge has pages at {address}; see --metrics of `hodo spacewire bridge`"
            ))
        })
    }

    /// Returns the time by which the network has fallen behind, if the bridge answers.
    pub(crate) fn shortfall_s(self) -> Option<f64> {
        shortfall_s(&hodo_daemon::fetch(self.0, "/metrics", PATIENCE).ok()?)
    }
}

fn shortfall_s(metrics: &str) -> Option<f64> {
    let value = |line: &str| line.strip_prefix(SHORTFALL_METRIC)?.trim().parse().ok();
    metrics.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortfall_is_found_among_the_metrics() {
        let text = format!("# TYPE {SHORTFALL_METRIC} counter\n{SHORTFALL_METRIC} 1.25\nspacewire_bridge_deadlock 0\n");
        assert_eq!([shortfall_s(&text), shortfall_s("up 1\n")], [Some(1.25), None]);
    }
}
