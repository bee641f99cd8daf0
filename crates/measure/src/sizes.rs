//! Sizes as people write them: `64,1024,32K`, `1..1M*2`, `60..1020+60`.

use crate::units::bytes;
use std::fmt;
use std::str::FromStr;

/// More measurements than anyone waits for.
const SIZES_MAX: usize = 1000;

/// One or more sizes of an operation, in the order given, each at least one byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(Vec<u32>);

impl Sizes {
    /// Creates a list of these sizes, of which there has to be at least one.
    pub fn of(sizes: &[u32]) -> Self {
        debug_assert!(!sizes.is_empty());
        Sizes(sizes.to_vec())
    }

    /// Returns all sizes.
    pub fn values(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                None => sizes.push(size(item)?),
                Some((first, rest)) => range(item, first, rest, &mut sizes)?,
            }
            if sizes.len() > SIZES_MAX {
                return Err(format!("`{text}` gives more than {SIZES_MAX} sizes; choose a larger step"));
            }
        }
        Ok(Sizes(sizes))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

/// How the sizes of a range rise.
enum Step {
    Times(u32),
    Plus(u32),
}

impl Step {
    fn after(&self, size: u32) -> Option<u32> {
        match self {
            Step::Times(factor) => size.checked_mul(*factor),
            Step::Plus(bytes) => size.checked_add(*bytes),
        }
    }
}

/// Appends the sizes of `first..last*factor` or `first..last+step`; the last one is always among them.
fn range(item: &str, first: &str, rest: &str, sizes: &mut Vec<u32>) -> Result<(), String> {
    let how = "write 1..1M*2 to multiply or 60..1020+60 to add";
    let (last, step) = if let Some((last, factor)) = rest.split_once('*') {
        let factor = factor.parse().ok().filter(|factor| *factor >= 2);
        (last, Step::Times(factor.ok_or_else(|| format!("`{item}`: the factor is a whole number from 2; {how}"))?))
    } else if let Some((last, step)) = rest.split_once('+') {
        (last, Step::Plus(size(step)?))
    } else {
        return Err(format!("the range `{item}` has no step; {how}"));
    };
    let (first, last) = (size(first)?, size(last)?);
    if first > last {
        return Err(format!("the range `{item}` begins above its end; {how}"));
    }
    let mut next = Some(first);
    // One more than the bound, so that the caller sees that it is passed.
    while let Some(size) = next.filter(|size| *size < last && sizes.len() <= SIZES_MAX) {
        sizes.push(size);
        next = step.after(size);
    }
    sizes.push(last);
    Ok(())
}

fn size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(bytes(text)?).ok().filter(|size| *size >= 1);
    size.ok_or_else(|| format!("a size of {text} bytes is not in 1..={}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<u32> {
        text.parse::<Sizes>().unwrap().0
    }

    #[test]
    fn lists() {
        assert_eq!(values("64"), [64]);
        assert_eq!(values("64,1024,32K"), [64, 1024, 32 << 10]);
        assert_eq!(values("1024,64"), [1024, 64]);
    }

    #[test]
    fn ranges_multiply() {
        let sizes = values("1..1M*2");
        assert_eq!((sizes.len(), sizes[0], sizes[20]), (21, 1, 1 << 20));
        assert_eq!(values("1..1000*10"), [1, 10, 100, 1000]);
        assert_eq!(values("1..500*10"), [1, 10, 100, 500]);
        assert_eq!(values("7..7*2"), [7]);
    }

    #[test]
    fn ranges_add() {
        let sizes = values("60..1020+60");
        assert_eq!((sizes.len(), sizes[0], sizes[16]), (17, 60, 1020));
        assert_eq!(values("1..4+2"), [1, 3, 4]);
        assert_eq!(values("64,1K..3K+1K"), [64, 1024, 2048, 3072]);
    }

    #[test]
    fn ends_at_the_largest_number() {
        assert_eq!(values("2147483648..4294967295*2"), [1 << 31, u32::MAX]);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, said) in [
            ("", "not a size"),
            ("64,", "not a size"),
            ("0", "1..=4294967295"),
            ("4G", "1..=4294967295"),
            ("1..64", "no step"),
            ("64..1*2", "above its end"),
            ("1..64*1", "factor"),
            ("1..64*x", "factor"),
            ("1..64+0", "1..="),
            ("1..1M+1", "more than 1000 sizes"),
            ("1..64*2*2", "factor"),
        ] {
            let wrong = text.parse::<Sizes>().unwrap_err();
            assert!(wrong.contains(said), "{text}: {wrong}");
        }
    }
}
