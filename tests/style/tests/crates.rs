//! How many packages a program compiles that depends on one of the libraries. A package that comes in, however far below, is a line in a diff.

use hodo_style::{cargo, metadata, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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
    ("hodo-farm-host", "", 15),
    ("hodo-farm-host", "daemon", 43),
    ("hodo-farm-host", "cloud", 158),
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

/// Programs depend on libraries by these pages. What they say is held here, and their code is compiled and run as documentation tests.
#[test]
fn a_library_has_a_page_with_its_features_packages_and_examples() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let libraries: Vec<_> = packages
        .iter()
        .filter(|package| package["name"].as_str().is_some_and(|name| name.ends_with("-host")))
        .collect();
    assert_eq!(libraries.len(), 5, "the libraries were not found");
    let mut wrong = Vec::new();
    for library in libraries {
        let name = library["name"].as_str().expect("a text");
        let folder = Path::new(library["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let (page, manifest) = (read("README.md"), read("Cargo.toml"));
        let mut hold = |right: bool, what: String| wrong.extend((!right).then(|| format!("{name}: {what}")));
        hold(read("src/lib.rs").contains("include_str!(\"../README.md\")"), "lib.rs begins with README.md".into());
        for key in ["keywords", "categories"] {
            let few = library[key].as_array().is_some_and(|words| (1..=5).contains(&words.len()));
            hold(few, format!("Cargo.toml has one to five {key}"));
        }
        for feature in library["features"].as_object().expect("a table").keys() {
            hold(page.contains(&format!("\n| `{feature}` |")), format!("README.md has a row for feature `{feature}`"));
            hold(has_comment(&manifest, feature), format!("feature `{feature}` has a comment"));
        }
        for (_, feature, number) in PACKAGES.iter().filter(|(library, ..)| *library == name) {
            let row = if feature.is_empty() { "| | ".to_owned() } else { format!("| `{feature}` | ") };
            let in_table = page.lines().any(|line| line.starts_with(&row) && line.ends_with(&format!("| {number} |")));
            let alone = feature.is_empty() && page.contains(&format!(" {number} packages"));
            hold(in_table || alone, format!("README.md says that it is {number} packages with features `{feature}`"));
        }
        for target in library["targets"].as_array().expect("a list") {
            let example = target["name"].as_str().filter(|_| target["kind"][0] == "example");
            let named = example.is_none_or(|example| page.contains(&format!("--example {example}")));
            hold(named, format!("README.md names the example {}", target["name"]));
        }
        for path in page.split('`').filter(|text| text.starts_with("docs/")) {
            hold(root().join(path).exists(), format!("README.md names {path}, which is there"));
        }
    }
    assert!(wrong.is_empty(), "these do not hold:\n{}", wrong.join("\n"));
}

/// Tells whether the line before a feature is a comment.
fn has_comment(manifest: &str, feature: &str) -> bool {
    let lines: Vec<&str> = manifest.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(&format!("{feature} = [")));
    at.is_some_and(|at| at > 0 && lines[at - 1].starts_with("# "))
}
