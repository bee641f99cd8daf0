//! The rows of a recording.
//!
//! | column | content |
//! |---|---|
//! | `arrived` | when the update was taken, UTC |
//! | `pv` | the name |
//! | `event` | `update`, `connected`, `lost` or `ended` |
//! | `stamp`, `user_tag` | the time stamp |
//! | `severity`, `status`, `message` | the alarm; the server or the reason, where nothing is updated |
//! | `boolean` … `string`, `booleans` … `strings` | the value, in the column of its type; a choice as number and text |
//! | `json` | structures whole; otherwise fields that have no column, where they changed |
//! | `changed`, `overrun` | the fields that were sent, and those of which earlier updates were lost |
//! | `type` | the type |

use super::Shape;
use crate::machines::normative::{Alarm, TimeStamp};
use crate::machines::{Array, Datum, Item, Scalar, Type, Value};
use hodo_machine::Bytes;
use hodo_store::table::{Cell, Column, Kind};
use std::borrow::Cow;

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, repeats: false }
}

const fn repeated(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, repeats: true }
}

/// The columns.
pub(crate) const COLUMNS: &[Column] = &[
    column("arrived", Kind::Time),
    repeated("pv", Kind::Text),
    repeated("event", Kind::Text),
    column("stamp", Kind::Time),
    repeated("user_tag", Kind::Int),
    repeated("severity", Kind::Int),
    repeated("status", Kind::Int),
    repeated("message", Kind::Text),
    column("boolean", Kind::Bool),
    column("long", Kind::Long),
    column("ulong", Kind::Ulong),
    column("double", Kind::Double),
    repeated("string", Kind::Text),
    column("booleans", Kind::Bools),
    repeated("ints", Kind::Ints),
    column("longs", Kind::Longs),
    column("ulongs", Kind::Ulongs),
    column("floats", Kind::Floats),
    column("doubles", Kind::Doubles),
    repeated("strings", Kind::Texts),
    column("json", Kind::Text),
    repeated("changed", Kind::Text),
    repeated("overrun", Kind::Text),
    repeated("type", Kind::Text),
];

const ARRIVED: usize = 0;
const PV: usize = 1;
const EVENT: usize = 2;
const STAMP: usize = 3;
const USER_TAG: usize = 4;
const SEVERITY: usize = 5;
const STATUS: usize = 6;
const MESSAGE: usize = 7;
const BOOLEAN: usize = 8;
const LONG: usize = 9;
const ULONG: usize = 10;
const DOUBLE: usize = 11;
const STRING: usize = 12;
const BOOLEANS: usize = 13;
const INTS: usize = 14;
const LONGS: usize = 15;
const ULONGS: usize = 16;
const FLOATS: usize = 17;
const DOUBLES: usize = 18;
const STRINGS: usize = 19;
const JSON: usize = 20;
const CHANGED: usize = 21;
const OVERRUN: usize = 22;
const TYPE: usize = 23;
const WIDTH: usize = 24;

/// The columns that say which PVs there are, of which types and when.
pub(crate) const SUMMARY: &[Column] = &[COLUMNS[ARRIVED], COLUMNS[PV], COLUMNS[EVENT], COLUMNS[TYPE]];

const SECOND_NS: i64 = 1_000_000_000;

hodo_machine::codes! {
    /// A kind of row.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Event: u8 {
        /// An update of a monitor.
        Update = 0 => "update",
        /// The channel was opened.
        Connected = 1 => "connected",
        /// The channel was lost: updates until the next one are missing.
        Lost = 2 => "lost",
        /// The server has ended or refused the monitor.
        Ended = 3 => "ended",
    }
}

fn empty<'a>(arrived_ns: u64, pv: &Bytes, event: Event) -> [Cell<'a>; WIDTH] {
    let mut row = [const { Cell::Empty }; WIDTH];
    row[ARRIVED] = Cell::Long(arrived_ns as i64);
    row[PV] = Cell::Text(pv.clone());
    row[EVENT] = Cell::Text(Bytes::from_static(event.name().as_bytes()));
    row
}

/// Returns the row of an event.
pub(super) fn of_event(arrived_ns: u64, pv: &Bytes, event: Event, message: Bytes) -> [Cell<'static>; WIDTH] {
    let mut row = empty(arrived_ns, pv, event);
    row[MESSAGE] = Cell::Text(message);
    row
}

