//! `hodo farm top`: a live view of a farm.
//!
//! The view is one text, the same for a terminal, a pipe and `--once`, so that a terminal needs five escape sequences and
//! no more. ratatui with crossterm would draw the same lines, need a second path for pipes, and bring about thirty crates;
//! it pays once there are panes, scrolling or keys.

use super::operate::FarmStatus;
use crate::{Error, Outcome, interrupt, terminal};
use clap::Args;
use hodo_farm_host::view::{FarmSnapshot, view};
use hodo_farm_host::{builder, operator};
use hodo_measure::units;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Options of `hodo farm top`.
#[derive(Debug, Args)]
pub struct TopOptions {
    /// The controller, and the builder.
    #[command(flatten)]
    pub of: FarmStatus,
    /// Time between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub every: Duration,
    /// Take two snapshots, show the difference, and stop.
    #[arg(long)]
    pub once: bool,
}

/// The time within which Ctrl-C is noticed.
const NOTICE: Duration = Duration::from_millis(50);
/// Rows where there is no terminal to ask.
const ROWS: usize = 1000;
/// Rows and columns of a terminal that does not say.
const SCREEN: (usize, usize) = (24, 80);
/// The other screen without a cursor, and back; to the first place; the rest of a line, and of the screen, is empty.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const END_OF_LINE: &str = "\x1b[K\n";
const END_OF_SCREEN: &str = "\x1b[J";

/// Shows the view until a signal arrives.
pub fn run(options: &TopOptions) -> Result<Outcome, Error> {
    let stop = interrupt::flag()?;
    let is_live = std::io::stdout().is_terminal() && !options.once;
    // Before the screen is taken, so that a wrong address is told as any error.
    let first = look(options)?;
    if is_live {
        terminal::print_bytes(ENTER.as_bytes())?;
    }
    let shown = show(options, first, is_live, &stop);
    if is_live {
        terminal::print_bytes(LEAVE.as_bytes())?;
    }
    shown.map(|()| Outcome::Done)
}

fn look(options: &TopOptions) -> Result<FarmSnapshot, Error> {
    let controller = operator::read(options.of.of.pages)?;
    let builder = options.of.builder.map(|pages| builder::read(pages, operator::PATIENCE)).transpose()?;
    Ok(FarmSnapshot { controller, builder })
}

fn show(options: &TopOptions, first: FarmSnapshot, is_live: bool, stop: &AtomicBool) -> Result<(), Error> {
    let mut before = first;
    while !rest(options.every, stop) {
        let (rows, columns) = if is_live { screen() } else { (ROWS, usize::MAX) };
        let text = match look(options) {
            Ok(now) => {
                let text = view(&options.of.of.pages.to_string(), &before, &now, rows);
                before = now;
                text
            }
            // It may be started again.
            Err(error) if is_live => format!("{error}\n"),
            Err(error) => return Err(error),
        };
        if is_live {
            // What is longer would take two rows, and move the others.
            let cut = |line: &str| line.chars().take(columns).collect::<String>();
            let text = terminal::printable(&text);
            let lines: String = text.lines().take(rows - 1).map(|line| cut(line) + END_OF_LINE).collect();
            terminal::print_bytes(format!("{HOME}{lines}{END_OF_SCREEN}").as_bytes())?;
        } else if options.once {
            return terminal::print(&text);
        } else {
            terminal::print(&format!("{text}\n"))?;
        }
    }
    Ok(())
}

/// Waits; returns whether a signal has arrived.
fn rest(time: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(NOTICE));
    }
}

/// Returns the rows of the screen, and the columns that a line may have without wrapping.
fn screen() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    let (rows, columns) = size.map_or(SCREEN, |(width, height)| (usize::from(height.0), usize::from(width.0)));
    (rows.max(1), columns.saturating_sub(1))
}
