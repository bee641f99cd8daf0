//! Patterns that choose nodes and devices.

use super::Error;
use hodo_uhal::pattern::Pattern;
use hodo_uhal::table::{Node, Table};

/// Patterns that choose nodes or devices by their names; none chooses all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The patterns.
    pub patterns: Vec<String>,
    /// Whether they are the shell's; else they are regular expressions that fit whole names.
    pub glob: bool,
}

impl Filter {
    /// Returns the nodes that a pattern fits, and those below them.
    ///
    /// # Errors
    /// [`Error::Usage`] if a pattern is wrong, or fits no node.
    pub fn nodes<'t>(&self, table: &'t Table) -> Result<Vec<Node<'t>>, Error> {
        let patterns = self.patterns()?;
        if patterns.is_empty() {
            return Ok(table.iter().collect());
        }
        let count = table.iter().count() + 1;
        let mut taken = vec![false; count];
        for (text, pattern) in self.patterns.iter().zip(&patterns) {
            let fitting = table.nodes(pattern);
            if fitting.is_empty() {
                return Err(Error::Usage(format!("no node matches `{text}`; `hodo ipbus nodes` lists them")));
            }
            for node in fitting {
                std::iter::once(node).chain(node.iter()).for_each(|node| taken[node.number() as usize] = true);
            }
        }
        Ok(table.iter().filter(|node| taken[node.number() as usize]).collect())
    }

    /// Parses the patterns.
    ///
    /// # Errors
    /// [`Error::Usage`] with the pattern that is wrong.
    pub fn patterns(&self) -> Result<Vec<Pattern>, Error> {
        let read = |text: &String| if self.glob { Pattern::new(&expression(text)) } else { Pattern::new(text) };
        self.patterns.iter().map(|text| read(text).map_err(|why| Error::Usage(why.to_string()))).collect()
    }
}

/// Returns the regular expression of a shell's pattern, in which a star and a question mark stop at dots.
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
