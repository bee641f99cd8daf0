use crate::is_machines;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package that this workspace is built from, on this platform.
#[derive(Debug, Clone)]
pub struct Package {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The licence, as an SPDX expression.
    pub licence: Option<String>,
    /// Whether it is one of ours.
    pub member: bool,
    /// The folder, from the root of the repository; empty for the packages of others.
    pub folder: String,
    /// Names of the packages that it depends on to run, not to be tested or built.
    pub dependencies: Vec<String>,
}

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this package is two folders down").to_owned()
}

/// Runs `cargo` with these arguments in the root and returns what it prints.
///
/// # Panics
/// Where it fails.
#[must_use]
pub fn cargo(arguments: &[&str]) -> String {
    output(Command::new(env!("CARGO")).args(arguments).current_dir(root()), "run `cargo fetch --locked` first")
}

/// Returns the platform that is compiled on.
#[must_use]
pub fn host() -> String {
    let version = output(Command::new("rustc").arg("-vV"), "is rustc in PATH?");
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc says its host").to_owned()
}

fn output(command: &mut Command, remedy: &str) -> String {
    let out = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {remedy}"));
    let complaint = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?} failed; {remedy}\n{complaint}");
    String::from_utf8(out.stdout).expect("cargo and rustc print UTF-8")
}

/// Returns everything that cargo knows of this workspace.
///
/// # Panics
/// Where cargo fails, as without the packages at hand.
#[must_use]
pub fn metadata() -> Value {
    let arguments = ["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &host()];
    serde_json::from_str(&cargo(&arguments)).expect("cargo metadata is JSON")
}

/// Returns the packages of a workspace's metadata.
#[must_use]
pub fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let members = array(&metadata["workspace_members"]);
    let nodes = array(&metadata["resolve"]["nodes"]);
    array(&metadata["packages"])
        .iter()
        .map(|package| {
            let node = nodes.iter().find(|node| node["id"] == package["id"]);
            let links = node.map(|node| array(&node["deps"])).unwrap_or_default();
            let names = links.iter().filter(|link| is_normal(link)).filter_map(|link| name_of(metadata, &link["pkg"]));
            Package {
                name: text(&package["name"]).unwrap_or_default(),
                version: text(&package["version"]).unwrap_or_default(),
                licence: text(&package["license"]),
                member: members.contains(&package["id"]),
                folder: folder(&package["manifest_path"]),
                dependencies: names.collect(),
            }
        })
        .collect()
}

/// Returns the names of our packages that do without `std`.
///
/// # Panics
/// Where some of them are missing.
#[must_use]
pub fn protocol_crates() -> Vec<String> {
    let ours = packages(&metadata()).into_iter().filter(|package| is_machines(&format!("{}/", package.folder)));
    let names: Vec<String> = ours.map(|package| package.name).collect();
    assert!(names.iter().any(|name| name == "hodo-machine") && names.len() > 3, "machines are missing: {names:?}");
    names
}

fn folder(manifest: &Value) -> String {
    let path = Path::new(manifest.as_str().unwrap_or_default());
    let ours = path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
    ours.map(|folder| folder.display().to_string()).unwrap_or_default()
}

fn is_normal(link: &Value) -> bool {
    array(&link["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
}

fn name_of(metadata: &Value, id: &Value) -> Option<String> {
    let package = array(&metadata["packages"]).iter().find(|package| package["id"] == *id)?;
    package["name"].as_str().map(str::to_owned)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
