//! Places in the file, for messages with line numbers.

use super::ServeError;
use std::fmt::Display;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a file and its name.
#[derive(Debug, Clone)]
pub struct Place {
    pub(super) name: String,
    pub(super) text: String,
}

impl Place {
    /// Makes an error at a table, which is named by its family. If the sentence begins with a key of the table, the line is that of
    /// the key.
    pub fn wrong(&self, title: &str, at: &Spanned<String>, why: impl Display) -> ServeError {
        let (why, start) = (why.to_string(), at.span().start);
        let key = self.look(&["pv", "call"], |tables| {
            let has_name = |table: &&DeTable<'_>| table.values().any(|value| value.span().contains(&start));
            key_at(tables.iter().map(|(_, table)| *table).find(has_name)?, &why)
        });
        let key = key.unwrap_or(start);
        self.error(key, &format!("{title} {}: {why}", at.get_ref()))
    }

    /// Makes an error at a table without a name: the `index`th one of a section.
    pub fn wrong_in(&self, section: &str, index: usize, why: impl Display) -> ServeError {
        let why = why.to_string();
        let title = if section == "server" { "[server]".to_owned() } else { format!("[[{section}]]") };
        let found = self.look(&[section], |tables| {
            let (start, table) = tables.get(index)?;
            Some(key_at(table, &why).unwrap_or(*start))
        });
        self.error(found.unwrap_or(0), &format!("{title}: {why}"))
    }

    /// Makes an error at a byte of the file.
    pub fn error(&self, at: usize, why: &str) -> ServeError {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        ServeError::File(format!("{}:{line}: {why}", self.name))
    }

    /// Calls a function with the tables of sections, and where each begins.
    fn look<R>(&self, sections: &[&str], find: impl FnOnce(&[(usize, &DeTable<'_>)]) -> Option<R>) -> Option<R> {
        let parsed = DeTable::parse(&self.text).ok()?;
        let tables = sections.iter().filter_map(|section| parsed.get_ref().get(*section)).flat_map(each);
        find(&tables.collect::<Vec<_>>())
    }
}

/// Returns where the key stands that a sentence begins with.
fn key_at(table: &DeTable<'_>, why: &str) -> Option<usize> {
    let key = why.split([':', ',']).next()?;
    table.keys().find(|known| known.get_ref() == key).map(|known| known.span().start)
}

/// Returns the table that a value is, or those that it lists.
fn each<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Vec<(usize, &'a DeTable<'i>)> {
    let table = |value: &'a Spanned<DeValue<'i>>| match value.get_ref() {
        DeValue::Table(table) => Some((value.span().start, table)),
        _ => None,
    };
    match value.get_ref() {
        DeValue::Array(values) => values.iter().filter_map(table).collect(),
        _ => table(value).into_iter().collect(),
    }
}
