//! `hodo pva monitor --plot`: numbers over time and arrays over their elements, in the terminal.

mod canvas;
mod series;

use super::monitor::MonitorOptions;
use super::options::failed;
use crate::screen::{self, Screen};
use crate::{Error, Outcome, interrupt, terminal};
use canvas::{Canvas, Look, coloured};
use hodo_io::Clock;
use hodo_machine::Instant;
use hodo_pva_host::Client;
use hodo_pva_host::client::{Channel, Notice, Operation};
use hodo_pva_host::machines::Item;
use series::{Range, Series};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time between two pictures.
const FRAME: Duration = Duration::from_millis(100);
/// Columns of the labels of an axis, and the least rows of a picture.
const LABEL: usize = 11;
const ROWS_MIN: usize = 2;

/// Draws until the end of the time, the number of updates, or a signal.
pub fn run(options: &MonitorOptions) -> Result<Outcome, Error> {
    if !std::io::stdout().is_terminal() {
        return Err(Error::Usage(
            "--plot draws on a terminal, and standard output is none: leave --plot out, or write a file with `hodo pva record`"
                .to_owned(),
        ));
    }
    let names = options.names.all()?;
    let stop = interrupt::flag()?;
    let mut client = options.connect.open_to_stay()?;
    let mut plot = Plot::new(options);
    for name in &names {
        plot.begin(&mut client, name)?;
    }
    let clock = Clock::start();
    let until = options.span.map(|span| clock.now() + span);
    let mut taken = Screen::enter()?;
    let mut next = clock.now();
    while !stop.load(Ordering::Relaxed) && plot.left > 0 && until.is_none_or(|until| clock.now() < until) {
        let now = clock.now();
        if now >= next {
            next = now + FRAME;
            let (rows, columns) = screen::size();
            taken.show(&plot.text(&client, rows - 1, columns, now))?;
        }
        plot.turn(&mut client, next - now, &clock)?;
    }
    drop(taken);
    plot.finish(&mut client)
}

/// A PV that is drawn.
struct Drawn {
    name: String,
    channel: Channel,
    series: Series,
    units: String,
    updates: u64,
    overruns: u64,
    ended: Option<String>,
}

/// All PVs, and what they have sent.
struct Plot<'a> {
    options: &'a MonitorOptions,
    drawn: BTreeMap<Operation, Drawn>,
    left: u64,
    look: Look,
}

impl<'a> Plot<'a> {
    fn new(options: &'a MonitorOptions) -> Self {
        let look = Look { has_colour: terminal::style(false).color, has_braille: is_unicode() };
        Plot { options, drawn: BTreeMap::new(), left: options.count.unwrap_or(u64::MAX), look }
    }

    fn begin(&mut self, client: &mut Client, name: &str) -> Result<(), Error> {
        let monitor = client.monitor(name, &self.options.request.request).map_err(failed)?;
        let drawn = Drawn {
            name: name.to_owned(),
            channel: client.channel_of(monitor),
            series: Series::default(),
            units: String::new(),
            updates: 0,
            overruns: 0,
            ended: None,
        };
        self.drawn.insert(monitor, drawn);
        Ok(())
    }

    /// Takes in what comes within a time.
    fn turn(&mut self, client: &mut Client, within: Duration, clock: &Clock) -> Result<(), Error> {
        let mut notice = client.next_notice(within).map_err(failed)?;
        // One picture's time at most, so that the next one is drawn however fast updates come.
        let until = clock.now() + FRAME;
        while let Some(one) = notice {
            if let Notice::Monitor(monitor) = one {
                self.take(client, monitor, clock.now());
            }
            if clock.now() >= until {
                return Ok(());
            }
            notice = client.next_notice(Duration::ZERO).map_err(failed)?;
        }
        Ok(())
    }

    fn take(&mut self, client: &mut Client, monitor: Operation, now: Instant) {
        let Some(drawn) = self.drawn.get_mut(&monitor) else { return };
        while self.left > 0
            && let Some(update) = client.take_update(monitor)
        {
            drawn.updates += 1;
            drawn.overruns += u64::from(!update.overrun.is_empty());
            drawn.series.add(update.value, now, self.options.window);
            let units = update.value.get("display.units").and_then(Item::as_text);
            drawn.units = units.map(ToString::to_string).unwrap_or_default();
            self.left -= 1;
        }
        if let Some(outcome) = client.outcome(monitor) {
            drawn.ended =
                Some(outcome.err().map_or_else(|| "the server has ended it".to_owned(), |why| why.to_string()));
        }
    }

