//! Reads the files of bytes that peers made.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod session;

/// Reads hexadecimal digits; `-` is nothing, and `07*70000` is a byte so many times.
pub fn hex(text: &str) -> Vec<u8> {
    let byte = |digits: &str| u8::from_str_radix(digits, 16).expect("hexadecimal digits");
    let run = |run: &str| match run.split_once('*') {
        Some((digits, times)) => vec![byte(digits); times.parse().expect("a number of times")],
        None => (0..run.len()).step_by(2).map(|at| byte(&run[at..at + 2])).collect(),
    };
    text.trim_matches('-').split(',').flat_map(run).collect()
}

/// Returns the lines of a file, without what is said about it.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}
