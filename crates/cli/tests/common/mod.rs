//! Runs the program as a user does.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Returns the command of the program, with an environment that does not change its output.
pub fn hodo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hodo"));
    command.args(arguments).env_remove("COLUMNS").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// The result of a finished process.
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Ran {
    ran(hodo(arguments).output().expect("the program runs"))
}

/// Converts the output to text.
pub fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Returns what was accepted before.
pub fn snapshot(name: &str) -> String {
    std::fs::read_to_string(snapshot_file(name)).unwrap_or_default()
}

fn snapshot_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name)
}

/// Compares with what was accepted before; `UPDATE_SNAPSHOTS=1` accepts what is there now.
pub fn assert_snapshot(name: &str, found: &str) {
    // Help is wrapped with blanks at the end of otherwise empty lines, which no editor keeps.
    let found: String = found.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(snapshot_file(name), found).expect("the snapshot is written");
        return;
    }
    assert_eq!(snapshot(name), found, "{name} has changed; if that is meant, run with UPDATE_SNAPSHOTS=1");
}

/// A new folder for one test, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder is made");
        Folder(path)
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A far end that runs beside the test, and is ended with it.
pub struct Served {
    process: Child,
    uri: String,
}

impl Served {
    /// Starts `hodo serve` with this URI.
    pub fn start(uri: &str) -> Self {
        let mut command = hodo(&["serve", uri, "--until-stdin-closes"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut said = String::new();
        let stdout = process.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut said).expect("it is text");
        let uri = said.trim_end().strip_prefix("listening on ").expect("it says where it listens").to_owned();
        Served { process, uri }
    }

    /// Returns the URI at which the server listens.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
