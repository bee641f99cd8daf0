//! Builds that `./test` leaves out: the protocol crates without `std`, and the command with each of its features alone.

use hodo_style::{host, metadata, protocol_crates, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Warnings are errors here, too.
const LINTED: &[&str] = &["--config", "tests/gate/lints.toml", "--profile", "gate", "--quiet", "--locked"];

#[test]
fn the_command_with_each_feature_alone_and_with_none() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let command = packages.iter().find(|package| package["name"] == "hodo-cli").expect("the command is a package");
    let features = command["features"].as_object().expect("it has features").keys().map(String::as_str);
    let chosen: Vec<&str> = features.filter(|name| *name != "default").chain([""]).collect();
    assert!(chosen.contains(&"raw"), "the command's features are {chosen:?}");
    let complaints: Vec<String> = chosen.into_iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Checks the command with one feature. Returns what the compiler says, if it is not content.
fn complaint(feature: &str) -> Option<String> {
    let mut check = Command::new(env!("CARGO"));
    check.args(["check", "--package", "hodo-cli", "--no-default-features", "--features", feature]).args(LINTED);
    let out = check.current_dir(root()).output().expect("cargo is there: it runs this test");
    (!out.status.success()).then(|| format!("with feature `{feature}` alone: {}", String::from_utf8_lossy(&out.stderr)))
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
