//! `hodo farm top`: a live view of a farm.
//!
//! The view is one text, the same for a terminal, a pipe and `--once`, so that a terminal needs five escape sequences and
//! no more. ratatui with crossterm would draw the same lines, need a second path for pipes, and bring about thirty crates;
//! it pays once there are panes, scrolling or keys.

use super::operate::FarmStatus;
use crate::screen::{self, Screen};
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

/// Shows the view until a signal arrives.
pub fn run(options: &TopOptions) -> Result<Outcome, Error> {
    let stop = interrupt::flag()?;
    let is_live = std::io::stdout().is_terminal() && !options.once;
    // Before the screen is taken, so that a wrong address is told as any error.
    let first = look(options)?;
    let mut taken = is_live.then(Screen::enter).transpose()?;
    show(options, first, taken.as_mut(), &stop).map(|()| Outcome::Done)
}

fn look(options: &TopOptions) -> Result<FarmSnapshot, Error> {
    let controller = operator::read(options.of.of.pages)?;
    let builder = options.of.builder.map(|pages| builder::read(pages, operator::PATIENCE)).transpose()?;
    Ok(FarmSnapshot { controller, builder })
}

fn show(
    options: &TopOptions,
    first: FarmSnapshot,
    mut taken: Option<&mut Screen>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut before = first;
    while !rest(options.every, stop) {
        let rows = if taken.is_some() { screen::size().0 } else { ROWS };
        let text = match look(options) {
            Ok(now) => {
                let text = view(&options.of.of.pages.to_string(), &before, &now, rows);
                before = now;
                text
            }
            // It may be started again.
            Err(error) if taken.is_some() => format!("{error}\n"),
            Err(error) => return Err(error),
        };
        if let Some(screen) = &mut taken {
            screen.show(&text)?;
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
