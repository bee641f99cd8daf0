//! Receive queues of an interface, and whether packets are distributed over processors in software (RPS).

use super::{Nic, counters, ethtool::Ethtool, sysfs};
use std::fs;

/// The receive queues of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiveQueues {
    /// The number in use.
    pub count: u32,
    /// The most that the interface can have.
    pub max: u32,
    /// Whether the kernel distributes the packets of a queue over several processors; `None` if it does not say.
    pub has_packet_steering: Option<bool>,
}

impl Nic {
    /// Returns the receive queues of the interface of this name; `None` if neither driver nor kernel reports them.
    #[must_use]
    pub fn receive_queues(name: &str) -> Option<ReceiveQueues> {
        let made = counters::link(name)?.rx_queues_max;
        let of_driver = Ethtool::open(name).and_then(|driver| driver.receive_queues());
        let folders = queue_folders(name);
        let count = folders.as_ref().map(|all| all.len() as u32).or(of_driver.map(|(now, _)| now)).or(made)?;
        let max = [made, of_driver.map(|(_, max)| max)].into_iter().flatten().max().unwrap_or(count).max(count);
        let steers = |mask: &String| mask.chars().any(|digit| !matches!(digit, '0' | ','));
        let masks = folders.map(|all| all.iter().filter_map(|folder| read(&format!("{folder}/rps_cpus"))).collect());
        let has_packet_steering =
            masks.filter(|masks: &Vec<String>| !masks.is_empty()).map(|masks| masks.iter().any(steers));
        Some(ReceiveQueues { count, max, has_packet_steering })
    }
}

/// Returns the folders of the receive queues; `None` if `/sys` has none of this interface.
fn queue_folders(name: &str) -> Option<Vec<String>> {
    let folder = sysfs(name)?.join("queues");
    let entries = fs::read_dir(folder).ok()?.flatten();
    let is_receive = |path: &String| path.rsplit('/').next().is_some_and(|queue| queue.starts_with("rx-"));
    let found: Vec<String> =
        entries.map(|entry| entry.path().display().to_string()).filter(|path| is_receive(path)).collect();
    (!found.is_empty()).then_some(found)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_at_least_one() {
        let queues = Nic::receive_queues("lo").expect("every Linux has a loopback");
        assert!(queues.count >= 1 && queues.max >= queues.count, "{queues:?}");
        assert_eq!(Nic::receive_queues("no-such-nic"), None);
    }
}
