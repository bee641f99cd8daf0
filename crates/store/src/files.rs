//! The file operations that a store writes and recovers with: the system's, or a test's that fail.

use crate::scan::Source;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The bytes to whose multiples reads past the system's memory are aligned.
const SECTOR: u64 = 4096;

/// A file system. All paths of one store are in one folder.
pub trait Files: fmt::Debug + Send + Sync {
    /// Makes a folder and those above it, where they are not there.
    ///
    /// # Errors
    /// As the system says.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Opens a file and locks it against every other process, as long as it is open.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Lists the files in a folder, in any order.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Makes a file, or empties the one that is there.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file that is there, to read.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it is not there.
    fn read(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Reads bytes of a file that was synced, as the disk has them and not what the system keeps in memory, where it can tell.
    /// Returns fewer if the file ends.
    ///
    /// # Errors
    /// As the system says.
    fn read_disk(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Opens a file that is there, to read and write.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it is not there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Renames a file, in place of the one that has the new name.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub trait OpenFile: Source + fmt::Debug + Send {
    /// Writes bytes, or some of them.
    ///
    /// # Errors
    /// As the system says.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// As the system says.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As the system says; what was written may then be lost unless it is written again.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Makes what was written durable, and that the file was cut.
    ///
    /// # Errors
    /// As [`OpenFile::sync_data`].
    fn sync_all(&mut self) -> io::Result<()>;

    /// Allows the system to use the memory in which it keeps the bytes before this place for others. The disk has them: a
    /// sync has ended well since they were written.
    ///
    /// Memory that was just in use is much cheaper to write to than memory that the host of a virtual machine has to find
    /// first (5 and 17 to 80 us for 32 KiB), and what is stored is not read soon.
    fn forget(&mut self, _up_to: u64) {}
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Files for System {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        use rustix::fs::{FlockOperation, flock};
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn read_disk(&self, path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        // A file system that cannot do it has nothing else to read from.
        let file = File::options().read(true).custom_flags(direct).open(path).or_else(|_| File::open(path))?;
        let start = range.start - range.start % SECTOR;
        let length = (range.end.next_multiple_of(SECTOR) - start) as usize;
        let mut buffer = vec![0; length + SECTOR as usize];
        let aligned = buffer.as_ptr().align_offset(SECTOR as usize);
        let into = &mut buffer[aligned..aligned + length];
        let mut have = 0;
        while have < length {
            match FileExt::read_at(&file, &mut into[have..], start + have as u64)? {
                0 => break,
                count => have += count,
            }
            if !(have as u64).is_multiple_of(SECTOR) {
                // The end of the file.
                break;
            }
        }
        let skip = ((range.start - start) as usize).min(have);
        Ok(into[skip..have.min((range.end - start) as usize)].to_vec())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::options().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl OpenFile for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn sync_all(&mut self) -> io::Result<()> {
        Self::sync_all(self)
    }

    fn forget(&mut self, up_to: u64) {
        use rustix::fs::{Advice, fadvise};
        // From the start, as a piece of memory that lies across an earlier `up_to` was kept then. No length would be all.
        let Some(length) = NonZeroU64::new(up_to) else { return };
        // Where the system does not take the advice, it keeps the bytes.
        let _ = fadvise(self, 0, Some(length), Advice::DontNeed);
    }
}
