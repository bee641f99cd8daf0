use super::super::{Basis, Finding, InterfaceFacts, Kind, Price};
use super::{Answer, Facts, Topic, counted, fine, found, unknown};
use hodo_io::probe::{SEGMENT, SEGMENTS};
use hodo_measure::units::cpus_text;
use hodo_measure::units::text::{bits_per_s, percent, time_ns};
use std::collections::BTreeSet;
use std::time::Duration;

/// Offloads: the name of `ethtool -k`, the kernel's names of its features, and the word of `ethtool -K`.
const OFFLOADS: [(&str, &[&str], &str); 6] = [
    ("tcp-segmentation-offload", &["tx-tcp-segmentation"], "tso"),
    ("generic-segmentation-offload", &["tx-generic-segmentation"], "gso"),
    (GRO, &["rx-gro"], "gro"),
    ("scatter-gather", &["tx-scatter-gather"], "sg"),
    ("tx-checksumming", &["tx-checksum-ip-generic", "tx-checksum-ipv4"], "tx"),
    ("rx-checksumming", &["rx-checksum"], "rx"),
];
const GRO: &str = "generic-receive-offload";
/// A veth passes large packets on as they are, so that receive offload has nothing to do and is off by default.
const NOT_OF_VETH: &str = "gro";
const VETH: &str = "veth";
/// Delays below this are no more than what a wake-up costs anyway.
const COALESCENCE_LEAST: Duration = Duration::from_micros(10);

/// Judges the offloads of each interface.
pub(super) fn offloads(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(|each| offloads_of(facts, each)).collect()
}

fn offloads_of(facts: &Facts, interface: &InterfaceFacts) -> Answer {
    let (topic, name) = (Topic::Offloads, interface.nic.name.as_str());
    let is_veth = interface.nic.driver.as_deref() == Some(VETH);
    let is_off = |(known, features, word): &&(&str, &[&str], &str)| {
        let is_dormant = features.iter().any(|feature| interface.dormant.iter().any(|dormant| dormant == feature));
        is_dormant && !interface.nic.offloads.iter().any(|on| on == known) && !(is_veth && *word == NOT_OF_VETH)
    };
    let off: Vec<&str> = OFFLOADS.iter().filter(is_off).map(|(_, _, word)| *word).collect();
    if off.is_empty() {
        return fine(topic, name, "none is off that could be on");
    }
    let price = match facts.packets {
        Some(cost) => {
            let (single, joined) = (cost.one_by_one.as_secs_f64(), cost.as_one.as_secs_f64());
            let rate = |seconds: f64| bits_per_s(8.0 * (SEGMENT * SEGMENTS) as f64 / seconds);
            let text = format!(
                "up to {} of what a processor can move: packets one by one are {} here, {SEGMENTS} as one are {}",
                percent(1.0 - joined / single),
                rate(single),
                rate(joined)
            );
            Price::of_rate(1.0 - joined / single, Basis::Derived, text)
        }
        None => {
            let text = format!("up to {SEGMENTS} times the packets through the stack");
            Price::of_rate(1.0 - 1.0 / SEGMENTS as f64, Basis::Derived, text)
        }
    };
    let evidence = format!("off on {name}, and could be on: {}", off.join(", "));
    let switches: Vec<String> = off.iter().map(|word| format!("{word} on")).collect();
    let remedy = format!("ethtool -K {name} {}", switches.join(" "));
    found(topic, name, Finding { kind: Kind::Fault, evidence, price, remedy })
}

/// Judges the delay of interrupts of each interface.
pub(super) fn coalescence(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(coalescence_of).collect()
}

fn coalescence_of(interface: &InterfaceFacts) -> Answer {
    let (topic, nic) = (Topic::Coalescence, &interface.nic);
    let Some(rx_usecs) = nic.rx_usecs else {
        let why = if nic.is_virtual { "no hardware, no interrupts" } else { "the driver does not report it" };
        return if nic.is_virtual { fine(topic, &nic.name, why) } else { unknown(topic, &nic.name, why) };
    };
    let delay = Duration::from_micros(rx_usecs.into());
    if nic.rx_adaptive == Some(true) {
        return fine(topic, &nic.name, "adapts to the traffic");
    }
    if delay < COALESCENCE_LEAST {
        return fine(topic, &nic.name, format!("{rx_usecs} µs"));
    }
    let evidence = format!(
        "{} delays the interrupt of a packet by up to {rx_usecs} µs (rx-usecs), and does not adapt it",
        nic.name
    );
    let text = format!("up to {} on each packet that arrives alone", time_ns(delay.as_nanos() as f64));
    let price = Price::of_time(delay, Basis::Derived, text);
    let remedy = format!("ethtool -C {} rx-usecs 3   # or adaptive-rx on, if the driver has it", nic.name);
    found(topic, &nic.name, Finding { kind: Kind::Fault, evidence, price, remedy })
}

