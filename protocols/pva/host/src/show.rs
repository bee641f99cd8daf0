//! Values as text: for people, as pvget and pvxget print them, and for programs as JSON.
//!
//! | form | looks like |
//! |---|---|
//! | nt | `2026-11-22 20:47:00.123 1.5 MINOR DEVICE too hot`, a table, `(1) choice`; raw for what is no normative type |
//! | raw | `double value 1.5`, indented: pvget's |
//! | tree | `double value = 1.5` within braces: pvxget's |
//! | delta | `value double = 1.5`, one line a field: pvxget's |
//! | json | `{"value":1.5}` |
//!
//! Numbers have all their digits. No control character of a text gets through: `\n` is written so. Texts that are not UTF-8 are shown
//! as Latin-1, which the units of older records are.

mod cell;
#[cfg(feature = "images")]
mod image;
mod json;
mod normative;
mod raw;
mod table;
mod tree;

use hodo_pva::{Type, Value};
use std::str::FromStr;

pub(crate) use cell::plain;
pub(crate) use json::is_choice;
pub(crate) use raw::type_name;

/// The form in which a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// By its normative type, in one line where that is possible.
    #[default]
    Nt,
    /// Field by field, as pvget does.
    Raw,
    /// Field by field, as pvxget does.
    Tree,
    /// One line a field with its path, as pvxget does.
    Delta,
    /// As JSON in one line.
    Json,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "nt" => Form::Nt,
            "raw" => Form::Raw,
            "tree" => Form::Tree,
            "delta" => Form::Delta,
            "json" => Form::Json,
            _ => return Err(format!("{text:?} is no form; there are nt, raw, json, tree and delta")),
        })
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// The form.
    pub form: Form,
    /// Elements of an array that are shown at most, and rows of a table; 0 for all. JSON always has all.
    pub elements: usize,
    /// Whether only the changed fields are shown: those that were asked for, or are new.
    pub only_changed: bool,
    /// Whether choices are shown by their number.
    pub numbers: bool,
}

impl Default for Show {
    fn default() -> Self {
        Show { form: Form::Nt, elements: ELEMENTS, only_changed: false, numbers: false }
    }
}

/// Elements of an array that are shown unless something else is asked for: as in NumPy.
pub const ELEMENTS: usize = 1000;

impl Show {
    /// Returns a value as text, without an end of line.
    #[must_use]
    pub fn text(&self, value: &Value) -> String {
        let mut text = String::new();
        match self.form {
            Form::Nt if normative::write(value, self, &mut text) => {}
            Form::Nt | Form::Raw => raw::write(value, self, &mut text),
            Form::Tree => tree::write(value, self, &mut text),
            Form::Delta => tree::write_delta(value, self, &mut text),
            Form::Json => json::write(value, self.only_changed, &mut text),
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }

    /// Returns only what the field `value` holds, or all if there is none: without time stamp and alarm.
    #[must_use]
    pub fn terse(&self, value: &Value) -> String {
        let mut text = String::new();
        if !normative::write_content(value, self, &mut text) {
            json::write(value, self.only_changed, &mut text);
        }
        text
    }
}

/// Returns a type as text: one line a field, as pvinfo prints it.
#[must_use]
pub fn type_text(of: &Type) -> String {
    raw::type_text(of)
}

/// Returns a value as JSON: all fields, or only those that have changed.
///
/// A union is an object with its chosen member, or null; numbers that JSON lacks are `NaN`, `Infinity` and `-Infinity`, as Python and EPICS read them.
#[must_use]
pub fn json(value: &Value, only_changed: bool) -> String {
    let mut text = String::new();
    json::write(value, only_changed, &mut text);
    text
}
