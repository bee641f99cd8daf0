//! Values by their normative types, as pvget prints them: time stamp, alarm and value in one line, and tables.

use super::cell::{Cell, escaped, write_array};
#[cfg(feature = "images")]
use super::image;
use super::json::is_choice;
use super::{Show, table};
use chrono::{Local, TimeZone};
use hodo_pva::{Array, Item, Value};
use std::fmt::Write;

/// Writes a value of which the field `value` can be shown. Returns `false` for any other one.
pub(super) fn write(value: &Value, show: &Show, into: &mut String) -> bool {
    let mut content = String::new();
    let from = into.len();
    if has(value, "timeStamp") {
        write_time(value, "timeStamp", into);
    }
    if table::write(value, show, &mut content) {
        write_alarm(value, "alarm", into);
        if into.len() > from {
            into.push('\n');
        }
        into.push_str(&content);
        return true;
    }
    if !write_content(value, show, &mut content) {
        into.truncate(from);
        return false;
    }
    let is_scalar = value.get("value").is_some_and(|item| Cell::of(value.plan().of(), item.content()).is_some());
    if is_scalar {
        into.push_str(&content);
        into.push(' ');
        write_alarm(value, "alarm", into);
    } else {
        write_alarm(value, "alarm", into);
        into.push_str(&content);
    }
    into.truncate(from + into[from..].trim_end_matches(' ').len());
    true
}

/// Writes what the field `value` holds. Returns `false` if there is none, or it is a structure of which nothing is known.
pub(super) fn write_content(value: &Value, show: &Show, into: &mut String) -> bool {
    #[cfg(feature = "images")]
    if image::write(value, into) {
        return true;
    }
    let Some(number) = value.plan().child(0, "value") else { return false };
    write_item(value, number, show, into)
}

fn write_item(value: &Value, number: usize, show: &Show, into: &mut String) -> bool {
    let (Some(of), Some(item)) = (value.plan().field(number), value.at(number)) else { return false };
    match item {
        Item::Array(array) => write_array(array, show.elements, ",", into),
        Item::Structure(..) if is_choice(of) => write_choice(value, number, show.numbers, into),
        Item::Any(Some(held)) | Item::Union(Some((_, held))) => return write_item(held, 0, show, into),
        Item::Any(None) | Item::Union(None) => into.push_str("null"),
        item => match Cell::of(of, item) {
            Some(cell) => cell.write_plain(into),
            None => return false,
        },
    }
    true
}

/// Tells whether a structure is there and holds anything that came from a far end.
fn has(value: &Value, name: &str) -> bool {
    let Some(number) = value.plan().child(0, name) else { return false };
    let seconds = value.get(&format!("{name}.secondsPastEpoch")).and_then(Item::as_i64);
    value.has_changed(number) || seconds.is_some_and(|seconds| seconds != 0)
}

/// The beginning of 1990, which records that were never processed have for their time.
const EPICS_EPOCH: i64 = 631_152_000;

/// Writes a time stamp in local time, 24 characters wide, and the user's tag if there is one.
pub(super) fn write_time(value: &Value, path: &str, into: &mut String) {
    let number = |name: &str| value.get(&format!("{path}.{name}")).and_then(Item::as_i64).unwrap_or(0);
    let (seconds, nanoseconds) = (number("secondsPastEpoch"), number("nanoseconds"));
    let at = u32::try_from(nanoseconds).ok().and_then(|nanoseconds| Local.timestamp_opt(seconds, nanoseconds).single());
    let text = match at {
        Some(at) if seconds > EPICS_EPOCH => at.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        _ => "<undefined>".into(),
    };
    let _ = write!(into, "{text:24} ");
    if number("userTag") != 0 {
        let _ = write!(into, "{} ", number("userTag"));
    }
}

/// Writes an alarm in words, each with a space behind it. None is nothing.
pub(super) fn write_alarm(value: &Value, path: &str, into: &mut String) {
    const SEVERITIES: [&str; 5] = ["", "MINOR", "MAJOR", "INVALID", "UNDEFINED"];
    const STATUSES: [&str; 8] = ["", "DEVICE", "DRIVER", "RECORD", "DB", "CONF", "UNDEFINED", "CLIENT"];
    let number = |name: &str| value.get(&format!("{path}.{name}")).and_then(Item::as_i64).unwrap_or(0);
    let mut word = |words: &[&str], code: i64| match usize::try_from(code).ok().and_then(|at| words.get(at)) {
        Some(&"") => {}
        Some(word) => into.extend([word, " "]),
        None => _ = write!(into, "{code} "),
    };
    if number("severity") == 0 {
        return;
    }
    word(&SEVERITIES, number("severity"));
    word(&STATUSES, number("status"));
    if let Some(message) = value.get(&format!("{path}.message")).and_then(Item::as_text).filter(|text| **text != "") {
        escaped(message.as_bytes(), None, into);
        into.push(' ');
    }
}

/// Writes a choice: its number in brackets and its text, or the number alone.
pub(super) fn write_choice(value: &Value, number: usize, only_number: bool, into: &mut String) {
    let plan = value.plan();
    let field = |name| plan.child(number, name).and_then(|child| value.at(child));
    let Some(index) = field("index").and_then(Item::as_i64) else { return };
    if only_number {
        let _ = write!(into, "{index}");
        return;
    }
    let _ = write!(into, "({index}) ");
    let choices = field("choices").and_then(Item::as_array).and_then(Array::iter_texts);
    match usize::try_from(index).ok().and_then(|index| choices?.nth(index)) {
        Some(text) => escaped(text, None, into),
        None => into.push_str("<undefined>"),
    }
}
