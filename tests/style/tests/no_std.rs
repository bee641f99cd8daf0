//! Protocols have no sockets, threads or clocks: their crates and everything that they stand on do without `std`.

use hodo_style::{Complaint, cargo, expect_none, host, protocol_crates, sources};

/// The crates of others that a protocol may depend on, and the features that it may switch on.
const ALLOWED: &[(&str, &[&str])] =
    &[("bytemuck", &[]), ("bytes", &[]), ("cfg-if", &[]), ("crc32fast", &[]), ("libm", &[]), ("thiserror", &[])];

#[test]
fn protocol_crates_say_so() {
    let complaints: Vec<Complaint> = sources().iter().flat_map(hodo_style::no_std_attribute).collect();
    expect_none(&complaints);
}

#[test]
fn their_dependency_trees_hold_nothing_with_std() {
    let target = host();
    for name in protocol_crates() {
        let arguments =
            ["tree", "--offline", "--locked", "-p", &name, "-e", "normal,no-proc-macro", "--target", &target];
        let tree = cargo(&[&arguments[..], &["--prefix", "none", "--no-dedupe", "-f", "{p}|{f}"]].concat());
        let wrong: Vec<String> = tree.lines().filter_map(not_allowed).collect();
        assert!(wrong.is_empty(), "\n{name}: {}\n", wrong.join("\n"));
    }
}

/// Checks one line of the tree, as `bytes v1.10.1|default,std`, and returns the complaint.
fn not_allowed(line: &str) -> Option<String> {
    let (package, features) = line.split_once('|')?;
    let name = package.split_whitespace().next()?;
    let own = package.contains("/crates/machine)") || package.contains("/machines)");
    let allowed =
        if own { &[][..] } else { ALLOWED.iter().find(|(known, _)| *known == name).map_or(&["?"][..], |row| row.1) };
    if allowed == ["?"] {
        return Some(format!("{name} is not in ALLOWED: show that it does without std, then add it there"));
    }
    let wrong = features.split(',').find(|feature| !feature.is_empty() && !allowed.contains(feature))?;
    Some(format!("{name} with feature `{wrong}`: switch default features off"))
}

#[test]
fn a_feature_or_a_crate_with_std_is_named() {
    assert_eq!(not_allowed("bytes v1.10.1|"), None);
    assert_eq!(not_allowed("hodo-raw v0.1.0 (/a b/protocols/raw/machines)|"), None);
    assert!(not_allowed("bytes v1.10.1|default,std").is_some_and(|text| text.contains("`default`")));
    assert!(not_allowed("rand v0.9.0|").is_some_and(|text| text.contains("rand")));
    assert!(not_allowed("hodo-io v0.1.0|").is_some());
}
