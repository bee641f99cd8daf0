//! The calculator alone.

mod common;
use common::{Folder, assert_snapshot, run};
use serde_json::Value;

fn figures(arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["limits", "--json", "-"].iter().chain(arguments).copied().collect();
    let ran = run(&all);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    serde_json::from_str(&ran.stdout).expect("a JSON document")
}

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / expected - 1.0).abs() < 1e-4)
}

#[test]
fn the_table_is_as_accepted() {
    let ran = run(&["limits", "--sizes", "64,32012", "--pci", "32/33", "--window", "4", "--rtt", "100us"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_snapshot("limits-table.txt", &ran.stdout);
}

#[test]
fn published_cases_come_out() {
    let gigabit = figures(&["--line-rate", "1G", "--mtu", "1500", "--sizes", "32012"]);
    assert!(close(&gigabit["line"]["payload_bits_per_s"], 941.482e6), "{gigabit}");
    assert!(close(&gigabit["limits"][0]["limit"]["operations_per_s"], 3676.2), "{gigabit}");
    let jumbo = figures(&["--line-rate", "1G", "--mtu", "9000"]);
    assert!(close(&jumbo["line"]["payload_bits_per_s"], 990.04e6), "{jumbo}");
    let pci = figures(&["--pci", "32/33"]);
    assert!(close(&pci["bus"][0]["nominal_bits_per_s"], 1056e6), "{pci}");
}

#[test]
fn the_least_bound_binds() {
    let by_window = figures(&["--sizes", "1024", "--window", "1", "--rtt", "1ms"]);
    assert_eq!(by_window["limits"][0]["limit"]["binds"], "roundtrip");
    let by_bus = figures(&["--line-rate", "10G", "--sizes", "1M", "--pci", "32/33"]);
    assert_eq!(by_bus["limits"][0]["limit"]["binds"], "bus");
    let by_leaf = figures(&["--sizes", "1M", "--flows", "2", "--leaf-rate", "100M"]);
    assert!(close(&by_leaf["limits"][0]["limit"]["payload_bits_per_s"], 94.1482e6), "{by_leaf}");
    let by_trunk = figures(&["--sizes", "1M", "--flows", "20", "--leaf-rate", "100M"]);
    assert!(close(&by_trunk["limits"][0]["limit"]["payload_bits_per_s"], 47.0741e6), "{by_trunk}");
}

#[test]
fn headers_cost() {
    let share = |arguments: &[&str]| figures(arguments)["line"]["payload_share"].as_f64().expect("a number");
    let plain = share(&["--no-timestamps"]);
    assert!(plain > share(&[]) && share(&[]) > share(&["--vlan"]) && share(&["--vlan"]) > share(&["--vlan", "--ipv6"]));
    assert!(share(&["--transport", "udp"]) > plain);
}

#[test]
fn figures_go_to_a_file() {
    let folder = Folder::new("limits");
    let file = folder.file("limits.json");
    let ran = run(&["limits", "--json", &file]);
    assert_eq!(ran.status, 0);
    assert!(ran.stdout.contains("941.5 Mbit/s"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(document["schema"], "hodo.limits/1");
}
