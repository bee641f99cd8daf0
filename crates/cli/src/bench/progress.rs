//! The progress of a run: a line that is rewritten on a terminal, plain lines elsewhere, or no output.

use super::Follow;
use crate::terminal;
use hodo_measure::limits::format_rate;
use hodo_measure::units::text::{self, time_ns};
use hodo_measure::{Measurement, Plan, Size, Snapshot};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rates of the recent past that the live line shows.
const CURVE: usize = 12;
/// The least time that one of them is of. In less, as right before a pause, few operations more or less would be a peak.
const LEAST_S: f64 = 0.05;
/// Columns that the live line keeps to on a wide terminal.
const WIDTH: usize = 100;

/// The sequence that removes the live line.
const CLEAR: &str = "\r\x1b[K";

/// Tells people on standard error how the run goes.
pub struct Progress {
    kind: Kind,
    steps: usize,
    live: Mutex<Live>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Live,
    Plain,
    Quiet,
}

#[derive(Default)]
struct Live {
    /// The line above all others, until it is printed.
    header: Option<String>,
    /// Whether anything has been measured.
    has_begun: bool,
    step: usize,
    what: String,
    /// The operations per second of the recent past.
    rates: Vec<f64>,
    /// Whether the latest of them was of the warm-up, and the time and the operations at its end.
    told: Option<(bool, f64, f64)>,
    /// The time, operations, payload bytes and retransmissions at the end of the latest interval.
    ended: Option<(f64, u64, u64, Option<u64>)>,
    /// The rates of that interval, and what its packets went through.
    interval: Option<[String; 2]>,
}

impl Progress {
    /// Creates the progress of this many steps.
    pub fn new(follow: Follow, quiet: bool, steps: usize) -> Self {
        let kind = match follow {
            _ if quiet => Kind::Quiet,
            Follow::Auto if io::stderr().is_terminal() => Kind::Live,
            Follow::Auto | Follow::Plain => Kind::Plain,
        };
        Progress { kind, steps, live: Mutex::default() }
    }

    /// Says something of the whole run above all steps, once the first one has begun in earnest: what is not possible is refused without it.
    pub fn head(&self, text: &str) {
        self.live().header = Some(lines(text));
    }

    /// Says something of the whole run.
    pub fn say(&self, text: &str) {
        let above = self.above(&mut self.live());
        self.write(&format!("{above}{}", lines(text)));
    }

    /// Begins a step.
    pub fn begin(&self, protocol: &str, plan: &Plan) {
        let mut live = self.live();
        live.step += 1;
        live.what = format!("{protocol} {} {}  {}", plan.test, plan.mode, size_text(plan.size));
        live.rates.clear();
        (live.told, live.ended, live.interval) = (None, None, None);
        self.draw(&live, "opening");
    }

    /// Shows the progress of the step.
    pub fn tick(&self, now: &hodo_measure::Progress) {
        let mut live = self.live();
        live.has_begun = true;
        if live.header.is_some() {
            let above = self.above(&mut live);
            self.write(&above);
        }
        if !self.is_live() {
            return;
        }
        let done = now.operations_per_s * now.elapsed_s;
        let (_, from_s, from) = live.told.filter(|told| told.0 == now.warming_up).unwrap_or_default();
        if now.elapsed_s >= from_s + LEAST_S {
            live.rates.push((done - from) / (now.elapsed_s - from_s));
            live.told = Some((now.warming_up, now.elapsed_s, done));
        }
        let surplus = live.rates.len().saturating_sub(CURVE);
        live.rates.drain(..surplus);
        let curve = hodo_report::sparkline(&live.rates, CURVE);
        let so_far = || [figures(now.operations_per_s, now.payload_bits_per_s), String::new()];
        let [rates, packets] = live.interval.clone().unwrap_or_else(so_far);
        let phase = if now.warming_up { "warm-up".to_owned() } else { format!("repeat {}", now.repeats + 1) };
        // What there is no room for is cut: the curve first.
        self.draw(&live, &format!("{rates}, {phase}{packets}  {curve}"));
    }

