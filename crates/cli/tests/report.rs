//! Outputs rebuilt from results, and two results compared.

use crate::common;
use common::{Folder, Ran, assert_snapshot, hodo, run};
use serde_json::Value;
use std::fs;

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn done(ran: &Ran) {
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_table_unless_told_otherwise() {
    let ran = run(&["report", &data("before.json")]);
    done(&ran);
    assert_eq!(ran.stderr, "");
    assert_snapshot("report-table.txt", &ran.stdout);
}

#[test]
fn several_documents_are_read_as_one() {
    let ran = run(&["report", &data("before.json"), &data("after.json"), "--json", "-"]);
    done(&ran);
    let merged: Value = serde_json::from_str(&ran.stdout).expect("nothing but JSON on standard output");
    assert_eq!(merged["measurements"].as_array().map(Vec::len), Some(6));
}

/// Converts data of version 1 to a document of version 3.
#[test]
fn json_comes_back_as_it_went() {
    let folder = Folder::new("json");
    let there = folder.file("there.json");
    done(&run(&["report", &data("before.json"), "--json", &there]));
    let ran = run(&["report", &there, "--json", "-"]);
    done(&ran);
    assert_eq!(fs::read_to_string(&there).unwrap(), ran.stdout);
    let (old, new): (Value, Value) = (
        serde_json::from_str(&fs::read_to_string(data("before.json")).unwrap()).unwrap(),
        serde_json::from_str(&ran.stdout).unwrap(),
    );
    assert_eq!((&old["schema"], &new["schema"]), (&"hodo.result/1".into(), &"hodo.result/3".into()));
    assert_eq!(old["tool"], new["tool"]);
    for (field, value) in old["environment"].as_object().expect("an object") {
        assert_eq!(*value, new["environment"][field], "{field}");
    }
    let measurements = |document: &Value| document["measurements"].as_array().cloned().unwrap();
    for (old, new) in measurements(&old).iter().zip(&measurements(&new)) {
        for field in ["protocol", "test", "rate", "latency_ns", "verdict", "intervals"] {
            assert_eq!(old[field], new[field], "{field}");
        }
        assert_eq!(old["cpu"]["local"]["percent"], new["cpu"]["local"]["percent"]);
        assert_eq!((&old["wait"], &new["wait"]), (&"block".into(), &"adaptive".into()));
        assert_eq!((&old["limit"]["kind"], &new["limit"]["kind"]), (&"floor".into(), &"plain_loop".into()));
        assert_eq!((&new["share_of_limit"], &new["times_plain_loop"]), (&Value::Null, &old["share_of_limit"]));
    }
}

#[test]
fn every_form_is_written() {
    let folder = Folder::new("forms");
    let out = folder.file("out");
    let (tsv, html, svg, png, md) =
        (folder.file("a.tsv"), folder.file("a.html"), folder.file("a.svg"), folder.file("a.png"), folder.file("a.md"));
    let input = data("before.json");
    done(&run(&["report", &input, "--tsv", &tsv, "--html", &html, "--plot", &svg, "--markdown", &md, "--out", &out]));
    done(&run(&["report", &input, "--plot", &png]));
    let text = |file: &str| fs::read_to_string(file).expect(file);
    let lines: Vec<Vec<usize>> = vec![text(&tsv).lines().map(|line| line.split('\t').count()).collect()];
    assert_eq!(lines, [[70; 4]]);
    assert!(text(&html).starts_with("<!"));
    assert!(text(&svg).contains("<svg"));
    assert!(text(&md).starts_with("| link |"));
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    for name in ["result.json", "result.tsv", "report.html", "plots/rate.svg", "plots/latency.svg"] {
        assert!(fs::metadata(format!("{out}/{name}")).is_ok_and(|file| file.len() > 0), "{name}");
    }
}

#[test]
fn a_full_disk_is_named() {
    let ran = run(&["report", &data("before.json"), "--tsv", "/dev/full"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("/dev/full") && ran.stderr.contains("No space left"), "{}", ran.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let mut command = hodo(&["report", &data("before.json")]);
    let status = command.stdout(write).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!((status.status.code(), status.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_same_is_as_fast() {
    let ran = run(&["compare", &data("before.json"), &data("before.json"), "--fail-below", "0.95"]);
    done(&ran);
    assert_snapshot("compare-table.txt", &ran.stdout);
}

#[test]
fn slower_fails_the_check_alone() {
    let (before, after) = (data("before.json"), data("after.json"));
    done(&run(&["compare", &before, &after]));
    let ran = run(&["compare", &before, &after, "--fail-below", "0.95", "--json", "-"]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.stderr.matches("under 0.95").count(), 3, "{}", ran.stderr);
    let comparison: Value = serde_json::from_str(&ran.stdout).expect("nothing but JSON on standard output");
    assert_eq!(comparison["pairs"].as_array().map(Vec::len), Some(3));
    done(&run(&["compare", &before, &after, "--fail-below", "0.8"]));
}
