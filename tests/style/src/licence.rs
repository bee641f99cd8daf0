/// Returns whether one of the choices that an SPDX expression leaves is among the `allowed` licences.
///
/// `WITH` binds to its licence: `Apache-2.0 WITH LLVM-exception` is allowed by that name only. The old `A/B` is `A OR B`.
#[must_use]
pub fn satisfiable(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let holds = parser.any_of();
    holds && parser.at == parser.words.len()
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn any_of(&mut self) -> bool {
        let mut holds = self.all_of();
        while self.accept("OR") {
            holds |= self.all_of();
        }
        holds
    }

    fn all_of(&mut self) -> bool {
        let mut holds = self.one();
        while self.accept("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.accept("(") {
            let holds = self.any_of();
            return self.accept(")") && holds;
        }
        let Some(name) = self.words.get(self.at).copied() else { return false };
        self.at += 1;
        if !self.accept("WITH") {
            return self.allowed.contains(&name);
        }
        let exception = self.words.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        self.allowed.contains(&format!("{name} WITH {exception}").as_str())
    }

    fn accept(&mut self, word: &str) -> bool {
        let there = self.words.get(self.at) == Some(&word);
        self.at += usize::from(there);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::satisfiable;

    #[test]
    fn an_expression_holds_where_a_choice_is_allowed() {
        let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for (expression, holds) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND BSD-3-Clause", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0 WITH other", false),
            ("MIT OR", true),
            ("(MIT", false),
            ("MIT)", false),
            ("", false),
        ] {
            assert_eq!(satisfiable(expression, &allowed), holds, "{expression}");
        }
    }
}
