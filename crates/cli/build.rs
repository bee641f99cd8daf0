//! Tells the program which commit its sources are from, where git and a checkout are there: the last one that changed them, with `-dirty` where
//! they have changes that are not committed. A commit of anything else leaves the program as it is, and nothing is linked again.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new("../..");
    let sources = sources(root);
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let Some(commit) =
        git(&["log", "-1", "--format=%h", "--abbrev=12", "--"], &sources).filter(|commit| !commit.is_empty())
    else {
        return;
    };
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--"], &sources);
    if changes.is_some_and(|changes| changes.is_empty()) {
        println!("cargo::rustc-env=HODO_COMMIT={commit}");
        return;
    }
    println!("cargo::rustc-env=HODO_COMMIT={commit}-dirty");
    // To commit the changes leaves the files as they are.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"], &[]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// Returns what programs are built of: the manifests, and all of each crate but its tests and examples.
fn sources(root: &Path) -> Vec<PathBuf> {
    let protocols = entries(&root.join("protocols"));
    let crates = [root.join("crates")].into_iter().chain(protocols).flat_map(|folder| entries(&folder));
    let parts = crates
        .flat_map(|of_a_crate| entries(&of_a_crate))
        .filter(|part| !part.ends_with("tests") && !part.ends_with("examples"));
    [root.join("Cargo.toml"), root.join("Cargo.lock")]
        .into_iter()
        .filter(|manifest| manifest.exists())
        .chain(parts)
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = folder.read_dir().into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Runs git and returns what it printed, or `None` where it failed.
fn git(arguments: &[&str], paths: &[PathBuf]) -> Option<String> {
    let told = Command::new("git").args(arguments).args(paths).output().ok().filter(|told| told.status.success())?;
    Some(String::from_utf8(told.stdout).ok()?.trim().to_owned())
}
