//! A hub that a program runs, with a client that reads a register of a board through it.
//!
//!     cargo run -p hodo-ipbus-host --example hub -- 192.168.0.10:50001

use hodo_ipbus_host::daemon::{HubDaemon, HubSettings};
use hodo_ipbus_host::{Access, At, Session, SessionSettings};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn main() -> Result<(), Box<dyn Error>> {
    let board = std::env::args().nth(1).ok_or("say where the board is, as 192.168.0.10:50001")?;
    println!("register 0 holds 0x{:08X}", read_through_hub(&board, 0)?);
    Ok(())
}

/// Starts a hub, reads a register of a board through it, and stops it.
///
/// # Errors
/// The error of the daemon, if it cannot be started or fails.
pub fn read_through_hub(board: &str, register: u32) -> Result<u32, Box<dyn Error>> {
    let hub = HubDaemon::start(HubSettings { listen: ([127, 0, 0, 1], 0).into(), ..HubSettings::default() })?;
    let uri = format!("chtcp-2.0://{}?target={board}", hub.address()).parse()?;
    let stop = Arc::clone(hub.daemon().stop());
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || hub.run());
        let read = Session::open(&uri, &SessionSettings::default())
            .and_then(|mut session| session.call(Access::read(At::Address(register))));
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the hub does not panic")?;
        Ok(read?)
    })
}
