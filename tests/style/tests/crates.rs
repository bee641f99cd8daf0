//! How many packages a program compiles that depends on one of the libraries. A package that comes in, however far below, is a line in a diff.

use hodo_style::cargo;
use std::collections::BTreeSet;

/// A library, the features that are chosen, and the packages that it is made of: itself, ours and those of others, each once.
const PACKAGES: &[(&str, &str, usize)] = &[
    ("hodo-machine", "", 8),
    ("hodo-units", "", 9),
    ("hodo-io", "", 10),
    ("hodo-io", "serde", 13),
    ("hodo-io", "documents", 23),
    ("hodo-pva", "", 10),
    ("hodo-pva-host", "", 26),
    ("hodo-pva-host", "images", 41),
    ("hodo-pva-host", "record", 47),
    ("hodo-pva-host", "daemon", 70),
    ("hodo-ipbus-host", "", 19),
    ("hodo-ipbus-host", "daemon", 34),
    ("hodo-farm-host", "", 13),
    ("hodo-farm-host", "daemon", 41),
    ("hodo-roce-host", "", 14),
    ("hodo-spacewire-host", "", 12),
    ("hodo-spacewire-host", "daemon", 34),
];

#[test]
fn a_library_brings_as_many_packages_as_its_row_says() {
    let wrong: Vec<String> = PACKAGES.iter().filter_map(|row| complaint(*row)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn complaint((library, features, expected): (&str, &str, usize)) -> Option<String> {
    let found = packages(library, features);
    let names = found.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    (found.len() != expected).then(|| {
        let number = found.len();
        format!("{library} with features `{features}` is {number} packages, in PACKAGES it is {expected}: {names}")
    })
}

/// Returns names and versions of all that is linked into a program with this library, as `cargo tree` has them for this platform.
fn packages(library: &str, features: &str) -> BTreeSet<String> {
    let chosen = ["--package", library, "--no-default-features", "--features", features];
    let form = ["--edges", "normal", "--prefix", "none", "--format", "{p}", "--offline", "--locked"];
    let tree = cargo(&[&["tree"], &chosen[..], &form[..]].concat());
    tree.lines().map(|line| line.split(" (").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_package_too_many_is_named() {
    let told = complaint(("hodo-machine", "", 7)).expect("it is one more");
    assert!(told.contains("is 8 packages, in PACKAGES it is 7") && told.contains("bytes v1"), "{told}");
}
