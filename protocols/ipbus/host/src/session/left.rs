//! The next id that a user's last session left a device with, for the next one.
//!
//! Where a device still has it, nobody else has numbered packets for the device since, so that all packets can have ids.

use hodo_io::files;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bytes of a number.
const MOST: u64 = 16;

/// The file that keeps the id of one device.
pub(super) struct Left(PathBuf);

impl Left {
    /// Finds the file; without a folder for it there is none, and packets have ids where nobody's ever had.
    pub(super) fn of(device: SocketAddr) -> Option<Left> {
        let (ip, port) = (device.ip().to_canonical(), device.port());
        hodo_io::runtime::folder().ok().map(|folder| Left(folder.join(format!("ipbus_{ip}_{port}.next"))))
    }

    /// Returns the id, if there is one.
    pub(super) fn read(&self) -> Option<u16> {
        let bytes = files::open(&self.0).and_then(|file| files::read_from(file, MOST)).ok()?;
        String::from_utf8(bytes).ok()?.trim().parse().ok()
    }

    /// Writes the id, or removes it where none is known. What cannot be kept is not known to the next session, which goes on without it.
    pub(super) fn write(&self, id: Option<u16>) {
        let _ = match id {
            Some(id) => {
                let new = self.0.with_extension(std::process::id().to_string());
                std::fs::write(&new, format!("{id}\n")).and_then(|()| std::fs::rename(new, &self.0))
            }
            None => std::fs::remove_file(&self.0),
        };
    }
}
