//! Events as Apache Parquet, for those who analyse them.

use crate::error::Error;
use crate::reader::{Item, Reader};
use crate::record::{Record, Verdict};
use crate::recovery::Damage;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The columns.
const SCHEMA: &str = "message event {
    required int32 run (INTEGER(32,false));
    required int64 event (INTEGER(64,false));
    required int32 node (INTEGER(32,false));
    required binary verdict (STRING);
    required int64 time_ns (INTEGER(64,false));
    required int32 attempts (INTEGER(8,false));
    required boolean partial;
    required boolean conflict;
    required binary data;
}";

/// The bytes of data, or the rows, at which a row group ends: that much is held in memory.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 1 << 16;

/// The events to export: by default all that have data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// Only events of this run.
    pub run: Option<u32>,
    /// Only events with this verdict.
    pub verdict: Option<Verdict>,
}

impl Selection {
    fn has(&self, record: &Record<'_>) -> bool {
        self.run.is_none_or(|run| run == record.run) && self.verdict.is_none_or(|verdict| verdict == record.verdict)
    }
}

/// Counts of exported events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events.
    pub events: u64,
    /// Bytes of those events' data.
    pub data_bytes: u64,
    /// Damaged bytes of segments. The events in them are not in the export.
    pub damaged: Vec<Damage>,
}

/// Writes the events of a folder, or of a segment, to a Parquet file, which appears when it is complete.
///
/// # Errors
/// [`Error::Io`] or [`Error::Foreign`] if a segment cannot be read, [`Error::Io`] or [`Error::Export`] if the file cannot be
/// written.
pub fn export(from: &Path, to: &Path, selection: Selection) -> Result<Exported, Error> {
    let mut reader = Reader::open(from)?;
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let done = write(&mut reader, &part, selection).and_then(|exported| {
        fs::rename(&part, to).map_err(Error::io("create", to))?;
        Ok(exported)
    });
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done
}

fn write(reader: &mut Reader, path: &Path, selection: Selection) -> Result<Exported, Error> {
    let failed = |why: ParquetError| Error::Export { path: path.to_owned(), reason: why.to_string() };
    let file = File::create(path).map_err(Error::io("create", path))?;
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
    // Raw data are rarely compressible, and a dictionary of them is of no use.
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled("data".into(), false)
        .set_column_statistics_enabled("data".into(), parquet::file::properties::EnabledStatistics::None)
        .set_created_by(concat!("hodo ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?;
    let mut group = Group::default();
    let mut exported = Exported::default();
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(record) if selection.has(&record) => {
                exported.events += 1;
                exported.data_bytes += record.data.len() as u64;
                group.push(&record);
            }
            Item::Damaged(damage) => exported.damaged.push(damage),
            Item::Event(_) | Item::Verdicts(..) | Item::Torn(_) => {}
        }
        if group.bytes >= GROUP_BYTES || group.runs.len() >= GROUP_ROWS {
            group.write(&mut writer).map_err(failed)?;
        }
    }
    group.write(&mut writer).map_err(failed)?;
    let file = writer.into_inner().map_err(failed)?;
    file.sync_data().map_err(Error::io("sync", path))?;
    Ok(exported)
}

/// Columns of a row group. Parquet has signed integers only, and says that they are meant unsigned.
#[derive(Debug, Default)]
struct Group {
    runs: Vec<i32>,
    events: Vec<i64>,
    nodes: Vec<i32>,
    verdicts: Vec<ByteArray>,
    times: Vec<i64>,
    attempts: Vec<i32>,
    partial: Vec<bool>,
    conflicts: Vec<bool>,
    data: Vec<ByteArray>,
    bytes: usize,
}

impl Group {
    fn push(&mut self, record: &Record<'_>) {
        self.runs.push(record.run.cast_signed());
        self.events.push(record.event.cast_signed());
        self.nodes.push(record.node.cast_signed());
        self.verdicts.push(ByteArray::from(record.verdict.name()));
        self.times.push(record.time_ns.cast_signed());
        self.attempts.push(record.attempts.into());
        self.partial.push(record.partial);
        self.conflicts.push(record.conflict);
        self.data.push(ByteArray::from(record.data.to_vec()));
        self.bytes += record.data.len();
    }

    fn write(&mut self, writer: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let group = std::mem::take(self);
        let mut rows = writer.next_row_group()?;
        for column in 0..9 {
            group.column(column, &mut rows)?;
        }
        rows.close()?;
        Ok(())
    }

    fn column(&self, column: usize, rows: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        let Some(mut writer) = rows.next_column()? else { return Ok(()) };
        match (writer.untyped(), column) {
            (ColumnWriter::Int32ColumnWriter(to), 0) => to.write_batch(&self.runs, None, None)?,
            (ColumnWriter::Int64ColumnWriter(to), 1) => to.write_batch(&self.events, None, None)?,
            (ColumnWriter::Int32ColumnWriter(to), 2) => to.write_batch(&self.nodes, None, None)?,
            (ColumnWriter::ByteArrayColumnWriter(to), 3) => to.write_batch(&self.verdicts, None, None)?,
            (ColumnWriter::Int64ColumnWriter(to), 4) => to.write_batch(&self.times, None, None)?,
            (ColumnWriter::Int32ColumnWriter(to), 5) => to.write_batch(&self.attempts, None, None)?,
            (ColumnWriter::BoolColumnWriter(to), 6) => to.write_batch(&self.partial, None, None)?,
            (ColumnWriter::BoolColumnWriter(to), 7) => to.write_batch(&self.conflicts, None, None)?,
            (ColumnWriter::ByteArrayColumnWriter(to), 8) => to.write_batch(&self.data, None, None)?,
            _ => return Err(ParquetError::General("the columns are not those of the schema".to_owned())),
        };
        writer.close()
    }
}
