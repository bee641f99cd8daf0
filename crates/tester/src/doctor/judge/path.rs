use super::super::{Basis, Finding, Kind, Operations, Outcome, PathFacts, Price};
use super::{Answer, Facts, Topic, fine, found, unknown};
use hodo_io::PathProbe;
use hodo_io::nic::Nic;
use hodo_measure::limits::Carrier;
use hodo_measure::units::text::percent;

const TOPIC: Topic = Topic::PathMtu;
/// The largest packet of Ethernet without jumbo frames.
const ETHERNET: u32 = 1500;
/// The headers of IPv4 and of TCP with timestamps; of IPv6 they are 20 bytes more.
const HEADERS: u32 = 52;
/// A smaller share is not worth a word: 8 bytes of PPPoE are 0.6 %.
const LEAST: f64 = 0.01;

/// Judges the largest packet that the path takes, or that each interface sends.
pub(super) fn mtu(facts: &Facts) -> Vec<Answer> {
    match &facts.path {
        None => facts.interfaces.iter().map(|each| of_interface(&each.nic)).collect(),
        Some(path) if path.route.is_local => vec![fine(TOPIC, "lo", "the far end is on this host")],
        Some(path) => {
            let nic = facts.interfaces.iter().map(|each| &each.nic).find(|nic| nic.name == path.route.interface);
            let answer = of_path(facts, path, nic.and_then(|nic| nic.mtu).unwrap_or(ETHERNET));
            // The path is no better than the interface.
            let of_nic = nic.map(of_interface).filter(|answer| matches!(answer.outcome, Outcome::Found(_)));
            vec![if matches!(answer.outcome, Outcome::Unknown(_)) { of_nic.unwrap_or(answer) } else { answer }]
        }
    }
}

fn of_interface(nic: &Nic) -> Answer {
    let Some(mtu) = nic.mtu else { return unknown(TOPIC, &nic.name, "the interface reports no MTU") };
    let share = more_packets(mtu, ETHERNET);
    if share < LEAST {
        return fine(TOPIC, &nic.name, format!("{mtu} B"));
    }
    let evidence = format!("{} sends packets of at most {mtu} B, Ethernet takes {ETHERNET} B", nic.name);
    let remedy = format!("ip link set dev {} mtu {ETHERNET}   # if the network behind it takes them", nic.name);
    found(TOPIC, &nic.name, smaller(share, mtu, ETHERNET, Basis::Derived, evidence, remedy))
}

/// The packets that a path takes, as far as that is known.
enum Way {
    /// It takes packets of this size, and the kernel knows; one of `lost` bytes did not pass.
    Takes {
        mtu: u32,
        lost: Option<u32>,
    },
    /// It loses larger packets, and the kernel goes on sending them.
    Loses {
        passed: Option<u32>,
        how: String,
    },
    Unknown(String),
}

impl Way {
    fn of(path: &PathFacts) -> Way {
        let operations = path.operations.as_ref().and_then(|operations| operations.as_ref().ok());
        let known = path.known_mtu.or(path.agreed().map(|(mtu, _)| mtu));
        match (&path.probe, operations) {
            (Ok(PathProbe { passed: Some(passed), lost, .. }), _) => match lost {
                Some(lost) if path.known_mtu.is_none_or(|known| known > *passed) => {
                    let more = if *lost == passed + 1 { " and more" } else { "" };
                    let how = format!("packets of {lost} B{more} are lost, of {passed} B they pass");
                    Way::Loses { passed: Some(*passed), how }
                }
                _ => Way::Takes { mtu: *passed, lost: *lost },
            },
            (_, Some(Operations { large: None, large_bytes, .. })) => {
                let how = format!("operations of 64 B complete, none of {large_bytes} B did within a second");
                Way::Loses { passed: None, how }
            }
            (_, Some(Operations { large: Some(_), large_bytes, .. })) => {
                Way::Takes { mtu: known.unwrap_or(*large_bytes + HEADERS), lost: None }
            }
            (other, None) => match known {
                Some(mtu) => Way::Takes { mtu, lost: None },
                None => {
                    Way::Unknown(other.as_ref().err().cloned().unwrap_or_else(|| "no echo request was answered".into()))
                }
            },
        }
    }
}

