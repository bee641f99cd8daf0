use super::super::{Basis, Finding, InterfaceFacts, Kind, PathFacts, Price};
use super::{ASSUMED_LINE, Answer, Facts, Topic, fine, found, unknown};
use hodo_io::nic::{QueueDiscipline, QueueLimit};
use hodo_measure::units::text::{bits_per_s, bytes, count, percent, time_ns};
use std::time::Duration;

/// A smaller share of packets lost is no more than the odd burst.
const LOSS_LEAST: f64 = 1e-4;
/// Fewer packets than this say nothing of a share.
const DROPS_LEAST: u64 = 10;
/// With a larger share lost, retransmissions are lost too, and the formula for the window no longer holds.
const TIMEOUTS: f64 = 0.05;
/// Fewer entries than any driver's default: somebody chose so few.
const RING_LEAST: u32 = 256;
/// Bytes on the line of the smallest and of a full Ethernet frame, with preamble and gap.
const FRAMES: (f64, f64) = (84.0, 1538.0);
/// Bytes of payload of a full segment.
const SEGMENT: f64 = 1448.0;

/// Judges the packets that queue disciplines dropped.
pub(super) fn queue_drops(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(|each| queue_drops_of(facts, each)).collect()
}

fn queue_drops_of(facts: &Facts, interface: &InterfaceFacts) -> Answer {
    let (topic, name) = (Topic::QueueDrops, interface.nic.name.as_str());
    let Some(root) = interface.disciplines.iter().find(|each| each.is_root) else {
        return unknown(topic, name, "the kernel reports no queue discipline");
    };
    let (dropped, now) = (QueueDiscipline::dropped_by_roots(&interface.disciplines), interface.dropped_now);
    let sent: u64 = interface.disciplines.iter().filter(|each| each.is_root).map(|each| each.sent_packets).sum();
    let share = dropped as f64 / (dropped + sent).max(1) as f64;
    let counts = dropped >= DROPS_LEAST && share >= LOSS_LEAST;
    if !counts && now == 0 {
        return fine(topic, name, format!("{} dropped {} of {}", root.kind, count(dropped), count(dropped + sent)));
    }
    let limit = match root.limit {
        Some(QueueLimit::Bytes(most)) => format!(", which takes {},", bytes(most.into())),
        Some(QueueLimit::Packets(most)) => format!(", which takes {} packets,", count(most.into())),
        None => String::new(),
    };
    let evidence = format!(
        "{} on {name}{limit} dropped {} of {} packets since it was made ({}), {} of them in the last seconds",
        root.kind,
        count(dropped),
        count(dropped + sent),
        percent(share),
        count(now)
    );
    found(
        topic,
        name,
        Finding { kind: Kind::Fault, evidence, price: price_of_loss(facts, share), remedy: longer_queue(root, name) },
    )
}

/// Returns the price of losing a share of the packets: for datagrams the share itself, and for one TCP stream what loss allows.
fn price_of_loss(facts: &Facts, share: f64) -> Price {
    if share > TIMEOUTS {
        let text = format!("{} of datagrams; TCP waits for timeouts of 200 ms and more at such a loss", percent(share));
        return Price::of_rate(share, Basis::Measured, text);
    }
    let (attainable, whose) = facts.attainable();
    let round_trip = facts.path.as_ref().and_then(PathFacts::round_trip);
    let Some(seconds) = round_trip.map(|span| span.as_secs_f64()).filter(|seconds| *seconds > 0.0 && share > 0.0)
    else {
        return Price::of_rate(
            share,
            Basis::Measured,
            format!("{} of the packets; TCP loses more than that", percent(share)),
        );
    };
    // Mathis, Semke, Mahdavi, Ott 1997: what a stream keeps that halves its window at each loss.
    let kept = 8.0 * SEGMENT / seconds * (1.5 / share).sqrt();
    let lost = (1.0 - kept / attainable).max(share);
    let text = format!(
        "{} of datagrams; one TCP stream keeps about {} at this loss over {}, {} under {whose} {}",
        percent(share),
        bits_per_s(kept.min(attainable)),
        time_ns(seconds * 1e9),
        percent(lost),
        bits_per_s(attainable)
    );
    Price::of_rate(lost, Basis::Derived, text)
}

