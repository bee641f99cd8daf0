//! Text that somebody else has chosen: a client's name, a server's message, a value. It stands in logs, on pages and on terminals, where it
//! has to be seen as what it is.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write;

/// Characters of a name that are shown.
const NAME_MAX: usize = 64;

/// Returns whether a character does more than to show: it moves, colours or ends what is beside it, turns the direction of writing, or is
/// not seen at all.
#[must_use]
pub fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}'
        )
}

/// Returns a text as one line that does nothing but show: characters that do more are escaped, as `\n` or `\u{1b}`.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    without(text, is_active)
}

/// Returns a text of several lines as [`harmless`] does each of them; tabs stay, too.
#[must_use]
pub fn harmless_lines(text: &str) -> Cow<'_, str> {
    without(text, |c| is_active(c) && !matches!(c, '\n' | '\t'))
}

/// Returns a name that a far end claims, of at most 64 characters: as it is if it has letters, digits and `._-+$:/%` alone, else between
/// quotes, so that nothing in it can be taken for what stands beside it.
#[must_use]
pub fn harmless_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| (c.is_alphanumeric() && !is_active(c)) || "._-+$:/%".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) && name.chars().count() <= NAME_MAX {
        return name.into();
    }
    let mut quoted = String::from("\"");
    for c in name.chars().take(NAME_MAX) {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_active(c) => quoted.extend(c.escape_default()),
            c => quoted.push(c),
        }
    }
    quoted.push_str(if name.chars().nth(NAME_MAX).is_some() { "…\"" } else { "\"" });
    quoted.into()
}

/// Returns JSON in which characters that do more than to show are escaped as JSON escapes them: the same values to every reader.
#[must_use]
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_active_in_json) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_active_in_json(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes whatever is written");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Returns whether a character has to be escaped within a document: those below a space are white space there, or escaped already.
fn is_active_in_json(c: char) -> bool {
    is_active(c) && c >= ' '
}

fn without(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds one of each kind: a line feed, a colour, a title, a carriage return, C1, right-to-left, an invisible one, a line separator.
    const KINDS: &str = "a\nb\u{1b}[31mc\u{1b}]0;t\u{7}\r\u{9b}2J\u{202e}\u{2066}d\u{200b}\u{2028}\u{feff}é√";

    #[test]
    fn only_what_shows_is_left() {
        let shown = harmless(KINDS);
        assert!(
            !shown.chars().any(is_active) && shown.starts_with(r"a\nb\u{1b}[31mc\u{1b}]0;t\u{7}\r\u{9b}2J\u{202e}")
        );
        assert!(shown.ends_with("é√"));
        assert_eq!(harmless_lines("a\tb\n\u{1b}[0m\r\n"), "a\tb\n\\u{1b}[0m\\r\n");
        for text in ["", "déjà vu", "\"a\\b\"", "日本語", "a\u{301}", "👩\u{200d}🔬"] {
            assert!(matches!(harmless(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn a_name_cannot_be_taken_for_what_stands_beside_it() {
        for name in ["alice", "José", "dc-1.lab.example", "svc_7$", "::1", "10.0.0.1:5075"] {
            assert_eq!(harmless_name(name), name);
        }
        for (name, shown) in [
            ("", "\"\""),
            ("root@ioc (10.0.0.1) has put 5", "\"root@ioc (10.0.0.1) has put 5\""),
            ("a\" b\\", "\"a\\\" b\\\\\""),
            ("x\n1.000\tPV", "\"x\\n1.000\\tPV\""),
            ("\u{202e}toor", "\"\\u{202e}toor\""),
        ] {
            assert_eq!(harmless_name(name), shown);
        }
        let long = harmless_name(&"é".repeat(100_000)).into_owned();
        assert_eq!((long.chars().count(), long.ends_with("é…\"")), (NAME_MAX + 3, true));
    }

    #[test]
    fn json_has_the_same_values() {
        assert_eq!(harmless_json("{\"a\": \"\u{202e}\u{9b}é\\n\"}\n"), "{\"a\": \"\\u202e\\u009bé\\n\"}\n");
        assert_eq!(harmless_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
        assert!(matches!(harmless_json("{}\n"), Cow::Borrowed(_)));
    }
}
