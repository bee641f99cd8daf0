//! `hodo farm`: the parts of an event farm.

mod attending;
mod bench;
mod builder;
mod building;
mod control;
mod controller;
mod deciders;
mod export;
mod lines;
mod metrics;
mod node;
mod operate;
mod orders;
mod page;
mod pages;
mod reading;
mod replay;
mod report;
mod run;
mod seen;
mod shares;
mod source;
mod storing;
mod timeline;
mod top;
mod uploading;
mod verify;

use crate::args::{Farm, FarmCommand, FarmMade, FarmProcess, units::Cpus};
use crate::hub::announce;
use crate::{Error, Outcome, congestion};
use hodo_catalog::farm::emulation::GeneratorConfig;
use hodo_catalog::farm::wire::LENGTH_MAX;
use hodo_daemon::Daemon;
use hodo_io::{ServeOptions, SocketSettings, StreamServer};
use hodo_machine::Address;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes that a part of a farm receives at once: two events of 32 KiB with their headers. With many nodes on a core the
/// buffers of all of them are to be in its cache.
const AT_ONCE: usize = 33 << 10;
/// Bytes that are received before they are answered: eight such events.
const TOGETHER: usize = 8 * AT_ONCE;

/// Is a part of a farm.
pub fn run(farm: &Farm) -> Result<Outcome, Error> {
    match &farm.command {
        FarmCommand::Controller(controller) => controller::run(controller),
        FarmCommand::Builder(builder) => builder::run(builder),
        FarmCommand::Source(source) => source::run(source),
        FarmCommand::Node(node) => node::run(node),
        FarmCommand::Bench(asked) => bench::run(asked),
        FarmCommand::Run(asked) => run::run(asked),
        FarmCommand::Status(of) => operate::status(of),
        FarmCommand::Top(asked) => top::run(asked),
        FarmCommand::Report(asked) => report::run(asked),
        FarmCommand::Pause(of) => operate::act(of, "/pause"),
        FarmCommand::Resume(of) => operate::act(of, "/resume"),
        FarmCommand::SetRun(asked) => operate::act(&asked.of, &format!("/run?number={}", asked.number)),
        FarmCommand::Drain(asked) => operate::drain(asked),
        FarmCommand::Stop(asked) => operate::stop(asked),
        FarmCommand::Export(asked) => export::run(asked),
        FarmCommand::Verify(asked) => verify::run(asked),
    }
}

/// How a process of the farm runs.
fn serve_options(process: &FarmProcess, threads: usize, peers_max: usize) -> Result<ServeOptions, Error> {
    congestion::check(process.congestion.as_deref())?;
    // Each peer takes a descriptor; where that is not allowed, fewer are served.
    let _ = hodo_io::host::raise_descriptor_limit();
    Ok(ServeOptions {
        threads,
        cpus: process.cpu.as_ref().map_or_else(Vec::new, |Cpus(cpus)| cpus.clone()),
        wait: process.wait,
        settings: SocketSettings {
            congestion: process.congestion.clone(),
            socket_buffer: process.socket_buffer,
            peers_max,
            at_once: AT_ONCE,
            together: TOGETHER,
            ..SocketSettings::default()
        },
    })
}

/// A size as the wire can tell it.
fn wire_length(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).min(LENGTH_MAX)
}

/// Listens, and says where, and where the pages are.
fn listen(at: SocketAddr, options: ServeOptions, daemon: &Daemon, is_tied: bool) -> Result<StreamServer, Error> {
    let server = StreamServer::bind(&Address::Socket(at), options).map_err(|error| cannot_listen(at, &error))?;
    announce(daemon, server.address(), is_tied)?;
    Ok(server)
}

fn cannot_listen(at: SocketAddr, error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot listen on {at}: {error}; choose another address or port, or end who has it"))
}

fn generator(made: &FarmMade, first: u64, step: u64, count: Option<u64>) -> GeneratorConfig {
    GeneratorConfig {
        first,
        step,
        count,
        size: made.size,
        rate: made.rate,
        poisson: made.poisson,
        pool: made.different as usize,
        numbered: made.numbered,
        seed: made.seed,
    }
}

/// Differs each time that a program starts.
fn instance() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40)
}
