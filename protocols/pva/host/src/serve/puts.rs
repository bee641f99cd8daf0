//! The record of what was put.

use crate::machines::Value;
use crate::server::ClientName;
use crate::show::{Form, Show};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// Puts that are kept.
const KEPT: usize = 1000;
/// Elements of an array that are shown, and characters of a put.
const ELEMENTS: usize = 8;
const CHARACTERS: usize = 400;
const SECOND_NS: u64 = 1_000_000_000;

/// The last puts to the PVs whose puts are logged.
#[derive(Debug, Default)]
pub struct PutLog(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    at_ns: u64,
    pv: String,
    client: String,
    what: String,
}

impl PutLog {
    /// Adds a put, and writes it to the log.
    pub fn add(&self, pv: &str, client: &ClientName, put: &Value) {
        let show = Show { form: Form::Delta, elements: ELEMENTS, only_changed: true, ..Show::default() };
        let lines = show.text(put);
        let fields: Vec<&str> = lines.lines().map(str::trim).collect();
        let what: String = fields.join("; ").chars().take(CHARACTERS).collect();
        tracing::info!("{pv}: {client} has put {what}");
        let entry = Entry { at_ns: hodo_io::unix_time_ns(), pv: pv.to_owned(), client: client.to_string(), what };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// Returns the puts as a table, the newest first: seconds since 1970, PV, client and what was put, between tabs.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = "time\tpv\tclient\tput\n".to_owned();
        for Entry { at_ns, pv, client, what } in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().rev() {
            let (seconds, millis) = (at_ns / SECOND_NS, at_ns % SECOND_NS / 1_000_000);
            writeln!(text, "{seconds}.{millis:03}\t{pv}\t{client}\t{what}")
                .expect("a string takes whatever is written");
        }
        text
    }
}
