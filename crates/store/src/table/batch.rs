//! Rows in memory, column by column.

use super::{Column, Kind};
use hodo_machine::Bytes;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use std::borrow::Cow;
use std::io::Write;

/// The content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Empty,
    /// True or false.
    Bool(bool),
    /// A signed number of 32 bits.
    Int(i32),
    /// A signed number of 64 bits, or a time.
    Long(i64),
    /// An unsigned number of 64 bits.
    Ulong(u64),
    /// A floating-point number.
    Double(f64),
    /// A text in UTF-8.
    Text(Bytes),
    /// A list of bools.
    Bools(Cow<'a, [bool]>),
    /// A list of signed numbers of 32 bits.
    Ints(Cow<'a, [i32]>),
    /// A list of signed numbers of 64 bits.
    Longs(Cow<'a, [i64]>),
    /// A list of unsigned numbers of 64 bits.
    Ulongs(Cow<'a, [u64]>),
    /// A list of floating-point numbers of 32 bits.
    Floats(Cow<'a, [f32]>),
    /// A list of floating-point numbers of 64 bits.
    Doubles(Cow<'a, [f64]>),
    /// A list of texts.
    Texts(Vec<Bytes>),
}

/// Rows that are written together.
#[derive(Debug)]
pub struct Batch {
    pub(super) columns: Vec<Filled>,
    pub(super) rows: usize,
    bytes: usize,
}

/// The cells of a column, as Parquet has them: the contents in a row, and for each cell or element a level that says whether there is one.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) kind: Kind,
    pub(super) contents: Contents,
    pub(super) definition: Vec<i16>,
    pub(super) repetition: Vec<i16>,
}

#[derive(Debug)]
pub(super) enum Contents {
    Bool(Vec<bool>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Filled {
    pub(super) const fn new(kind: Kind) -> Self {
        let contents = match kind {
            Kind::Bool | Kind::Bools => Contents::Bool(Vec::new()),
            Kind::Int | Kind::Ints => Contents::Int(Vec::new()),
            Kind::Long | Kind::Longs | Kind::Ulong | Kind::Ulongs | Kind::Time => Contents::Long(Vec::new()),
            Kind::Floats => Contents::Float(Vec::new()),
            Kind::Double | Kind::Doubles => Contents::Double(Vec::new()),
            Kind::Text | Kind::Texts => Contents::Text(Vec::new()),
        };
        Filled { kind, contents, definition: Vec::new(), repetition: Vec::new() }
    }

    /// Appends a cell; returns the bytes that it takes.
    fn push(&mut self, cell: &Cell<'_>) -> usize {
        let Filled { kind, contents, .. } = self;
        let (count, bytes) = match (cell, contents) {
            (Cell::Empty, _) => {
                self.note(None);
                return 2;
            }
            (Cell::Bool(value), Contents::Bool(into)) => (extend(into, &[*value]), 1),
            (Cell::Int(value), Contents::Int(into)) => (extend(into, &[*value]), 4),
            (Cell::Long(value), Contents::Long(into)) => (extend(into, &[*value]), 8),
            (Cell::Ulong(value), Contents::Long(into)) => (extend(into, &[value.cast_signed()]), 8),
            (Cell::Double(value), Contents::Double(into)) => (extend(into, &[*value]), 8),
            (Cell::Text(value), Contents::Text(into)) => (extend(into, &[ByteArray::from(value.clone())]), value.len()),
            (Cell::Bools(list), Contents::Bool(into)) => (extend(into, list), list.len()),
            (Cell::Ints(list), Contents::Int(into)) => (extend(into, list), 4 * list.len()),
            (Cell::Longs(list), Contents::Long(into)) => (extend(into, list), 8 * list.len()),
            (Cell::Ulongs(list), Contents::Long(into)) => {
                into.extend(list.iter().map(|value| value.cast_signed()));
                (list.len(), 8 * list.len())
            }
            (Cell::Floats(list), Contents::Float(into)) => (extend(into, list), 4 * list.len()),
            (Cell::Doubles(list), Contents::Double(into)) => (extend(into, list), 8 * list.len()),
            (Cell::Texts(list), Contents::Text(into)) => {
                into.extend(list.iter().map(|text| ByteArray::from(text.clone())));
                (list.len(), list.iter().map(|text| text.len() + size_of::<ByteArray>()).sum())
            }
            (cell, _) => unreachable!("a column of {kind:?} gets {cell:?}"),
        };
        self.note(Some(count));
        bytes + 4 * count.max(1)
    }

    /// Notes the levels of a cell with this many elements.
    fn note(&mut self, count: Option<usize>) {
        if !self.kind.is_list() {
            return self.definition.push(i16::from(count.is_some()));
        }
        match count {
            None | Some(0) => {
                self.definition.push(i16::from(count.is_some()));
                self.repetition.push(0);
            }
            Some(count) => {
                self.definition.resize(self.definition.len() + count, 2);
                self.repetition.push(0);
                self.repetition.resize(self.repetition.len() + count - 1, 1);
            }
        }
    }
}

fn extend<T: Clone>(into: &mut Vec<T>, values: &[T]) -> usize {
    into.extend_from_slice(values);
    values.len()
}

impl Batch {
    /// Creates a batch without rows.
    #[must_use]
    pub fn new(columns: &[Column]) -> Self {
        Batch { columns: columns.iter().map(|column| Filled::new(column.kind)).collect(), rows: 0, bytes: 0 }
    }

    /// Appends a row: a cell for each column, of its kind.
    pub fn push(&mut self, row: &[Cell<'_>]) {
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        for (column, cell) in self.columns.iter_mut().zip(row) {
            self.bytes += column.push(cell);
        }
        self.rows += 1;
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Tells whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns about how many bytes of memory the rows take.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Iterates over the rows.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        Rows { batch: self, left: self.rows, places: vec![(0, 0); self.columns.len()] }
    }

    pub(super) fn encode<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        for column in &self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            let (definition, repetition) = (Some(&*column.definition), Some(&*column.repetition));
            let repetition = repetition.filter(|_| column.kind.is_list());
            match (writer.untyped(), &column.contents) {
                (ColumnWriter::BoolColumnWriter(to), Contents::Bool(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                (ColumnWriter::Int32ColumnWriter(to), Contents::Int(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                (ColumnWriter::Int64ColumnWriter(to), Contents::Long(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                (ColumnWriter::FloatColumnWriter(to), Contents::Float(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                (ColumnWriter::DoubleColumnWriter(to), Contents::Double(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                (ColumnWriter::ByteArrayColumnWriter(to), Contents::Text(from)) => {
                    to.write_batch(from, definition, repetition)?
                }
                _ => return Err(ParquetError::General("the columns are not those of the schema".to_owned())),
            };
            writer.close()?;
        }
        Ok(())
    }
}

/// An iterator over the rows of a batch.
#[derive(Debug)]
pub struct Rows<'a> {
    batch: &'a Batch,
    left: usize,
    /// For each column, the next level and the next content.
    places: Vec<(usize, usize)>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Vec<Cell<'a>>;

    fn next(&mut self) -> Option<Vec<Cell<'a>>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.batch.columns.iter().zip(&mut self.places).map(|(column, place)| column.cell(place)).collect())
    }
}

impl Filled {
    /// Returns the next cell. A file that contradicts itself has empty ones.
    fn cell(&self, (level, content): &mut (usize, usize)) -> Cell<'_> {
        let defined = self.definition.get(*level).copied().unwrap_or(0);
        *level += 1;
        if defined == 0 {
            return Cell::Empty;
        }
        let mut count = 1;
        if self.kind.is_list() {
            let more = self.repetition.get(*level..).unwrap_or_default();
            let more = more.iter().take_while(|repetition| **repetition > 0).count();
            *level += more;
            count = if defined == 2 { 1 + more } else { 0 };
        }
        let range = *content..*content + count;
        *content += count;
        match &self.contents {
            Contents::Bool(all) => of(self.kind, all.get(range), |value| Cell::Bool(*value), Cell::Bools),
            Contents::Int(all) => of(self.kind, all.get(range), |value| Cell::Int(*value), Cell::Ints),
            Contents::Float(all) => of(self.kind, all.get(range), |value| Cell::Double((*value).into()), Cell::Floats),
            Contents::Double(all) => of(self.kind, all.get(range), |value| Cell::Double(*value), Cell::Doubles),
            Contents::Long(all) if matches!(self.kind, Kind::Ulong | Kind::Ulongs) => {
                let list =
                    |list: Cow<'_, [i64]>| Cell::Ulongs(list.iter().map(|value| value.cast_unsigned()).collect());
                of(self.kind, all.get(range), |value| Cell::Ulong(value.cast_unsigned()), list)
            }
            Contents::Long(all) => of(self.kind, all.get(range), |value| Cell::Long(*value), Cell::Longs),
            Contents::Text(all) => {
                let text = |text: &ByteArray| Bytes::copy_from_slice(text.data());
                let list = |list: Cow<'_, [ByteArray]>| Cell::Texts(list.iter().map(text).collect());
                of(self.kind, all.get(range), |value| Cell::Text(text(value)), list)
            }
        }
    }
}

/// Returns a cell with the only content, or with the list of them.
fn of<'a, T: Clone>(
    kind: Kind,
    contents: Option<&'a [T]>,
    one: impl Fn(&T) -> Cell<'a>,
    list: impl Fn(Cow<'a, [T]>) -> Cell<'a>,
) -> Cell<'a> {
    match contents {
        Some(contents) if kind.is_list() => list(Cow::Borrowed(contents)),
        Some([content, ..]) => one(content),
        _ => Cell::Empty,
    }
}
