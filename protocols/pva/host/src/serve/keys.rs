//! The keys of `[[pv]]` that only some types and sources have.

use super::file::{PvTable, SourceName, TypeName};

/// Keys that only sources have.
const OF_SOURCES: [&str; 11] =
    ["every", "period", "from", "to", "step", "size", "codec", "file", "repeat", "recorded", "stamps"];
/// Keys that set fields which a structure of one's own does not have.
const OF_NORMATIVE: [&str; 8] =
    ["description", "units", "precision", "display", "control", "alarm", "choices", "columns"];
/// Types whose elements or members `element` names. That of an image is for its source.
const WITH_ELEMENT: [&str; 5] = ["histogram", "name_value", "scalar_multi_channel", "union", "uri"];

impl SourceName {
    /// Returns the keys that belong to the source.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            SourceName::Static => &[],
            SourceName::Ramp => &["every", "from", "to", "step"],
            SourceName::Sine => &["every", "from", "to", "period"],
            SourceName::Random => &["every", "from", "to"],
            SourceName::Waveform => &["every", "from", "to", "period", "size"],
            SourceName::Image => &["every", "size", "codec"],
            SourceName::Replay => &["every", "file", "recorded", "repeat", "stamps"],
        }
    }

    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    const ALL: [SourceName; 7] = [
        SourceName::Static,
        SourceName::Ramp,
        SourceName::Sine,
        SourceName::Random,
        SourceName::Waveform,
        SourceName::Image,
        SourceName::Replay,
    ];
}

/// Checks that the table has no key without a meaning for its type and source.
///
/// # Errors
/// A sentence that begins with the key, and says what to write instead.
pub fn check(table: &PvTable, keys: &toml::Table) -> Result<(), String> {
    for key in keys.keys().map(String::as_str) {
        if OF_SOURCES.contains(&key) && !table.source.keys().contains(&key) {
            return Err(without(key, table.source));
        }
        let name = match &table.of {
            TypeName::Name(name) => name.as_str(),
            TypeName::Fields(_) if OF_NORMATIVE.contains(&key) || key == "element" => {
                return Err(format!(
                    "{key}: a structure has none; write what its fields hold into `value` or `fields`"
                ));
            }
            TypeName::Fields(_) => continue,
        };
        let (fits, of) = match key {
            "choices" => (name == "enum", "enum"),
            "columns" => (name == "table", "table"),
            "element" if name == "image" => (table.source == SourceName::Image, "image, with source = \"image\""),
            "element" => {
                (WITH_ELEMENT.contains(&name), "histogram, name_value, scalar_multi_channel, union, uri or image")
            }
            _ => (true, ""),
        };
        if !fits {
            return Err(format!(
                "{key}: it is for the type {of}, and this is {name}; leave it out, or write another type"
            ));
        }
    }
    let makes_all = [SourceName::Ramp, SourceName::Sine, SourceName::Waveform, SourceName::Image];
    if table.value.is_some() && makes_all.contains(&table.source) {
        let source = table.source.word();
        return Err(format!("value: the source {source} makes the values; leave out one of them"));
    }
    Ok(())
}

fn without(key: &str, source: SourceName) -> String {
    let having: Vec<String> =
        SourceName::ALL.into_iter().filter(|one| one.keys().contains(&key)).map(SourceName::word).collect();
    let having = having.join(", ");
    match source {
        SourceName::Static => format!("{key}: it is for a source ({having}); leave it out, or name the source"),
        source => {
            let (word, keys) = (source.word(), source.keys().join(", "));
            format!("{key}: it is for {having}, and {word} has {keys}; leave it out, or name another source")
        }
    }
}
