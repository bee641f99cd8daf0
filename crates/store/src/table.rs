//! Tables as Apache Parquet that grow, and that can be read between any two batches.
//!
//! After each batch the file ends in a footer, which the next batch overwrites. The part behind the present end of the file is written
//! first: if the disk is full, that part is cut off again, and the file is as it was.

mod batch;
mod reader;

use crate::error::Error;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use batch::{Batch, Cell, Rows};
pub use reader::TableReader;

/// A column of a table. Any cell may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type of its cells.
    pub kind: Kind,
    /// Whether values are expected to occur again and again: they are written once then, with numbers in their place.
    pub repeats: bool,
}

/// A type of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A signed number of 32 bits.
    Int,
    /// A signed number of 64 bits.
    Long,
    /// An unsigned number of 64 bits.
    Ulong,
    /// A floating-point number of 64 bits.
    Double,
    /// A text.
    Text,
    /// A time in nanoseconds since 1970, UTC.
    Time,
    /// A list of bools.
    Bools,
    /// A list of signed numbers of 32 bits.
    Ints,
    /// A list of signed numbers of 64 bits.
    Longs,
    /// A list of unsigned numbers of 64 bits.
    Ulongs,
    /// A list of floating-point numbers of 32 bits.
    Floats,
    /// A list of floating-point numbers of 64 bits.
    Doubles,
    /// A list of texts.
    Texts,
}

impl Kind {
    /// Returns the Parquet type of a cell or of its elements, with its annotation.
    const fn physical(self) -> (&'static str, &'static str) {
        match self {
            Kind::Bool | Kind::Bools => ("boolean", ""),
            Kind::Int | Kind::Ints => ("int32", ""),
            Kind::Long | Kind::Longs => ("int64", ""),
            Kind::Ulong | Kind::Ulongs => ("int64", " (INTEGER(64,false))"),
            Kind::Floats => ("float", ""),
            Kind::Double | Kind::Doubles => ("double", ""),
            Kind::Text | Kind::Texts => ("binary", " (STRING)"),
            Kind::Time => ("int64", " (TIMESTAMP(NANOS,true))"),
        }
    }

    const fn is_list(self) -> bool {
        use Kind::{Bools, Doubles, Floats, Ints, Longs, Texts, Ulongs};
        matches!(self, Bools | Ints | Longs | Ulongs | Floats | Doubles | Texts)
    }
}

impl Column {
    fn schema(&self) -> String {
        let (name, (physical, annotation)) = (self.name, self.kind.physical());
        if self.kind.is_list() {
            format!(
                "optional group {name} (LIST) {{ repeated group list {{ required {physical} element{annotation}; }} }}\n"
            )
        } else {
            format!("optional {physical} {name}{annotation};\n")
        }
    }

    fn path(&self) -> Vec<String> {
        let parts: &[&str] = if self.kind.is_list() { &[self.name, "list", "element"] } else { &[self.name] };
        parts.iter().map(|&part| part.into()).collect()
    }
}

/// A Parquet file that grows by batches.
pub struct TableWriter {
    path: PathBuf,
    file: File,
    columns: &'static [Column],
    encoder: SerializedFileWriter<Sink>,
    encoded: Sink,
    /// Row groups that the disk does not have yet.
    pending: Vec<u8>,
    /// The footer that the file ends in.
    footer: Vec<u8>,
    /// The length of the file with that footer.
    length: u64,
    groups: usize,
    rows: i64,
}

impl TableWriter {
    /// Creates a table without rows. A file that exists is left alone.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists or cannot be made, [`Error::Table`] for columns that Parquet does not take.
    pub fn create(path: &Path, columns: &'static [Column]) -> Result<Self, Error> {
        let failed = failed(path);
        let fields: String = columns.iter().map(Column::schema).collect();
        let schema = parse_message_type(&format!("message row {{ {fields} }}")).map_err(&failed)?;
        let encoded = Sink::default();
        let encoder = SerializedFileWriter::new(encoded.clone(), Arc::new(schema), Arc::new(properties(columns)))
            .map_err(failed)?;
        let file = File::options().write(true).create_new(true).open(path).map_err(Error::io("create", path))?;
        let mut writer = TableWriter {
            path: path.to_owned(),
            file,
            columns,
            encoder,
            encoded,
            pending: Vec::new(),
            footer: Vec::new(),
            length: 0,
            groups: 0,
            rows: 0,
        };
        writer.commit().inspect_err(|_| _ = std::fs::remove_file(path))?;
        Ok(writer)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of batches in the file.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Writes a batch. After an error of the system the file is as it was, and the batch is kept: call [`TableWriter::commit`] again.
    ///
    /// # Errors
    /// [`Error::Io`] if the disk does not take it, [`Error::Table`] if it cannot be encoded.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        let failed = failed(&self.path);
        let mut group = self.encoder.next_row_group().map_err(&failed)?;
        batch.encode(&mut group).map_err(&failed)?;
        group.close().map_err(failed)?;
        self.groups += 1;
        self.rows += batch.len() as i64;
        self.commit()
    }

    /// Writes what the disk has not taken yet, and returns once it is durable.
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn commit(&mut self) -> Result<(), Error> {
        self.encoder.flush().map_err(Error::io("encode", &self.path))?;
        self.pending.append(&mut self.encoded.bytes());
        let footer = self.encode_footer()?;
        let start = self.length - self.footer.len() as u64;
        let body = self.pending.len();
        self.pending.extend_from_slice(&footer);
        let written = self.put(start);
        let end = start + self.pending.len() as u64;
        self.pending.truncate(body);
        written.map_err(Error::io("write to", &self.path))?;
        self.pending.clear();
        (self.footer, self.length) = (footer, end);
        Ok(())
    }

    /// Writes the pending bytes in place of the footer: first those behind the end of the file.
    fn put(&self, start: u64) -> io::Result<()> {
        let over = self.footer.len().min(self.pending.len());
        let behind = self.file.write_all_at(&self.pending[over..], self.length);
        if behind.is_err() {
            self.file.set_len(self.length)?;
            return behind;
        }
        let written = self.file.write_all_at(&self.pending[..over], start);
        if written.is_err() {
            // Only where the file system needs room to overwrite.
            self.file.write_all_at(&self.footer, start)?;
            self.file.set_len(self.length)?;
            return written;
        }
        self.file.sync_data()
    }

    fn encode_footer(&self) -> Result<Vec<u8>, Error> {
        let schema = Arc::new(self.encoder.schema_descr().clone());
        let file = FileMetaData::new(1, self.rows, Some(created_by()), None, schema, None);
        let metadata = ParquetMetaData::new(file, self.encoder.flushed_row_groups().to_vec());
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata).finish().map_err(failed(&self.path))?;
        Ok(footer)
    }
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableWriter { path, columns, length, groups, rows, .. } = self;
        let columns = columns.len();
        write!(f, "TableWriter({}: {columns} columns, {rows} rows, {groups} groups, {length} bytes)", path.display())
    }
}

fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let path = path.to_owned();
    move |why| Error::Table { path: path.clone(), reason: why.to_string() }
}

fn created_by() -> String {
    concat!("hodo ", env!("CARGO_PKG_VERSION")).to_owned()
}

fn properties(columns: &[Column]) -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by(created_by());
    let dictionary = |builder: parquet::file::properties::WriterPropertiesBuilder, column: &Column| {
        builder.set_column_dictionary_enabled(ColumnPath::new(column.path()), column.repeats)
    };
    columns.iter().fold(builder, dictionary).build()
}

/// The memory into which row groups are encoded.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
