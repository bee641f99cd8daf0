//! The shell's rules for a path, without its commands.

use super::{Source, glob, join};
use crate::finding::FileProblem;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// A character of a word, and whether it stands for itself even where it is one of `*?[`.
pub(super) type Letter = (char, bool);

/// Returns the files that one path stands for, in order.
pub(super) fn expand(path: &str, folder: &str, source: &dyn Source) -> Result<Vec<String>, FileProblem> {
    let word = Words { text: path, source }.word()?;
    if word.is_empty() {
        return Err(FileProblem::NoFile { expression: path.to_owned() });
    }
    if !glob::is_pattern(&word) {
        let plain: String = word.iter().map(|(letter, _)| *letter).collect();
        return Ok([join(folder, &plain)].into());
    }
    let files = glob::glob(&word, folder, source);
    if files.is_empty() {
        return Err(FileProblem::NoFile { expression: path.to_owned() });
    }
    Ok(files)
}

struct Words<'a> {
    text: &'a str,
    source: &'a dyn Source,
}

impl Words<'_> {
    /// Substitutes variables in the path, and removes its quotes.
    fn word(&self) -> Result<Vec<Letter>, FileProblem> {
        let mut word = Vec::new();
        let mut rest = self.home(&mut word)?;
        let mut quoted = false;
        while let Some(letter) = rest.chars().next() {
            let after = &rest[letter.len_utf8()..];
            rest = match letter {
                '"' => {
                    quoted = !quoted;
                    after
                }
                '\'' if !quoted => {
                    let (inside, after) = after.split_once('\'').ok_or_else(|| self.bad())?;
                    word.extend(inside.chars().map(|letter| (letter, true)));
                    after
                }
                '\\' => {
                    let letter = after.chars().next().ok_or_else(|| self.bad())?;
                    word.push((letter, true));
                    &after[letter.len_utf8()..]
                }
                '`' => return Err(self.bad()),
                '$' => {
                    let (value, after) = self.variable(after)?;
                    word.extend(value.chars().map(|letter| (letter, quoted)));
                    after
                }
                _ => {
                    word.push((letter, quoted));
                    after
                }
            };
        }
        if quoted { Err(self.bad()) } else { Ok(word) }
    }

    /// Puts the home folder in for a `~` at the start; what follows it.
    fn home(&self, word: &mut Vec<Letter>) -> Result<&str, FileProblem> {
        let Some(after) = self.text.strip_prefix('~') else { return Ok(self.text) };
        let user = &after[..after.find('/').unwrap_or(after.len())];
        if !user.is_empty() {
            let variable = &self.text[..1 + user.len()];
            return Err(FileProblem::Undefined { variable: variable.to_owned() });
        }
        word.extend(self.defined("HOME")?.chars().map(|letter| (letter, true)));
        Ok(after)
    }

    /// Returns the value of the variable whose name follows a `$`, and the text behind the name.
    fn variable<'t>(&self, after: &'t str) -> Result<(String, &'t str), FileProblem> {
        if after.starts_with('(') {
            return Err(self.bad());
        }
        if let Some(braced) = after.strip_prefix('{') {
            let (inside, after) = braced.split_once('}').ok_or_else(|| self.bad())?;
            let (name, instead) = inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
            if name_length(name) != name.len() || name.is_empty() {
                return Err(self.bad());
            }
            let value = match instead {
                Some(instead) => {
                    let value = self.source.variable(name).filter(|value| !value.is_empty());
                    value.unwrap_or_else(|| instead.to_owned())
                }
                None => self.defined(name)?,
            };
            return Ok((value, after));
        }
        match name_length(after) {
            0 => Ok(("$".to_owned(), after)),
            length => Ok((self.defined(&after[..length])?, &after[length..])),
        }
    }

    fn defined(&self, name: &str) -> Result<String, FileProblem> {
        self.source.variable(name).ok_or_else(|| FileProblem::Undefined { variable: name.to_owned() })
    }

    fn bad(&self) -> FileProblem {
        FileProblem::BadExpression { expression: self.text.to_owned() }
    }
}

/// Returns the bytes of the variable's name that a text begins with.
fn name_length(text: &str) -> usize {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return 0;
    }
    text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len())
}
