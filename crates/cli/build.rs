//! Tells the program which commit it is built from, where git and a checkout are there.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=HODO_COMMIT={commit}");
    }
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|head| Path::new(head).exists()) {
        println!("cargo::rerun-if-changed={head}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let told = Command::new("git").args(arguments).output().ok().filter(|told| told.status.success())?;
    let text = String::from_utf8(told.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
