//! The tests of a crate are one program, and all of its files are in it.

use hodo_style::{Complaint, expect_none, metadata, packages, root};
use std::fs;
use std::path::Path;

/// A program of tests is linked to all that its crate stands on: each crate has one, and what needs a process of its own, as its manifest
/// says. With `autotests = false` a file that nothing names would be built by nobody, and its tests pass by not being run.
#[test]
fn the_tests_of_a_crate_are_one_program() {
    let root = root();
    let mut complaints = Vec::new();
    let mut found = 0;
    for package in packages(&metadata()).into_iter().filter(|package| package.member) {
        let folder = root.join(&package.folder);
        let files = rust_files(&folder.join("tests"));
        if files.len() > 1 {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
            let path = format!("{}/Cargo.toml", package.folder);
            let complaint = |text| Complaint { path: path.clone(), line: 1, text };
            complaints.extend(test_programs(&manifest, &files).into_iter().map(complaint));
            found += files.len();
        }
    }
    assert!(found > 50, "the tests were not found");
    expect_none(&complaints);
}

/// Returns the names and the texts of the files of tests in this folder, of which a folder with `main.rs` is one.
fn rust_files(folder: &Path) -> Vec<(String, String)> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = paths.filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let file = if path.is_dir() { path.join("main.rs") } else { path };
        let is_one = file.extension().is_some_and(|end| end == "rs") && file.exists();
        is_one.then(|| (name, fs::read_to_string(file).expect("it is text")))
    });
    files.collect()
}

/// Returns what is wrong with a manifest and the files of tests beside it, by name.
fn test_programs(manifest: &str, files: &[(String, String)]) -> Vec<String> {
    if !manifest.contains("\nautotests = false\n") {
        return vec![
            "each file of tests is a program: say `autotests = false`, and name the others in `tests/all.rs`"
                .to_owned(),
        ];
    }
    let mut complaints = Vec::new();
    let lines: Vec<&str> = manifest.lines().collect();
    let mut plain = Vec::new();
    for at in (0..lines.len()).filter(|&at| lines[at] == "[[test]]") {
        if !lines[at.saturating_sub(1)].starts_with('#') {
            plain.push(lines[at + 1]);
        }
    }
    if plain.len() > 1 {
        complaints.push(format!(
            "{}: a comment says what each of them but one needs a process of its own for",
            plain.join(", ")
        ));
    }
    for (name, _) in files {
        let named = |text: &str| text.lines().any(|line| line == format!("mod {name};"));
        if !lines.contains(&format!("name = \"{name}\"").as_str()) && !files.iter().any(|(_, text)| named(text)) {
            complaints.push(format!("tests/{name}.rs is not built: name it in tests/all.rs, or as a [[test]]"));
        }
    }
    complaints
}

#[test]
fn a_test_program_without_a_reason_is_named() {
    let files =
        [("all", "mod some;\n"), ("some", ""), ("other", "")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let found = |programs: &str| test_programs(&format!("[package]\nautotests = false\n\n{programs}"), &files).len();
    assert_eq!(test_programs("[package]\n", &files).len(), 1);
    assert_eq!(found("[[test]]\nname = \"all\"\n"), 1, "`other` is not built");
    assert_eq!(found("[[test]]\nname = \"all\"\n\n[[test]]\nname = \"other\"\n"), 1);
    assert_eq!(found("[[test]]\nname = \"all\"\n\n# It exits.\n[[test]]\nname = \"other\"\n"), 0);
}
