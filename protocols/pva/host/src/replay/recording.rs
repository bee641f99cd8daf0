//! The contents of a recording: which PVs it has, of which types, from when to when.

use crate::machines::Value;
use crate::record::{COLUMNS, Row, SUMMARY, Shape, Summary};
use hodo_machine::Bytes;
use hodo_store::Error;
use hodo_store::table::{Batch, Column, TableReader};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A recording that was looked through: a file, or a folder of files.
pub struct Recording {
    path: PathBuf,
    files: Vec<(PathBuf, Identity)>,
    pvs: BTreeMap<String, Recorded>,
    began_ns: i64,
    ended_ns: i64,
    updates: u64,
}

/// A PV of a recording.
pub struct Recorded {
    pub(super) type_text: Bytes,
    pub(super) shape: Arc<Shape>,
    /// The first value.
    pub(crate) first: Value,
    updates: u64,
    /// The number of the first update of another type.
    pub(crate) changes_type_at: Option<u64>,
}

/// A file as it was: device, number, length and time of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64, u64, i64, i64);

impl Identity {
    fn of(file: &Metadata) -> Self {
        Identity(file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())
    }
}

impl Recording {
    /// Looks through a file, or a folder of files: reads the names, types and times of all updates, and the first value of each PV.
    ///
    /// # Errors
    /// A sentence with the file and the reason.
    pub fn open(path: &Path) -> Result<Self, String> {
        let files = files(path)?;
        let mut recording = Recording {
            path: path.to_owned(),
            files: Vec::new(),
            pvs: BTreeMap::new(),
            began_ns: i64::MAX,
            ended_ns: i64::MIN,
            updates: 0,
        };
        for (file, identity) in files {
            recording.look_into(&file)?;
            recording.files.push((file, identity));
        }
        if recording.pvs.is_empty() {
            return Err(format!("{} has no updates", path.display()));
        }
        Ok(recording)
    }

    /// Returns the path of the file or the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of updates.
    #[must_use]
    pub const fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the time from the first to the last update.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.since_begin(self.ended_ns)
    }

    /// Returns the time from the first update to this one.
    pub(super) fn since_begin(&self, arrived_ns: i64) -> Duration {
        Duration::from_nanos(u64::try_from(arrived_ns.saturating_sub(self.began_ns)).unwrap_or(0))
    }

    /// Returns the number of PVs.
    #[must_use]
    pub fn pv_count(&self) -> usize {
        self.pvs.len()
    }

    /// Returns the PVs by their names, in order.
    pub(crate) const fn pvs(&self) -> &BTreeMap<String, Recorded> {
        &self.pvs
    }

    /// Returns the number of files.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns the path of a file.
    pub(super) fn file(&self, at: usize) -> &Path {
        &self.files[at].0
    }

    /// Checks that all files are as they were looked through, and that there are no others.
    ///
    /// # Errors
    /// A sentence with the path.
    pub(crate) fn check_is_unchanged(&self) -> Result<(), String> {
        let is_same = files(&self.path).is_ok_and(|files| files == self.files);
        if is_same { Ok(()) } else { Err(format!("{} has changed since it was looked through", self.path.display())) }
    }

    fn look_into(&mut self, file: &Path) -> Result<(), String> {
        let mut summaries = open(file, SUMMARY)?;
        let mut all = open(file, COLUMNS)?;
        while let Some(batch) = summaries.next_batch().map_err(|why| failed(&why))? {
            let rows: Option<Vec<Summary>> = batch.rows().map(|row| Summary::of(&row)).collect();
            let rows = rows.ok_or_else(|| format!("{}: a row has no PV or no time", file.display()))?;
            if rows.iter().any(|row| row.is_update && !self.pvs.contains_key(name(&row.pv))) {
                let batch = all.next_batch().map_err(|why| failed(&why))?;
                for row in batch.iter().flat_map(Batch::rows).map(Row).filter(Row::is_update) {
                    if !self.pvs.contains_key(row.pv()) {
                        let first = Recorded::new(&row);
                        let first = first.map_err(|why| format!("{}: {}: {why}", file.display(), row.pv()))?;
                        self.pvs.insert(row.pv().to_owned(), first);
                    }
                }
            } else {
                all.skip();
            }
            rows.iter().filter(|row| row.is_update).for_each(|row| self.count(row));
        }
        Ok(())
    }

    fn count(&mut self, row: &Summary) {
        self.began_ns = self.began_ns.min(row.arrived_ns);
        self.ended_ns = self.ended_ns.max(row.arrived_ns);
        self.updates += 1;
        if let Some(recorded) = self.pvs.get_mut(name(&row.pv)) {
            recorded.updates += 1;
            if recorded.type_text != row.type_text {
                recorded.changes_type_at.get_or_insert(recorded.updates);
            }
        }
    }
}

impl Recorded {
    /// Reads the first update of a PV.
    pub(super) fn new(row: &Row<'_>) -> Result<Self, String> {
        let shape = Shape::parse(row.type_text()).ok_or_else(|| format!("{:?} is no type", row.type_text()))?;
        let mut first = Value::new(shape.plan());
        row.fill(&shape, &mut first)?;
        let type_text = Bytes::from(row.type_text().to_owned());
        Ok(Recorded { type_text, shape: Arc::new(shape), first, updates: 0, changes_type_at: None })
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recording { path, files, pvs, updates, .. } = self;
        write!(f, "Recording({}: {} files, {} PVs, {updates} updates)", path.display(), files.len(), pvs.len())
    }
}

/// Opens a file of a recording.
pub(super) fn open(file: &Path, columns: &[Column]) -> Result<TableReader, String> {
    TableReader::open(file, columns).map_err(|why| failed(&why))
}

/// Returns what is wrong with a file, and what that may mean.
pub(super) fn failed(why: &Error) -> String {
    match why {
        Error::Table { .. } => format!("{why}; it is no recording of `hodo pva record`, or was cut off"),
        why => why.to_string(),
    }
}

/// Returns the name of a PV; one that is no UTF-8 is as [`Row::pv`] has it.
fn name(of: &Bytes) -> &str {
    std::str::from_utf8(of).unwrap_or_default()
}

/// Returns the files of a recording, in the order of their names, which is that of their times.
fn files(path: &Path) -> Result<Vec<(PathBuf, Identity)>, String> {
    let cannot = |why: std::io::Error| format!("{} cannot be read: {why}", path.display());
    let identified = |path: PathBuf| {
        let identity = Identity::of(&std::fs::metadata(&path).map_err(cannot)?);
        Ok((path, identity))
    };
    if !path.is_dir() {
        return Ok(vec![identified(path.to_owned())?]);
    }
    let entries = std::fs::read_dir(path).map_err(cannot)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let mut paths: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{} has no files *.parquet", path.display()));
    }
    paths.into_iter().map(identified).collect()
}
