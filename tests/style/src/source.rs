use crate::root;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// The programming language of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Python.
    Python,
}

/// A source file in three forms with the same lines, so that a rule sees only what it is about.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, from the root of the repository.
    pub path: String,
    /// The programming language.
    pub language: Language,
    /// As it is.
    pub text: String,
    /// With strings blanked.
    pub prose: String,
    /// With strings and comments blanked.
    pub code: String,
}

impl Source {
    /// Creates one from a path, which tells the language, and its text.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        let language =
            if Path::new(path).extension().is_some_and(|end| end == "py") { Language::Python } else { Language::Rust };
        let (prose, code) = match language {
            Language::Rust => blank(text, rust_token),
            Language::Python => blank(text, python_token),
        };
        Source { path: path.to_owned(), language, text: text.to_owned(), prose, code }
    }

    /// Returns whether the whole file holds tests.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests")
    }
}

/// Returns whether a Rust or Python file has a test of this name.
#[must_use]
pub fn has_test(text: &str, name: &str) -> bool {
    ["def", "fn"].iter().any(|word| text.contains(&format!("{word} {name}(")))
}

/// Returns every Rust and Python file of this repository, without what is built. They are read once.
#[must_use]
pub fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        let mut found = Vec::new();
        walk(&root(), &root(), &mut found);
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found
    });
    &SOURCES
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.map(|entry| entry.expect("a folder that could be opened can be listed")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "results", "artifacts", "__pycache__"].contains(&name.as_str()) {
                walk(root, &path, found);
            }
        } else if name.ends_with(".rs") || name.ends_with(".py") {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let relative = path.strip_prefix(root).expect("the walk began at the root");
            found.push(Source::new(&relative.to_string_lossy(), &text));
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Code,
    Comment,
    String,
}

/// Returns the text without strings, and without strings and comments. `token` says what the front is and how long.
fn blank(text: &str, token: fn(&str, Option<char>) -> (Token, usize)) -> (String, String) {
    let (mut prose, mut code) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let (mut rest, mut before) = (text, None);
    while !rest.is_empty() {
        let (kind, length) = token(rest, before);
        let (front, after) = rest.split_at(length);
        let spaces = || front.chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        match kind {
            Token::Code => {
                prose.push_str(front);
                code.push_str(front);
            }
            Token::Comment => {
                prose.push_str(front);
                code.extend(spaces());
            }
            Token::String => {
                prose.extend(spaces());
                code.extend(spaces());
            }
        }
        before = front.chars().next_back();
        rest = after;
    }
    (prose, code)
}

fn rust_token(rest: &str, before: Option<char>) -> (Token, usize) {
    if rest.starts_with("//") {
        return (Token::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Token::Comment, rust_block_comment(rest));
    }
    if rest.starts_with('"') {
        return (Token::String, quoted(rest, "\""));
    }
    let inside_a_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !inside_a_word && let Some(length) = rust_raw_string(rest) {
        return (Token::String, length);
    }
    if rest.starts_with('\'')
        && let Some(length) = rust_character(rest)
    {
        return (Token::String, length);
    }
    (Token::Code, rest.chars().next().map_or(0, char::len_utf8))
}

fn rust_block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(front) = rest.get(at..) {
        if front.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if front.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else if let Some(c) = front.chars().next() {
            at += c.len_utf8();
        } else {
            break;
        }
    }
    rest.len()
}

/// Returns the length of `r"…"`, `r#"…"#`, `br"…"` and the like.
fn rust_raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(rest.len() - body.len() + end)
}

/// Returns the length of a character literal, or nothing for a lifetime.
fn rust_character(rest: &str) -> Option<usize> {
    let mut chars = rest[1..].chars();
    let first = chars.next()?;
    if first == '\\' {
        return Some(quoted(rest, "'"));
    }
    (chars.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

fn python_token(rest: &str, _before: Option<char>) -> (Token, usize) {
    if rest.starts_with('#') {
        return (Token::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if rest.starts_with(quote) {
            return (Token::String, quoted(rest, quote));
        }
    }
    (Token::Code, rest.chars().next().map_or(0, char::len_utf8))
}

/// Returns the length of a literal that begins and ends with `quote` and escapes with a backslash.
fn quoted(rest: &str, quote: &str) -> usize {
    let mut at = quote.len();
    while let Some(front) = rest.get(at..) {
        if front.starts_with(quote) {
            return at + quote.len();
        }
        let mut chars = front.chars();
        let Some(c) = chars.next() else { break };
        at += c.len_utf8();
        if c == '\\' {
            at += chars.next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_strings_and_comments_of_rust_and_keeps_the_lines() {
        let text = "let a = \"x\\\"{\"; // note {\nlet b: &'a u8 = r#\"}\"#; /* } /* } */ */ '{' 'a'";
        let source = Source::new("a.rs", text);
        let lines: Vec<&str> = source.code.lines().map(str::trim_end).collect();
        assert_eq!(lines, ["let a =       ;", "let b: &'a u8 =       ;"]);
        assert!(source.prose.contains("// note {"));
        assert_eq!(source.prose.len(), source.text.len());
    }

    #[test]
    fn blanks_strings_and_comments_of_python() {
        let source = Source::new("a.py", "a = 'it\\'s' # note\n\"\"\"doc\n(\n\"\"\"\nb = 1\n");
        assert!(!source.code.contains("note") && !source.code.contains('(') && !source.code.contains("it"));
        assert!(source.prose.contains("# note"));
        assert_eq!(source.code.lines().count(), 5);
    }

    #[test]
    fn a_lifetime_is_not_a_character() {
        assert_eq!(rust_character("'a>"), None);
        assert_eq!(rust_character("'a'"), Some(3));
        assert_eq!(rust_character("'\\n'"), Some(4));
        assert_eq!(rust_character("'\\''"), Some(4));
    }
}
