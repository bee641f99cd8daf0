//! Prints the rows of a Parquet file, a line of JSON each, without the cells that are empty:
//! `cargo run -p hodo-store --features parquet --example rows -- FILE [COLUMN…]`.
//!
//! It reads by the names and types that the file gives, not by ours. Times are nanoseconds since 1970, bytes are hexadecimal.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let columns: Vec<String> = arguments.collect();
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let schema = reader.metadata().file_metadata().schema();
    let mut fields = schema.get_fields().to_vec();
    fields.retain(|field| columns.is_empty() || columns.iter().any(|column| column == field.name()));
    let chosen = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for row in reader.get_row_iter(Some(chosen))? {
        let row = row?;
        let filled = row.get_column_iter().filter(|(_, field)| !matches!(field, Field::Null));
        let cells: Result<Map<_, _>, String> = filled.map(|(name, field)| Ok((name.clone(), json(field)?))).collect();
        writeln!(out, "{}", Value::Object(cells?))?;
    }
    Ok(out.flush()?)
}

/// Returns the value of a cell, or why there is none: it is of a type that no file of ours has.
fn json(field: &Field) -> Result<Value, String> {
    Ok(match field {
        Field::Bool(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::UByte(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => (*value).into(),
        Field::Float(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(value) => value.clone().into(),
        Field::Bytes(value) => value
            .data()
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
            .into(),
        Field::ListInternal(list) => list.elements().iter().map(json).collect::<Result<_, _>>()?,
        other => return Err(format!("{other:?} is of no type that is printed here")),
    })
}
