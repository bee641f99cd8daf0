//! Who may depend on whom, from `cargo metadata`.

use hodo_style::{Package, metadata, packages};

/// A crate and the crates of this workspace that it may depend on. Tests and build scripts may use more.
const ARROWS: &[(&str, &[&str])] = &[
    ("machine", &[]),
    ("raw", &["machine"]),
    ("ipbus", &["machine"]),
    ("pva", &["machine"]),
    ("roce", &["machine"]),
    ("spacewire", &["machine"]),
    ("farm", &["machine"]),
    ("sim", &["machine"]),
    ("io", &["machine"]),
    ("measure", &["machine"]),
    ("report", &["measure"]),
    ("store", &[]),
    ("daemon", &["io", "machine", "store"]),
    ("catalog", &["farm", "io", "ipbus", "machine", "measure", "pva", "raw", "roce", "sim", "spacewire"]),
    ("cli", &["catalog", "daemon", "io", "machine", "measure", "report", "store"]),
    ("python", &["catalog", "io", "machine", "measure", "report"]),
];

/// Packages that check the others, and may see all of them.
const CHECKERS: &[&str] = &["hodo-style", "hodo-fuzz"];

#[test]
fn the_arrows_of_the_design_hold() {
    let found = packages(&metadata());
    let wrong: Vec<String> = found.iter().filter(|package| package.member).flat_map(wrong_arrows).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn wrong_arrows(package: &Package) -> Vec<String> {
    if CHECKERS.contains(&package.name.as_str()) {
        return Vec::new();
    }
    let name = package.name.strip_prefix("hodo-").unwrap_or(&package.name);
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![format!("Cargo.toml: {} is in no row of ARROWS: say there what it may depend on", package.name)];
    };
    let ours = package.dependencies.iter().filter_map(|to| to.strip_prefix("hodo-"));
    ours.filter(|to| !allowed.contains(to))
        .map(|to| {
            format!("crates/{name}/Cargo.toml: {name} depends on {to}, against DESIGN's arrows: move what it needs")
        })
        .collect()
}

#[test]
fn an_arrow_against_the_design_is_named() {
    let package = |name: &str, to: &str| Package {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        licence: None,
        member: true,
        dependencies: vec![to.to_owned()],
    };
    assert_eq!(wrong_arrows(&package("hodo-raw", "hodo-io")).len(), 1);
    assert!(wrong_arrows(&package("hodo-raw", "hodo-machine")).is_empty());
    assert!(wrong_arrows(&package("hodo-raw", "bytes")).is_empty());
    assert_eq!(wrong_arrows(&package("hodo-new", "bytes")).len(), 1);
}

#[test]
fn nothing_depends_on_a_checker() {
    for package in packages(&metadata()) {
        let checker = package.dependencies.iter().find(|to| CHECKERS.contains(&to.as_str()));
        assert_eq!(checker, None, "{} depends on a package that only checks", package.name);
    }
}
