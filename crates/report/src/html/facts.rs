//! Everything in words: doubts, environment, and each measurement in full.

use super::badge;
use crate::columns::losses;
use crate::figure;
use crate::plot::{node_text, stage_name, stage_text};
use crate::units::{self, UNKNOWN, digits};
use hodo_measure::{
    Connection, Document, Environment, Estimate, FarEndFacts, Limit, Loss, Measurement, Nic, ProcessCpu, Receiver,
};
use maud::{Markup, html};

/// A named fact; `None` is shown as unknown.
type Fact = (String, Option<String>);

fn fact(name: &str, value: impl Into<Option<String>>) -> Fact {
    (name.to_owned(), value.into())
}

fn list(facts: &[Fact]) -> Markup {
    html! {
        @for (name, value) in facts {
            dt { (name) }
            @match value.as_deref().filter(|value| !matches!(*value, "" | UNKNOWN)) {
                Some(value) => dd { (value) },
                None => dd.unknown { "unknown" },
            }
        }
    }
}

/// Returns the section of everything that makes a figure doubtful; hidden if there is nothing.
pub(super) fn doubts(measurements: &[Measurement]) -> Markup {
    let doubtful = |m: &&Measurement| figure::has_doubt(m);
    let lossy = |m: &&Measurement| m.loss != Loss::default();
    let any = measurements.iter().any(|m| doubtful(&m) || lossy(&m));
    html! {
        section #doubts-block .block aria-labelledby="doubts-head" hidden[!any] {
            h2 #doubts-head { "Doubts and losses" }
            ul #doubts {
                @for m in measurements {
                    @if doubtful(&m) { li { (figure::plan_text(m)) ": " (badge(m.verdict.state)) " " (why(m)) } }
                    @if lossy(&m) { li { (figure::plan_text(m)) ": " (losses(m)) } }
                }
            }
        }
    }
}

