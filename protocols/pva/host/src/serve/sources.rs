//! The sources of values: each makes the next value of a PV when it is due, on one thread for all.

use super::ServeError;
use super::file::{Codec, PvTable, Size, SourceName};
use super::replay::Replay;
use super::rules::{Beyond, Rules};
use super::types::{array_of, set_number};
use crate::image::type_number;
use crate::machines::data::SetError;
use crate::machines::{Array, Datum, Order, Plan, Scalar, Type, Value};
use crate::server::{Pv, now};
use hodo_io::Clock;
use hodo_machine::{Instant, Random};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::f64::consts::TAU;
use std::io::Read;
use std::time::Duration;

/// The time between two updates unless the file says otherwise.
const EVERY: Duration = Duration::from_millis(100);
/// The period of a wave unless the file says otherwise.
const PERIOD: Duration = Duration::from_secs(10);
/// The longest sleep, after which the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// The bytes that a waveform or an image has at most.
const BYTES_MAX: usize = 256 << 20;

/// A source of a PV.
pub struct Source {
    pv: Pv,
    rules: Rules,
    every: Duration,
    makes: Makes,
    count: u64,
}

/// The kind of values that a source makes.
#[derive(Clone)]
enum Makes {
    Ramp { from: f64, to: f64, step: f64 },
    Sine { from: f64, to: f64, period: Duration },
    Random { from: f64, to: f64, random: Random },
    Waveform { from: f64, to: f64, period: Duration, size: usize },
    Image { size: [usize; 2], scalar: Scalar, codec: Codec },
    Replay(Replay),
}

/// A source without its PV yet.
#[derive(Clone)]
pub struct Recipe {
    makes: Makes,
    every: Duration,
}

impl Recipe {
    /// Returns the recipe of a table, or `None` for a PV that changes only by puts. Files are relative to `folder`.
    ///
    /// # Errors
    /// A sentence with the key and what to write instead.
    pub fn of(table: &PvTable, value: &Value, folder: &std::path::Path) -> Result<Option<Recipe>, String> {
        let (from, to) = (table.from.unwrap_or(0.0), table.to.unwrap_or(100.0));
        let period = table.period.unwrap_or(PERIOD);
        let every = table.every.unwrap_or(EVERY);
        if from > to {
            return Err("from: it is above `to`; exchange them".to_owned());
        }
        if every.is_zero() || period.is_zero() {
            return Err("every, period: write a time above 0, as \"100ms\"".to_owned());
        }
        let is_array =
            matches!(value.plan().number("value").and_then(|at| value.plan().field(at)), Some(Type::Array(..)));
        let needs = |fits: bool, what: &str| {
            if fits {
                Ok(())
            } else {
                Err(format!("source: {:?} makes {what}; choose another type or source", table.source).to_lowercase())
            }
        };
        let is_number = super::types::number(value).is_some();
        let makes = match table.source {
            SourceName::Static => return Ok(None),
            SourceName::Ramp => {
                needs(is_number, "numbers")?;
                let step = table.step.unwrap_or(1.0);
                if step <= 0.0 {
                    return Err("step: write a number above 0".to_owned());
                }
                Makes::Ramp { from, to, step }
            }
            SourceName::Sine => needs(is_number, "numbers").map(|()| Makes::Sine { from, to, period })?,
            SourceName::Random => {
                needs(is_number || is_array, "numbers, or arrays of them")?;
                Makes::Random { from, to, random: Random::new(now().nanoseconds as u64) }
            }
            SourceName::Waveform => {
                needs(is_array || value.get("labels").is_some(), "arrays of numbers, and tables")?;
                let size = match table.size {
                    None => 1000,
                    Some(Size::Elements(size)) if size <= BYTES_MAX / 8 => size,
                    Some(_) => return Err("size: write the number of elements, as size = 1000".to_owned()),
                };
                Makes::Waveform { from, to, period, size }
            }
            SourceName::Image => {
                needs(value.get("dimension").is_some(), "images")?;
                let size = match table.size {
                    None => [640, 480],
                    Some(Size::Image(size)) if size[0].saturating_mul(size[1]) <= BYTES_MAX / 8 => size,
                    Some(_) => return Err("size: write width and height, as size = [640, 480]".to_owned()),
                };
                Makes::Image { size, scalar: image_scalar(table)?, codec: table.codec }
            }
            SourceName::Replay => Makes::Replay(Replay::of(table, value, folder)?),
        };
        Ok(Some(Recipe { makes, every }))
    }