/// Returns the row of an update.
pub(super) fn of_update<'a>(
    arrived_ns: u64,
    pv: &Bytes,
    shape: &Shape,
    value: &'a Value,
    changed: Bytes,
    overrun: Bytes,
) -> [Cell<'a>; WIDTH] {
    let mut row = empty(arrived_ns, pv, Event::Update);
    if let Some(TimeStamp { seconds, nanoseconds, user_tag }) = value.time_stamp().filter(|_| shape.has_stamp) {
        row[STAMP] = Cell::Long(seconds.saturating_mul(SECOND_NS).saturating_add(nanoseconds.into()));
        row[USER_TAG] = Cell::Int(user_tag);
    }
    if let Some(Alarm { severity, status, message }) = value.alarm().filter(|_| shape.has_alarm) {
        (row[SEVERITY], row[STATUS]) = (Cell::Int(severity), Cell::Int(status));
        row[MESSAGE] = Cell::Text(Bytes::from(message));
    }
    if let Some(number) = shape.value {
        set_native(&mut row, value, number);
    } else if shape.is_choice {
        let index = value.get("value.index").and_then(Item::as_i64);
        let choices = value.get("value.choices").and_then(Item::as_array).and_then(Array::iter_texts);
        row[LONG] = index.map_or(Cell::Empty, Cell::Long);
        let chosen = index.and_then(|index| choices?.nth(usize::try_from(index).ok()?));
        row[STRING] = chosen.map_or(Cell::Empty, |text| Cell::Text(utf8(text)));
    }
    row[JSON] = shape.json(value).map_or(Cell::Empty, |json| Cell::Text(Bytes::from(json)));
    row[CHANGED] = Cell::Text(changed);
    row[OVERRUN] = if overrun.is_empty() { Cell::Empty } else { Cell::Text(overrun) };
    row[TYPE] = Cell::Text(shape.text.clone());
    row
}

fn set_native<'a>(row: &mut [Cell<'a>; WIDTH], value: &'a Value, number: usize) {
    match value.at(number) {
        Some(Item::Bool(value)) => row[BOOLEAN] = Cell::Bool(value),
        Some(Item::Int(value)) => row[LONG] = Cell::Long(value),
        Some(Item::Uint(whole)) if value.plan().field(number) == Some(&Type::Scalar(Scalar::U64)) => {
            row[ULONG] = Cell::Ulong(whole);
        }
        Some(Item::Uint(value)) => row[LONG] = Cell::Long(value.cast_signed()),
        Some(Item::Float(value)) => row[DOUBLE] = Cell::Double(value),
        Some(Item::Text(text)) => row[STRING] = Cell::Text(utf8(text.as_bytes())),
        Some(Item::Array(array)) => {
            let (at, list) = list(array);
            row[at] = list;
        }
        _ => {}
    }
}

/// Returns the column of an array, and its cell.
fn list(array: &Array) -> (usize, Cell<'_>) {
    macro_rules! widened {
        ($Rust:ty) => {
            (INTS, Cell::Ints(array.iter::<$Rust>().into_iter().flatten().map(i32::from).collect()))
        };
    }
    macro_rules! same {
        ($COLUMN:ident, $Cell:ident, $Rust:ty) => {
            ($COLUMN, Cell::$Cell(array.to_slice::<$Rust>().unwrap_or_default()))
        };
    }
    match array.scalar() {
        Scalar::Bool => (BOOLEANS, Cell::Bools(array.iter_bools().into_iter().flatten().collect())),
        Scalar::I8 => widened!(i8),
        Scalar::I16 => widened!(i16),
        Scalar::U8 => widened!(u8),
        Scalar::U16 => widened!(u16),
        Scalar::I32 => same!(INTS, Ints, i32),
        Scalar::U32 => (LONGS, Cell::Longs(array.iter::<u32>().into_iter().flatten().map(i64::from).collect())),
        Scalar::I64 => same!(LONGS, Longs, i64),
        Scalar::U64 => same!(ULONGS, Ulongs, u64),
        Scalar::F32 => same!(FLOATS, Floats, f32),
        Scalar::F64 => same!(DOUBLES, Doubles, f64),
        Scalar::Text => (STRINGS, Cell::Texts(array.iter_texts().into_iter().flatten().map(utf8).collect())),
    }
}

