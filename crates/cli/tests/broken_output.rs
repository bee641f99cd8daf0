//! Output that goes nowhere: a full disk, a pipe whose reader has gone. The program does not panic, and its exit status tells
//! what happened.

use crate::common;
use common::{Folder, Ran, hodo, ran};
use std::fs::OpenOptions;
use std::process::Stdio;

fn full_disk() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Returns the main commands, each with its exit status where all output can be written.
fn commands(folder: &Folder) -> Vec<(Vec<String>, i32)> {
    let [result, other, table] = ["a.json", "b.json", "table.xml"].map(|name| folder.file(name));
    let bench = ["bench", "sim+tcp", "--test", "latency", "--sizes", "64", "--repeat", "6", "--json", &result];
    assert_eq!(ran(hodo(&bench).output().expect("the program runs")).status, 0);
    let text = std::fs::read_to_string(&result).expect("it was written");
    let changed =
        text.replace("\"hodo.result/3\"", "\"hodo.result/3\" ").replace("\"size_bytes\": 64", "\"size_bytes\": 65");
    std::fs::write(&other, changed).expect("it can be written");
    std::fs::write(&table, "<node><node id=\"A\" address=\"0x1\"/></node>").expect("it can be written");
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    vec![
        (own(&["--help"]), 0),
        (own(&["--version"]), 0),
        (own(&["bench", "--help"]), 0),
        (own(&["limits"]), 0),
        (own(&["limits", "--json", "-"]), 0),
        (own(&["report", &result]), 0),
        (own(&["report", &result, "--tsv", "-"]), 0),
        (own(&["compare", &result, &other, "--fail-below", "0.5"]), 1),
        (own(&["compare", &result, &result, "--json", "-"]), 0),
        (own(&["ipbus", "nodes", &table]), 0),
        (own(&["ipbus", "check", &table]), 0),
        (own(&["bench", "sim+tcp", "--test", "latency", "--sizes", "64", "--repeat", "1"]), 0),
        (own(&["bench", "sim+tcp", "--test", "latency", "--sizes", "64", "--repeat", "1", "--json", "-"]), 0),
        (own(&["bench", "ftp://x"]), 2),
        (own(&["report", "/no/such/file.json"]), 2),
    ]
}

fn run_with(arguments: &[String], stdout: Stdio, stderr: Stdio) -> Ran {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = ran(hodo(&words).stdout(stdout).stderr(stderr).output().expect("the program runs"));
    assert!(!found.stderr.contains("panicked"), "{arguments:?}: {}", found.stderr);
    found
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure() {
    let folder = Folder::new("full-stdout");
    for (arguments, status) in commands(&folder) {
        let found = run_with(&arguments, full_disk(), Stdio::piped());
        assert_eq!(found.status, status.max(1), "{arguments:?}: {}", found.stderr);
        let says = found.stderr.contains("standard output cannot be written");
        assert_eq!(says, status < 2, "{arguments:?}: {}", found.stderr);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let folder = Folder::new("closed-stdout");
    for (arguments, status) in commands(&folder) {
        let found = run_with(&arguments, closed_pipe(), Stdio::piped());
        assert_eq!(found.status, status, "{arguments:?}: {}", found.stderr);
    }
}

#[test]
fn remarks_may_be_lost() {
    let folder = Folder::new("lost-stderr");
    for (arguments, status) in commands(&folder) {
        for stderr in [full_disk(), closed_pipe()] {
            let found = run_with(&arguments, Stdio::piped(), stderr);
            // Where standard output is for a program, the table for people goes to standard error.
            let is_table = status == 0 && arguments.iter().any(|word| word == "-");
            assert!(found.status == status || is_table && found.status == 1, "{arguments:?}: {}", found.status);
        }
    }
}
