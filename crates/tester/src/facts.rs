//! The facts that a far end reports of its side.

use crate::ServeSettings;
use crate::placement::side_text;
use hodo_io::host::HostFacts;
use hodo_io::nic::Nic;
use hodo_io::scheduling;
use hodo_machine::Address;
use hodo_measure::FarEndFacts;
use std::net::IpAddr;

impl ServeSettings {
    /// Returns the facts of a server at this address with these settings. Takes a few milliseconds.
    #[must_use]
    pub fn facts(&self, address: &Address) -> FarEndFacts {
        let host = HostFacts::collect();
        let has_tcp = matches!(address, Address::Tcp(_));
        FarEndFacts {
            wait: Some(self.wait.to_string()),
            placement: Some(side_text(&self.cpus)),
            scheduling: scheduling::class(),
            kernel: host.kernel,
            congestion_control: self.congestion.clone().or(host.congestion_control).filter(|_| has_tcp),
            line_bits_per_s: address.ip().and_then(|address| line_bits_per_s(address.ip())),
        }
    }
}

/// Returns the rate of the line at an address of this host. For all addresses it is known if the lines are alike.
fn line_bits_per_s(address: IpAddr) -> Option<u64> {
    let nics = if address.is_unspecified() { Nic::all() } else { Nic::of_local(address).into_iter().collect() };
    let mut rates = nics.iter().filter_map(Nic::line_rate_bits_per_s);
    let first = rates.next()?;
    rates.all(|rate| rate == first).then_some(first as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Wait;

    #[test]
    fn a_server_knows_its_side() {
        let settings = ServeSettings {
            threads: 1,
            cpus: vec![0, 1],
            wait: Wait::Spin,
            congestion: Some("reno".into()),
            path: hodo_io::PathOptions::default(),
            socket_buffer: None,
            payload: None,
            size_max: 64,
            peers_max: 1,
        };
        let at = "127.0.0.1:0".parse().expect("an address");
        let facts = settings.facts(&Address::Tcp(at));
        assert_eq!((facts.wait.as_deref(), facts.placement.as_deref()), (Some("spin"), Some("cpu 0,1")));
        assert_eq!(facts.scheduling, scheduling::class());
        assert!(facts.kernel.is_some() && facts.line_bits_per_s.is_none(), "{facts:?}");
        assert_eq!(facts.congestion_control.as_deref(), Some("reno"));
        assert_eq!(settings.facts(&Address::Udp(at)).congestion_control, None);
    }
}
