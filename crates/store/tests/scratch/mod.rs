//! A folder that is gone after the test.

use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// A folder of this test's own.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates an empty one; `name` is unique in the test's file.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        let file = Path::new(Location::caller().file()).file_stem().expect("a file has a name");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the target folder can be written to");
        Scratch { path }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files whose names begin so, sorted.
    #[allow(dead_code, reason = "not every test looks at files")]
    pub fn files(&self, front: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).expect("it is there").flatten().map(|entry| entry.path());
        let begins = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(front));
        let mut found: Vec<PathBuf> = entries.filter(begins).collect();
        found.sort();
        found
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