    /// Returns the source of a PV.
    #[must_use]
    pub fn source(&self, pv: Pv, rules: Rules) -> Source {
        Source { pv, rules, every: self.every, makes: self.makes.clone(), count: 0 }
    }
}

fn image_scalar(table: &PvTable) -> Result<Scalar, String> {
    match &table.element {
        None => Ok(Scalar::U8),
        Some(super::file::TypeName::Name(name)) if name != "string" => {
            Scalar::from_name(name).ok_or(format!("element: there is no type {name} of pixels; write ubyte or ushort"))
        }
        Some(_) => Err("element: write the type of a pixel, as \"ubyte\"".to_owned()),
    }
}

impl Source {
    /// Posts the next value; returns after which time the next but one is due, or `None` if there is none.
    fn next(&mut self, at: Instant) -> Result<Option<Duration>, SetError> {
        let Source { pv, rules, makes, every, count } = self;
        let turn = *count;
        *count += 1;
        let seconds = at.as_nanos() as f64 * 1e-9;
        let mut due = Some(*every);
        pv.update(|value| {
            let before = Beyond::of(value);
            match makes {
                Makes::Ramp { from, to, step } => {
                    let steps = ((*to - *from) / *step).floor() + 1.0;
                    set_value(value, *from + *step * (turn as f64 % steps))?;
                }
                Makes::Sine { from, to, period } => {
                    set_value(value, wave(*from, *to, seconds / period.as_secs_f64()))?;
                }
                Makes::Random { from, to, random } => {
                    let mut next = || *from + (*to - *from) * random.unit();
                    match array_at(value.plan()) {
                        None => set_value(value, next())?,
                        Some((at, scalar)) => {
                            let length = value
                                .get("value")
                                .and_then(crate::machines::Item::as_array)
                                .map_or(0, Array::len)
                                .max(1);
                            value.set_at(
                                at,
                                array_of(scalar, (0..length).map(|_| next())).ok_or(SetError::WrongType)?,
                            )?;
                        }
                    }
                }
                Makes::Waveform { from, to, period, size } => {
                    let phase = seconds / period.as_secs_f64();
                    let make = |scalar| {
                        array_of(scalar, (0..*size).map(|at| wave(*from, *to, phase + at as f64 / *size as f64)))
                    };
                    waveform(value, make)?;
                }
                Makes::Image { size, scalar, codec } => image(value, *size, *scalar, *codec, turn)?,
                Makes::Replay(replay) => due = replay.next(value)?,
            }
            rules.judge(value, before)
        })?;
        Ok(due)
    }
}

/// Returns a point of a sine between two values.
fn wave(from: f64, to: f64, periods: f64) -> f64 {
    from + (to - from) * (0.5 + 0.5 * (TAU * periods).sin())
}

fn set_value(value: &mut Value, to: f64) -> Result<(), SetError> {
    let path = if value.plan().number("value.index").is_some() { "value.index" } else { "value" };
    set_number(value, path, to)
}

/// Returns the number of the field `value` and the type of its elements, if it is an array of numbers.
fn array_at(plan: &Plan) -> Option<(usize, Scalar)> {
    let number = plan.number("value")?;
    match plan.field(number)? {
        Type::Array(Scalar::Text, _) => None,
        Type::Array(scalar, _) => Some((number, *scalar)),
        _ => None,
    }
}

fn waveform(value: &mut Value, make: impl Fn(Scalar) -> Option<Array>) -> Result<(), SetError> {
    let plan = value.plan().clone();
    if let Some((at, scalar)) = array_at(&plan) {
        return value.set_at(at, make(scalar).ok_or(SetError::WrongType)?);
    }
    let columns = plan.number("value").ok_or(SetError::NoField)?;
    for column in plan.children(columns) {
        match plan.field(column) {
            Some(Type::Array(Scalar::Text, _)) => {
                let rows = make(Scalar::I64).map_or(0, |array| array.len());
                value.set_at(column, Array::texts((0..rows).map(|row| row.to_string())))?;
            }
            Some(Type::Array(scalar, _)) => value.set_at(column, make(*scalar).ok_or(SetError::WrongType)?)?,
            _ => {}
        }
    }
    Ok(())
}