/// Returns the command that makes a queue longer.
fn longer_queue(root: &QueueDiscipline, name: &str) -> String {
    /// The time that a queue of a shaped line should bridge.
    const BRIDGED_S: f64 = 0.05;
    let kind = root.kind.as_str();
    // The root that the kernel made by itself has no handle, and cannot be changed.
    let (verb, handle) = if root.handle == 0 {
        ("replace", String::new())
    } else {
        ("change", format!(" handle {:x}:", root.handle >> 16))
    };
    let front = format!("tc qdisc {verb} dev {name} root{handle} {kind}");
    match (kind, root.limit, root.shape) {
        ("tbf", Some(QueueLimit::Bytes(limit)), Some((rate, burst))) => {
            let bridging = (rate as f64 / 8.0 * BRIDGED_S) as u64;
            format!("{front} rate {}kbit burst {burst} limit {}", rate / 1000, bridging.max(4 * u64::from(limit)))
        }
        ("fq", Some(QueueLimit::Packets(limit)), _) => {
            format!("{front} limit {} flow_limit {}   # or pace the sender", 4 * u64::from(limit), limit)
        }
        (_, Some(QueueLimit::Bytes(limit) | QueueLimit::Packets(limit)), _) => {
            format!("{front} limit {}", 4 * u64::from(limit))
        }
        ("pfifo_fast", ..) => format!("ip link set dev {name} txqueuelen 10000   # or send no faster"),
        _ => format!("{front} limit …   # `tc -s qdisc show dev {name}` shows today's; or send no faster"),
    }
}

/// Judges the packets that interfaces lost.
pub(super) fn card_drops(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(card_drops_of).collect()
}

fn card_drops_of(interface: &InterfaceFacts) -> Answer {
    let (topic, name) = (Topic::CardDrops, interface.nic.name.as_str());
    let Some((all, now)) = interface.counters else { return unknown(topic, name, "the kernel reports no counters") };
    let lost = |counters: &hodo_io::nic::NicCounters| {
        counters.rx_missed + counters.rx_dropped + counters.tx_dropped + counters.errors
    };
    let packets = all.rx_packets + all.tx_packets;
    let share = lost(&all) as f64 / (lost(&all) + packets).max(1) as f64;
    if lost(&all) < DROPS_LEAST || share < 10.0 * LOSS_LEAST {
        return fine(topic, name, format!("{} lost of {}", count(lost(&all)), count(packets)));
    }
    let evidence = format!(
        "{name} lost {} of {} packets since it was made: {} for want of a buffer on receive, {} dropped on receive, {} on transmit, {} \
         damaged; {} in the last seconds",
        count(lost(&all)),
        count(lost(&all) + packets),
        count(all.rx_missed),
        count(all.rx_dropped),
        count(all.tx_dropped),
        count(all.errors),
        count(lost(&now))
    );
    let price = Price::of_rate(share, Basis::Measured, format!("{} of the packets", percent(share)));
    let remedy = if all.errors * 2 > lost(&all) {
        "replace the cable or the transceiver".to_owned()
    } else if all.rx_missed * 2 > lost(&all) {
        format!("ethtool -G {name} rx {}", interface.rings.map_or(4096, |rings| rings.rx_max))
    } else {
        format!("`ethtool -S {name}` says which counter grows; packets of protocols that nobody takes are among them")
    };
    found(topic, name, Finding { kind: Kind::Fault, evidence, price, remedy })
}

