//! Reads the files of bytes that peers made.

/// Reads hexadecimal digits; `-` is nothing.
pub fn hex(text: &str) -> Vec<u8> {
    let text = text.trim_matches('-');
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(byte).collect()
}
