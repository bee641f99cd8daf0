use hodo_io::host;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use tracing::Level;

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `hodo hub: message`, for a terminal.
    Plain,
    /// `2026-11-22T07:45:00.123456Z WARN  hodo hub: message`, for a file.
    Text,
    /// An object with `time`, `level`, `name`, `message` and the event's own fields.
    Json,
    /// `<4>hodo hub: message`: the priority ahead, as `sd-daemon(3)` has it. The journal adds the time.
    Journald,
}

impl Format {
    /// The formats by name.
    pub const ALL: [(Format, &'static str); 4] =
        [(Format::Plain, "plain"), (Format::Text, "text"), (Format::Json, "json"), (Format::Journald, "journald")];

    /// Returns the format of this name, or `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Format::ALL.into_iter().find(|(_, known)| *known == name).map(|(format, _)| format)
    }

    /// Returns the line of an event, with its line feed.
    pub(super) fn line(self, record: &Record<'_>) -> Vec<u8> {
        let mut line = match self {
            Format::Plain => record.text(),
            Format::Text => format!("{} {:5} {}", host::utc_now_us(), record.level, record.text()),
            Format::Json => record.json(),
            Format::Journald => format!("<{}>{}", priority(record.level), record.text()),
        };
        line.push('\n');
        line.into_bytes()
    }
}

/// An event, as far as it is logged.
pub(super) struct Record<'a> {
    pub name: &'a str,
    pub level: Level,
    pub message: &'a str,
    pub fields: &'a Map<String, Value>,
}

impl Record<'_> {
    /// Returns the name, the message and the fields, on one line: what a stranger sent cannot pass for a line of ours.
    fn text(&self) -> String {
        let mut text = self.name.to_owned() + ": ";
        escape(&mut text, self.message);
        for (name, value) in self.fields {
            let _ = write!(text, " {name}=");
            escape(&mut text, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        text
    }

    fn json(&self) -> String {
        let (time, level) = (host::utc_now_us(), self.level.as_str().to_ascii_lowercase());
        let line = Json { time, level, name: self.name, message: self.message, fields: self.fields };
        serde_json::to_string(&line).expect("the keys are strings")
    }
}

#[derive(Serialize)]
struct Json<'a> {
    time: String,
    level: String,
    name: &'a str,
    message: &'a str,
    #[serde(flatten)]
    fields: &'a Map<String, Value>,
}

/// Adds text in which control characters are spelled as escapes.
fn escape(line: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
}

/// Returns the priority of a level, after `syslog(3)`.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
