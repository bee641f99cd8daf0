use crate::Error;

/// Hosts of a list at most.
const HOSTS_MAX: usize = 10_000;

/// Returns the hosts of a list as Slurm writes it: `sfc,node[01-03,7]`.
///
/// # Errors
/// [`Error::Hosts`] if a name is empty, a bracket is not closed or a range is malformed.
pub fn expand(list: &str) -> Result<Vec<String>, Error> {
    let mut hosts = Vec::new();
    for item in split(list) {
        let item = item.trim();
        if item.is_empty() {
            return Err(wrong(list, "a name is empty"));
        }
        one(item, list, &mut hosts)?;
    }
    Ok(hosts)
}

/// Splits a list at the commas outside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    list.split(move |letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

/// Adds the hosts of one item, whose first brackets are resolved here and the others in turn.
fn one(item: &str, list: &str, hosts: &mut Vec<String>) -> Result<(), Error> {
    let Some((front, rest)) = item.split_once('[') else {
        if item.contains(']') {
            return Err(wrong(list, "a bracket is closed that was not opened"));
        }
        if hosts.len() == HOSTS_MAX {
            return Err(wrong(list, &format!("more than {HOSTS_MAX} hosts")));
        }
        hosts.push(item.to_owned());
        return Ok(());
    };
    let (ranges, back) = rest.split_once(']').ok_or_else(|| wrong(list, "a bracket is not closed"))?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| -> Result<usize, Error> {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = if digits { text.parse().ok() } else { None };
            number.ok_or_else(|| wrong(list, &format!("`{range}` is not a number or a range of them")))
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to || to - from >= HOSTS_MAX {
            return Err(wrong(list, &format!("`{range}` is not a range of at most {HOSTS_MAX}, upwards")));
        }
        for number in from..=to {
            // As many digits as the first has: node[08-10] are node08, node09 and node10.
            one(&format!("{front}{number:0width$}{back}", width = first.len()), list, hosts)?;
        }
    }
    Ok(())
}

fn wrong(list: &str, why: &str) -> Error {
    Error::Hosts { list: list.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_slurm() {
        for (list, hosts) in [
            ("one", &["one"][..]),
            ("node[1-3],sfc", &["node1", "node2", "node3", "sfc"]),
            ("n[08-10,20]", &["n08", "n09", "n10", "n20"]),
            ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("a, user@b.c", &["a", "user@b.c"]),
            ("10.0.0.[1-2]", &["10.0.0.1", "10.0.0.2"]),
        ] {
            assert_eq!(expand(list).unwrap(), hosts, "{list}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (list, says) in [
            ("", "empty"),
            ("a,,b", "empty"),
            ("n[1-", "not closed"),
            ("n1]", "not opened"),
            ("n[]", "not a number"),
            ("n[a-b]", "`a-b`"),
            ("n[3-1]", "`3-1`"),
            ("n[0-99999]", "at most"),
            ("n[1-9999][1-9999]", "more than"),
        ] {
            let error = expand(list).unwrap_err().to_string();
            assert!(error.contains(says), "{list}: {error}");
        }
    }
}