/// Judges which processors may serve the interrupts of each interface.
pub(super) fn affinity(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(|each| affinity_of(facts, each)).collect()
}

fn affinity_of(facts: &Facts, interface: &InterfaceFacts) -> Answer {
    let (topic, name) = (Topic::Affinity, interface.nic.name.as_str());
    let known: Vec<_> = interface.interrupts.iter().filter(|each| !each.allowed.is_empty()).collect();
    if known.is_empty() {
        let is_virtual = interface.nic.is_virtual;
        let why = if is_virtual { "no hardware, no interrupts" } else { "its interrupts are not recognised" };
        return if is_virtual { fine(topic, name, why) } else { unknown(topic, name, why) };
    }
    let allowed: BTreeSet<usize> = known.iter().flat_map(|each| each.allowed.iter().copied()).collect();
    let processors = facts.online.len();
    let [only] = allowed.iter().copied().collect::<Vec<_>>()[..] else {
        return fine(topic, name, format!("processors {}", cpus_text(&allowed.into_iter().collect::<Vec<_>>())));
    };
    if processors < 2 {
        return fine(topic, name, "this host has one processor");
    }
    let names: Vec<&str> = known.iter().map(|each| each.name.as_str()).collect();
    let count: u64 = known.iter().map(|each| each.count).sum();
    let evidence = format!(
        "all {} of {name} ({}) may be served by processor {only} alone, of {processors}; {count} so far",
        counted(known.len(), "interrupt"),
        names.join(", ")
    );
    let share = 1.0 - 1.0 / processors as f64;
    let text = format!(
        "packets have 1 of {processors} processors, and whatever runs on it waits for them: {} at most",
        percent(share)
    );
    let price = Price::of_rate(share, Basis::Derived, text);
    let all = cpus_text(&facts.online);
    let writes: Vec<String> =
        known.iter().map(|each| format!("echo {all} >/proc/irq/{}/smp_affinity_list", each.number)).collect();
    found(topic, name, Finding { kind: Kind::Fault, evidence, price, remedy: writes.join("; ") })
}

/// Judges over how many processors each interface distributes the packets that arrive.
pub(super) fn receive_queues(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(|each| receive_queues_of(facts, each)).collect()
}

fn receive_queues_of(facts: &Facts, interface: &InterfaceFacts) -> Answer {
    let (topic, nic) = (Topic::ReceiveQueues, &interface.nic);
    let (name, processors) = (nic.name.as_str(), facts.online.len());
    let is_veth = nic.driver.as_deref() == Some(VETH);
    let Some(queues) = interface.queues else { return unknown(topic, name, "the interface does not report them") };
    if queues.count > 1 || processors < 2 {
        return fine(
            topic,
            name,
            format!("{} for {}", counted(queues.count as usize, "queue"), counted(processors, "processor")),
        );
    }
    if queues.has_packet_steering == Some(true) {
        return fine(topic, name, "one queue, and the kernel distributes its packets (RPS)");
    }
    // Without hardware a packet is received by whoever sends it, except where a veth is made with queues to poll.
    if nic.is_virtual && !(is_veth && queues.max == 1) {
        return fine(topic, name, "one queue; without hardware, packets are received on the sender's processor");
    }
    let capacity = facts.packets.map(|cost| 8.0 * (SEGMENT * SEGMENTS) as f64 / cost.as_one.as_secs_f64());
    if let (Some(line), Some(capacity)) = (nic.line_rate_bits_per_s(), capacity)
        && capacity >= line
    {
        let text =
            format!("one queue; one processor moves {} of full packets, more than the line", bits_per_s(capacity));
        return fine(topic, name, text);
    }
    let evidence = format!(
        "{name} has 1 receive queue, this host {processors} processors, and the kernel does not distribute packets (RPS)"
    );
    let share = 1.0 - 1.0 / processors as f64;
    let binds = format!("1 of {processors} processors receives: {} where receiving binds", percent(share));
    let polls = !is_veth || nic.offloads.iter().any(|on| on == GRO);
    let price = if polls {
        Price::of_rate(share, Basis::Derived, binds)
    } else {
        // It only counts once the veth polls its queues, as receive offload and XDP let it.
        let text = format!(
            "none while each packet is received on its sender's processor; with receive offload or XDP, {binds}"
        );
        Price::of_rate(0.0, Basis::Derived, text)
    };
    let mask = facts.online.iter().filter(|cpu| **cpu < 32).fold(0_u32, |mask, cpu| mask | 1 << cpu);
    let steering = format!("echo {mask:x} >/sys/class/net/{name}/queues/rx-0/rps_cpus");
    let more = (queues.max > 1).then(|| format!("ethtool -L {name} combined {}", queues.max.min(processors as u32)));
    let remedy = more.unwrap_or(steering);
    // A card that has no second queue is as it was built.
    let kind = if queues.max > 1 || is_veth { Kind::Fault } else { Kind::Cost };
    found(topic, name, Finding { kind, evidence, price, remedy })
}
