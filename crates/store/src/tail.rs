//! The end of a growing file. Writing continues after an error where it stopped; nothing is written twice.

use crate::error::Error;
use crate::files::{Files, OpenFile};
use crate::settle;
use crate::store::Durability;
use std::path::PathBuf;

/// Bytes on their way to the end of a file.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// Opened when the first bytes are written.
    file: Option<Box<dyn OpenFile>>,
    /// The place of `bytes` in the file; everything before is durable.
    start: u64,
    bytes: Vec<u8>,
    /// The number of `bytes` that are in the file.
    written: usize,
    /// A sync has failed: the file is made anew, as nothing that is written to this one can be trusted.
    in_doubt: bool,
}

impl Tail {
    /// Returns the tail of a file that does not exist yet.
    pub fn create(path: PathBuf) -> Self {
        Tail { path, file: None, start: 0, bytes: Vec::new(), written: 0, in_doubt: false }
    }

    /// Returns the tail of an open file whose length is `start`.
    pub fn resume(path: PathBuf, file: Box<dyn OpenFile>, start: u64) -> Self {
        Tail { path, file: Some(file), start, bytes: Vec::new(), written: 0, in_doubt: false }
    }

    /// Returns the place of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Goes on in the file that has replaced the one before, and has everything up to [`Tail::written`].
    pub fn replace(&mut self, file: Box<dyn OpenFile>) {
        (self.file, self.written, self.in_doubt) = (Some(file), 0, false);
    }

    /// Returns the place up to which everything is written.
    pub fn written(&self) -> u64 {
        self.start
    }

    /// Returns the bytes to be written, for more to be appended.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of bytes to be written.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Takes over a buffer, for its capacity.
    pub fn with_buffer(mut self, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        self.bytes = bytes;
        self
    }

    /// Makes all bytes durable. After an error it can be called again: it goes on where it stopped.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be created, written or synced.
    pub fn flush(&mut self, files: &dyn Files, durability: Durability) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        if self.in_doubt {
            self.file = Some(settle::remake(files, &self.path, self.start, &self.bytes)?);
            (self.in_doubt, self.written) = (false, self.bytes.len());
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
        let end = self.start + self.bytes.len() as u64;
        if durability == Durability::Disk {
            if let Err(error) = file.sync_data() {
                self.in_doubt = true;
                return Err(Error::io("sync", &self.path)(error));
            }
            file.forget(end);
        }
        self.start = end;
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }

    /// Returns the open file, and the empty buffer to be used again.
    pub fn into_parts(self) -> (Option<Box<dyn OpenFile>>, Vec<u8>) {
        (self.file, self.bytes)
    }
}
