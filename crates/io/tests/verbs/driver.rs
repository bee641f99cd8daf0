//! The library of `driver.c`, compiled.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A copy of the library for one test, with its log.
pub struct Driver {
    folder: PathBuf,
    library: String,
}

impl Driver {
    /// Compiles the library for the test of this name.
    pub fn compile(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("hodo-verbs-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder of temporary files can be written");
        let (source, library, log) = (folder.join("driver.c"), folder.join("libverbs.so"), folder.join("log"));
        fs::write(&source, include_str!("driver.c")).expect("the folder can be written");
        let log = format!("-DLOG=\"{}\"", log.display());
        let flags = ["-shared", "-fPIC", "-g", "-Wall", "-Wextra", "-Werror", &log, "-o"];
        let compiled =
            Command::new("cc").args(flags).args([&library, &source]).output().expect("a C compiler is installed");
        let complaint = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "is libibverbs-dev installed? {complaint}");
        let library = library.to_str().expect("the path is text").to_owned();
        Driver { folder, library }
    }

    /// Returns the library's path.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Returns the calls that were logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
