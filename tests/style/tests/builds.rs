//! Builds that `./test` leaves out: the protocol crates without `std`, the command and each library with each of their features alone, and
//! everything with the oldest compiler that it names.

use hodo_style::{host, metadata, protocol_crates, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Warnings are errors here, too.
const LINTED: &[&str] = &["--config", "tests/gate/lints.toml", "--profile", "gate", "--quiet", "--locked"];

#[test]
fn the_command_with_each_feature_alone_and_with_none() {
    check_with_each_feature("hodo-cli", "raw");
}

#[test]
fn the_sockets_with_each_feature_alone_and_with_none() {
    check_with_each_feature("hodo-io", "documents");
}

#[test]
fn the_library_of_the_farm_with_each_feature_alone_and_with_none() {
    check_with_each_feature("hodo-farm-host", "daemon");
}

#[test]
fn the_library_of_ipbus_with_its_feature_and_with_none() {
    check_with_each_feature("hodo-ipbus-host", "daemon");
}

#[test]
fn the_library_of_pvaccess_with_each_feature_alone_and_with_none() {
    check_with_each_feature("hodo-pva-host", "images");
}

#[test]
fn the_library_of_rdma() {
    check_with_each_feature("hodo-roce-host", "");
}

#[test]
fn the_library_of_spacewire_with_its_feature_and_with_none() {
    check_with_each_feature("hodo-spacewire-host", "daemon");
}

/// Checks a package, without its tests, with each of its features, of which `known` is one.
fn check_with_each_feature(package: &str, known: &str) {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let found = packages.iter().find(|found| found["name"] == package).expect("it is one of ours");
    let features = found["features"].as_object().expect("it has features").keys().map(String::as_str);
    let chosen: Vec<&str> = features.filter(|name| *name != "default").chain([""]).collect();
    assert!(chosen.contains(&known), "the features of {package} are {chosen:?}");
    let complaints: Vec<String> = chosen.into_iter().filter_map(|feature| complaint(package, feature)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Checks a package with one feature. Returns what the compiler says, if it is not content.
fn complaint(package: &str, feature: &str) -> Option<String> {
    let mut check = Command::new(env!("CARGO"));
    check.args(["check", "--package", package, "--no-default-features", "--features", feature]).args(LINTED);
    let out = check.current_dir(root()).output().expect("cargo is there: it runs this test");
    let complaint = String::from_utf8_lossy(&out.stderr);
    (!out.status.success()).then(|| format!("{package} with feature `{feature}` alone: {complaint}"))
}

/// Cargo refuses to build with a compiler that is older, and nothing else would notice what an older one cannot compile.
#[test]
fn all_packages_with_the_oldest_compiler_that_they_name() {
    let metadata = metadata();
    let named = metadata["packages"].as_array().expect("cargo metadata lists packages").iter();
    let ours = named.filter(|package| package["source"].is_null());
    let versions: BTreeSet<&str> = ours.filter_map(|package| package["rust_version"].as_str()).collect();
    let oldest = versions.iter().next().filter(|_| versions.len() == 1);
    let oldest = oldest.unwrap_or_else(|| panic!("packages name the compilers {versions:?}; name one for all"));
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oldest");
    let rustup = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(arguments).current_dir(root()).env("RUSTUP_HOME", scratch.join("rustup"));
        command.env_remove("RUSTUP_TOOLCHAIN").env("CARGO_TARGET_DIR", scratch.join("target"));
        let out = command.output().expect("rustup is there: it installs the compiler");
        let complaint = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{arguments:?}:\n{complaint}");
    };
    rustup(&["toolchain", "install", oldest, "--profile", "minimal", "--no-self-update"]);
    rustup(&["run", oldest, "cargo", "check", "--workspace", "--locked", "--quiet"]);
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
