use crate::Complaint;
use crate::source::{Language, Source};

/// Folders of the crates without sockets, threads and clocks: the machines of each protocol, and what they share.
const NO_STD: &[&str] = &["crates/machine/", "protocols/*/machines/"];

/// Folders of the crates that no protocol owns. The catalog's list, the command's own files, tests, fuzz targets, benches and
/// documents may name a protocol: they are about it, or check it by name.
const SHARED: &[&str] = &[
    "crates/machine/src/",
    "crates/units/src/",
    "crates/io/src/",
    "crates/sim/src/",
    "crates/measure/src/",
    "crates/report/src/",
    "crates/store/src/",
    "crates/daemon/src/",
    "crates/tester/src/",
];

/// Names that belong to one protocol. `raw` is too common a word, so that its crates stand for it.
const PROTOCOLS: &[&str] =
    &["hodo_raw", "ipbus", "uhal", "controlhub", "farm", "farms", "pvaccess", "spacewire", "roce"];

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;

/// Checks that a file is short enough to hold one idea.
#[must_use]
pub fn file_length(source: &Source) -> Vec<Complaint> {
    let lines = source.code.lines().count() - test_lines(source);
    if lines <= FILE_LINES || source.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    vec![complaint(source, 1, format!("{lines} lines without tests, at most {FILE_LINES}: split it by idea"))]
}

/// Lines of the modules that are compiled for tests only.
fn test_lines(source: &Source) -> usize {
    let mut lines = 0;
    for (at, _) in source.code.match_indices("#[cfg(test)]") {
        let after = &source.code[at..];
        let opens = after.find('{').filter(|open| after[..*open].contains("mod "));
        if let Some(length) = opens.filter(|open| !after[..*open].contains(';')).and_then(|open| braces(after, open)) {
            lines += after[..length].lines().count();
        }
    }
    lines
}

/// Checks that every function fits on a screen.
#[must_use]
pub fn function_length(source: &Source) -> Vec<Complaint> {
    let found = match source.language {
        Language::Rust => rust_functions(&source.code),
        Language::Python => python_functions(&source.code),
    };
    found
        .into_iter()
        .filter(|(_, _, lines)| *lines > FUNCTION_LINES)
        .map(|(line, name, lines)| {
            let text = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES}: give its parts names");
            complaint(source, line, text)
        })
        .collect()
}

/// Returns line, name and number of lines of every function that has a body.
fn rust_functions(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let name = word_at(code[at + 2..].trim_start());
        let Some(open) = body_start(&code[at..]) else { continue };
        let Some(length) = braces(&code[at..], open) else { continue };
        if !name.is_empty() {
            found.push((line_of(code, at), name.to_owned(), code[at..at + length].lines().count()));
        }
    }
    found
}

