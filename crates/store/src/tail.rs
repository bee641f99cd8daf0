//! The end of a file that grows: what is written survives an error and is continued, never repeated.

use crate::error::Error;
use crate::files::{Files, OpenFile};
use crate::store::Durability;
use std::path::PathBuf;

/// Bytes that go to the end of a file.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// Opened when the first bytes are written.
    file: Option<Box<dyn OpenFile>>,
    /// Where `bytes` begin in the file; all before is durable.
    start: u64,
    bytes: Vec<u8>,
    /// How many of `bytes` are in the file.
    written: usize,
}

impl Tail {
    /// A file that does not exist yet.
    pub fn create(path: PathBuf) -> Self {
        Tail { path, file: None, start: 0, bytes: Vec::new(), written: 0 }
    }

    /// An open file whose length is `start`.
    pub fn resume(path: PathBuf, file: Box<dyn OpenFile>, start: u64) -> Self {
        Tail { path, file: Some(file), start, bytes: Vec::new(), written: 0 }
    }

    /// Where the next byte goes.
    pub fn offset(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// What waits to be written; append to it.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How much waits.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Takes over an empty buffer with its capacity.
    pub fn with_buffer(mut self, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        self.bytes = bytes;
        self
    }

    /// Makes all that waits durable. After an error it can be called again: it goes on where it stopped.
    pub fn flush(&mut self, files: &dyn Files, durability: Durability) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = files.create(&self.path).map_err(Error::io("create", &self.path))?;
                if durability == Durability::Disk {
                    crate::directory::sync(files, &self.path)?;
                }
                none.insert(file)
            }
        };
        while self.written < self.bytes.len() {
            let place = self.start + self.written as u64;
            match file.write_at(&self.bytes[self.written..], place) {
                Ok(0) => return Err(Error::io("write to", &self.path)(std::io::ErrorKind::WriteZero.into())),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("write to", &self.path)(error)),
            }
        }
        if durability == Durability::Disk
            && let Err(error) = file.sync_data()
        {
            // The kernel may have dropped what it could not write: only writing it again makes the next sync honest.
            self.written = 0;
            return Err(Error::io("sync", &self.path)(error));
        }
        self.start += self.bytes.len() as u64;
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }

    /// The empty buffer, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}
