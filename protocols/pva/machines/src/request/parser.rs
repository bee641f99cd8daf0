use crate::request::{Request, Selection};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Levels of braces that a text may have.
pub const DEPTH_MAX: usize = 20;

/// A text that is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "at character {at} of the request {expected} is expected, as in field(value,alarm{{severity}})record[queueSize=4]"
)]
pub struct Unreadable {
    /// The place in the text, from 1.
    pub at: usize,
    /// A description of what may stand there.
    pub expected: &'static str,
}

impl FromStr for Request {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut parser = Parser { text, rest: text };
        let mut request = Request::default();
        loop {
            parser.skip(|c| c.is_whitespace() || c == ',');
            if parser.rest.is_empty() {
                return Ok(request);
            }
            let before = parser.rest;
            let name = parser.name()?;
            match (name, parser.rest.chars().next()) {
                ("record", Some('[')) => parser.options(&mut request.options)?,
                ("field", Some('(')) => parser.section(&mut request.field)?,
                ("putField", Some('(')) => parser.section(request.put_field.get_or_insert_default())?,
                ("getField", Some('(')) => parser.section(request.get_field.get_or_insert_default())?,
                _ => {
                    parser.rest = before;
                    parser.item(&mut request.field, 0)?;
                }
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }

    fn accept(&mut self, c: char) -> bool {
        self.skip(char::is_whitespace);
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, c: char, expected: &'static str) -> Result<(), Unreadable> {
        if self.accept(c) { Ok(()) } else { Err(self.unreadable(expected)) }
    }

    fn unreadable(&self, expected: &'static str) -> Unreadable {
        let before = &self.text[..self.text.len() - self.rest.len()];
        Unreadable { at: before.chars().count() + 1, expected }
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let (front, rest) = self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.rest = rest;
        front.trim()
    }

    fn name(&mut self) -> Result<&'a str, Unreadable> {
        let before = self.rest;
        let name = self.until(|c| c.is_whitespace() || ",.()[]{}=".contains(c));
        if name.is_empty() {
            self.rest = before;
            return Err(self.unreadable("a name"));
        }
        Ok(name)
    }

    /// Reads `(fields)`.
    fn section(&mut self, into: &mut Selection) -> Result<(), Unreadable> {
        self.expect('(', "`(`")?;
        self.list(into, 0)?;
        self.expect(')', "`,` or `)`")
    }

    fn list(&mut self, into: &mut Selection, depth: usize) -> Result<(), Unreadable> {
        self.skip(|c| c.is_whitespace() || c == ',');
        while !self.rest.is_empty() && !self.rest.starts_with([')', '}']) {
            self.item(into, depth)?;
            self.skip(|c| c.is_whitespace() || c == ',');
        }
        Ok(())
    }

    /// Reads one field: `name[options].name{fields}`.
    fn item(&mut self, mut into: &mut Selection, mut depth: usize) -> Result<(), Unreadable> {
        loop {
            if depth >= DEPTH_MAX {
                return Err(self.unreadable("nothing nested deeper than 20 levels"));
            }
            depth += 1;
            let name = self.name()?;
            into = into.within(name);
            if self.rest.starts_with('[') {
                self.options(&mut into.options)?;
            }
            if !self.rest.starts_with('.') {
                break;
            }
            self.accept('.');
        }
        if self.accept('{') {
            self.list(into, depth)?;
            self.expect('}', "`,` or `}`")?;
        }
        Ok(())
    }

    /// Reads `[name=value,name=value]`.
    fn options(&mut self, into: &mut Vec<(String, String)>) -> Result<(), Unreadable> {
        self.expect('[', "`[`")?;
        while !self.accept(']') {
            let name = self.name()?;
            self.expect('=', "`=`")?;
            let value = self.until(|c| c == ',' || c == ']').to_string();
            into.retain(|(known, _)| known != name);
            into.push((name.to_string(), value));
            if !self.accept(',') && !self.rest.starts_with(']') {
                return Err(self.unreadable("`,` or `]`"));
            }
        }
        Ok(())
    }
}

impl Selection {
    /// Returns the selection within a field, which is added if it is not there.
    fn within(&mut self, name: &str) -> &mut Selection {
        let known = self.fields.iter().position(|(known, _)| known == name);
        let index = known.unwrap_or_else(|| {
            self.fields.push((name.to_string(), Selection::default()));
            self.fields.len() - 1
        });
        &mut self.fields[index].1
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.options.is_empty() {
            f.write_str("record")?;
            show_options(&self.options, f)?;
        }
        let is_plain = self.put_field.is_none() && self.get_field.is_none();
        let field = (is_plain || !self.field.fields.is_empty()).then_some(&self.field);
        let sections = [("field", field), ("putField", self.put_field.as_ref()), ("getField", self.get_field.as_ref())];
        for (name, selection) in sections {
            if let Some(selection) = selection {
                write!(f, "{name}(")?;
                show_fields(selection, f)?;
                f.write_str(")")?;
            }
        }
        Ok(())
    }
}

fn show_fields(selection: &Selection, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, (name, within)) in selection.fields.iter().enumerate() {
        write!(f, "{}{name}", if index > 0 { "," } else { "" })?;
        if !within.options.is_empty() {
            show_options(&within.options, f)?;
        }
        if !within.fields.is_empty() {
            f.write_str("{")?;
            show_fields(within, f)?;
            f.write_str("}")?;
        }
    }
    Ok(())
}

fn show_options(options: &[(String, String)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, (name, value)) in options.iter().enumerate() {
        write!(f, "{}{name}={value}", if index > 0 { "," } else { "[" })?;
    }
    f.write_str("]")
}
