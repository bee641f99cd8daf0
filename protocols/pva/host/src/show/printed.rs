//! Numbers and texts as the programs of pvAccessCPP and pvxs print them: C++'s six digits, and C's escapes.

use super::cell::Cell;
use std::fmt::Write;

/// Appends a number with six significant digits, as `%g` does.
pub(super) fn six(value: f64, into: &mut String) {
    digits(value, 6, into);
}

/// Appends a number with so many significant digits, as `%.*g` does.
pub(super) fn digits(value: f64, count: i32, into: &mut String) {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let _ = write!(into, "{sign}{}", if value.is_nan() { "nan" } else { "inf" });
        return;
    }
    let scientific = format!("{value:.*e}", (count - 1) as usize);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..count).contains(&exponent) {
        let plain = format!("{value:.*}", (count - 1 - exponent) as usize);
        into.push_str(without_zeros(&plain));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(into, "{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// The program whose escapes are written. They differ in what is not printable, and for a quote within a cell of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// pvAccessCPP, whose hexadecimal digit for nine is `@`.
    PvData,
    /// A cell of a table of pvAccessCPP.
    Table,
    /// pvxs.
    Pvxs,
}

/// Appends a text with the escapes of a program.
pub(super) fn escaped(text: &[u8], escapes: Escapes, into: &mut String) {
    for byte in text {
        let letter = match byte {
            7 => 'a',
            8 => 'b',
            12 => 'f',
            b'\n' => 'n',
            b'\r' => 'r',
            b'\t' => 't',
            11 => 'v',
            b'\\' | b'\'' => char::from(*byte),
            b'"' if escapes == Escapes::Table => {
                into.push_str("\"\"");
                continue;
            }
            b'"' => '"',
            b' '..=b'~' => {
                into.push(char::from(*byte));
                continue;
            }
            _ if escapes == Escapes::Pvxs => {
                let _ = write!(into, "\\x{byte:02x}");
                continue;
            }
            _ => {
                into.extend(["\\x".to_owned(), digit(byte >> 4), digit(byte & 15)]);
                continue;
            }
        };
        into.extend(['\\', letter]);
    }
}

fn digit(value: u8) -> String {
    if value == 9 { "@".into() } else { format!("{value:X}") }
}

/// Appends a text as pvAccessCPP does: in quotes only if something in it is not plain.
pub(super) fn maybe_quoted(text: &[u8], into: &mut String) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'\'' | b'"');
    if text.iter().all(is_plain) {
        into.push_str(&String::from_utf8_lossy(text));
    } else {
        into.push('"');
        escaped(text, Escapes::PvData, into);
        into.push('"');
    }
}

/// Appends a scalar as pvxs does.
pub(super) fn write_pvxs(cell: Cell<'_>, into: &mut String) {
    match cell {
        Cell::Single(value) => six(value.into(), into),
        Cell::Double(value) => six(value, into),
        Cell::Text(text) => {
            into.push('"');
            escaped(text, Escapes::Pvxs, into);
            into.push('"');
        }
        other => other.write_quoted(into),
    }
}

/// Appends a scalar as pvAccessCPP does.
pub(super) fn write_pvdata(cell: Cell<'_>, into: &mut String) {
    match cell {
        Cell::Text(text) => maybe_quoted(text, into),
        other => write_pvxs(other, into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_of_the_field_tools() {
        // As printed by pvget 7.1.8.
        let printed = [
            (1_234_567.891, "1.23457e+06"),
            (0.1_f32.into(), "0.1"),
            (1e20, "1e+20"),
            (-0.0, "-0"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456.5, "123456"),
            (999_999.5, "1e+06"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in printed {
            let mut into = String::new();
            six(value, &mut into);
            assert_eq!(into, text);
        }
    }

    #[test]
    fn texts_have_the_quotes_and_escapes_of_the_field_tools() {
        let text = "a\"b'c\\d\n\u{1}é".as_bytes();
        let mut into = String::new();
        maybe_quoted(text, &mut into);
        assert_eq!(into, r#""a\"b\'c\\d\n\x01\xC3\xA@""#);
        into.clear();
        write_pvxs(Cell::Text(text), &mut into);
        assert_eq!(into, r#""a\"b\'c\\d\n\x01\xc3\xa9""#);
        into.clear();
        maybe_quoted(b"plain", &mut into);
        assert_eq!(into, "plain");
    }
}
