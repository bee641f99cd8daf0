//! Tables that are read back.

use super::batch::{Contents, Filled};
use super::{Batch, Column, failed};
use crate::error::Error;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A Parquet file with certain columns, read batch by batch.
pub struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    columns: Vec<(Column, usize)>,
    next: usize,
}

impl TableReader {
    /// Opens a table. Columns beside those that are named are passed over.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Table`] if it is no Parquet file with these columns.
    pub fn open(path: &Path, columns: &[Column]) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        let file = SerializedFileReader::new(file).map_err(failed(path))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let find = |column: &Column| {
            let wanted = column.path();
            let at = schema.columns().iter().position(|found| found.path().parts() == wanted);
            let missing =
                || Error::Table { path: path.to_owned(), reason: format!("it has no column {}", column.name) };
            at.map(|at| (*column, at)).ok_or_else(missing)
        };
        let columns = columns.iter().map(find).collect::<Result<_, _>>()?;
        Ok(TableReader { path: path.to_owned(), columns, file, next: 0 })
    }

    /// Returns the next batch, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::Table`] if the file is damaged, or a column has another type.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        if self.next >= self.file.num_row_groups() {
            return Ok(None);
        }
        let batch = self.read(self.next).map_err(failed(&self.path))?;
        self.next += 1;
        Ok(Some(batch))
    }

    /// Passes over the next batch.
    pub const fn skip(&mut self) {
        self.next += 1;
    }

    fn read(&self, group: usize) -> Result<Batch, ParquetError> {
        let group = self.file.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut batch = Batch::new(&[]);
        batch.rows = rows;
        for (column, at) in &self.columns {
            let mut filled = Filled::new(column.kind);
            let Filled { contents, definition, repetition, kind } = &mut filled;
            let repetition = kind.is_list().then_some(repetition);
            match (group.get_column_reader(*at)?, contents) {
                (ColumnReader::BoolColumnReader(from), Contents::Bool(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                (ColumnReader::Int32ColumnReader(from), Contents::Int(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                (ColumnReader::Int64ColumnReader(from), Contents::Long(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                (ColumnReader::FloatColumnReader(from), Contents::Float(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                (ColumnReader::DoubleColumnReader(from), Contents::Double(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                (ColumnReader::ByteArrayColumnReader(from), Contents::Text(into)) => {
                    fill(from, rows, into, definition, repetition)?;
                }
                _ => return Err(ParquetError::General(format!("the column {} has another type", column.name))),
            }
            batch.columns.push(filled);
        }
        Ok(batch)
    }
}

/// Reads a column of a row group to its end.
fn fill<T: DataType>(
    mut from: ColumnReaderImpl<T>,
    rows: usize,
    into: &mut Vec<T::T>,
    definition: &mut Vec<i16>,
    mut repetition: Option<&mut Vec<i16>>,
) -> Result<(), ParquetError> {
    let mut left = rows;
    while left > 0 {
        let (records, _, _) = from.read_records(left, Some(definition), repetition.as_deref_mut(), into)?;
        if records == 0 {
            return Err(ParquetError::General("a column ends too early".to_owned()));
        }
        left -= records.min(left);
    }
    Ok(())
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableReader({}, next group {})", self.path.display(), self.next)
    }
}
