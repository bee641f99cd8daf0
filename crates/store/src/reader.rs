//! Reads the segments of a folder, or one segment.

use crate::block::{FileKind, Kind};
use crate::directory;
use crate::error::Error;
use crate::files::System;
use crate::given::Checksums;
use crate::record::{Record, Verdict};
use crate::recovery::{Damage, header_damage};
use crate::scan::{Scan, Step};
use crate::verdicts;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The next thing that a reader finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event with its data, as it was put.
    Event(Record<'a>),
    /// Verdicts of events without data: run, verdict, events; and checksums of some of these events as they were given.
    Verdicts(Vec<(u32, Verdict, Range<u64>)>, Vec<Checksums>),
    /// Damaged bytes; the reader goes on behind them.
    Damaged(Damage),
    /// Bytes at the end of a segment that are no block: a commit that is being written, or was never finished.
    Torn(Damage),
}

/// Reads events in the order in which they were put, and checks every byte. A writer may go on meanwhile.
#[derive(Debug)]
pub struct Reader {
    segments: VecDeque<PathBuf>,
    current: Option<(PathBuf, Scan<File>)>,
}

impl Reader {
    /// Opens all segments of a folder, or one segment.
    ///
    /// # Errors
    /// [`Error::Io`] if the path does not exist, or cannot be listed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let metadata = path.metadata().map_err(Error::io("open", path))?;
        let segments = if metadata.is_dir() {
            directory::segments(&System, path)?.into_iter().map(|(_, path)| path).collect()
        } else {
            VecDeque::from([path.to_owned()])
        };
        Ok(Reader { segments, current: None })
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Foreign`] if it was not written by a store.
    #[allow(clippy::should_implement_trait, reason = "an item borrows the reader, which no Iterator can say")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        loop {
            if self.current.is_none() {
                let Some(path) = self.segments.pop_front() else { return Ok(None) };
                let (scan, damage) = begin(&path)?;
                self.current = Some((path, scan));
                if let Some(damage) = damage {
                    return Ok(Some(Item::Damaged(damage)));
                }
            }
            let Some((path, scan)) = &mut self.current else { continue };
            let Some(step) = scan.next().map_err(Error::io("read", &*path))? else {
                self.current = None;
                continue;
            };
            let damage = |offset, bytes| Damage { path: path.clone(), offset, bytes };
            match step {
                Step::Damage { offset, bytes } => return Ok(Some(Item::Damaged(damage(offset, bytes)))),
                Step::Torn { offset, bytes } => return Ok(Some(Item::Torn(damage(offset, bytes)))),
                Step::Block { header, .. } if header.kind == Kind::Event => {
                    let (_, scan) = self.current.as_ref().expect("it was there above");
                    return Ok(header.record(scan.data()).map(Item::Event));
                }
                Step::Block { header, .. } if header.kind == Kind::Commit => {
                    let (mut all, mut given) = (Vec::new(), Vec::new());
                    let each = |run, verdict, range| all.push((run, verdict, range));
                    // Data whose checksum is right were written so by a store.
                    let each_given = |run, _, first, sums: &[_]| given.push(Checksums::read(run, first, sums));
                    let _ = verdicts::decode_all(scan.data(), each, each_given);
                    if !all.is_empty() {
                        return Ok(Some(Item::Verdicts(all, given)));
                    }
                }
                Step::Block { .. } => {}
            }
        }
    }
}

/// Returns a scan behind the file's header, and the damage of that header.
pub fn begin(path: &Path) -> Result<(Scan<File>, Option<Damage>), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let named = directory::number(path);
    let mut scan = Scan::new(file, named.unwrap_or(0)).map_err(Error::io("read", path))?;
    let header = scan.file_header(FileKind::Segment).map_err(Error::io("read", path))?;
    let damage = match (header, named) {
        (None, _) => None,
        (Some(Ok(number)), None) => {
            scan.set_segment(number);
            None
        }
        (Some(Err(_)), None) => {
            return Err(Error::Foreign { path: path.to_owned(), found: "it does not begin as one".to_owned() });
        }
        (Some(header), Some(number)) => header_damage(path, number, header)?,
    };
    Ok((scan, damage))
}
