//! Options as getopt reads them: letters, some with an argument, before, after or between the operands.

/// An option of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opt {
    /// An option, and its argument.
    Known(char, String),
    /// An option that there is not.
    Unknown(char),
    /// An option whose argument is missing.
    Incomplete(char),
}

/// Returns the options and the operands. With `is_posix` the first operand ends the options.
pub fn getopt(letters: &str, arguments: &[String], is_posix: bool) -> (Vec<Opt>, Vec<String>) {
    let (mut options, mut operands) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let cluster = match argument.strip_prefix('-') {
            Some("-") => break,
            Some(cluster) if !cluster.is_empty() => cluster,
            _ => {
                operands.push(argument.clone());
                if is_posix {
                    break;
                }
                continue;
            }
        };
        let mut rest = cluster.chars();
        while let Some(letter) = rest.next() {
            let takes = letters
                .find(letter)
                .filter(|_| letter != ':')
                .map(|at| letters[at + letter.len_utf8()..].starts_with(':'));
            match takes {
                None => options.push(Opt::Unknown(letter)),
                Some(false) => options.push(Opt::Known(letter, String::new())),
                Some(true) => {
                    let joined = std::mem::replace(&mut rest, "".chars()).as_str().to_owned();
                    let argument = if joined.is_empty() { arguments.next().cloned() } else { Some(joined) };
                    options.push(argument.map_or(Opt::Incomplete(letter), |argument| Opt::Known(letter, argument)));
                }
            }
        }
    }
    operands.extend(arguments.cloned());
    (options, operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(letters: &str, line: &str, is_posix: bool) -> (Vec<Opt>, Vec<String>) {
        getopt(letters, &line.split(' ').map(String::from).collect::<Vec<_>>(), is_posix)
    }

    #[test]
    fn options_stand_anywhere_and_together() {
        let (options, operands) = of("vw:", "A -vw2 B -w 3 -x -- -v", false);
        let known = |letter, argument: &str| Opt::Known(letter, argument.into());
        assert_eq!(options, [known('v', ""), known('w', "2"), known('w', "3"), Opt::Unknown('x')]);
        assert_eq!(operands, ["A", "B", "-v"]);
        assert_eq!(of("vw:", "-w", false).0, [Opt::Incomplete('w')]);
        assert_eq!(of("vw:", "-: -", false), (vec![Opt::Unknown(':')], vec!["-".to_owned()]));
    }

    #[test]
    fn negative_numbers_are_operands_behind_the_first() {
        assert_eq!(of("vw:", "A -1.5", true), (vec![], vec!["A".to_owned(), "-1.5".to_owned()]));
    }
}