/// Judges the packets that processors dropped before the stack.
pub(super) fn softnet(facts: &Facts) -> Vec<Answer> {
    let topic = Topic::Softnet;
    let Some((all, now)) = facts.watched.softnet else {
        return vec![unknown(topic, "", "/proc/net/softnet_stat cannot be read")];
    };
    let part = |dropped: u64, processed: u64| dropped as f64 / (dropped + processed).max(1) as f64;
    let share = part(all.dropped, all.processed).max(part(now.dropped, now.processed));
    if now.dropped == 0 && (all.dropped < DROPS_LEAST || share < LOSS_LEAST) {
        return vec![fine(topic, "", format!("{} dropped of {}", count(all.dropped), count(all.processed)))];
    }
    let evidence = format!(
        "processors dropped {} of {} packets since this machine started because their backlog was full, {} of {} in the last seconds",
        count(all.dropped),
        count(all.processed),
        count(now.dropped),
        count(now.processed)
    );
    let price = Price::of_rate(share, Basis::Measured, format!("{} of the packets", percent(share)));
    let remedy = "sysctl -w net.core.netdev_max_backlog=10000".to_owned();
    vec![found(topic, "", Finding { kind: Kind::Fault, evidence, price, remedy })]
}

/// Judges the entries of the cards' rings.
pub(super) fn rings(facts: &Facts) -> Vec<Answer> {
    facts.interfaces.iter().map(|each| rings_of(facts, each)).collect()
}

fn rings_of(facts: &Facts, interface: &InterfaceFacts) -> Answer {
    let (topic, name) = (Topic::Rings, interface.nic.name.as_str());
    let Some(rings) = interface.rings else {
        let is_virtual = interface.nic.is_virtual;
        let why = if is_virtual { "no hardware, no rings" } else { "the driver does not report them" };
        return if is_virtual { fine(topic, name, why) } else { unknown(topic, name, why) };
    };
    let missed = interface.counters.map_or(0, |(all, _)| all.rx_missed);
    let received = interface.counters.map_or(0, |(all, _)| all.rx_packets);
    let lost = missed as f64 / (missed + received).max(1) as f64;
    let overran = missed >= DROPS_LEAST && lost >= LOSS_LEAST;
    if rings.rx >= rings.rx_max || (rings.rx >= RING_LEAST && !overran) {
        return fine(topic, name, format!("receive {} of {}", rings.rx, rings.rx_max));
    }
    let line = interface.nic.line_rate_bits_per_s();
    let fills = |frame: f64| Duration::from_secs_f64(f64::from(rings.rx) * 8.0 * frame / line.unwrap_or(ASSUMED_LINE));
    let (small, full) = (fills(FRAMES.0), fills(FRAMES.1));
    let pause = facts.longest_pause().unwrap_or_default();
    if pause < small && !overran {
        let text = format!("{} entries fill in {}, no pause was as long", rings.rx, time_ns(small.as_nanos() as f64));
        return fine(topic, name, text);
    }
    let evidence = format!(
        "the receive ring of {name} has {} entries of {} possible: {} of full packets at {}{}, {} of the smallest; a processor was away \
         for up to {} in the last seconds; {} packets found no buffer so far",
        rings.rx,
        rings.rx_max,
        time_ns(full.as_nanos() as f64),
        bits_per_s(line.unwrap_or(ASSUMED_LINE)),
        if line.is_some() { "" } else { " (assumed)" },
        time_ns(small.as_nanos() as f64),
        time_ns(pause.as_nanos() as f64),
        count(missed)
    );
    let price = if overran {
        Price::of_rate(lost, Basis::Measured, format!("{} of the packets", percent(lost)))
    } else {
        let share = 1.0 - small.as_secs_f64() / pause.as_secs_f64();
        let text = format!("up to {} of a burst that arrives in such a pause", percent(share));
        Price::of_rate(share, Basis::Derived, text)
    };
    let remedy = format!("ethtool -G {name} rx {}", rings.rx_max);
    found(topic, name, Finding { kind: Kind::Fault, evidence, price, remedy })
}
