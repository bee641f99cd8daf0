//! Which files does an expression name, and how are they read?
//!
//! uHAL names files by expressions: `file://a.xml;file://$BOARDS/b*.xml`. The shell's rules apply to each path: `~`,
//! `$NAME`, `${NAME}`, `${NAME:-instead}`, quotes, `*`, `?` and `[a-z]`. No command is run, and an unknown variable is an
//! error, where the shell would take it for nothing.

mod expand;
mod glob;

use crate::finding::FileProblem;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// The most files that one expression may name.
pub const FILES_MAX: usize = 10_000;

/// A source of files, which the readers are given instead of a file system.
pub trait Source {
    /// Returns the bytes of a file, or why there are none. A file longer than `max` may be cut, after more than `max`
    /// bytes.
    ///
    /// # Errors
    /// Where the file cannot be read: the reason, as a user should see it.
    fn read(&self, file: &str, max: usize) -> Result<Vec<u8>, String>;

    /// Returns the names in a folder, in any order; `""` is the current one. Empty if there is no such folder.
    fn list(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns a variable of the environment.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns the one name of a file that has several, so that cycles are found. Without a file system: the path
    /// without `..`.
    fn identity(&self, file: &str) -> String {
        without_dots(file)
    }
}

/// Returns the files that an expression names, relative ones from `folder` on, each once.
///
/// # Errors
/// Where a part of it is no `file://…`, or no file fits it.
pub fn all(expression: &str, folder: &str, source: &dyn Source) -> Result<Vec<String>, FileProblem> {
    let mut files: Vec<String> = Vec::new();
    for part in expression.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (scheme, path) = part.split_once("://").ok_or_else(|| FileProblem::NoScheme { text: part.to_owned() })?;
        if scheme != "file" {
            return Err(FileProblem::UnknownScheme { scheme: scheme.to_owned(), path: path.to_owned() });
        }
        files.extend(expand::expand(path, folder, source)?);
        if files.len() > FILES_MAX {
            return Err(FileProblem::TooManyFiles { max: FILES_MAX });
        }
    }
    Ok(files)
}

/// Returns the one file that an expression names, a relative one from `folder` on.
///
/// # Errors
/// As [`all`], and where it names none or several.
pub fn one(expression: &str, folder: &str, source: &dyn Source) -> Result<String, FileProblem> {
    let mut files = all(expression, folder, source)?;
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(file),
        (Some(_), others) => Err(FileProblem::SeveralFiles { expression: expression.to_owned(), count: others + 1 }),
        (None, _) => Err(FileProblem::NoFile { expression: expression.to_owned() }),
    }
}

/// Returns the bytes of a file, if it has no more than `max`.
pub(crate) fn read(file: &str, max: usize, source: &dyn Source) -> Result<Vec<u8>, FileProblem> {
    let unreadable = |why| FileProblem::Unreadable { file: file.to_owned(), why };
    let bytes = source.read(file, max).map_err(unreadable)?;
    if bytes.len() > max { Err(FileProblem::TooLarge { file: file.to_owned(), max }) } else { Ok(bytes) }
}

/// Returns the folder that a file lies in; `""` is the current one.
#[must_use]
pub fn folder_of(file: &str) -> &str {
    match file.rfind('/') {
        Some(0) => "/",
        Some(slash) => &file[..slash],
        None => "",
    }
}

/// Joins a path to a folder.
#[must_use]
pub fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    let mut joined = folder.to_owned();
    if !joined.ends_with('/') {
        joined.push('/');
    }
    joined.push_str(path);
    joined
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let plain = parts.join("/");
    if path.starts_with('/') { join("/", &plain) } else { plain }
}

#[cfg(test)]
pub(crate) mod tests;
