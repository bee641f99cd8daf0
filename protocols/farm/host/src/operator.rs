//! An operator's side of a running controller: reads its status and gives it orders.

use crate::Error;
use crate::controller::status::{self, Status};
use hodo_daemon::{act, fetch};
use hodo_io::{Clock, sleep};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a controller or a builder may take for a page.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How often a controller is asked whether it is done.
const AGAIN: Duration = Duration::from_millis(100);

/// Reads the status of the controller whose pages are here.
///
/// # Errors
/// [`Error::Daemon`] if the page cannot be read, [`Error::NoStatus`] if it is not a controller's.
pub fn read(pages: SocketAddr) -> Result<Status, Error> {
    Status::parse(&fetch(pages, status::PATH, PATIENCE)?)
}

/// Gives an order, as `/pause` or `/run?number=7`. Returns the answer.
///
/// # Errors
/// [`Error::Daemon`] if the controller does not answer, or refuses.
pub fn order(pages: SocketAddr, path: &str) -> Result<String, Error> {
    Ok(act(pages, path, PATIENCE)?)
}

/// Drains a controller and waits until it does so no more. Its state then is `drained`, unless somebody else resumed it.
///
/// # Errors
/// [`Error::TimedOut`] if events are still in hand, else as [`read`].
pub fn drain(pages: SocketAddr, within: Duration) -> Result<Status, Error> {
    let clock = Clock::start();
    order(pages, "/drain")?;
    loop {
        let status = read(pages)?;
        if status.state != "draining" {
            return Ok(status);
        }
        if clock.now().as_nanos() >= within.as_nanos() as u64 {
            let in_hand = status.events.in_hand;
            let why = format!("{in_hand} events are still pending after {within:?}; draining continues");
            return Err(Error::TimedOut(why));
        }
        sleep(AGAIN);
    }
}

/// Stops a controller and waits until its process has gone. Returns its answer to the order.
///
/// # Errors
/// [`Error::Stopped`] if to the last it could not store what it had decided, [`Error::TimedOut`] if it is still there,
/// [`Error::Daemon`] if it does not answer, or refuses.
pub fn stop(pages: SocketAddr, within: Duration) -> Result<String, Error> {
    let clock = Clock::start();
    let said = order(pages, "/stop")?;
    let mut failing = read(pages).ok().and_then(|status| status.store.failing);
    while let Some(health) = health(pages) {
        failing = health.split_once("failing: ").map(|(_, why)| why.trim_end().to_owned());
        if clock.now().as_nanos() >= within.as_nanos() as u64 {
            return Err(Error::TimedOut(format!("it has not stopped after {within:?}, and is still stopping")));
        }
        sleep(AGAIN);
    }
    match failing {
        Some(why) => Err(Error::Stopped(why)),
        None => Ok(said),
    }
}

/// Returns what a daemon says about its health, be it that it is coming to its end; `None` if nobody answers.
fn health(pages: SocketAddr) -> Option<String> {
    match fetch(pages, hodo_daemon::HEALTH, PATIENCE) {
        Err(error) => Some(error.to_string()).filter(|text| text.contains("the answer is")),
        Ok(text) => Some(text),
    }
}
