//! The arrows of dependency between the crates, from `cargo metadata`.

use hodo_style::{Package, metadata, packages};

/// A folder, and the folders that its packages may depend on; `*` is one protocol, the same on both sides, and `?` any of
/// them. Tests and build scripts may use more.
const ARROWS: &[(&str, &[&str])] = &[
    ("crates/machine", &[]),
    ("crates/units", &["crates/machine"]),
    ("crates/sim", &["crates/machine"]),
    ("crates/io", &["crates/machine"]),
    ("crates/measure", &["crates/io", "crates/machine", "crates/units"]),
    ("crates/report", &["crates/measure"]),
    ("crates/store", &["crates/machine"]),
    ("crates/daemon", &["crates/io", "crates/machine"]),
    ("crates/tester", &["crates/io", "crates/machine", "crates/measure", "crates/report", "crates/sim"]),
    ("protocols/*/machines", &["crates/machine"]),
    ("protocols/*/uhal", &["protocols/*/machines"]),
    ("protocols/*/hdl", &["protocols/*/machines"]),
    // The library of an application, without the tester.
    (
        "protocols/*/host",
        &[
            "crates/machine",
            "crates/units",
            "crates/io",
            "crates/store",
            "crates/daemon",
            "protocols/*/machines",
            "protocols/*/uhal",
        ],
    ),
    (
        "protocols/*/link",
        &[
            "crates/machine",
            "crates/units",
            "crates/sim",
            "crates/io",
            "crates/measure",
            "crates/report",
            "crates/daemon",
            "crates/tester",
            "protocols/*/host",
            "protocols/*/machines",
            "protocols/*/uhal",
        ],
    ),
    ("crates/catalog", &["crates/tester", "protocols/?/link"]),
    (
        "crates/cli",
        &[
            "crates/catalog",
            "crates/daemon",
            "crates/io",
            "crates/machine",
            "crates/measure",
            "crates/report",
            "crates/store",
            "crates/tester",
            "protocols/?/host",
            "protocols/?/link",
        ],
    ),
    (
        "python",
        &["crates/catalog", "crates/io", "crates/machine", "crates/measure", "crates/report", "protocols/?/host"],
    ),
];

/// Packages that check the others, and may see all of them.
const CHECKERS: &[&str] = &["hodo-style", "hodo-fuzz", "hodo-toy"];

#[test]
fn the_arrows_of_the_design_hold() {
    let found = packages(&metadata());
    let wrong: Vec<String> =
        found.iter().filter(|package| package.member).flat_map(|package| wrong_arrows(package, &found)).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn wrong_arrows(package: &Package, all: &[Package]) -> Vec<String> {
    if CHECKERS.contains(&package.name.as_str()) {
        return Vec::new();
    }
    let from = &package.folder;
    let row = ARROWS.iter().find_map(|(pattern, to)| Some((matched(pattern, from)?, to)));
    let Some((protocol, allowed)) = row else {
        return vec![format!(
            "{from}/Cargo.toml: {} is in no row of ARROWS: say there what it may depend on",
            package.name
        )];
    };
    let ours = all.iter().filter(|other| other.member && package.dependencies.contains(&other.name));
    ours.filter(|to| !allowed.iter().any(|pattern| matched(&pattern.replace('*', protocol), &to.folder).is_some()))
        .map(|to| {
            format!("{from}/Cargo.toml: {from} depends on {}, against DESIGN's arrows: move what it needs", to.folder)
        })
        .collect()
}

/// Returns the protocol that `folder` names if the pattern matches it; the empty text if the pattern has none.
fn matched<'a>(pattern: &str, folder: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once(['*', '?']) else { return (pattern == folder).then_some("") };
    folder.strip_prefix(before)?.strip_suffix(after).filter(|middle| !middle.contains('/'))
}

#[test]
fn an_arrow_against_the_design_is_named() {
    let package = |folder: &str, to: &str| Package {
        name: folder.to_owned(),
        version: "0.1.0".to_owned(),
        licence: None,
        member: true,
        folder: folder.to_owned(),
        dependencies: vec![to.to_owned()],
    };
    let wrong = |from: &str, to: &str| wrong_arrows(&package(from, to), &[package(to, "")]).len();
    assert_eq!(wrong("protocols/raw/machines", "crates/io"), 1);
    assert_eq!(wrong("protocols/raw/machines", "crates/machine"), 0);
    assert_eq!(wrong("protocols/pva/host", "protocols/pva/machines"), 0);
    assert_eq!(wrong("protocols/pva/host", "protocols/farm/machines"), 1);
    assert_eq!(wrong("protocols/pva/host", "crates/tester"), 1);
    assert_eq!(wrong("protocols/pva/host", "protocols/pva/link"), 1);
    assert_eq!(wrong("protocols/pva/link", "protocols/pva/host"), 0);
    assert_eq!(wrong("protocols/pva/link", "crates/tester"), 0);
    assert_eq!(wrong("protocols/pva/link", "protocols/farm/host"), 1);
    assert_eq!(wrong("crates/io", "protocols/raw/machines"), 1);
    assert_eq!(wrong("crates/catalog", "protocols/farm/link"), 0);
    assert_eq!(wrong("crates/catalog", "protocols/farm/host"), 1);
    assert_eq!(wrong("crates/new", "bytes"), 1);
}

#[test]
fn nothing_depends_on_a_checker() {
    for package in packages(&metadata()) {
        let checker = package.dependencies.iter().find(|to| CHECKERS.contains(&to.as_str()));
        assert_eq!(checker, None, "{} depends on a package that only checks", package.name);
    }
}
