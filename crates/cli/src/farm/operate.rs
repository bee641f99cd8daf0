//! What an operator asks of a controller that runs: `hodo farm status`, `pause`, `resume`, `drain`, `stop`, `set-run`.

use super::building::Building;
use super::reading::Reading;
use super::{page, shares};
use crate::args::{FarmEnd, FarmPages, FarmStatus};
use crate::{Error, Outcome, terminal};
use hodo_daemon::fetch;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a controller may take for a page.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked whether it is done.
const AGAIN: Duration = Duration::from_millis(100);

/// What a controller tells of itself.
pub fn read(pages: SocketAddr) -> Result<Reading, Error> {
    let text = fetch(pages, page::PATH, PATIENCE)?;
    Reading::parse(&text).map_err(|why| Error::Failed(format!("http://{pages}{}: {why}", page::PATH)))
}

/// Shows what it does, and who got the events.
pub fn status(asked: &FarmStatus) -> Result<Outcome, Error> {
    let reading = read(asked.of.pages)?;
    let builder = asked.builder.map(Building::read).transpose()?;
    let builder = builder.map_or_else(String::new, |building| format!("\n{}", building.text()));
    terminal::print(&format!("{}{builder}\n{}", reading.text(), shares::text(&reading)))?;
    Ok(Outcome::Done)
}

/// Has one thing done, and shows what it says.
pub fn act(of: &FarmPages, path: &str) -> Result<Outcome, Error> {
    terminal::print(&hodo_daemon::act(of.pages, path, PATIENCE)?)?;
    Ok(Outcome::Done)
}

/// Drains it, and waits until that is done.
pub fn drain(asked: &FarmEnd) -> Result<Outcome, Error> {
    let until = Instant::now() + asked.within;
    hodo_daemon::act(asked.of.pages, "/drain", PATIENCE)?;
    loop {
        let reading = read(asked.of.pages)?;
        if reading.state != "draining" {
            terminal::print(&format!("run {}: {}\n", reading.run, reading.state))?;
            // Somebody else may have told it to go on.
            return Ok(if reading.state == "drained" { Outcome::Done } else { Outcome::Failed });
        }
        if Instant::now() >= until {
            let (in_hand, within) = (reading.events.in_hand, asked.within);
            let why = format!("after {within:?} {in_hand} events are still in hand; it goes on draining");
            return Err(Error::Failed(why));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Ends it, and waits until it has gone.
pub fn stop(asked: &FarmEnd) -> Result<Outcome, Error> {
    let until = Instant::now() + asked.within;
    let said = hodo_daemon::act(asked.of.pages, "/stop", PATIENCE)?;
    while is_there(&asked.of) {
        if Instant::now() >= until {
            return Err(Error::Failed(format!("after {:?} it has not ended; it goes on ending", asked.within)));
        }
        std::thread::sleep(AGAIN);
    }
    terminal::print(&said.replace("stopping", "stopped"))?;
    Ok(Outcome::Done)
}

/// Whether somebody answers, be it that it is coming to its end.
fn is_there(of: &FarmPages) -> bool {
    match fetch(of.pages, hodo_daemon::HEALTH, PATIENCE) {
        Err(error) => error.to_string().contains("the answer is"),
        Ok(_) => true,
    }
}
