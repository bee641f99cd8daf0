//! The calculator alone.

use crate::common;
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

/// Checks the limits of the published study's farm, and the other bounds of a farm.
#[test]
fn a_farm_has_the_limits_of_its_events() {
    let first = |arguments: &[&str]| figures(arguments)["limits"][0]["limit"].clone();
    for (mtu, events_per_s, stream_bits_per_s) in [("1500", 3676.2, 941.482e6), ("9000", 3865.9, 990.042e6)] {
        let found = first(&["--farm", "20", "--mtu", mtu]);
        assert!(close(&found["operations_per_s"], events_per_s), "{found}");
        let stream = first(&["--sizes", "32012", "--mtu", mtu]);
        assert!(close(&stream["payload_bits_per_s"], stream_bits_per_s), "{stream}");
        assert!(close(&stream["operations_per_s"], events_per_s), "{stream}");
    }
    let by_credits = first(&["--farm", "20", "--window", "2", "--rtt", "20ms"]);
    assert!(close(&by_credits["operations_per_s"], 2000.0) && by_credits["binds"] == "window", "{by_credits}");
    let by_tokens = first(&["--farm", "20", "--token-data", "64K"]);
    assert!(close(&by_tokens["operations_per_s"], 1e9 / 8.0 / (65_564.0 * 1538.0 / 1448.0)), "{by_tokens}");
    let by_leaves = first(&["--farm", "8", "--leaf-rate", "100M"]);
    assert!(close(&by_leaves["operations_per_s"], 8.0 * 367.62), "{by_leaves}");
    let by_copies = first(&[
        "--farm",
        "20",
        "--line-rate",
        "400G",
        "--cpu-cost",
        "4us",
        "--cores",
        "2",
        "--copies",
        "2",
        "--copy-rate",
        "100G",
    ]);
    assert!(close(&by_copies["operations_per_s"], 2e9 / (4000.0 + 2.0 * 32_040.0 * 0.08)), "{by_copies}");
    assert_eq!(by_copies["binds"], "cpu");
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
