//! `hodo hub`: between IPbus clients over TCP and boards over UDP.

mod attending;
mod metrics;
pub mod page;
mod seen;
mod stop;
mod tracing;

use crate::announce::announce;
use crate::args::{self, HubCommand};
use crate::{Error, Outcome, terminal};
use attending::Attending;
use hodo_catalog::ipbus::hub::{AllowList, Hub, HubCommand as Ask, HubConfig};
use hodo_catalog::ipbus::window::WindowConfig;
use hodo_daemon::{Daemon, HEALTH, Options, Reply, Snapshot};
use hodo_io::{JointOptions, JointServer, ServeOptions, SocketSettings, Trace};
use hodo_machine::{Address, Input, Instant, Machine, Sampling, Wait};
use seen::Seen;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::Tracing;

/// Connections that the driver accepts beyond the hub's own bound, so that the hub counts those that it turns away.
const MORE_PEERS: usize = 64;
/// How long a page waits for what it shows.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a lone packet may take where nothing was lost lately: a timer as far away costs nothing, and a lone packet
/// is hardly ever late.
const CALM: Duration = Duration::from_millis(10);
/// One packet in 2 to the power of this is measured.
const SAMPLED_BITS: u32 = 6;

/// Is a hub until a signal comes, or asks one.
pub fn run(hub: &args::Hub) -> Result<Outcome, Error> {
    match &hub.command {
        None => serve(&hub.serve),
        Some(HubCommand::Stats(pages)) => show(pages, page::PATH),
        Some(HubCommand::Status(pages)) => show(pages, HEALTH),
        Some(HubCommand::Stop(stop)) => stop::run(stop),
    }
}

fn show(pages: &args::HubPages, path: &str) -> Result<Outcome, Error> {
    terminal::print(&hodo_daemon::fetch(pages.pages, path, PATIENCE * 2)?)?;
    Ok(Outcome::Done)
}

fn serve(serve: &args::HubServe) -> Result<Outcome, Error> {
    serve.log.open("hodo hub", serve.verbose)?;
    let allow = allow_list(serve.allow.as_deref())?;
    // Each client and each board takes a descriptor; where that is not allowed, fewer are served.
    let _ = hodo_io::host::raise_descriptor_limit();
    let seen = Arc::new(Snapshot::<Seen>::default());
    let http = (!serve.no_metrics).then_some(serve.metrics);
    let shown = Arc::clone(&seen);
    let page = move |text: fn(&Seen) -> String| match shown.ask(PATIENCE) {
        Some(seen) => Reply::text(200, text(&seen)),
        None => Reply::text(503, "the hub has not begun, or is stuck\n"),
    };
    let (stats, stages) = (page.clone(), page);
    let options = Options { http, pid_file: serve.pid_file.clone() };
    let daemon = Daemon::start(&options, |pages| {
        let pages = pages.with(page::PATH, move || stats(page::text));
        pages.with(page::STAGES_PATH, move || stages(|seen| seen.stages.text()))
    })?;
    let trace = crate::trace::start(&serve.traced, serve.trace_paused)?;
    let server = bind(serve, trace.clone())?;
    let told = Arc::clone(&seen);
    daemon.registry().source(move |exposition| {
        if let Some(seen) = told.ask(PATIENCE) {
            metrics::tell(&seen, exposition);
        }
    });
    announce(&daemon, server.address(), serve.until_stdin_closes);
    let at = server.address().to_string();
    let make = |index| {
        let mut hub = Hub::new(config(serve), allow.clone());
        if serve.stages {
            let sampling = Sampling::ending_in_zeros(SAMPLED_BITS);
            hub.handle(Instant::ZERO, Input::Command(Ask::Sample(sampling)));
        }
        let rounds = daemon.rounds(&format!("hub {index}"));
        let tracing = Tracing::new(trace.clone());
        (hub, Attending::new(rounds, Arc::clone(&seen), serve.allow.clone(), tracing))
    };
    server.run(make, daemon.stop()).map_err(|error| Error::Failed(format!("serving {at}: {error}")))?;
    Ok(Outcome::Done)
}

fn bind(serve: &args::HubServe, trace: Option<Arc<Trace>>) -> Result<JointServer, Error> {
    let peers_max = serve.clients as usize + MORE_PEERS;
    let options = JointOptions {
        serve: ServeOptions {
            threads: 1,
            cpus: serve.cpu.into_iter().collect(),
            wait: serve.wait,
            settings: SocketSettings { peers_max, ..SocketSettings::default() },
        },
        datagrams: SocketSettings { peers_max: serve.boards as usize + MORE_PEERS, ..SocketSettings::default() },
        drain: serve.drain,
        trace,
    };
    JointServer::bind(&Address::Socket(serve.listen), options).map_err(|error| {
        let at = serve.listen;
        Error::Failed(format!("cannot listen on {at}: {error}; choose another address or port, or end who has it"))
    })
}

fn config(serve: &args::HubServe) -> HubConfig {
    let config = HubConfig::default();
    HubConfig {
        clients: serve.clients as usize,
        boards: serve.boards as usize,
        window: WindowConfig {
            in_flight: serve.in_flight as usize,
            patience: serve.patience,
            late_min: serve.late,
            // A spinning hub sets no timers.
            calm: if serve.wait == Wait::Block { CALM } else { Duration::ZERO },
        },
        ..config
    }
}

fn allow_list(file: Option<&Path>) -> Result<AllowList, Error> {
    let Some(file) = file else { return Ok(AllowList::ALL) };
    let text = std::fs::read_to_string(file)
        .map_err(|why| Error::Usage(format!("--allow {}: cannot be read: {why}", file.display())))?;
    AllowList::parse(&text).map_err(|why| Error::Usage(format!("--allow {}: {why}", file.display())))
}
