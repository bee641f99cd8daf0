//! The file that says which PVs are served.

use super::access::AccessTable;
use super::place::Place;
use super::settings::{ServerTable, span};
use super::{ServeError, names};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The settings of the server.
    #[serde(default)]
    pub server: ServerTable,
    /// The rules about who may do what.
    #[serde(default)]
    pub access: Vec<AccessTable>,
    /// PVs that have a value.
    #[serde(default)]
    pub pv: Vec<PvTable>,
    /// PVs that are called.
    #[serde(default)]
    pub call: Vec<CallTable>,
}

/// `[[pv]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PvTable {
    /// A name, or a family of names.
    pub name: Spanned<String>,
    /// The type of the value.
    #[serde(rename = "type", default)]
    pub of: TypeName,
    /// The type of the elements or members of a normative type that has a choice.
    #[serde(default)]
    pub element: Option<TypeName>,
    /// The columns of a table.
    #[serde(default)]
    pub columns: toml::Table,
    /// The choices of an enumeration.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The value at first.
    #[serde(default)]
    pub value: Option<toml::Value>,
    /// Other fields by their paths.
    #[serde(default)]
    pub fields: BTreeMap<String, toml::Value>,
    /// The description.
    #[serde(default)]
    pub description: Option<String>,
    /// The units.
    #[serde(default)]
    pub units: Option<String>,
    /// The digits behind the point.
    #[serde(default)]
    pub precision: Option<i32>,
    /// The least and the greatest value that a display shows.
    #[serde(default)]
    pub display: Option<[f64; 2]>,
    /// The least and the greatest value that may be put.
    #[serde(default)]
    pub control: Option<[f64; 2]>,
    /// The limits beyond which the value is in alarm.
    #[serde(default)]
    pub alarm: Option<AlarmTable>,
    /// The treatment of puts.
    #[serde(default)]
    pub put: Puts,
    /// The origin of the values.
    #[serde(default)]
    pub source: SourceName,
    /// The time between two updates.
    #[serde(default, deserialize_with = "span")]
    pub every: Option<Duration>,
    /// The time of one period of a wave.
    #[serde(default, deserialize_with = "span")]
    pub period: Option<Duration>,
    /// The first or least value of a source.
    #[serde(default)]
    pub from: Option<f64>,
    /// The last or greatest value of a source.
    #[serde(default)]
    pub to: Option<f64>,
    /// The difference between two values of a ramp.
    #[serde(default)]
    pub step: Option<f64>,
    /// The elements of a waveform, or the width and height of an image.
    #[serde(default)]
    pub size: Option<Size>,
    /// The compression of an image.
    #[serde(default)]
    pub codec: Codec,
    /// The file that is replayed, relative to this one.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The name, or the family of names, that the PV has in a recording.
    #[serde(default)]
    pub recorded: Option<String>,
    /// Whether a replay begins again at its end.
    #[serde(default)]
    pub repeat: Option<bool>,
    /// The time stamps of a replay.
    #[serde(default)]
    pub stamps: Stamps,
}

/// `alarm = {...}`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmTable {
    /// At or below it: major.
    pub low: Option<f64>,
    /// At or below it: minor.
    pub low_warning: Option<f64>,
    /// At or above it: minor.
    pub high_warning: Option<f64>,
    /// At or above it: major.
    pub high: Option<f64>,
    /// How far the value has to be within a limit again for the alarm to end.
    #[serde(default)]
    pub hysteresis: f64,
}

/// `[[call]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallTable {
    /// A name, or a family of names.
    pub name: Spanned<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default, deserialize_with = "span")]
    pub timeout: Option<Duration>,
    /// How many may run at once.
    #[serde(default)]
    pub concurrent: Option<NonZeroUsize>,
}

/// A type: a name, or the fields of a structure.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum TypeName {
    /// A name, as `double`, `double[]`, `enum` or `image`.
    Name(String),
    /// Fields with their types.
    Fields(toml::Table),
}

impl Default for TypeName {
    fn default() -> Self {
        TypeName::Name("double".to_owned())
    }
}

/// The treatment of puts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Puts {
    /// They are refused.
    #[default]
    Refuse,
    /// They become the value.
    Accept,
    /// They become the value, and the log and a page tell of them.
    Log,
}

/// The origin of the values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceName {
    /// From the file, and from puts.
    #[default]
    Static,
    /// A number that goes up, and begins again.
    Ramp,
    /// A sine over time.
    Sine,
    /// Any number between two.
    Random,
    /// Arrays with a sine that moves.
    Waveform,
    /// Images with a gradient that moves.
    Image,
    /// From a file of JSON lines, or from a recording.
    Replay,
}

/// The time stamps of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamps {
    /// The time at which an update is played.
    #[default]
    Now,
    /// The time that was recorded.
    Recorded,
}

impl Stamps {
    /// Tells whether time stamps stay as they are in the file.
    #[must_use]
    pub fn keeps(self) -> bool {
        self == Stamps::Recorded
    }
}

/// The compression of an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// None.
    #[default]
    None,
    /// LZ4.
    Lz4,
    /// zlib.
    Zlib,
}

/// The size of what a source makes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// Elements.
    Elements(usize),
    /// Width and height.
    Image([usize; 2]),
}

/// A file as it was read.
pub struct Contents {
    /// The tables.
    pub file: File,
    /// The keys and values of each `[[pv]]` and each `[[call]]`, but for the name.
    pub keys: [Vec<toml::Table>; 2],
    /// The text, for messages.
    pub place: Place,
}

/// Reads a file.
///
/// # Errors
/// [`ServeError::File`] with the line, the mistake and what to write instead.
pub fn read(path: &Path) -> Result<Contents, ServeError> {
    let name = path.display().to_string();
    let text =
        hodo_io::files::read_text(path).map_err(|why| ServeError::File(format!("{name}: cannot be read: {why}")))?;
    let place = Place { name, text };
    let wrong = |why: toml::de::Error| place.error(why.span().map_or(0, |span| span.start), why.message());
    let file: File = toml::from_str(&place.text).map_err(wrong)?;
    if file.pv.is_empty() && file.call.is_empty() {
        return Err(ServeError::File(format!("{}: there is no PV; add a table [[pv]] or [[call]]", place.name)));
    }
    unique(&file, &place)?;
    let mut all: toml::Table = toml::from_str(&place.text).map_err(wrong)?;
    let keys = ["pv", "call"].map(|section| match all.remove(section) {
        Some(toml::Value::Array(tables)) => tables.into_iter().filter_map(keys).collect(),
        _ => Vec::new(),
    });
    Ok(Contents { file, keys, place })
}

fn keys(table: toml::Value) -> Option<toml::Table> {
    let toml::Value::Table(mut table) = table else { return None };
    table.remove("name");
    Some(table)
}

/// Checks that no name stands twice.
fn unique(file: &File, place: &Place) -> Result<(), ServeError> {
    let mut known = std::collections::HashSet::new();
    let pvs = file.pv.iter().map(|table| ("[[pv]]", &table.name));
    for (title, family) in pvs.chain(file.call.iter().map(|table| ("[[call]]", &table.name))) {
        for name in names::names(family.get_ref()).map_err(|why| place.wrong(title, family, why))? {
            if !known.insert(name.clone()) {
                return Err(place.wrong(title, family, format!("the name {name} stands twice; rename one of them")));
            }
        }
    }
    Ok(())
}
