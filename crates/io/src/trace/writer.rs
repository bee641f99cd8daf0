use super::TraceOptions;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Two files that follow each other, of half the limit each.
pub(super) struct Ring {
    path: PathBuf,
    before: PathBuf,
    file: File,
    begin: Vec<u8>,
    length: u64,
    half: u64,
}

impl Ring {
    /// Begins the file with these bytes. An existing one is kept as the one before.
    pub(super) fn open(options: &TraceOptions, begin: Vec<u8>) -> io::Result<Self> {
        let path = options.file.clone();
        let mut before = path.clone().into_os_string();
        before.push(".1");
        let before = PathBuf::from(before);
        match fs::metadata(&path) {
            Ok(there) if there.is_file() => fs::rename(&path, &before)?,
            Ok(_) => return Err(io::Error::other("this is no plain file")),
            Err(_) => {}
        }
        let mut file = File::create_new(&path)?;
        file.write_all(&begin)?;
        let half = options.size_max.max(TraceOptions::SIZE_MIN) / 2;
        Ok(Ring { path, before, file, length: begin.len() as u64, begin, half })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole packets.
    pub(super) fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        if self.length + packets.len() as u64 > self.half {
            fs::rename(&self.path, &self.before)?;
            self.file = File::create_new(&self.path)?;
            self.file.write_all(&self.begin)?;
            self.length = self.begin.len() as u64;
        }
        self.file.write_all(packets)?;
        self.length += packets.len() as u64;
        Ok(())
    }
}
