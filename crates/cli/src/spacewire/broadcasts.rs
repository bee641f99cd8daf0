//! `hodo spacewire time-code` and `interrupt`: broadcast codes through a port.

use super::options::{PortOptions, finish};
use crate::{Error, Outcome, interrupt as signal, terminal};
use clap::Args;
use hodo_measure::units;
use hodo_spacewire_host::machines::broadcast::{ACKNOWLEDGED_INTERRUPTS, Broadcast, EXTENDED_INTERRUPTS};
use hodo_spacewire_host::session::{Arrival, Directions, Session};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it takes at the most until a signal is noticed.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Sends time-codes.
pub fn time_codes(options: &TimeCodeOptions) -> Result<Outcome, Error> {
    let stop = signal::flag()?;
    let mut port = options.port.open(Directions::Sending)?;
    port.discard_arrivals();
    let every = Duration::from_secs_f64(1.0 / options.rate);
    let begin = Instant::now();
    let count = if options.forever { u64::MAX } else { options.count };
    let (flags, mut time, mut sent) = (options.code & 0xC0, options.code & 0x3F, 0);
    while sent < count && !stop.load(Ordering::Relaxed) {
        port.send_broadcast(flags | time)?;
        port.flush()?;
        (time, sent) = ((time + 1) & 0x3F, sent + 1);
        // Each is due at a time of its own, so that the rate holds however late one is.
        let due = begin + every.mul_f64(sent as f64);
        while sent < count && !stop.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // Packets that arrive meanwhile are taken, so that the bridge is not held back.
            port.receive(left.min(LOOK_UP))?;
        }
    }
    finish(port)?;
    let what = match flags {
        0 => "time-codes".to_owned(),
        _ => format!("broadcast codes, which are no time-codes (the first was {})", Broadcast::of(options.code)),
    };
    terminal::print(&format!("{sent} {what} sent to {}\n", options.port.port))?;
    Ok(Outcome::Done)
}

/// Sends a distributed interrupt or its acknowledgement, and waits for the acknowledgement on request.
pub fn interrupt(options: &InterruptOptions) -> Result<Outcome, Error> {
    let InterruptOptions { number, acknowledge, within, .. } = *options;
    let code = match number {
        0..ACKNOWLEDGED_INTERRUPTS if acknowledge => Broadcast::Acknowledgement(number),
        0..ACKNOWLEDGED_INTERRUPTS => Broadcast::Interrupt(number),
        ACKNOWLEDGED_INTERRUPTS..EXTENDED_INTERRUPTS if acknowledge || within.is_some() => {
            return Err(Error::Usage(format!(
                "{number}: interrupts that are acknowledged are 0 to 31; leave --acknowledge and --within out"
            )));
        }
        // The code of an acknowledgement, where there are none.
        ACKNOWLEDGED_INTERRUPTS..EXTENDED_INTERRUPTS => Broadcast::Acknowledgement(number - ACKNOWLEDGED_INTERRUPTS),
        _ => {
            return Err(Error::Usage(format!(
                "{number} is no interrupt; write 0 to 31, or up to 63 where none are acknowledged"
            )));
        }
    };
    if within.is_some() && options.port.port.starts_with("gresb:") {
        return Err(Error::Usage(
            "--within: a GRESB tells its host of no broadcast codes; use a port of SSDTP2".to_owned(),
        ));
    }
    let stop = signal::flag()?;
    let mut port = options.port.open(if within.is_some() { Directions::Both } else { Directions::Sending })?;
    let began = Instant::now();
    port.send_broadcast(code.byte())?;
    port.flush()?;
    let what = if acknowledge { code.to_string() } else { format!("interrupt {number}") };
    let Some(within) = within else {
        port.discard_arrivals();
        finish(port)?;
        terminal::print(&format!("{what} sent to {}\n", options.port.port))?;
        return Ok(Outcome::Done);
    };
    match acknowledged(&mut port, number, began, within, &stop)? {
        Some(after) => {
            let millis = after.as_secs_f64() * 1e3;
            terminal::print(&format!("{what} sent to {}, acknowledged after {millis:.3} ms\n", options.port.port))?;
            Ok(Outcome::Done)
        }
        None if stop.load(Ordering::Relaxed) => Ok(Outcome::Failed),
        None => Err(Error::Failed(format!(
            "{}: {what} was not acknowledged within {within:?}; check that a node handles it, and that all routers on the way pass \
             interrupts (in the file of a bridge's network: broadcast = \"rev1\")",
            options.port.port
        ))),
    }
}

/// Waits for an acknowledgement. Returns when it arrived, counted from `began`.
fn acknowledged(
    port: &mut Session,
    number: u8,
    began: Instant,
    within: Duration,
    stop: &AtomicBool,
) -> Result<Option<Duration>, Error> {
    let expected = Broadcast::Acknowledgement(number);
    while !stop.load(Ordering::Relaxed) {
        let left = within.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        match port.receive(left.min(LOOK_UP))? {
            Some(Arrival::Broadcast(code)) if Broadcast::of(code) == expected => return Ok(Some(began.elapsed())),
            _ => {}
        }
    }
    Ok(None)
}

/// Time-codes to be sent.
#[derive(Debug, Args)]
pub struct TimeCodeOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// The first time-code, 0 to 63. Flags in bits 7 and 6 make it another broadcast code, for tests: 10 an interrupt, 01 and 11 reserved ones.
    #[arg(value_name = "CODE", value_parser = super::options::byte, default_value = "0")]
    pub code: u8,
    /// Time-codes to send, each one more than the one before, modulo 64.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Send until interrupted.
    #[arg(long, conflicts_with = "count")]
    pub forever: bool,
    /// Time-codes per second.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::positive)]
    pub rate: f64,
}

/// A distributed interrupt to be sent.
#[derive(Debug, Args)]
pub struct InterruptOptions {
    /// The port.
    #[command(flatten)]
    pub port: PortOptions,
    /// The number of the interrupt: 0 to 31, or up to 63 in a network without acknowledgements.
    #[arg(value_name = "NUMBER", value_parser = super::options::byte)]
    pub number: u8,
    /// Send the acknowledgement of the interrupt instead.
    #[arg(long, conflicts_with = "within")]
    pub acknowledge: bool,
    /// Wait until the interrupt is acknowledged, for this long; without an acknowledgement the command fails.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub within: Option<Duration>,
}
