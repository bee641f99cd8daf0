//! A URI becomes a pvAccess link or its far end, on sockets or simulated.

use crate::far_end::{FarEnd, Pvs};
use crate::link::{PvaLink, Target};
use crate::operation::Kind;
use hodo_io::{Clock, Endpoint, Sockets};
use hodo_machine::{Address, Transport};
use hodo_measure::{Plan, Test, Usage};
use hodo_pva::client::{Client, ClientConfig};
use hodo_pva::server::ServerConfig;
use hodo_pva::wire::SERVER_PORT;
use hodo_pva::{Limits, SessionConfig};
use hodo_sim::Sim;
use hodo_tester::{
    Error, LOOPBACK, Opened, SERVER_NODE, ServeSettings, Server, Service, Settings, Uri, cannot, in_parts, networks,
    simulated, socket_settings,
};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Bytes of a message beside those of the array in it.
const MESSAGE_FRONT: usize = 1 << 16;
/// Channels, and operations, of one client at the far end: those of the largest link, some of them for several sizes and directions.
const CHANNELS_MAX: usize = 1_000_000;
/// Updates that may wait for one subscriber at the far end.
const QUEUE_MAX: u32 = 10_000;

/// Opens a link over sockets.
pub(crate) fn open(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    if settings.reconnect {
        return Err(Error::Usage(
            "--reconnect: pvAccess keeps its connections; `?operation=connect` behind the link opens channels".into(),
        ));
    }
    let target = target(uri, settings)?;
    in_parts(settings, |channels, clock, opened| open_part(uri, settings, &target, channels, clock, stop, opened))
}

/// Opens one thread's part of a link.
fn open_part(
    uri: &Uri,
    settings: &Settings,
    target: &Target,
    channels: Range<u32>,
    clock: Clock,
    stop: &AtomicBool,
    opened: &mut Opened,
) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("opening {uri}: {error}"));
    let (has_name, kind) = (target.name.is_some(), target.kind);
    let seed = hodo_io::random_bits();
    let target = Target { id: seed, ..target.clone() };
    let client = Client::new(ClientConfig { seed, ..client_config(settings) });
    let endpoint = Endpoint::new(client, Sockets::new(socket_settings(settings)).map_err(failed)?, clock);
    let link = PvaLink::open(endpoint, target, channels, settings.size_max, settings.timeout, stop);
    let mut link = link.map_err(|why| cannot(uri, &why))?;
    if has_name && kind == Kind::Value {
        check_size_there(uri, settings, &mut link, stop)?;
    }
    opened.note(link.driver().transport().facts());
    opened.links.push(Box::new(link));
    Ok(())
}

/// Refuses sizes that the PV of somebody else's server does not have.
fn check_size_there(
    uri: &Uri,
    settings: &Settings,
    link: &mut PvaLink<Endpoint<Client, Sockets>>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let there = link.size_there(settings.timeout, stop).map_err(|why| cannot(uri, &why))?;
    match there {
        Some(bytes) if bytes == u64::from(settings.size_max) => Ok(()),
        Some(bytes) => Err(Error::Usage(format!(
            "the field `value` of `{uri}` has {bytes} bytes now: measure it with --sizes {bytes}"
        ))),
        None => Err(Error::Usage(format!("`{uri}` has no field `value` that is a scalar or an array of scalars"))),
    }
}

/// Refuses what operations of this kind cannot do, and sizes that a PV of another server does not have.
pub(crate) fn check(uri: &Uri, plan: &Plan) -> Result<(), Error> {
    let refused = |text: String| Err(Error::Usage(text));
    let (kind, _) = Kind::and_others(uri)?;
    let (least, most) = plan.size.bounds();
    match kind {
        Kind::Call | Kind::Connect if plan.test == Test::Updates => {
            refused(format!("--test updates: `{uri}` is not about values; leave its option `operation` out"))
        }
        Kind::Connect if most > 0 => refused(format!("--sizes {most}: connects have no payload; leave it out")),
        Kind::Value | Kind::Call if least == 0 => refused("--sizes 0: a value has at least 1 byte".to_owned()),
        Kind::Call if uri.path.len() > 1 => {
            refused(format!("`{uri}`: calls are measured at `hodo serve pva://…` alone; leave the PV out"))
        }
        Kind::Value if plan.test == Test::Random && uri.path.len() > 1 => {
            refused(format!("--test random: the PV of `{uri}` has one size; take another test"))
        }
        _ => Ok(()),
    }
}

/// Returns what the link reads and writes.
fn target(uri: &Uri, settings: &Settings) -> Result<Target, Error> {
    let name = uri.path.strip_prefix('/').filter(|name| !name.is_empty()).map(str::to_owned);
    let kind = Kind::of(uri)?;
    let server = Uri { path: String::new(), options: Vec::new(), ..uri.clone() }.socket_address("", SERVER_PORT)?;
    Ok(Target { server, name, kind, far_process: settings.far_process.clone(), id: 0 })
}

fn client_config(settings: &Settings) -> ClientConfig {
    ClientConfig { session: session(settings.size_max), ..ClientConfig::default() }
}

/// Returns the settings of a connection whose arrays have up to so many bytes.
fn session(size_max: u32) -> SessionConfig {
    let bytes = size_max as usize + MESSAGE_FRONT;
    let known = Limits::DEFAULT;
    let limits = Limits {
        message_bytes: known.message_bytes.max(bytes),
        value_bytes: known.value_bytes.max(bytes),
        recycled_bytes: known.recycled_bytes.max(bytes),
        ..known
    };
    SessionConfig { limits, ..SessionConfig::default() }
}

/// Opens a link over the simulated network.
pub(crate) fn simulate(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    let (kind, others) = Kind::and_others(uri)?;
    let (out, back) = networks(uri, &others, settings)?;
    let client = Client::new(client_config(settings));
    // A run has to be the same each time, so it tells of no usage.
    let server = far_end(settings.size_max, Pvs::new(settings.size_max as usize), || None);
    let sim = Sim::new(Transport::Stream, (&out, &back), client, vec![server], |_| None);
    let target = Target { server: Address::Node(SERVER_NODE), name: None, kind, far_process: None, id: 0 };
    let link = PvaLink::open(sim, target, 0..settings.channels, settings.size_max, settings.timeout, stop);
    let link = link.map_err(|why| cannot(uri, &why))?;
    let model = link.driver().model();
    Ok(simulated(Box::new(link), model, 1))
}

/// Binds the far end.
pub(crate) fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    let address = uri.socket_address(LOOPBACK, SERVER_PORT)?;
    let size_max = settings.size_max;
    let pvs = Pvs::new(size_max as usize);
    let service = Service {
        make: move |_| far_end(size_max, pvs.beside(), || Some(Usage::of_process())),
        answer: |_| None,
        transport: Transport::Stream,
        threads: settings.thread_count(),
        listeners: 1,
    };
    Server::bind(uri, &address, settings, service)
}

/// Creates the far end of a link, with operations of up to so many bytes.
fn far_end(size_max: u32, pvs: Pvs, usage: fn() -> Option<Usage>) -> FarEnd {
    let config = ServerConfig {
        session: session(size_max),
        queue_max: QUEUE_MAX,
        channels_max: CHANNELS_MAX,
        operations_max: CHANNELS_MAX,
        ..ServerConfig::default()
    };
    FarEnd::new(config, pvs, usage)
}
