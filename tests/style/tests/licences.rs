//! The licences of the dependencies, none of which may be there twice.

use hodo_style::{Package, cargo, host, metadata, packages, satisfiable};
use std::collections::{BTreeMap, BTreeSet};

const LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
];

/// Packages that may be there in several incompatible versions, and why.
const TWICE: &[(&str, &str)] = &[
    ("miniz_oxide", "png is at 0.8, flate2 at 0.9"),
    ("syn", "zerocopy-derive is at 2, the derives of serde and clap at 3"),
];

#[test]
fn every_licence_is_allowed() {
    let found = compiled();
    let wrong: Vec<String> = found
        .iter()
        .filter(|package| !package.licence.as_deref().is_some_and(|licence| satisfiable(licence, LICENCES)))
        .map(|Package { name, version, licence, .. }| {
            let licence = licence.as_deref().unwrap_or("no licence");
            format!("Cargo.lock: {name} {version} has {licence}, which is not allowed: use another crate")
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn no_dependency_is_there_twice() {
    let twice = duplicates(&compiled());
    let wrong: Vec<String> = twice
        .iter()
        .filter(|(name, _)| !TWICE.iter().any(|(known, _)| known == name))
        .map(|(name, versions)| {
            let versions = versions.join(" and ");
            format!(
                "Cargo.lock: {name} in {versions}: agree on one (cargo tree -d), or add it to TWICE with the reason"
            )
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    for (name, reason) in TWICE {
        assert!(twice.contains_key(*name), "{name} is no longer there twice ({reason}): take it out of TWICE");
    }
}

/// Returns the packages that are compiled here. `cargo metadata` also lists packages that only another platform needs.
fn compiled() -> Vec<Package> {
    let target = host();
    let arguments = ["tree", "--offline", "--locked", "--workspace", "-e", "all", "--target", &target];
    let tree = cargo(&[&arguments[..], &["--prefix", "none", "-f", "{p}"]].concat());
    let there: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let mut found = packages(&metadata());
    found.retain(|package| there.contains(&(package.name.as_str(), package.version.as_str())));
    assert!(found.iter().any(|package| package.name == "clap"), "cargo tree does not say what it did");
    found
}

/// Names with several versions that are not compatible.
fn duplicates(packages: &[Package]) -> BTreeMap<String, Vec<String>> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let line = compatible_line(&package.version);
        let known = versions.entry(package.name.clone()).or_default();
        if !known.contains(&line) {
            known.push(line);
        }
    }
    versions.retain(|_, lines| lines.len() > 1);
    versions
}

/// Returns the part of a version that two compatible ones share: `1`, `0.7`, `0.0.3`.
fn compatible_line(version: &str) -> String {
    let parts: Vec<&str> = version.split(['.', '-', '+']).take(3).collect();
    let leading = parts.iter().take_while(|part| **part == "0").count();
    parts[..(leading + 1).min(parts.len())].join(".")
}

#[test]
fn compatible_versions_are_one() {
    assert_eq!(compatible_line("1.2.3"), "1");
    assert_eq!(compatible_line("0.7.1-rc.1"), "0.7");
    assert_eq!(compatible_line("0.0.3"), "0.0.3");
    let package = |version: &str| Package {
        name: "a".to_owned(),
        version: version.to_owned(),
        licence: None,
        member: false,
        folder: String::new(),
        dependencies: Vec::new(),
    };
    assert_eq!(duplicates(&[package("1.0.0"), package("1.2.0")]).len(), 0);
    assert_eq!(duplicates(&[package("1.0.0"), package("2.0.0")])["a"], ["1", "2"]);
}
