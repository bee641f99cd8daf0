//! `hodo doctor`: the costs of this host, its interfaces and the path to a far end.

use crate::link::LinkParser;
use crate::output::Target;
use crate::{Error, Outcome, terminal, version};
use clap::Args;
use hodo_catalog::Uri;
use hodo_io::host::{self, HostFacts};
use hodo_measure::units::text as units;
use hodo_tester::doctor::{Finding, Kind, PathFacts, Price, Report, Topic, examine};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Examines, and prints the findings.
pub fn run(options: &DoctorOptions) -> Result<Outcome, Error> {
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    let started = host::utc_now();
    let report = examine(options.uri.as_ref())?;
    let host = HostFacts::collect();
    if let Some(json) = &json {
        json.write_json(&document(options, &report, &host, &started))?;
    }
    let is_taken = json.as_ref().is_some_and(Target::is_stdout);
    terminal::tell(&text(options, &report, &host, terminal::style(is_taken).width), is_taken)?;
    Ok(Outcome::Done)
}

fn document(options: &DoctorOptions, report: &Report, host: &HostFacts, started: &str) -> Value {
    let listed = |all: &[(Topic, String, String)]| -> Vec<Value> {
        all.iter()
            .map(|(topic, about, text)| json!({ "id": topic.name(), "about": named(about), "text": text }))
            .collect()
    };
    json!({
        "schema": "hodo.doctor/1",
        "tool": { "name": "hodo", "version": env!("CARGO_PKG_VERSION"), "commit": version::COMMIT },
        "started": started,
        "link": options.uri.as_ref().map(ToString::to_string),
        "host": { "name": host.host, "kernel": host.kernel, "processors": host.cores, "hypervisor": host.hypervisor },
        "path": report.path.as_ref().map(path_value),
        "findings": report.findings.iter().map(finding_value).collect::<Vec<_>>(),
        "fine": listed(&report.fine),
        "unknown": listed(&report.unknown),
    })
}

fn finding_value((topic, about, finding): &(Topic, String, Finding)) -> Value {
    let Price { text, rate_share, time, basis } = &finding.price;
    json!({
        "id": topic.name(),
        "about": named(about),
        "kind": finding.kind.word(),
        "evidence": finding.evidence,
        "price": {
            "text": text,
            "rate_percent": rate_share.map(|share| 100.0 * share),
            "time_us": time.map(|time| time.as_nanos() as f64 / 1e3),
            "basis": basis.word(),
        },
        "remedy": finding.remedy,
    })
}

/// Returns the name of what is judged; `None` for the host.
fn named(about: &str) -> Option<&str> {
    (!about.is_empty()).then_some(about)
}

fn text(options: &DoctorOptions, report: &Report, host: &HostFacts, width: usize) -> String {
    let mut text = heading(options, host);
    match (&report.path, &options.uri) {
        (Some(path), _) => text.push_str(&terminal::paragraph("", &path_text(path), width)),
        (None, Some(_)) => text.push_str("it stays on this host: no path to examine\n"),
        (None, None) => {}
    }
    let is_fault = |(_, _, finding): &&(Topic, String, Finding)| finding.kind == Kind::Fault;
    let (faults, costs): (Vec<_>, Vec<_>) = report.findings.iter().partition(is_fault);
    if faults.is_empty() {
        text.push_str("\nno faults\n");
    }
    let mut number = 0;
    for (title, findings) in [("faults", faults), ("costs of this host as it is", costs)] {
        if findings.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{title}, the most expensive first\n"));
        for (topic, about, finding) in findings {
            number += 1;
            text.push_str(&finding_text(number, *topic, about, finding, width));
        }
    }
    let short = |all: &[(Topic, String, String)]| {
        let names: Vec<String> = all.iter().map(|(topic, about, _)| label(*topic, about)).collect();
        names.join(", ")
    };
    for (title, all) in [("fine", &report.fine), ("unknown", &report.unknown)] {
        if all.is_empty() {
            continue;
        }
        if options.all || title == "unknown" {
            text.push_str(&format!("\n{title}\n"));
            for (topic, about, why) in all {
                text.push_str(&terminal::paragraph(&format!("  {:<26}", label(*topic, about)), why, width));
            }
        } else {
            text.push_str(&terminal::paragraph(&format!("\n{title}: "), &short(all), width));
        }
    }
    text
}

fn heading(options: &DoctorOptions, host: &HostFacts) -> String {
    let parts = [
        host.host.clone(),
        host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
        host.cores.map(|cores| if cores == 1 { "1 processor".to_owned() } else { format!("{cores} processors") }),
        host.hypervisor.as_ref().map(|name| format!("under {name}")),
    ];
    let host = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let path = options.uri.as_ref().map(|uri| format!("path to {uri}\n")).unwrap_or_default();
    format!("{host}\n{path}")
}

