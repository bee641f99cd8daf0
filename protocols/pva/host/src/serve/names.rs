//! Families of names: `MOTOR{1..4}:{X,Y}` is eight names.

/// More names than one family may have.
pub const NAMES_MAX: usize = 1_000_000;

/// Returns the names of a family. `{0..999}` is each number of a range, with as many digits as the first has; `{X,Y}` is each word.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn names(family: &str) -> Result<Vec<String>, String> {
    let Some((front, rest)) = family.split_once('{') else {
        return match family {
            "" => Err("a name is empty".to_owned()),
            name if name.contains('}') => Err("} without {: write {0..9} or {X,Y}".to_owned()),
            name => Ok(vec![name.to_owned()]),
        };
    };
    let (choice, behind) = rest.split_once('}').ok_or("{ without }: write {0..9} or {X,Y}")?;
    let behind = if behind.is_empty() { vec![String::new()] } else { names(behind)? };
    let parts = parts(choice)?;
    if parts.len().saturating_mul(behind.len()) > NAMES_MAX {
        return Err(format!("more than {NAMES_MAX} names: make the ranges shorter"));
    }
    Ok(parts.iter().flat_map(|part| behind.iter().map(move |behind| format!("{front}{part}{behind}"))).collect())
}

fn parts(choice: &str) -> Result<Vec<String>, String> {
    let Some((first, last)) = choice.split_once("..") else {
        return Ok(choice.split(',').map(|word| word.trim().to_owned()).collect());
    };
    let wrong = || format!("{{{choice}}} is no range: write {{0..9}}, with the last number included");
    let (from, to): (usize, usize) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
    if from > to || to - from >= NAMES_MAX {
        return Err(wrong());
    }
    let digits = if first.starts_with('0') { first.len() } else { 1 };
    Ok((from..=to).map(|number| format!("{number:0digits$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_every_combination() {
        assert_eq!(names("A").as_deref(), Ok(&["A".to_owned()][..]));
        assert_eq!(names("M{9..10}:{X, Y}").expect("it is one"), ["M9:X", "M9:Y", "M10:X", "M10:Y"]);
        assert_eq!(names("T{008..011}").expect("it is one"), ["T008", "T009", "T010", "T011"]);
        assert_eq!(names("{0..9999}").map(|names| names.len()), Ok(10_000));
    }

    #[test]
    fn what_is_no_family_is_told() {
        for wrong in ["", "A{1..", "A}", "{5..1}", "{a..b}", "{0..9999}{0..9999}", "{0..99999999999}"] {
            assert!(names(wrong).is_err_and(|why| !why.is_empty()), "{wrong}");
        }
    }
}