    /// Returns the picture: a line for each PV, then one part for all numbers and one for all arrays.
    fn text(&self, client: &Client, rows: usize, columns: usize, now: Instant) -> String {
        let mut lines: Vec<String> =
            (0..).zip(self.drawn.values()).map(|(line, one)| self.legend(client, line, one)).collect();
        let window = self.options.window;
        let parts: [(Vec<(usize, &Series)>, String); 2] = [
            (self.which(|series| matches!(series, Series::Scalar(_))), format!("-{} s", window.as_secs_f64())),
            (self.which(|series| matches!(series, Series::Array(_))), "0".to_owned()),
        ];
        let count = parts.iter().filter(|(series, _)| !series.is_empty()).count();
        // Pictures come before lines for which there is no room; where there is none for pictures, there are only lines.
        let room = rows.saturating_sub(count * (ROWS_MIN + 1));
        lines.truncate(if room == 0 { rows } else { room });
        let each = (rows - lines.len()).checked_div(count).unwrap_or(0);
        for (series, begin) in parts {
            if !series.is_empty() && each > ROWS_MIN {
                let end = series.iter().filter_map(|(_, series)| series.last_index()).max();
                let end = end.map_or_else(|| "now".to_owned(), |end| end.to_string());
                lines.extend(self.picture(&series, each - 1, columns, now));
                let gap = columns.saturating_sub(LABEL + begin.len() + end.len());
                lines.push(format!("{}{begin}{}{end}", " ".repeat(LABEL), " ".repeat(gap)));
            }
        }
        lines.join("\n")
    }

    fn which(&self, is_one: impl Fn(&Series) -> bool) -> Vec<(usize, &Series)> {
        (0..).zip(self.drawn.values().map(|drawn| &drawn.series)).filter(|(_, series)| is_one(series)).collect()
    }

    fn legend(&self, client: &Client, line: usize, drawn: &Drawn) -> String {
        let state = match (&drawn.series, &drawn.ended) {
            (_, Some(why)) => why.clone(),
            (Series::Other, _) => "has no number that could be drawn".to_owned(),
            (Series::Array(array), _) => format!("{} elements {}", array.len(), drawn.units),
            (series, _) => series.last().map_or_else(String::new, |last| format!("{last} {}", drawn.units)),
        };
        let trouble = match client.trouble(drawn.channel) {
            Some(why) => format!(" ({why})"),
            None if drawn.updates == 0 && drawn.ended.is_none() => " (not connected yet)".to_owned(),
            None => String::new(),
        };
        let mark = if self.look.has_braille { "\u{25CF}" } else { "*" };
        // Nothing of a far end moves the cursor or makes further lines.
        let text = format!("{} {}{trouble}", drawn.name, state.trim_end()).replace(char::is_control, " ");
        format!("{} {text}", coloured(mark, line, self.look))
    }

    /// Returns the rows of a picture with the labels of its axis.
    fn picture(&self, series: &[(usize, &Series)], rows: usize, columns: usize, now: Instant) -> Vec<String> {
        let mut canvas = Canvas::new(columns.saturating_sub(LABEL), rows);
        let width = canvas.dots().0;
        let shown: Vec<(usize, Vec<Option<Range>>)> =
            series.iter().map(|(line, series)| (*line, series.columns(width, now, self.options.window))).collect();
        let all = shown.iter().flat_map(|(_, columns)| columns).flatten().copied();
        let Range(low, high) = all.reduce(|a, b| Range(a.0.min(b.0), a.1.max(b.1))).unwrap_or(Range(0.0, 0.0));
        // What does not change is in the middle.
        let (low, high) = if low < high { (low, high) } else { (low - 1.0, high + 1.0) };
        let share = |number: f64| (number / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        for (line, columns) in &shown {
            let mut before: Option<Range> = None;
            for (x, range) in columns.iter().enumerate() {
                let Some(Range(from, to)) = *range else {
                    before = None;
                    continue;
                };
                // Joined to the column before.
                let (from, to) = before.map_or((from, to), |before| (from.min(before.1), to.max(before.0)));
                canvas.bar(x, share(from), share(to), *line);
                before = *range;
            }
        }
        let label = |row: usize| match row {
            0 => number(high),
            row if row + 1 == rows => number(low),
            _ => String::new(),
        };
        (0..rows).map(|row| format!("{:>1$} {2}", label(row), LABEL - 1, canvas.row(row, self.look))).collect()
    }

    fn finish(self, client: &mut Client) -> Result<Outcome, Error> {
        let mut outcome = Outcome::Done;
        for (monitor, drawn) in self.drawn {
            client.finish(monitor);
            if drawn.overruns > 0 {
                let Drawn { name, overruns, updates, .. } = &drawn;
                terminal::remark(&format!("{name}: {overruns} of {updates} updates had overwritten others"));
            }
            if drawn.updates == 0 {
                terminal::remark(&format!("{}: no update has come", drawn.name));
                outcome = Outcome::Failed;
            }
        }
        client.poll().map_err(failed)?;
        Ok(outcome)
    }
}

/// Returns a number in at most ten characters.
fn number(of: f64) -> String {
    let plain = of.to_string();
    if plain.len() < LABEL {
        return plain;
    }
    let fixed = format!("{of:.4}");
    if fixed.len() < LABEL && of.abs() >= 0.01 { fixed } else { format!("{of:.2e}") }
}

/// Tells whether the locale says that the terminal shows all characters.
fn is_unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}
