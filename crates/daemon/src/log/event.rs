//! From an event of `tracing` to a line in the queue.

use super::format::{Format, Record};
use super::outlet::Outlet;
use hodo_io::Clock;
use serde_json::{Map, Value};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as Values};
use tracing::{Event, Level, Metadata};

/// Bytes of a message or of a field's text; the rest is cut off.
const TEXT_MAX: usize = 4096;
/// Lines in a second; those beyond are lost, so that a stranger's bytes cannot fill a disk in minutes.
const LINES_PER_SECOND: u64 = 500;
/// Events of other crates are logged from this level up.
const OF_OTHERS: Level = Level::WARN;

/// The subscriber that gives each event of `tracing` to an outlet. Spans are not kept.
pub struct Subscriber {
    name: String,
    level: LevelFilter,
    format: Format,
    outlet: Arc<Outlet>,
    clock: Clock,
    budget: Budget,
}

impl Subscriber {
    pub fn new(name: &str, level: LevelFilter, format: Format, outlet: Arc<Outlet>) -> Self {
        Subscriber { name: name.to_owned(), level, format, outlet, clock: Clock::start(), budget: Budget::default() }
    }
}

impl tracing::Subscriber for Subscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("hodo");
        metadata.is_event() && *metadata.level() <= self.level && (is_ours || *metadata.level() <= OF_OTHERS)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        if !self.budget.take(self.clock.now().as_nanos() / 1_000_000_000) {
            return self.outlet.lose();
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { message: Bounded(message), others } = fields;
        let level = *event.metadata().level();
        self.outlet.send(self.format.line(&Record { name: &self.name, level, message: &message, fields: &others }));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Values<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines that may still be written in the current second.
#[derive(Default)]
struct Budget {
    /// The second in the upper half, the lines of it in the lower.
    spent: AtomicU64,
}

impl Budget {
    /// Returns `false` if the lines of this second are spent.
    fn take(&self, second: u64) -> bool {
        let spend = |spent: u64| match (spent >> 32 == second, spent & 0xFFFF_FFFF) {
            (false, _) => Some(second << 32 | 1),
            (true, LINES_PER_SECOND..) => None,
            (true, _) => Some(spent + 1),
        };
        self.spent.fetch_update(Relaxed, Relaxed, spend).is_ok()
    }
}

#[derive(Default)]
struct Fields {
    message: Bounded,
    others: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
    }

    fn put_text(&mut self, field: &Field, text: fmt::Arguments<'_>) {
        let mut bounded = Bounded::default();
        // A text that is cut off is an error to `write!` alone.
        let _ = bounded.write_fmt(text);
        if field.name() == "message" {
            self.message = bounded;
        } else {
            self.put(field, bounded.0);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

/// A text of at most [`TEXT_MAX`] bytes and an ellipsis.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_MAX.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_lines_and_no_more() {
        let budget = Budget::default();
        let taken = |second| (0..2 * LINES_PER_SECOND).filter(|_| budget.take(second)).count() as u64;
        assert_eq!([taken(0), taken(7), taken(7)], [LINES_PER_SECOND, LINES_PER_SECOND, 0]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut bounded = Bounded::default();
        let cut = write!(bounded, "{}é and more", "a".repeat(TEXT_MAX - 1));
        assert!(cut.is_err() && bounded.0.ends_with("aa…"), "{}", bounded.0);
    }
}
