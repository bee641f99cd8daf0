//! Which files fit a pattern?

use super::expand::Letter;
use super::{FILES_MAX, Source, join};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// Tells whether a word is more than one path.
pub(super) fn is_pattern(word: &[Letter]) -> bool {
    word.iter().any(|(letter, plain)| !plain && matches!(letter, '*' | '?' | '['))
}

/// Returns the paths that fit a word, in order; those beyond the bound are left out, but one.
pub(super) fn glob(word: &[Letter], folder: &str, source: &dyn Source) -> Vec<String> {
    let rooted = word.first().is_some_and(|(letter, _)| *letter == '/');
    let start = if rooted { "/" } else { folder };
    let parts: Vec<&[Letter]> = word.split(|(letter, _)| *letter == '/').filter(|part| !part.is_empty()).collect();
    let mut paths = Vec::from([start.to_owned()]);
    let mut certain = true;
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        let mut longer = Vec::new();
        for path in &paths {
            if is_pattern(part) {
                let mut names = source.list(path);
                names.retain(|name| fits(part, name));
                names.sort_unstable();
                longer.extend(names.iter().map(|name| join(path, name)));
            } else {
                let name: String = part.iter().map(|(letter, _)| *letter).collect();
                if certain || !last || source.list(path).contains(&name) {
                    longer.push(join(path, &name));
                }
            }
            if longer.len() > FILES_MAX {
                break;
            }
        }
        longer.truncate(FILES_MAX + 1);
        certain = certain && !is_pattern(part);
        paths = longer;
    }
    paths
}

/// Tells whether a name fits one part of a pattern. A dot at the start is fitted by a dot only, as in the shell.
fn fits(pattern: &[Letter], name: &str) -> bool {
    if name.starts_with('.') && pattern.first().is_none_or(|(first, _)| *first != '.') {
        return false;
    }
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut done) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while done < name.len() {
        match pattern.get(at) {
            Some(('*', false)) => {
                star = Some((at, done));
                at += 1;
                continue;
            }
            Some(_) => {
                let (yes, length) = one(&pattern[at..], name[done]);
                if yes {
                    at += length;
                    done += 1;
                    continue;
                }
            }
            None => {}
        }
        // What follows the last star does not fit here: let the star take one more.
        let Some((place, taken)) = star else { return false };
        star = Some((place, taken + 1));
        at = place + 1;
        done = taken + 1;
    }
    pattern[at..].iter().all(|letter| *letter == ('*', false))
}

/// Tells whether the pattern's first element fits a letter, and how long the element is.
fn one(pattern: &[Letter], letter: char) -> (bool, usize) {
    match pattern[0] {
        ('?', false) => (true, 1),
        ('[', false) => set(pattern, letter).unwrap_or((letter == '[', 1)),
        (plain, _) => (plain == letter, 1),
    }
}

/// Tells whether `[a-z]` or `[!a-z]` holds a letter, and how long the set is; `None` if it is not closed.
fn set(pattern: &[Letter], letter: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some(('!' | '^', false)));
    let first = if negated { 2 } else { 1 };
    let close = (first + 1..pattern.len()).find(|at| pattern[*at] == (']', false))?;
    let mut held = false;
    let mut at = first;
    while at < close {
        let from = pattern[at].0;
        if at + 2 < close && pattern[at + 1] == ('-', false) {
            held |= (from..=pattern[at + 2].0).contains(&letter);
            at += 3;
        } else {
            held |= from == letter;
            at += 1;
        }
    }
    Some((held != negated, close + 1))
}