/// Returns a text as UTF-8: what is none is Latin-1, as units of older records are.
fn utf8(bytes: &[u8]) -> Bytes {
    match std::str::from_utf8(bytes) {
        Ok(_) => Bytes::copy_from_slice(bytes),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// A row of the columns [`SUMMARY`].
pub(crate) struct Summary {
    pub(crate) arrived_ns: i64,
    pub(crate) pv: Bytes,
    pub(crate) is_update: bool,
    pub(crate) type_text: Bytes,
}

impl Summary {
    /// Reads a row; `None` if the file does not say which PV it is about, and when.
    pub(crate) fn of(row: &[Cell<'_>]) -> Option<Self> {
        let [Cell::Long(arrived_ns), Cell::Text(pv), Cell::Text(event), of] = row else { return None };
        let is_update = event[..] == *Event::Update.name().as_bytes();
        let type_text = if let Cell::Text(text) = of { text.clone() } else { Bytes::new() };
        Some(Summary { arrived_ns: *arrived_ns, pv: pv.clone(), is_update, type_text })
    }
}

/// A row that was read.
pub(crate) struct Row<'a>(pub(crate) Vec<Cell<'a>>);

impl Row<'_> {
    fn text(&self, column: usize) -> Option<&str> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn int(&self, column: usize) -> Option<i32> {
        if let Some(Cell::Int(value)) = self.0.get(column) { Some(*value) } else { None }
    }

    fn long(&self, column: usize) -> Option<i64> {
        if let Some(Cell::Long(value)) = self.0.get(column) { Some(*value) } else { None }
    }

    /// Returns the time of arrival in nanoseconds since 1970.
    pub(crate) fn arrived_ns(&self) -> i64 {
        self.long(ARRIVED).unwrap_or(0)
    }

    /// Returns the name of the PV.
    pub(crate) fn pv(&self) -> &str {
        self.text(PV).unwrap_or_default()
    }

    /// Tells whether it is an update.
    pub(crate) fn is_update(&self) -> bool {
        self.text(EVENT) == Some(Event::Update.name())
    }

    /// Returns the text of the type.
    pub(crate) fn type_text(&self) -> &str {
        self.text(TYPE).unwrap_or_default()
    }

    /// Puts the update into a value, whose changed fields are then those that were sent.
    ///
    /// # Errors
    /// A sentence if the row is not of this type.
    pub(crate) fn fill(&self, shape: &Shape, value: &mut Value) -> Result<(), String> {
        if let Some(json) = self.text(JSON) {
            Shape::set_json(value, json)?;
        }
        let wrong = |why: crate::machines::data::SetError| why.to_string();
        if let (Some(number), Some(datum)) = (shape.value, self.native(shape)) {
            value.set_at(number, datum).map_err(wrong)?;
        }
        if let Some(stamp) = self.long(STAMP).filter(|_| shape.has_stamp) {
            let (seconds, nanoseconds) = (stamp.div_euclid(SECOND_NS), stamp.rem_euclid(SECOND_NS) as i32);
            let user_tag = self.int(USER_TAG).unwrap_or(0);
            value.set_time_stamp(TimeStamp { seconds, nanoseconds, user_tag }).map_err(wrong)?;
        }
        if let (Some(severity), Some(status), true) = (self.int(SEVERITY), self.int(STATUS), shape.has_alarm) {
            let message = self.text(MESSAGE).unwrap_or_default().to_owned();
            value.set_alarm(&Alarm { severity, status, message }).map_err(wrong)?;
        }
        value.unmark();
        let changed = self.text(CHANGED).unwrap_or("*").split(',');
        changed.map(|path| if path == "*" { "" } else { path }).for_each(|path| {
            if let Some(number) = shape.plan().number(path) {
                value.mark(number);
            }
        });
        Ok(())
    }

    /// Returns the content of the field `value` from the column of its type.
    fn native(&self, shape: &Shape) -> Option<Datum> {
        let of = shape.value.and_then(|number| shape.plan().field(number))?;
        Some(match (self.0.iter().skip(BOOLEAN).take(JSON - BOOLEAN).find(|cell| **cell != Cell::Empty)?, of) {
            (Cell::Bool(value), _) => (*value).into(),
            (Cell::Long(value), _) => (*value).into(),
            (Cell::Ulong(value), _) => (*value).into(),
            (Cell::Double(value), _) => (*value).into(),
            (Cell::Text(text), _) => Datum::Text((&text[..]).into()),
            (cell, Type::Array(scalar, _)) => Datum::Array(array(cell, *scalar)?),
            _ => return None,
        })
    }
}

/// Returns the array of a list, whose elements may have been widened.
fn array(cell: &Cell<'_>, scalar: Scalar) -> Option<Array> {
    macro_rules! narrowed {
        ($list:expr, $Rust:ty) => {
            $list.iter().map(|value| *value as $Rust).collect::<Vec<_>>().into()
        };
    }
    Some(match (cell, scalar) {
        (Cell::Bools(list), Scalar::Bool) => Array::bools(list.iter().copied()),
        (Cell::Ints(list), Scalar::I8) => narrowed!(list, i8),
        (Cell::Ints(list), Scalar::I16) => narrowed!(list, i16),
        (Cell::Ints(list), Scalar::U8) => narrowed!(list, u8),
        (Cell::Ints(list), Scalar::U16) => narrowed!(list, u16),
        (Cell::Ints(list), Scalar::I32) => Cow::into_owned(list.clone()).into(),
        (Cell::Longs(list), Scalar::U32) => narrowed!(list, u32),
        (Cell::Longs(list), Scalar::I64) => Cow::into_owned(list.clone()).into(),
        (Cell::Ulongs(list), Scalar::U64) => Cow::into_owned(list.clone()).into(),
        (Cell::Floats(list), Scalar::F32) => Cow::into_owned(list.clone()).into(),
        (Cell::Doubles(list), Scalar::F64) => Cow::into_owned(list.clone()).into(),
        (Cell::Texts(list), Scalar::Text) => Array::texts(list),
        _ => return None,
    })
}
