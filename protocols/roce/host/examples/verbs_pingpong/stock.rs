//! One end of a ping-pong whose other end is `ibv_rc_pingpong`.

use hodo_io::Clock;
use hodo_roce_host::exchange::{Exchange, Greeting};
use hodo_roce_host::pingpong::{End, PingPong, Side};
use hodo_roce_host::{Reliability, VerbsDevice, VerbsSettings, session};
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// Exchanges messages with the far end, which has to have the same parameters.
pub fn run(settings: &VerbsSettings, side: Side, at: SocketAddr, parameters: &PingPong) -> Result<(), Box<dyn Error>> {
    let mut device = VerbsDevice::open(settings, Clock::start())?;
    let mut end = End::new(&mut device, parameters)?;
    let (local, reliability) = (*end.local(), Reliability::default());
    match side {
        Side::Client => {
            let mut exchange = Exchange::connect(at, PATIENCE)?;
            exchange.tell(&local)?;
            let remote = exchange.hear()?;
            exchange.done()?;
            end.connect(&remote, &reliability)?;
        }
        Side::Server => {
            let mut exchange = Exchange::accept(&session::listen(at)?, PATIENCE)?;
            let Greeting::Address(remote) = exchange.greeting()? else { return Err("no address".into()) };
            end.connect(&remote, &reliability)?;
            exchange.tell(&local)?;
            exchange.wait_done()?;
        }
    }
    let took = end.run(side)?;
    let us = took.span.as_secs_f64() * 1e6 / took.iterations as f64;
    println!("{side:?} of ibv_rc_pingpong, {:?}: {} bytes, {us:.2} us/iter", parameters.wait, took.bytes);
    Ok(())
}
