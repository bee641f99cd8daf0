/// Quotes words for a shell, so that it passes on the same words.
#[must_use]
pub fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| one(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn one(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=/.,:@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(quoted(&["hodo", "farm", "--to=127.0.0.1:5500", "a,b"]), "hodo farm --to=127.0.0.1:5500 a,b");
    }

    #[test]
    fn a_shell_gives_the_same_words_on() {
        let words = ["", "a b", "it's", "$HOME", "`id`", "a\nb", "*", "\\", "\"", "~", "é", "-n", ";", "#"];
        let script = format!("printf '%s\\0' {}", quoted(&words));
        let done = Command::new("sh").args(["-c", &script]).output().expect("`sh` is everywhere");
        let printed = String::from_utf8(done.stdout).expect("it is text");
        assert_eq!(printed.split_terminator('\0').collect::<Vec<_>>(), words);
    }
}