/// Returns the verdict's sentence without its state, which is beside it as a badge.
fn why(m: &Measurement) -> &str {
    let text = m.verdict.text.as_str();
    text.strip_prefix(m.verdict.state.word()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(text)
}

/// Returns the host in one line.
pub(super) fn of_host(environment: &Environment) -> String {
    let Environment { host, kernel, cpu, started, .. } = environment;
    let known: Vec<&str> = [host, kernel, cpu, started].into_iter().flatten().map(String::as_str).collect();
    known.join(" · ")
}

/// Returns the program that wrote the document, and the document's form.
pub(super) fn provenance(document: &Document) -> String {
    let tool = &document.tool;
    let commit = tool.commit.as_ref().map_or_else(String::new, |commit| format!(" ({commit})"));
    let page = "This page is complete: it asks nothing of the network.";
    format!("{} {}{commit}, {}. {page}", tool.name, tool.version, document.schema)
}

/// Returns the section of the host, its settings and the command line.
pub(super) fn environment(e: &Environment) -> Markup {
    let text = |value: Option<u32>| value.map(|value| value.to_string());
    let clock = e.clock.as_ref();
    let mut facts = vec![
        fact("host", e.host.clone()),
        fact("kernel", e.kernel.clone()),
        fact("processor", e.cpu.clone()),
        fact("processors", text(e.cores)),
        fact("memory", e.memory_bytes.map(units::bytes)),
        fact("hypervisor", e.hypervisor.clone()),
        fact("frequency governor", e.governor.clone()),
        fact("placement", e.placement.clone()),
        fact("scheduling", e.scheduling.clone()),
        fact("congestion control", e.congestion_control.clone()),
        fact("MTU", text(e.mtu)),
        fact("interface", e.nic.as_ref().map(interface)),
    ];
    if let Some(nic) = &e.nic {
        let offloads = if nic.offloads.is_empty() { "none".into() } else { nic.offloads.join(", ") };
        facts.extend([fact("coalescence", coalescence(nic)), fact("offloads", offloads)]);
    }
    facts.extend(e.far_end.as_ref().map_or_else(Vec::new, far_end));
    facts.extend([
        fact("clock", clock.map(|clock| format!("{}, one reading {}", clock.source, units::time_ns(clock.cost_ns)))),
        fact("started", e.started.clone()),
        fact("command line", e.arguments.join(" ")),
    ]);
    html! {
        section.block aria-labelledby="environment-head" {
            h2 #environment-head { "Environment" }
            dl #environment .facts { (list(&facts)) }
        }
    }
}

/// Returns what the far end reports of its side.
fn far_end(facts: &FarEndFacts) -> Vec<Fact> {
    let FarEndFacts { wait, placement, scheduling, kernel, congestion_control, line_bits_per_s } = facts.clone();
    let line = line_bits_per_s.map(|bits| units::bits_per_s(bits as f64));
    let named = [
        ("waits", wait),
        ("placement", placement),
        ("scheduling", scheduling),
        ("kernel", kernel),
        ("congestion control", congestion_control),
        ("line", line),
    ];
    let known = named.into_iter().filter(|(_, value)| value.is_some());
    known.map(|(name, value)| (format!("far end: {name}"), value)).collect()
}

fn interface(nic: &Nic) -> String {
    let speed = nic.speed_mbit_per_s.map(|speed| format!("{speed} Mbit/s"));
    let parts = [Some(nic.name.clone()), nic.driver.clone(), speed, nic.duplex.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn coalescence(nic: &Nic) -> Option<String> {
    let wait = |usecs: Option<u32>, adaptive: Option<bool>| {
        let adaptive = if adaptive == Some(true) { ", adaptive" } else { "" };
        usecs.map_or_else(|| "unknown".into(), |usecs| format!("{usecs} µs{adaptive}"))
    };
    nic.rx_usecs.or(nic.tx_usecs)?;
    let (receive, transmit) = (wait(nic.rx_usecs, nic.rx_adaptive), wait(nic.tx_usecs, nic.tx_adaptive));
    Some(format!("receive {receive}; transmit {transmit}"))
}

/// Returns the section with every fact of every measurement, folded.
pub(super) fn in_full(measurements: &[Measurement]) -> Markup {
    html! {
        section.block aria-labelledby="full-head" {
            div.block-head {
                h2 #full-head { "Every measurement in full" }
                button #unfold type="button" { "Open all" }
            }
            div #full { @for m in measurements { (entry(m)) } }
        }
    }
}

fn entry(m: &Measurement) -> Markup {
    let stages: Vec<Fact> = m.stages.iter().map(|stage| (stage_name(stage), Some(stage_text(stage)))).collect();
    let verdict = vec![fact("state", m.verdict.state.word().to_owned()), fact("why", why(m).to_owned())];
    let limit = m.limit.as_ref().map_or_else(|| vec![fact("limit", None)], |limit| limit_facts(m, limit));
    let parts = [
        ("Plan", plan(m)),
        ("Found", found(m)),
        ("Limit", limit),
        ("Cost", if m.simulation.is_some() { Vec::new() } else { cost(m) }),
        ("Cost to this host", simulation(m)),
        ("Stages", stages),
        ("Nodes", nodes(m)),
        ("Receivers", receivers(m)),
        ("Verdict", verdict),
    ];
    html! {
        details {
            summary { (figure::plan_text(m)) (badge(m.verdict.state)) }
            div.parts {
                @for (title, facts) in parts.iter().filter(|(_, facts)| !facts.is_empty()) {
                    div { h3 { (title) } dl.facts { (list(facts)) } }
                }
            }
        }
    }
}

fn plan(m: &Measurement) -> Vec<Fact> {
    let asked = m.rate_asked.map(|rate| fact("rate asked", units::operations_per_s(rate)));
    let pace = m.pace_asked.map(|pace| fact("pace asked", units::bits_per_s(pace)));
    let facts = [
        fact("link", m.link.clone()),
        fact("test", format!("{}: {}", m.test, figure::test_meaning(m.test))),
        fact("mode", figure::mode_text(m.mode).to_owned()),
        fact("size", figure::size_text(m)),
        fact("window", m.window.map_or_else(|| "none".to_owned(), |window| format!("{window} in flight per channel"))),
        fact("channels", m.channels.to_string()),
        fact("batch", format!("{} per packet", m.batch)),
    ];
    let connection = m.connection.iter().flat_map(connection);
    let rounds = m.rounds.then(|| fact("rounds", "the next operations start when all have ended".to_owned()));
    let more =
        [fact("waits", m.wait.clone()), fact("seed", m.seed.to_string()), fact("repeats", m.repeats.to_string())];
    facts.into_iter().chain(rounds).chain(asked).chain(pace).chain(connection).chain(more).collect()
}

/// Returns what is known of the sockets.
fn connection(of: &Connection) -> Vec<Fact> {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let named = [
        ("code point (DSCP)", number(of.dscp.map(u32::from))),
        ("time to live", number(of.ttl.map(u32::from))),
        ("largest segment (MSS)", of.mss.map(|mss| format!("{mss} B"))),
        ("largest segment asked", of.mss_asked.map(|mss| format!("{mss} B"))),
        ("local address", of.bind.clone()),
        ("interface asked", of.device.clone()),
        ("version of IP asked", number(of.ip_version.map(u32::from))),
    ];
    named.into_iter().filter(|(_, value)| value.is_some()).map(|(name, value)| fact(name, value)).collect()
}

fn found(m: &Measurement) -> Vec<Fact> {
    let Loss { lost, duplicated, reordered, retransmitted, refused, overrun, naks, not_ready, damaged } = m.loss;
    let kinds = [
        (lost, "lost"),
        (duplicated, "duplicated"),
        (reordered, "reordered"),
        (retransmitted, "retransmitted"),
        (refused, "refused"),
        (overrun, "overrun"),
    ];
    let of_rdma = [(naks, "behind a missing packet"), (not_ready, "before their receive")];
    let checked = damaged.map(|damaged| (damaged, "damaged"));
    let kinds = kinds.iter().chain(checked.iter()).chain(of_rdma.iter().filter(|(number, _)| *number > 0));
    let loss: Vec<String> = kinds.map(|(number, kind)| format!("{} {kind}", units::count(*number))).collect();
    let times = m.latency_ns.as_ref().map(|l| {
        let named =
            [("min", l.min), ("p50", l.p50), ("p90", l.p90), ("p99", l.p99), ("p99.9", l.p99_9), ("max", l.max)];
        named.map(|(name, time)| format!("{name} {}", units::time_ns(time as f64))).join(", ")
    });
    let mean = m.latency_ns.as_ref().map(|l| format!("{} of {}", units::time_ns(l.mean), units::count(l.count)));
    let facts = [
        fact("operations", format!("{} in {} s", units::count(m.operations), digits(m.elapsed_s, 4))),
        fact("payload", units::bytes(m.payload_bytes)),
        fact("operation rate", estimate(&m.rate.operations_per_s, units::operations_per_s)),
        fact("payload rate", estimate(&m.rate.payload_bits_per_s, units::bits_per_s)),
        fact("1 over the rate", figure::spacing_ns(m).map(units::time_ns)),
        fact("time", times),
        fact("mean time", mean),
        fact("loss", loss.join(", ")),
    ];
    facts
        .into_iter()
        .chain(m.sent.map(|sent| {
            let rates = (units::operations_per_s(sent.operations_per_s), units::bits_per_s(sent.payload_bits_per_s));
            fact("sent", format!("{} operations, {}, {} of payload", units::count(sent.operations), rates.0, rates.1))
        }))
        .chain(m.shortfall_s.map(|seconds| fact("far end behind its pace", format!("{} s", digits(seconds, 3)))))
        .chain((!m.published.is_empty()).then(|| fact("published", figure::published_text(m))))
        .chain(m.clock_difference.map(|clock| fact("far end's clock", figure::clock_text(clock))))
        .collect()
}

fn estimate(value: &Estimate, text: fn(f64) -> String) -> String {
    let interval = value.low.zip(value.high).map_or_else(String::new, |(low, high)| {
        let level = value.confidence.map_or_else(String::new, |level| format!("{level} % "));
        format!(", {level}interval {} to {}", text(low), text(high))
    });
    format!("{}{interval}, best {}", text(value.median), text(value.best))
}

fn limit_facts(m: &Measurement, limit: &Limit) -> Vec<Fact> {
    vec![
        fact("limit", figure::limit_text(m)),
        fact("payload rate", limit.payload_bits_per_s.map(units::bits_per_s)),
        fact("operation rate", limit.operations_per_s.map(units::operations_per_s)),
        fact("time", limit.latency_ns.map(units::time_ns)),
        fact("comes from", limit.source().to_owned()),
        fact("what binds", limit.binds.word().to_owned()),
        fact("formula", limit.formula.clone()),
        fact("assumes", limit.assumes.clone()),
        fact("seen", limit.saw.clone()),
        fact("apart", limit.spread.map(units::percent)),
        fact("share reached", m.share_of_limit.map(units::percent)),
        fact("over the plain loop", m.times_plain_loop.map(|times| format!("{times:.2} times"))),
    ]
}

fn cost(m: &Measurement) -> Vec<Fact> {
    let cpu = &m.cpu;
    let machine = cpu.machine_percent.map(|percent| format!("{} % of all processors", digits(percent, 3)));
    vec![
        fact("machine", machine),
        fact("other programs", cpu.others_percent.map(|percent| format!("{} % of all processors", digits(percent, 3)))),
        fact("here", cpu.local.map(|one| process(&one, cpu.local_ns_per_operation))),
        fact("far end", cpu.remote.map(|one| process(&one, cpu.remote_ns_per_operation))),
    ]
}

/// Returns what computing a simulated link cost this host; nothing for other links.
fn simulation(m: &Measurement) -> Vec<Fact> {
    let Some(cost) = &m.simulation else { return Vec::new() };
    let (simulated, host, times) = (digits(m.elapsed_s, 3), digits(cost.host_s, 3), digits(cost.times_real_time, 3));
    vec![
        fact("time", format!("{host} s for {simulated} s of the simulation: {times} times real time")),
        fact("machine", cost.machine_percent.map(|percent| format!("{} % of all processors", digits(percent, 3)))),
        fact("this process", cost.local.map(|one| process(&one, cost.local_ns_per_operation))),
    ]
}

fn process(one: &ProcessCpu, ns_per_operation: Option<f64>) -> String {
    let [percent, user, system] = [one.percent, one.user_s, one.system_s].map(|value| digits(value, 3));
    let polling =
        one.polling_s.map_or_else(String::new, |polling_s| format!(", {} s of both polling", digits(polling_s, 3)));
    let [waits, preemptions] = [one.voluntary_switches, one.involuntary_switches].map(units::count);
    let resident = units::bytes(one.max_rss_bytes);
    let each = ns_per_operation.map_or_else(String::new, |ns| format!("; {} per operation", units::time_ns(ns)));
    format!(
        "{percent} %: {user} s user, {system} s system{polling}; {waits} waits, {preemptions} preemptions; {resident} resident{each}"
    )
}

fn receivers(m: &Measurement) -> Vec<Fact> {
    let of_each = |one: &Receiver| {
        let (sent, lost) = (one.received + one.lost, units::count(one.lost));
        let share = units::percent(one.lost as f64 / sent.max(1) as f64);
        (
            one.address.clone(),
            Some(format!("{} of {}, {lost} lost ({share})", units::count(one.received), units::count(sent))),
        )
    };
    m.receivers.iter().map(of_each).collect()
}

fn nodes(m: &Measurement) -> Vec<Fact> {
    let fairness = m.fairness.filter(|_| !m.nodes.is_empty()).into_iter().flat_map(|f| {
        let worst = f.worst_window.map(|worst| (format!("in the worst {} s", f.window_s), Some(format!("{worst:.3}"))));
        let least = fact("least over most", format!("{:.3}", f.min_over_max));
        let jain = fact("Jain's index", format!("{:.4}", f.jain));
        let variation = fact("variation", format!("{:.2} %", f.variation * 100.0));
        [Some(least), worst, Some(jain), Some(variation)].into_iter().flatten()
    });
    let shares = m.nodes.iter().map(|node| (format!("node {}", node.number), Some(node_text(m, node))));
    fairness.chain(shares).collect()
}
