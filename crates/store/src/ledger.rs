//! The ledger: the verdicts of all closed segments in one file, so that segments can be taken away.
//!
//! A file header, then a block for each closed segment, or for several after the file was written anew.

use crate::block::{self, FILE_HEADER, FileKind, Header, HeaderFault, Kind, encode_file_header};
use crate::error::Error;
use crate::files::Files;
use crate::scan::{Scan, Step};
use crate::settle::{remake, rescue, settle};
use crate::store::Durability;
use crate::tail::Tail;
use crate::verdicts::{self, Verdicts};
use std::path::{Path, PathBuf};

/// The number of blocks up to which a ledger is never written anew.
const BLOCKS_MAX: u64 = 16;

/// The contents of a ledger's file.
#[derive(Debug, Default)]
pub struct Contents {
    pub verdicts: Verdicts,
    /// The last segment in the ledger; 0 for none.
    pub last: u64,
    /// The last segment in the ledger before it was damaged.
    pub reached: u64,
    pub blocks: u64,
    pub length: u64,
    /// Whether everything is as it was written, up to the end.
    pub whole: bool,
}

/// Reads a ledger up to the first damage; `None` if there is no file.
pub fn read(files: &dyn Files, path: &Path) -> Result<Option<Contents>, Error> {
    let file = match files.read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let mut scan = Scan::new(file, 0).map_err(Error::io("read", path))?;
    let mut contents = Contents { length: scan.length(), ..Contents::default() };
    match scan.file_header(FileKind::Ledger).map_err(Error::io("read", path))? {
        Some(Ok(_)) => {}
        Some(Err(HeaderFault::Version(version))) => {
            return Err(Error::Foreign { path: path.to_owned(), found: format!("version {version}") });
        }
        // It was being begun when the power went: no block was ever in it.
        Some(Err(_)) | None if contents.length <= FILE_HEADER as u64 => return Ok(None),
        Some(Err(_)) | None => return Ok(Some(contents)),
    }
    contents.whole = true;
    while let Some(step) = scan.next().map_err(Error::io("read", path))? {
        let Step::Block { header: Header { kind: Kind::Ledger, a: first, b: last, .. }, .. } = step else {
            contents.whole = false;
            continue;
        };
        contents.reached = contents.reached.max(last);
        contents.whole &= first == contents.last + 1 && last >= first;
        if contents.whole {
            contents.whole = verdicts::decode_into(scan.data(), &mut contents.verdicts).is_some();
            contents.last = last;
            contents.blocks += 1;
        }
    }
    Ok(Some(contents))
}

/// An open ledger.
#[derive(Debug)]
pub struct Ledger {
    tail: Tail,
    last: u64,
}

impl Ledger {
    /// Goes on behind these contents, or first writes the file anew, if it is damaged or much longer than it need be.
    pub fn resume(files: &dyn Files, path: PathBuf, contents: &Contents) -> Result<Self, Error> {
        if contents.length == 0 {
            return Ok(Ledger { tail: begun(path), last: 0 });
        }
        let mut length = contents.length;
        if !contents.whole || contents.blocks > BLOCKS_MAX {
            let bytes = whole_file(contents);
            if !contents.whole || bytes.len() as u64 * 2 < length {
                remake(files, &path, 0, &bytes)?;
                length = bytes.len() as u64;
            }
        }
        settle(files, &path, 0..length)?;
        let file = files.open(&path).map_err(Error::io("open", &path))?;
        Ok(Ledger { tail: Tail::resume(path, file, length), last: contents.last })
    }

    /// Adds the verdicts of a segment that the disk has; [`Ledger::flush`] makes them durable.
    pub fn append(&mut self, segment: u64, verdicts: &Verdicts, durability: Durability) {
        let mut data = Vec::new();
        verdicts::encode_all(verdicts, &mut data);
        let offset = self.tail.offset();
        if durability == Durability::Disk {
            block::fill_page(&mut data, offset);
        }
        let header = Header::new(Kind::Ledger, self.last + 1, segment, &data);
        block::append(self.tail.bytes(), &header, &data, 0, offset);
        self.last = segment;
    }

    /// Makes the ledger anew after a sync has failed.
    pub fn rescue(&mut self, files: &dyn Files, path: &Path) -> Result<(), Error> {
        if self.tail.written() > 0 {
            self.tail.replace(rescue(files, path, 0, 0..self.tail.written())?);
        }
        Ok(())
    }

    /// Makes the ledger durable; can be called again after an error.
    pub fn flush(&mut self, files: &dyn Files, durability: Durability) -> Result<(), Error> {
        self.tail.flush(files, durability)
    }
}

fn begun(path: PathBuf) -> Tail {
    let mut tail = Tail::create(path);
    tail.bytes().extend_from_slice(&encode_file_header(FileKind::Ledger, 0));
    tail
}

/// Returns a file with everything in one block.
fn whole_file(contents: &Contents) -> Vec<u8> {
    let mut bytes = encode_file_header(FileKind::Ledger, 0).to_vec();
    if contents.last > 0 {
        let mut data = Vec::new();
        verdicts::encode_all(&contents.verdicts, &mut data);
        let header = Header::new(Kind::Ledger, 1, contents.last, &data);
        block::append(&mut bytes, &header, &data, 0, FILE_HEADER as u64);
    }
    bytes
}
