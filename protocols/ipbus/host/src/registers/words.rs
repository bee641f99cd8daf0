//! Words in files, and on the terminal.

use std::fmt::Write;

/// The most words of one block.
pub const WORDS_MAX: u32 = 1 << 22;
/// Bytes of a file at most: a word as text has its digits, a blank, and a comment here and there.
pub const FILE_BYTES_MAX: u64 = WORDS_MAX as u64 * 32;
/// Words on a line of the terminal.
const LINE: usize = 8;

/// The form of words in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Numbers, decimal or behind 0x; written one a line.
    #[default]
    Text,
    /// Four bytes each, the lowest first.
    Little,
    /// Four bytes each, the highest first.
    Big,
}

/// Returns words as they stand in a file.
#[must_use]
pub fn encode(words: &[u32], form: Form) -> Vec<u8> {
    match form {
        Form::Little => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        Form::Big => words.iter().flat_map(|word| word.to_be_bytes()).collect(),
        Form::Text => words.iter().flat_map(|word| format!("0x{word:08X}\n").into_bytes()).collect(),
    }
}

/// Reads the words of a file.
///
/// # Errors
/// A sentence that says what is wrong, and in which line.
pub fn decode(bytes: &[u8], form: Form) -> Result<Vec<u32>, String> {
    let words = match form {
        Form::Text => text(bytes)?,
        Form::Little | Form::Big => {
            let (words, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(format!("{} bytes are not a whole number of 4-byte words", bytes.len()));
            }
            let word = if form == Form::Little { u32::from_le_bytes } else { u32::from_be_bytes };
            words.iter().map(|bytes| word(*bytes)).collect()
        }
    };
    match words.len() {
        0 => Err("there are no words".to_owned()),
        count if count > WORDS_MAX as usize => Err(format!("{count} words exceed the limit of {WORDS_MAX}")),
        _ => Ok(words),
    }
}

fn text(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| "it is no text; say --form little or --form big".to_owned())?;
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let values = line.split('#').next().unwrap_or("");
        for value in
            values.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|value| !value.is_empty())
        {
            words.push(hodo_units::word(value).map_err(|why| format!("line {number}: {why}"))?);
        }
    }
    Ok(words)
}

/// Formats words in lines; `place` is what stands before the line that begins with this word.
pub fn lines(words: &[u32], decimal: bool, place: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for (line, words) in words.chunks(LINE).enumerate() {
        text.push_str(&place(line * LINE));
        text.push(' ');
        for word in words {
            let _ = if decimal { write!(text, " {word:10}") } else { write!(text, " {word:08X}") };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_comes_back() {
        let words = [0, 1, 0xDEAD_BEEF, u32::MAX];
        for form in [Form::Text, Form::Little, Form::Big] {
            assert_eq!(decode(&encode(&words, form), form).unwrap(), words, "{form:?}");
        }
        assert_eq!(encode(&[0x0102_0304], Form::Little), [4, 3, 2, 1]);
        assert_eq!(encode(&[0x0102_0304], Form::Big), [1, 2, 3, 4]);
        assert_eq!(encode(&[0xA], Form::Text), b"0x0000000A\n");
    }

    #[test]
    fn a_text_has_numbers_and_comments() {
        assert_eq!(decode(b"# a ramp\n1, 0x2\t3 # the end\n\n4", Form::Text).unwrap(), [1, 2, 3, 4]);
        let why = decode(b"1\n2 x\n", Form::Text).unwrap_err();
        assert_eq!(why, "line 2: `x` is not a number; write 16, 0x10 or 0b10000");
        for bytes in [&[0xFF, 0xFE][..], &[7, 0, 0, 0]] {
            assert!(decode(bytes, Form::Text).unwrap_err().contains("--form little"));
        }
        assert!(decode(&[1, 2, 3], Form::Big).unwrap_err().contains("3 bytes"));
        assert!(decode(b"", Form::Little).is_err() && decode(b"#", Form::Text).is_err());
    }

    #[test]
    fn eight_words_are_a_line() {
        let place = |index| format!("{index:02}");
        let ramp: Vec<u32> = (0..9).collect();
        let text = lines(&ramp, false, place);
        assert_eq!(text.lines().count(), 2);
        assert!(text.ends_with("08  00000008\n"), "{text}");
        assert_eq!(lines(&[7], true, place), "00           7\n");
    }
}