/// Returns the path in a sentence.
fn path_text(path: &PathFacts) -> String {
    let through = path.route.gateway.map(|gateway| format!(" through {gateway}")).unwrap_or_default();
    let after = |time: Duration| units::time_ns(time.as_nanos() as f64);
    let packets = path.probe.as_ref().ok().and_then(|probe| probe.round_trip);
    let parts = [
        Some(format!("by {}{through}", path.route.interface)),
        packets.map(|time| format!("a packet is back after {}", after(time))),
        path.operations.as_ref().map(|operations| match operations {
            Ok(operations) => format!("an operation of 64 B takes {}", after(operations.small)),
            Err(why) => format!("no operations: {why}"),
        }),
        path.far_process.as_ref().map(|far| format!("the far end is process {} of this machine", far.process)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn path_value(path: &PathFacts) -> Value {
    let us = |time: Duration| time.as_nanos() as f64 / 1e3;
    let (probe, operations) = (path.probe.as_ref().ok(), path.operations.as_ref().and_then(|each| each.as_ref().ok()));
    json!({
        "remote": path.remote.ip().to_string(),
        "interface": path.route.interface,
        "gateway": path.route.gateway.map(|gateway| gateway.to_string()),
        "round_trip_us": probe.and_then(|probe| probe.round_trip).map(us),
        "mtu": probe.and_then(|probe| probe.passed),
        "operation_us": operations.map(|operations| us(operations.small)),
        "operations_failed": path.operations.as_ref().and_then(|each| each.as_ref().err()),
        "far_process": path.far_process.as_ref().map(|far| far.process),
    })
}

fn finding_text(number: usize, topic: Topic, about: &str, finding: &Finding, width: usize) -> String {
    let price = format!("{} ({})", finding.price.text, finding.price.basis.word());
    let mut text = format!("{number:>3}  {}\n", label(topic, about));
    for (name, value) in [("evidence", &finding.evidence), ("price", &price), ("remedy", &finding.remedy)] {
        // A command is to be copied: it stays whole.
        let width = if name == "remedy" { usize::MAX } else { width };
        text.push_str(&terminal::paragraph(&format!("     {name:<10}"), value, width));
    }
    text
}

fn label(topic: Topic, about: &str) -> String {
    if about.is_empty() { topic.name().to_owned() } else { format!("{} ({about})", topic.name()) }
}

/// Reads and measures what this host, its interfaces and the path to a far end cost: each finding has evidence, a price and a remedy.
///
/// Takes up to ten seconds, for two of which it keeps up to eight processors busy. It changes no setting. To a far end it sends echo
/// requests, it opens a TCP connection, and only over a link of `hodo serve` it measures operations.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorOptions {
    /// The link whose path is examined, as tcp://host:4242; without it, this host and every interface that is up.
    #[arg(value_name = "LINK", value_parser = LinkParser, hide_possible_values = true)]
    pub uri: Option<Uri>,
    /// Print also what was read of each subject that is fine.
    #[arg(long)]
    pub all: bool,
    /// Write the report as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  hodo doctor                              this host and its interfaces
  hodo doctor tcp://there:4242             the path to a `hodo serve`, too
  hodo doctor ipbusudp-2.0://board:50001 --json doctor.json

Findings are no failures: the exit status is 0; 1 if there is no route; 2 usage error.";

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_tester::doctor::Basis;

    fn report() -> Report {
        let finding = |kind, price| Finding {
            kind,
            evidence: "off on eth0, and could be on: gso".into(),
            price,
            remedy: "ethtool -K eth0 gso on".into(),
        };
        let of_rate = Price { text: "90.0 %".into(), rate_share: Some(0.9), time: None, basis: Basis::Derived };
        let of_time = Price {
            text: "24 µs".into(),
            rate_share: None,
            time: Some(Duration::from_micros(24)),
            basis: Basis::Measured,
        };
        Report {
            path: None,
            findings: vec![
                (Topic::Offloads, "eth0".into(), finding(Kind::Fault, of_rate)),
                (Topic::WakeUp, String::new(), finding(Kind::Cost, of_time)),
            ],
            fine: vec![(Topic::PathMtu, "eth0".into(), "1500 B".into())],
            unknown: vec![(Topic::Steal, String::new(), "no counter".into())],
        }
    }

    fn options() -> DoctorOptions {
        DoctorOptions { uri: None, all: false, json: None }
    }

    #[test]
    fn people_read_faults_first_and_commands_whole() {
        let text = text(&options(), &report(), &HostFacts::default(), 40);
        let expected = "
faults, the most expensive first
  1  offloads (eth0)
     evidence  off on eth0, and could be
               on: gso
     price     90.0 % (derived)
     remedy    ethtool -K eth0 gso on

costs of this host as it is, the most expensive first
  2  wake_up
     evidence  off on eth0, and could be
               on: gso
     price     24 µs (measured)
     remedy    ethtool -K eth0 gso on

fine: path_mtu (eth0)

unknown
  steal                     no counter
";
        assert_eq!(text, format!("\n{expected}"));
    }

    #[test]
    fn programs_read_names_and_numbers() {
        let value = document(&options(), &report(), &HostFacts::default(), "2026-01-01T00:00:00Z");
        assert_eq!(value["schema"], "hodo.doctor/1");
        let [first, second] = value["findings"].as_array().expect("a list").as_slice() else { panic!("{value}") };
        assert_eq!(
            (&first["id"], &first["about"], &first["kind"]),
            (&json!("offloads"), &json!("eth0"), &json!("fault"))
        );
        assert_eq!((&first["price"]["rate_percent"], &first["price"]["time_us"]), (&json!(90.0), &Value::Null));
        assert_eq!((&second["about"], &second["price"]["time_us"]), (&Value::Null, &json!(24.0)));
        assert_eq!(value["fine"][0]["id"], "path_mtu");
        assert_eq!(value["unknown"][0]["text"], "no counter");
    }
}
