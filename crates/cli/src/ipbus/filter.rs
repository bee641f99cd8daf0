//! Which nodes and devices do patterns fit?

use super::board::usage;
use crate::{Error, args};
use hodo_catalog::ipbus::pattern::Pattern;
use hodo_catalog::ipbus::table::{Node, Table};

/// The nodes that one of the patterns fits, and those below them; all where there is no pattern.
pub fn nodes<'t>(table: &'t Table, filter: &args::Filter) -> Result<Vec<Node<'t>>, Error> {
    let patterns = patterns(filter)?;
    if patterns.is_empty() {
        return Ok(table.iter().collect());
    }
    let count = table.iter().count() + 1;
    let mut taken = vec![false; count];
    for (text, pattern) in filter.patterns.iter().zip(&patterns) {
        let fitting = table.nodes(pattern);
        if fitting.is_empty() {
            return Err(Error::Usage(format!("no node fits `{text}`; `hodo ipbus nodes` lists them")));
        }
        for node in fitting {
            std::iter::once(node).chain(node.iter()).for_each(|node| taken[node.number() as usize] = true);
        }
    }
    Ok(table.iter().filter(|node| taken[node.number() as usize]).collect())
}

/// The patterns, read.
pub fn patterns(filter: &args::Filter) -> Result<Vec<Pattern>, Error> {
    let read =
        |text: &String| if filter.glob { Pattern::new(&expression(text)) } else { Pattern::new(text) }.map_err(usage);
    filter.patterns.iter().map(read).collect()
}

/// The regular expression of a shell's pattern, in which a star and a question mark stop at dots.
fn expression(glob: &str) -> String {
    let mut text = String::new();
    let mut letters = glob.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' if letters.next_if_eq(&'*').is_some() => text.push_str(".*"),
            '*' => text.push_str("[^.]*"),
            '?' => text.push_str("[^.]"),
            '[' => {
                text.push('[');
                if letters.next_if_eq(&'!').is_some() {
                    text.push('^');
                }
            }
            ']' | '-' => text.push(letter),
            _ if letter.is_alphanumeric() || letter == '_' => text.push(letter),
            _ => text.extend(['\\', letter]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_stops_at_dots() {
        let fits = |glob: &str, name: &str| Pattern::new(&expression(glob)).unwrap().fits(name);
        assert!(fits("links.*.delay", "links.link0.delay"));
        assert!(!fits("links.*", "links.link0.delay"));
        assert!(fits("links.**", "links.link0.delay"));
        assert!(fits("l?nk[0-3]", "link2") && !fits("link[!0-3]", "link2") && !fits("link?", "link."));
        assert!(fits("a+b (c)-d", "a+b (c)-d") && !fits("a+b", "aab"));
    }
}
