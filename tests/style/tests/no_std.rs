//! Protocols have no sockets, threads or clocks: their crates and everything that they stand on do without `std`.

use hodo_style::{Complaint, cargo, expect_none, host, is_machines, metadata, packages, root, source_files};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of others that a protocol may depend on, and the features that it may switch on.
const ALLOWED: &[(&str, &[&str])] =
    &[("bytemuck", &[]), ("bytes", &[]), ("cfg-if", &[]), ("crc32fast", &[]), ("libm", &[]), ("thiserror", &[])];

#[test]
fn protocol_crates_say_so() {
    let complaints: Vec<Complaint> = source_files(&root()).iter().flat_map(hodo_style::no_std_attribute).collect();
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

/// The compiler's own word: the crates build where there is a `core` and an `alloc`, but no `std` to be found.
#[test]
fn they_build_without_std_at_hand() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-std");
    let sysroot = sysroot_without_std(&scratch.join("sysroot"));
    let build = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["check", "--offline", "--locked", "--quiet", "--target", &host()]).args(arguments);
        command.env("CARGO_ENCODED_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
        command.env("CARGO_TARGET_DIR", scratch.join("target")).current_dir(root());
        command.output().expect("cargo is there: it runs this test")
    };
    for name in protocol_crates() {
        let out = build(&["-p", &name]);
        let complaint = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{name} does not build without std:\n{complaint}");
    }
    let out = build(&["-p", "hodo-measure"]);
    assert!(!out.status.success(), "a crate that uses std was built: this test proves nothing");
}

/// Returns a sysroot that holds what a bare-metal target has, of the host's own architecture.
fn sysroot_without_std(into: &Path) -> PathBuf {
    let out = Command::new("rustc").args(["--print", "target-libdir"]).output().expect("rustc is in PATH");
    let library = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    let place = into.join("lib/rustlib").join(host()).join("lib");
    let _ = fs::remove_dir_all(into);
    fs::create_dir_all(&place).expect("the target folder can be written to");
    let mut copied = 0;
    for entry in fs::read_dir(&library).expect("rustc's library folder can be read").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let wanted = ["libcore-", "liballoc-", "libcompiler_builtins-", "librustc_std_workspace_core-"];
        if wanted.iter().any(|front| name.starts_with(front)) {
            std::os::unix::fs::symlink(entry.path(), place.join(&name)).expect("the folder is new");
            copied += 1;
        }
    }
    assert!(copied >= 3, "no core, alloc and compiler_builtins in {}", library.display());
    into.to_owned()
}

/// Returns the packages that do without `std`.
fn protocol_crates() -> Vec<String> {
    let ours = packages(&metadata()).into_iter().filter(|package| is_machines(&format!("{}/", package.folder)));
    let names: Vec<String> = ours.map(|package| package.name).collect();
    assert!(names.iter().any(|name| name == "hodo-machine") && names.len() > 3, "machines are missing: {names:?}");
    names
}
