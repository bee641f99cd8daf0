//! Tables of a TOML file, read by serde; every error names the line, the table and the key.

use crate::Error;
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The text of a file and its name, for messages with line numbers.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Source<'_> {
    /// Parses the text into tables.
    pub fn parse(&self) -> Result<DeTable<'_>, Error> {
        let parsed = DeTable::parse(self.text);
        parsed.map(Spanned::into_inner).map_err(|why| self.wrong(&why.span().unwrap_or(0..0), why.message()))
    }

    /// Makes an error at a place.
    pub fn wrong(&self, at: &Range<usize>, why: &str) -> Error {
        Error::Settings(format!("{}:{}: {why}", self.name, self.line(at)))
    }

    /// Returns the line of a place.
    pub fn line(&self, at: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// One table.
#[derive(Debug)]
pub struct Table<'a> {
    /// The title as it stands in the file: `[run]`, `[[node]]`.
    pub title: &'a str,
    /// The place where the table begins.
    pub at: Range<usize>,
    source: Source<'a>,
    entries: Vec<Entry<'a>>,
}

/// A key, with `-` between its words, and its value.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub at: Range<usize>,
    /// The value.
    pub value: &'a DeValue<'a>,
}

impl<'a> Table<'a> {
    /// Takes a table apart. Every key has to be `known`; `elsewhere` has keys that belong somewhere else, and where.
    pub fn new(
        source: Source<'a>,
        title: &'a str,
        table: &'a Spanned<DeValue<'a>>,
        known: &[&str],
        elsewhere: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let at = table.span();
        let Some(inner) = table.get_ref().as_table() else {
            return Err(source.wrong(&at, &format!("`{title}` is a table: write {title} on a line of its own")));
        };
        let mut entries = Vec::with_capacity(inner.len());
        for (key, value) in inner {
            let name = key.get_ref().replace('_', "-");
            if !known.contains(&name.as_str()) {
                let why = match elsewhere.iter().find(|(key, _)| *key == name) {
                    Some((_, elsewhere)) => format!("{title} has no key `{}`: {elsewhere}", key.get_ref()),
                    None => unknown(&format!("{title} has no key"), key.get_ref(), known),
                };
                return Err(source.wrong(&key.span(), &why));
            }
            entries.push(Entry { key: name, at: key.span(), value: value.get_ref() });
        }
        // As they stand in the file; a map has them by name.
        entries.sort_by_key(|entry| entry.at.start);
        if let Some(twice) = entries.iter().find(|one| entries.iter().filter(|other| other.key == one.key).count() > 1)
        {
            return Err(source.wrong(&twice.at, &format!("{title}: `{}` appears twice", twice.key)));
        }
        Ok(Table { title, at, source, entries })
    }

    /// Returns a table without keys, for one that the file does not have.
    pub fn empty(source: Source<'a>, title: &'a str) -> Self {
        Table { title, at: 0..0, source, entries: Vec::new() }
    }

    /// Returns the entries whose keys are not among `keys`, in the order of the file.
    pub fn beside(&self, keys: &[&str]) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| !keys.contains(&entry.key.as_str()))
    }

    /// Returns the entry of a key.
    pub fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Makes an error at an entry.
    pub fn wrong(&self, entry: &Entry<'_>, why: &str) -> Error {
        self.source.wrong(&entry.at, &format!("{}: `{}`: {why}", self.title, entry.key))
    }

    /// Reads these keys into a value; keys that the table does not have take their defaults.
    pub fn read<T: Deserialize<'a>>(&self, keys: &[&str]) -> Result<T, Error> {
        let entries = self.entries.iter().filter(|entry| keys.contains(&entry.key.as_str()));
        let value = |entry: &Entry<'a>| ValueDeserializer::from(Spanned::new(entry.at.clone(), entry.value.clone()));
        let values = MapDeserializer::new(entries.map(|entry| (entry.key.clone(), value(entry))));
        serde_path_to_error::deserialize(values).map_err(|why: serde_path_to_error::Error<toml::de::Error>| {
            let key = why.path().iter().next().map(ToString::to_string).unwrap_or_default();
            match self.entry(&key) {
                Some(entry) => self.wrong(entry, why.inner().message()),
                None => self.source.wrong(&self.at, why.inner().message()),
            }
        })
    }
}

/// Reads a whole number, however it is written.
pub fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Says which names are known instead of an unknown one, and which of them is close to it.
pub fn unknown(front: &str, key: &str, known: &[&str]) -> String {
    let mut names: Vec<String> = known.iter().map(|name| name.replace('-', "_")).collect();
    names.sort_unstable();
    names.dedup();
    let there_is = names.join(", ");
    let wanted = key.replace('-', "_");
    match names.iter().map(|name| (distance(name, &wanted), name)).min() {
        Some((distance, name)) if distance <= 1 + wanted.len() / 4 => {
            format!("{front} `{key}`; did you mean `{name}`? There is: {there_is}")
        }
        _ => format!("{front} `{key}`; there is: {there_is}"),
    }
}

/// Returns how many letters have to be changed, added or left out to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for column in 0..other.len() {
            let changed = corner + usize::from(letter != other[column]);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_beside_what_is() {
        let text = unknown("[[node]] has no key", "credit", &["credits", "accept", "until-x"]);
        assert_eq!(text, "[[node]] has no key `credit`; did you mean `credits`? There is: accept, credits, until_x");
        let text = unknown("[run] has no key", "colour", &["time"]);
        assert_eq!(text, "[run] has no key `colour`; there is: time");
    }

    #[test]
    fn words_are_as_far_apart_as_their_letters() {
        for (one, other, expected) in [("", "abc", 3), ("abc", "abc", 0), ("abc", "axc", 1), ("credit", "credits", 1)] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn lines_are_counted_from_1() {
        let source = Source { name: "farm.toml", text: "a = 1\nb = 2\n" };
        assert_eq!((source.line(&(0..1)), source.line(&(6..7)), source.line(&(99..99))), (1, 2, 3));
    }
}