/// Sets an image with a gradient that moves by one pixel each time.
fn image(
    value: &mut Value,
    [width, height]: [usize; 2],
    scalar: Scalar,
    codec: Codec,
    turn: u64,
) -> Result<(), SetError> {
    let turn = turn as usize;
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| ((x + y + turn) % 256) as f64));
    let pixels = array_of(scalar, pixels).ok_or(SetError::WrongType)?;
    value.set("uncompressedSize", pixels.bytes().len() as i64)?;
    let (name, sent) = match codec {
        Codec::None => ("", pixels),
        Codec::Lz4 => ("lz4", compressed_array(pixels.bytes(), lz4_flex::block::compress)?),
        Codec::Zlib => ("zlib", compressed_array(pixels.bytes(), zlib)?),
    };
    value.set("compressedSize", sent.bytes().len() as i64)?;
    value.set("value", Datum::Member(format!("{}Value", sent.scalar().name()), Box::new(sent.into())))?;
    value.set("uniqueId", turn as i32)?;
    value.set("codec.name", name)?;
    if codec != Codec::None {
        let mut number = Value::of(Type::Scalar(Scalar::I32));
        number.set("", type_number(scalar))?;
        value.set("codec.parameters", Datum::Value(number))?;
    }
    let stamp = now();
    value.set("dataTimeStamp.secondsPastEpoch", stamp.seconds)?;
    value.set("dataTimeStamp.nanoseconds", stamp.nanoseconds)?;
    if turn == 0 {
        let members = value.plan().number("dimension").and_then(|at| value.plan().field(at)?.element());
        let plan = Plan::new(members.ok_or(SetError::NoField)?);
        let dimension = |size: usize| {
            let mut dimension = Value::new(&plan);
            for (field, number) in [("size", size), ("fullSize", size), ("binning", 1)] {
                dimension.set(field, number as i32)?;
            }
            Ok(Some(dimension))
        };
        let dimensions = [width, height].map(dimension).into_iter().collect::<Result<Vec<_>, SetError>>()?;
        value.set("dimension", Datum::Elements(dimensions))?;
    }
    Ok(())
}

/// Returns compressed bytes as detectors send them.
fn compressed_array(bytes: &[u8], compress: fn(&[u8]) -> Vec<u8>) -> Result<Array, SetError> {
    Array::from_bytes(Scalar::I8, Order::NATIVE, compress(bytes).into()).ok_or(SetError::WrongType)
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut reader = flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast());
    reader.read_to_end(&mut compressed).expect("memory is read");
    compressed
}

/// The sources of a server, and when each is due.
#[derive(Default)]
pub struct Sources {
    running: HashMap<u64, Source>,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    next: u64,
}

impl Sources {
    /// Adds a source, which is due at once, and returns its number.
    pub fn add(&mut self, source: Source, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        self.running.insert(number, source);
        self.due.push(Reverse((now, number)));
        number
    }

    /// Ends a source.
    pub fn remove(&mut self, number: u64) {
        self.running.remove(&number);
    }

    /// Tells whether a source makes what a recipe says, of files as they were read.
    #[must_use]
    pub fn is_same(&self, number: u64, recipe: &Recipe) -> bool {
        match (self.running.get(&number).map(|source| &source.makes), &recipe.makes) {
            (Some(Makes::Replay(one)), Makes::Replay(other)) => one.is_same(other),
            (running, _) => running.is_some(),
        }
    }

    /// Posts one value that is due. Returns how long there is nothing to do.
    ///
    /// # Errors
    /// [`ServeError::Source`] if a source makes what its PV cannot hold.
    pub fn turn(&mut self, clock: &Clock) -> Result<Duration, ServeError> {
        let now = clock.now();
        let Some(Reverse((at, number))) = self.due.peek().copied() else { return Ok(LOOK) };
        if at > now {
            return Ok((at - now).min(LOOK));
        }
        self.due.pop();
        // One that was removed is still due once.
        let Some(source) = self.running.get_mut(&number) else { return Ok(Duration::ZERO) };
        let next = source.next(at).map_err(|why| ServeError::Source(format!("{}: {why}", source.pv.name())))?;
        if let Some(after) = next {
            // One that has fallen behind leaves out what is past, rather than to make it up in a burst.
            self.due.push(Reverse(((at + after).max(now), number)));
        }
        Ok(Duration::ZERO)
    }
}
