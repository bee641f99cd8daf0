//! The tests of a crate are one program, and all of its files are in it.

use hodo_style::{Complaint, expect_none, metadata, packages, root};
use std::fs;
use std::path::{Path, PathBuf};

/// A program of tests is linked to all that its crate stands on: each crate has one, and what needs a process of its own, as its manifest
/// says. With `autotests = false` a file that nothing names would be built by nobody, and its tests pass by not being run.
#[test]
fn the_tests_of_a_crate_are_one_program() {
    let root = root();
    let mut complaints = Vec::new();
    let mut programs = 0;
    for package in packages(&metadata()).into_iter().filter(|package| package.member) {
        let folder = root.join(&package.folder);
        let files = rust_files(&folder.join("tests"));
        if files.len() > 1 {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
            let texts = files.iter().map(|(_, path)| fs::read_to_string(path).expect("it is text"));
            let found =
                test_programs(&manifest, &files.iter().map(|(name, _)| name.as_str()).zip(texts).collect::<Vec<_>>());
            programs += files.len();
            complaints.extend(found.into_iter().map(|text| Complaint {
                path: format!("{}/Cargo.toml", package.folder),
                line: 1,
                text,
            }));
        }
    }
    assert!(programs > 50, "the tests were not found");
    expect_none(&complaints);
}

/// Returns the names and paths of the files of tests in this folder, of which a folder with `main.rs` is one.
fn rust_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, main) = (entry.path(), entry.path().join("main.rs"));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|end| end == "rs") {
            found.push((name, path));
        } else if main.exists() {
            found.push((name, main));
        }
    }
    found
}

/// Returns what is wrong with a manifest and the files of tests beside it, by name.
fn test_programs(manifest: &str, files: &[(&str, String)]) -> Vec<String> {
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
    let files = [("all", "mod some;\n".to_owned()), ("some", String::new()), ("other", String::new())];
    let found = |programs: &str| test_programs(&format!("[package]\nautotests = false\n\n{programs}"), &files).len();
    assert_eq!(test_programs("[package]\n", &files).len(), 1);
    assert_eq!(found("[[test]]\nname = \"all\"\n"), 1, "`other` is not built");
    assert_eq!(found("[[test]]\nname = \"all\"\n\n[[test]]\nname = \"other\"\n"), 1);
    assert_eq!(found("[[test]]\nname = \"all\"\n\n# It exits.\n[[test]]\nname = \"other\"\n"), 0);
}