    /// Returns whether there is a line that is rewritten.
    pub fn is_live(&self) -> bool {
        self.kind == Kind::Live
    }

    /// Takes the figures of the interval that a snapshot ends, for the live line.
    pub fn snapshot(&self, now: &Snapshot) {
        if !self.is_live() {
            return;
        }
        let mut live = self.live();
        let ended = live.ended.replace((now.t_s, now.operations, now.payload_bytes, now.retransmitted));
        let Some((t_s, operations, payload_bytes, retransmitted)) = ended.filter(|(t_s, ..)| now.t_s > *t_s) else {
            return;
        };
        let per_s = |count: u64| count as f64 / (now.t_s - t_s);
        let rates = figures(
            per_s(now.operations.saturating_sub(operations)),
            8.0 * per_s(now.payload_bytes.saturating_sub(payload_bytes)),
        );
        let again = now.retransmitted.zip(retransmitted).map(|(now, before)| now.saturating_sub(before));
        let again = again.map_or_else(String::new, |count| format!(", {count} resent"));
        let rtt_ns = now.tcp.as_ref().and_then(|tcp| tcp.rtt_ns);
        let rtt = rtt_ns.map_or_else(String::new, |rtt_ns| format!(", rtt {}", time_ns(rtt_ns as f64)));
        live.interval = Some([rates, format!("{again}{rtt}")]);
    }

    /// Ends the step, and prints its measurement, unless nothing has been measured so far: why the link could not be opened is all that is said then.
    pub fn end(&self, measurement: &Measurement) {
        let mut live = self.live();
        if !live.has_begun && measurement.operations == 0 {
            let clear = if self.is_live() { CLEAR } else { "" };
            return self.write(clear);
        }
        let (above, place) = (self.above(&mut live), self.place(&live));
        let width = columns().map_or(usize::MAX, |columns| columns.saturating_sub(place.len()));
        self.write(&format!("{above}{place}{}\n", hodo_report::line(measurement, width)));
    }

    /// Returns what goes before any other line: a live line is removed, and the header printed if that has not been done.
    fn above(&self, live: &mut Live) -> String {
        let clear = if self.is_live() && live.step > 0 { CLEAR } else { "" };
        format!("{clear}{}", live.header.take().unwrap_or_default())
    }

    fn draw(&self, live: &Live, state: &str) {
        if self.is_live() {
            let line = format!("{}{}  {state}", self.place(live), live.what);
            // What wraps cannot be rewritten: there is room for the `^C` that a terminal writes behind it, and for its cursor.
            let width = columns().map_or(WIDTH, |columns| WIDTH.min(columns.saturating_sub(3)));
            let line: String = line.chars().take(width).collect();
            self.write(&format!("{CLEAR}{line}"));
        }
    }

    fn place(&self, live: &Live) -> String {
        let width = self.steps.to_string().len();
        format!("[{:>width$}/{}] ", live.step, self.steps)
    }

    /// Locks the state. A poisoned lock is taken all the same: a thread that panicked while it drew leaves nothing
    /// worse behind than half a line.
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, text: &str) {
        if self.kind == Kind::Quiet {
            return;
        }
        // Nobody is told where standard error is closed; the results do not depend on it.
        let mut to = io::stderr().lock();
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }
}

/// Returns rates in words; operations without payload have only one.
fn figures(operations_per_s: f64, payload_bits_per_s: f64) -> String {
    let operations = text::operations_per_s(operations_per_s);
    if payload_bits_per_s > 0.0 { format!("{}, {operations}", format_rate(payload_bits_per_s)) } else { operations }
}

fn size_text(size: Size) -> String {
    match size {
        Size::Fixed(size) => text::bytes(size.into()),
        Size::Uniform { min, max } => format!("{}..{}", text::bytes(min.into()), text::bytes(max.into())),
    }
}

/// Returns the lines of a text, broken between words where a terminal would break them within.
fn lines(text: &str) -> String {
    terminal::sentences(text.lines(), true)
}

/// Returns the columns of the terminal that is standard error, if it is one.
fn columns() -> Option<usize> {
    terminal::columns(true)
}
