//! Regular expressions as uHAL takes them: one that fits a whole name.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;
use regex::bytes::{Regex, RegexBuilder};

/// A regular expression that fits whole names; `.` is any byte, and classes are of ASCII.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// Why a text is no regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern {
    /// The text.
    pub text: String,
    /// Error in the text.
    pub why: String,
}

impl Pattern {
    /// Reads a regular expression in Perl's syntax. It may not look around or refer back.
    ///
    /// # Errors
    /// Where it is none, or too large a one.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        // Alone first: within the group, a bracket too many could be taken for the group's own.
        compile(text)?;
        compile(&alloc::format!("\\A(?:{text})\\z")).map(Pattern)
    }

    /// Tells whether the whole of a name fits.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

fn compile(text: &str) -> Result<Regex, BadPattern> {
    RegexBuilder::new(text).unicode(false).build().map_err(|error| {
        let told = error.to_string();
        let why = told.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or(&told);
        BadPattern { text: text.to_owned(), why: why.to_owned() }
    })
}

impl core::error::Error for BadPattern {}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a valid regular expression: {}", self.text, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_must_fit() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).unwrap().fits(name);
        for pattern in ["a.*", "a1|b1", "^a1$", "[ab]1", ".1", "(a)(1)", "(?i)A1", "\\w\\d", "[[:alpha:]]1", "a1$|s"] {
            assert!(fits(pattern, "a1"), "{pattern}");
        }
        for pattern in ["a", "", "A1", "1", "a1.", "b|a"] {
            assert!(!fits(pattern, "a1"), "{pattern}");
        }
        assert!(fits("caf\u{e9}", "caf\u{e9}"));
    }

    #[test]
    fn a_bad_one_says_why() {
        let why = |pattern: &str| Pattern::new(pattern).unwrap_err().to_string();
        assert_eq!(why("("), "`(` is not a valid regular expression: unclosed group");
        assert_eq!(why("a)(b"), "`a)(b` is not a valid regular expression: unopened group");
        assert!(why("(?=a)").contains("look-around"));
        assert!(why("(a{1000}){1000}").contains("exceeds size limit"), "{}", why("(a{1000}){1000}"));
    }
}