/// Finds the body's brace; `None` for a function without a body. Braces inside brackets belong to a type.
fn body_start(code: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(at),
            _ if depth < 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the length of the text up to the brace that closes the one at `open`.
fn braces(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(open + at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn python_functions(code: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let Some(rest) = text.strip_prefix("async ").unwrap_or(text).strip_prefix("def ") else { continue };
        let indent = line.len() - text.len();
        let (mut depth, mut end) = (brackets(line), index + 1);
        for (number, next) in lines.iter().enumerate().skip(index + 1) {
            let inside = depth > 0 || next.len() - next.trim_start().len() > indent;
            if !next.trim().is_empty() {
                if !inside {
                    break;
                }
                end = number + 1;
            }
            depth += brackets(next);
        }
        found.push((index + 1, word_at(rest).to_owned(), end - index));
    }
    found
}

fn brackets(line: &str) -> i32 {
    line.chars()
        .map(|c| {
            if "([{".contains(c) {
                1
            } else if ")]}".contains(c) {
                -1
            } else {
                0
            }
        })
        .sum()
}

/// Checks that time is an argument, except where the sockets are and in the command.
#[must_use]
pub fn clock(source: &Source) -> Vec<Complaint> {
    if source.language == Language::Python || below(source, &["crates/io/", "crates/cli/"]) {
        return Vec::new();
    }
    let remedy = "only crates/io and crates/cli have a clock: take the time as an argument";
    matching(source, &source.code, &["Instant::now", "SystemTime::now", "thread::sleep"], remedy)
}

/// Checks that no test asks for more than one operation in a time: how many there are is for the machine to say. `--count` makes sure of a number.
#[must_use]
pub fn operations_in_a_time(source: &Source) -> Vec<Complaint> {
    if source.language != Language::Python || !below(source, &["tests/"]) {
        return Vec::new();
    }
    let asked = "[\"operations\"] > ";
    source
        .text
        .match_indices(asked)
        .filter(|(at, _)| source.text[at + asked.len()..].starts_with(|digit: char| ('1'..='9').contains(&digit)))
        .map(|(at, _)| {
            let text = "more operations than a busy machine may do in the time: take --count, or `> 0`".to_owned();
            complaint(source, line_of(&source.text, at), text)
        })
        .collect()
}

/// Checks that `unsafe` stands only where the system calls are, and in the C interfaces for simulators of hardware.
#[must_use]
pub fn unsafe_code(source: &Source) -> Vec<Complaint> {
    let counting_allocator = below(source, &["crates/", "protocols/"]) && source.path.contains("/tests/");
    let is_c_interface = below(source, &["protocols/"]) && source.path.split('/').nth(2) == Some("hdl");
    let is_allowed = below(source, &["crates/io/"]) || is_c_interface || counting_allocator;
    if source.language == Language::Python || is_allowed {
        return Vec::new();
    }
    words(&source.code, "unsafe")
        .map(|at| {
            let text = "`unsafe` outside crates/io: move it there behind a safe function".to_owned();
            complaint(source, line_of(&source.code, at), text)
        })
        .collect()
}

/// Checks that the files that somebody names are read in one place, which has a bound. The store reads what it wrote, and `Files` of IPbus has
/// the bound of its caller.
#[must_use]
pub fn reading(source: &Source) -> Vec<Complaint> {
    let is_ours = below(source, &["crates/", "protocols/"]) && source.path.contains("/src/");
    let has_own = ["crates/io/", "crates/store/", "protocols/ipbus/host/src/file_system.rs"];
    // A module of samples for tests.
    let is_sample = source.path == "crates/report/src/sample.rs";
    if source.language == Language::Python || !is_ours || below(source, &has_own) || is_sample || is_test(source) {
        return Vec::new();
    }
    let shipped = source.code.split("#[cfg(test)]").next().unwrap_or_default();
    let remedy = "it has no bound: take `hodo_io::files`, or in the command `input`";
    matching(source, shipped, &["File::open", "fs::read(", "fs::read_to_string("], remedy)
}

/// Refuses the macros that print: on a full disk or a closed pipe they panic, and an unread pipe stops their thread.
#[must_use]
pub fn printing(source: &Source) -> Vec<Complaint> {
    let is_ours = below(source, &["crates/", "protocols/"]) && source.path.contains("/src/");
    if source.language == Language::Python || !is_ours || is_test(source) {
        return Vec::new();
    }
    let remedy = "it panics on a full disk: log with `tracing`, return the text, or in the command use `terminal`";
    ["println", "eprintln", "print", "eprint", "dbg"]
        .iter()
        .flat_map(|name| words(&source.code, name).map(move |at| (at, name)))
        .filter(|(at, name)| source.code[at + name.len()..].starts_with('!'))
        .map(|(at, name)| complaint(source, line_of(&source.code, at), format!("`{name}!`: {remedy}")))
        .collect()
}

fn is_test(source: &Source) -> bool {
    source.path.ends_with("/tests.rs") || source.path.contains("/tests/")
}

/// Checks that nothing is left unfinished and that every test runs: with `#[ignore = "timing"]` in `./test long timing`.
#[must_use]
pub fn unfinished(source: &Source) -> Vec<Complaint> {
    let mut found =
        matching(source, &source.code, &["todo!", "unimplemented!", "#[ignore"], "finish it or leave it out");
    let lines: Vec<&str> = source.text.lines().collect();
    found.retain(|complaint| lines[complaint.line - 1].trim() != "#[ignore = \"timing\"]");
    for mark in ["TODO", "FIXME", "XXX"] {
        found.extend(words(&source.prose, mark).map(|at| {
            let text = format!("`{mark}`: do it, or write an issue and leave the note out");
            complaint(source, line_of(&source.prose, at), text)
        }));
    }
    found
}

/// Nouns and verbs of the field, not of programming.
#[must_use]
pub fn names(source: &Source) -> Vec<Complaint> {
    let mut found = Vec::new();
    for keyword in ["fn", "def"] {
        for (line, name) in declared(&source.code, keyword) {
            if name.starts_with("get_") {
                found.push(complaint(source, line, format!("`{name}`: call it by what it answers, without `get_`")));
            }
        }
    }
    for keyword in ["struct", "enum", "trait", "type", "class", "union"] {
        for (line, name) in declared(&source.code, keyword) {
            if let Some(word) = ["Manager", "Helper", "Util"].iter().find(|word| name.contains(**word)) {
                found.push(complaint(source, line, format!("`{name}`: `{word}` says nothing, name what it is")));
            }
        }
    }
    let stem = source.path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
    if ["util", "utils", "helper", "helpers", "manager", "common", "misc"].contains(&stem) {
        found.push(complaint(source, 1, format!("a file called `{stem}` is about nothing: name it by its idea")));
    }
    found
}

/// Returns line and name of everything declared with a keyword.
fn declared<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = (usize, &'a str)> + 'a {
    words(code, keyword).filter_map(move |at| {
        let after = &code[at + keyword.len()..];
        let name = word_at(after.trim_start());
        (after.starts_with(' ') && !name.is_empty()).then(|| (line_of(code, at), name))
    })
}

/// Checks that a crate's root says what the crate is.
#[must_use]
pub fn crate_docs(source: &Source) -> Vec<Complaint> {
    let is_root = source.path.ends_with("src/lib.rs") || source.path.ends_with("src/main.rs");
    if !is_root || ["//!", "#![doc = include_str!("].iter().any(|begin| source.text.starts_with(begin)) {
        return Vec::new();
    }
    let text = "no crate documentation: begin with `//!` and one sentence, or include the crate's README.md";
    vec![complaint(source, 1, text.to_owned())]
}

/// Protocols have no sockets, threads or clocks; the compiler sees to it where `std` is absent.
#[must_use]
pub fn no_std_attribute(source: &Source) -> Vec<Complaint> {
    let is_root = source.path.ends_with("/src/lib.rs") && is_machines(&source.path);
    if !is_root || source.code.lines().any(|line| line.trim() == "#![no_std]") {
        return Vec::new();
    }
    vec![complaint(source, 1, "a protocol crate without `#![no_std]`: add it, and `extern crate alloc`".to_owned())]
}

/// Returns whether a file, named from the root, belongs to a crate that does without `std`.
#[must_use]
pub fn is_machines(path: &str) -> bool {
    NO_STD.iter().any(|folder| match folder.split_once('*') {
        Some((before, after)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(_, rest)| format!("/{rest}").starts_with(after)),
        None => path.starts_with(folder),
    })
}

/// Checks that the crates that every protocol shares name none of them, in code or comments.
#[must_use]
pub fn protocol_names(source: &Source) -> Vec<Complaint> {
    if !below(source, SHARED) || source.is_test() {
        return Vec::new();
    }
    let named = |text: &str, name: &str| {
        let lower = text.to_lowercase();
        let stands_alone = |at: &usize| {
            let is_part = |c: Option<char>| c.is_some_and(|c| is_word(c) || c == '-');
            !is_part(lower[..*at].chars().next_back()) && !is_part(lower[*at + name.len()..].chars().next())
        };
        lower.match_indices(name).map(|(at, _)| at).find(stands_alone).is_some()
    };
    let lines = source.prose.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let name = PROTOCOLS.iter().find(|name| named(line, name))?;
            let text =
                format!("`{name}` is a protocol's: say it without the name, or move it to the protocol's folder");
            Some(complaint(source, at + 1, text))
        })
        .collect()
}

fn below(source: &Source, folders: &[&str]) -> bool {
    folders.iter().any(|folder| source.path.starts_with(folder))
}

fn matching(source: &Source, text: &str, patterns: &[&str], remedy: &str) -> Vec<Complaint> {
    let mut found = Vec::new();
    for pattern in patterns {
        for (at, _) in text.match_indices(pattern) {
            found.push(complaint(source, line_of(text, at), format!("`{pattern}`: {remedy}")));
        }
    }
    found
}

fn complaint(source: &Source, line: usize, text: String) -> Complaint {
    Complaint { path: source.path.clone(), line, text }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Finds the places where `word` stands as a whole word.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !text[..*at].chars().next_back().is_some_and(is_word)
            && !text[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

fn word_at(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
