use crate::Complaint;
use crate::source::{Language, Source};

/// First words of a sentence that lean on something said elsewhere.
const LEANING: &[&str] =
    &["Of", "Its", "Their", "The same", "Answers", "Asks", "What", "Who", "Whose", "So many", "Nothing where"];

/// Words with the ending of a verb that are none.
const NO_VERBS: &[&str] = &["Always", "As", "Its", "Perhaps", "This", "Thus", "Unless", "Us"];

/// Names of types that say nothing of what the type is.
const EMPTY_NAMES: &[&str] =
    &["Desk", "Attending", "Seen", "Told", "Part", "Given", "Wanted", "Held", "Asked", "Brought", "Doing", "Lies"];

/// Checks that a documentation comment stands alone, and that of a function begins with a verb: Returns, Sends, Parses.
#[must_use]
pub fn sentences(source: &Source) -> Vec<Complaint> {
    if source.language != Language::Rust {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(first) = documentation(lines[at]) else {
            at += 1;
            continue;
        };
        let item = lines[at..].iter().position(|line| documentation(line).is_none() && !is_attribute(line));
        let end = item.map_or(lines.len(), |length| at + length);
        let mut complain = |text: String| found.push(Complaint { path: source.path.clone(), line: at + 1, text });
        if let Some(word) = LEANING.iter().find(|word| begins_with(first, word)) {
            complain(format!("a sentence that begins with `{word}` does not stand alone: see CONTRIBUTING.md, Words"));
        } else if lines.get(end).is_some_and(|line| is_function(line))
            && !is_test(&lines[at..end])
            && !begins_with_verb(first)
        {
            let word = first.split_whitespace().next().unwrap_or_default();
            complain(format!("a function's sentence begins with a verb (Returns, Sends, Parses), not with `{word}`"));
        }
        at = end.max(at + 1);
    }
    found
}

/// Checks that a type is named for what it is.
#[must_use]
pub fn type_names(source: &Source) -> Vec<Complaint> {
    if source.language != Language::Rust {
        return Vec::new();
    }
    let declares = |line: &str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let kind = words.find(|word| !["pub", "crate", "super"].contains(word))?;
        let name = words.next().filter(|_| ["struct", "enum", "trait", "type"].contains(&kind))?;
        EMPTY_NAMES.contains(&name).then(|| name.to_owned())
    };
    let lines = source.code.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let text = format!("`{}` does not say what the type is: take the field's noun", declares(line)?);
            Some(Complaint { path: source.path.clone(), line: at + 1, text })
        })
        .collect()
}

fn documentation(line: &str) -> Option<&str> {
    let text = line.trim_start();
    text.strip_prefix("///").or_else(|| text.strip_prefix("//!")).map(str::trim)
}

/// Tells whether the attributes are those of a test, whose sentence says what holds.
fn is_test(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.trim() == "#[test]")
}

fn is_attribute(line: &str) -> bool {
    line.trim_start().starts_with("#[")
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let modifier = |word: &&str| word.starts_with("pub") || ["const", "unsafe", "async", "extern"].contains(word);
    words.find(|word| !modifier(word)) == Some("fn")
}

fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\''))
}

fn begins_with_verb(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_alphabetic() && c != '-').next().unwrap_or_default();
    let capital = word.starts_with(char::is_uppercase);
    capital && word.len() > 2 && word.ends_with('s') && !word.ends_with("ss") && !NO_VERBS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        sentences(&Source::new("a.rs", text)).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn a_leaning_sentence_is_named() {
        assert_eq!(lines("/// Its size.\nsize: u8,\n/// What was sent.\nstruct A;\n"), [1, 3]);
        assert!(lines("/// Items in the queue.\nsize: u8,\n/// An offer.\nstruct A;\n// Its reason.\n").is_empty());
        assert_eq!(lines("//! Of nodes.\n"), [1]);
        assert_eq!(lines("/// A size.\n/// Its unit is the byte.\nsize: u8,\n"), [0; 0]);
    }

    #[test]
    fn a_function_begins_with_a_verb() {
        assert_eq!(lines("/// A new one.\n#[must_use]\npub const fn new() -> A {}\n"), [1]);
        assert!(lines("/// Creates an empty one.\n#[must_use]\npub(crate) fn new() -> A {}\n").is_empty());
        assert_eq!(lines("/// Always right.\nfn a() {}\n/// Success.\nfn b() {}\n"), [1, 3]);
        assert!(lines("/// A lost reply is sent again.\n#[test]\nfn resends() {}\n").is_empty());
        assert!(lines("/// Re-sends the packet.\nunsafe fn a() {}\n").is_empty());
    }

    #[test]
    fn an_empty_name_is_refused() {
        let named = |text: &str| type_names(&Source::new("a.rs", text)).len();
        assert_eq!(named("pub(crate) struct Desk<'a> {\nenum Told;\nstruct Parted;\nlet Part = 1;\n"), 2);
    }
}