impl PathFacts {
    /// Returns the packet sizes of a link over TCP: the one that the kernel believes the path to take, and the one that both ends agreed on.
    fn agreed(&self) -> Option<(u32, u32)> {
        let headers = if self.remote.is_ipv4() { HEADERS } else { HEADERS + 20 };
        let tcp = self.tcp.as_ref()?.as_ref().ok().filter(|_| self.carrier == Some(Carrier::Tcp))?;
        Some((tcp.mtu, tcp.segment + headers))
    }
}

fn of_path(facts: &Facts, path: &PathFacts, interface_mtu: u32) -> Answer {
    let to = path.remote.ip().to_string();
    let agreed = path.agreed().map(|(_, agreed)| agreed);
    let (mtu, lost) = match Way::of(path) {
        Way::Unknown(why) => return unknown(TOPIC, &to, format!("{why}; the interface sends {interface_mtu} B")),
        // TCP agrees on a size when it connects: no larger one is sent.
        Way::Loses { passed, how } => match (passed, agreed) {
            (Some(passed), Some(agreed)) if agreed <= passed => (passed, None),
            _ => return found(TOPIC, &to, black_hole(facts, path, passed, &how)),
        },
        Way::Takes { mtu, lost } => (mtu, lost),
    };
    let (taken, largest) = (mtu.min(agreed.unwrap_or(mtu)), interface_mtu.max(ETHERNET));
    let share = more_packets(taken, largest);
    if share < LEAST {
        return fine(TOPIC, &to, format!("{taken} B"));
    }
    let device = &path.route.interface;
    let sends = format!("{device} sends packets of at most {interface_mtu} B");
    let hop = format!("raise the MTU of what lies on the way to {to}; `tracepath -n {to}` names the hop");
    let (evidence, remedy) = match lost {
        _ if taken == interface_mtu => (
            format!("{sends}, Ethernet takes {ETHERNET} B"),
            format!("ip link set dev {device} mtu {ETHERNET}   # if the path takes them"),
        ),
        Some(lost) if taken == mtu => (format!("packets of {lost} B do not pass, of {taken} B they do; {sends}"), hop),
        _ if path.route.mtu == Some(taken) => {
            let via = path.route.gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
            let evidence = format!("the route takes {taken} B, as it was set or as a router reported before; {sends}");
            (evidence, format!("ip route flush cache; ip route replace {to}{via} dev {device}"))
        }
        _ if agreed == Some(taken) => (
            format!("TCP agreed on packets of {taken} B: the far end's interface, or a router, takes no more; {sends}"),
            hop,
        ),
        _ => (format!("the path takes {taken} B; {sends}"), hop),
    };
    found(TOPIC, &to, smaller(share, taken, largest, Basis::Derived, evidence, remedy))
}

fn black_hole(facts: &Facts, path: &PathFacts, passed: Option<u32>, how: &str) -> Finding {
    let probing = match facts.probes_mtu {
        Some(true) => "; TCP searches for a size that passes, after seconds (net.ipv4.tcp_mtu_probing)",
        _ => "",
    };
    let evidence = format!("{how}; no router reports it, so that this host goes on sending them{probing}");
    let (to, device) = (path.remote.ip(), &path.route.interface);
    let via = path.route.gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
    let family = if path.remote.is_ipv4() { "" } else { "-6 " };
    let command = match passed {
        Some(mtu) => format!("ip {family}route replace {to}{via} dev {device} mtu {mtu}"),
        None => "sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned(),
    };
    let remedy = format!("{command}   # or let routers send `fragmentation needed`, and raise their MTU");
    let text = "every full packet is lost: 100 % of bulk data".to_owned();
    Finding { kind: Kind::Fault, evidence, price: Price::of_rate(1.0, Basis::Measured, text), remedy }
}

fn smaller(share: f64, mtu: u32, largest: u32, basis: Basis, evidence: String, remedy: String) -> Finding {
    let text = format!(
        "{} of the rate where packets bind: {:.2} times the packets of {largest} B",
        percent(share),
        payload(largest) / payload(mtu)
    );
    Finding { kind: Kind::Fault, evidence, price: Price::of_rate(share, basis, text), remedy }
}

/// Returns the share of the rate that is lost if the packets per second stay the same.
fn more_packets(mtu: u32, largest: u32) -> f64 {
    1.0 - payload(mtu) / payload(largest)
}

fn payload(mtu: u32) -> f64 {
    f64::from(mtu.saturating_sub(HEADERS).max(1))
}
