//! A URI becomes a link or its far end.

use crate::backend::{Backend, Surroundings};
use crate::client::{Parts, RdmaLink, Shape};
use crate::control::{MESSAGE, MESSAGES};
use crate::far_end::{FarEnd, FarEndSettings};
use crate::greeting::{self, Greeting, Welcome, Wish, remote};
use crate::options::{DEPTH_MAX, Kind, LinkOptions, Place};
use crate::served::control_limits;
use hodo_io::{Clock, affinity, connect_from, is_local};
use hodo_machine::{Address, Closed};
use hodo_measure::{LinkError, Plan, Test};
use hodo_roce::Access;
use hodo_roce_host::exchange::PORT;
use hodo_roce_host::{AddressOfQueuePair, DeviceError, Reliability};
use hodo_tester::{Error, LOOPBACK, Opened, ServeSettings, Server, Settings, Uri, cannot, in_parts};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Receives that are posted ahead at least: as many as `ibv_rc_pingpong` posts.
const RECEIVE_DEPTH: u32 = 500;
/// Reads in flight at most, as adapters have them.
const READS_MAX: u32 = 16;
/// The time between two looks at whether opening is to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Opens a link.
pub(crate) fn open<B: Backend>(uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
    if settings.reconnect {
        return Err(Error::Usage("--reconnect: an RDMA link keeps its queue pairs; leave it out".into()));
    }
    let options = LinkOptions::of(uri)?;
    let to = address(uri)?;
    in_parts(settings, |channels, clock, opened| {
        open_part::<B>(uri, settings, &options, to, &channels, clock, stop, opened)
    })
}

/// Opens one thread's part of a link.
#[allow(clippy::too_many_arguments, reason = "the parts of a link differ in two of them")]
fn open_part<B: Backend>(
    uri: &Uri,
    settings: &Settings,
    options: &LinkOptions,
    to: SocketAddr,
    channels: &Range<u32>,
    clock: Clock,
    stop: &AtomicBool,
    opened: &mut Opened,
) -> Result<(), Error> {
    let failed = |error: DeviceError| Error::Failed(format!("cannot open {uri}: {error}"));
    if let Some(from) = options.place.address {
        check_from(from, to).map_err(|why| Error::Failed(format!("cannot open {uri}: {why}")))?;
    }
    let mut stream = connect(options.place.address, to, settings.timeout).map_err(|error| cannot(uri, &error))?;
    let here = stream.local_addr().map_err(|error| Error::Failed(format!("cannot open {uri}: {error}")))?;
    let pairs = channels.len() as u32;
    let (socket_buffer, path) = (settings.socket_buffer, settings.path.clone());
    let surroundings = Surroundings { here: here.ip(), clock, socket_buffer, path, pairs };
    let mut device = B::open(&options.place, &surroundings).map_err(failed)?;
    let shape = shape(options, settings);
    let rights = if shape.kind == Kind::Send { Access::LOCAL } else { Access { remote_atomic: false, ..Access::ALL } };
    let payload = device.register(shape.size.max(1) as usize, rights).map_err(failed)?;
    let messages = device.register((2 * MESSAGES * MESSAGE) as usize, Access::LOCAL).map_err(failed)?;
    let wish = wish(options, settings, pairs, device.udp_port(), remote(payload));
    let control = device.create(&control_limits()).map_err(failed)?;
    let limits = wish.limits(shape.depth);
    let ours = (0..pairs).map(|_| device.create(&limits)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let (welcome, far) =
        meet(&mut stream, &wish, &control, &ours, settings.timeout, stop).map_err(|why| match why {
            Unmet::Link(error) => cannot(uri, &error),
            Unmet::Refused(why) => Error::Failed(format!("cannot open {uri}: the far end refused: {why}")),
            Unmet::Stranger(said) => Error::Failed(format!(
                "cannot open {uri}: no `hodo serve` of this protocol listens there: it says {said:?}"
            )),
        })?;
    device.set_far_port(welcome.udp_port).map_err(failed)?;
    let (is_first, channels, remote) = (channels.start == 0, ours.clone(), welcome.memory);
    let mut link =
        RdmaLink::new(Parts { device, stream, shape, payload, messages, remote, control, channels, is_first });
    link.connect(&far, &wish, &reliability(&wish)).map_err(failed)?;
    (opened.local, opened.remote) = (Some(here), Some(to));
    opened.far_end = Some(welcome.facts);
    opened.links.push(Box::new(link));
    Ok(())
}

fn shape(options: &LinkOptions, settings: &Settings) -> Shape {
    let reads = if options.kind == Kind::Read { READS_MAX } else { DEPTH_MAX };
    Shape {
        kind: options.kind,
        depth: options.depth.unwrap_or(settings.window).clamp(1, reads),
        inline: options.inline,
        send_entries: options.send_entries,
        receive_entries: options.receive_entries,
        size: settings.size_max,
    }
}

fn wish(options: &LinkOptions, settings: &Settings, pairs: u32, udp_port: u16, memory: hodo_roce::Remote) -> Wish {
    let depth = shape(options, settings).depth;
    // Twice what may be in flight: an acknowledgement says that a message is there, and not that its receive was posted anew.
    let enough = depth.saturating_mul(2).clamp(RECEIVE_DEPTH, DEPTH_MAX);
    Wish {
        channels: pairs,
        size: settings.size_max,
        receive_depth: options.receive_depth.unwrap_or(enough),
        kind: options.kind,
        mtu: options.mtu,
        inline: options.inline,
        entries: options.entries,
        send_entries: options.send_entries,
        receive_entries: options.receive_entries,
        timeout: options.timeout,
        reads: depth.min(READS_MAX) as u8,
        udp_port,
        memory,
    }
}

pub(crate) fn reliability(wish: &Wish) -> Reliability {
    Reliability { mtu: wish.mtu, timeout: wish.timeout, reads: wish.reads, ..Reliability::default() }
}

/// Why a link did not come about.
enum Unmet {
    Link(LinkError),
    /// The far end refused, with these words.
    Refused(String),
    /// Something else listens there, which said this.
    Stranger(String),
}

/// Checks that this host can connect from an address to a far end.
fn check_from(from: IpAddr, to: SocketAddr) -> Result<(), String> {
    if !is_local(from) {
        return Err(format!("{from} is not an address of this host; choose one that is"));
    }
    if from.is_ipv4() != to.is_ipv4() {
        return Err(format!(
            "the adapter is at {from}, and the far end at {}: both have to be IPv4, or both IPv6",
            to.ip()
        ));
    }
    Ok(())
}

/// Connects to a far end, from the address of the adapter if one was asked for: so the far end knows that it is there.
fn connect(from: Option<IpAddr>, to: SocketAddr, timeout: Duration) -> Result<TcpStream, LinkError> {
    let stream = match from {
        Some(from) => connect_from(from, to, timeout),
        None => TcpStream::connect_timeout(&to, timeout),
    };
    let connected = stream.and_then(|stream| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    });
    connected.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => LinkError::Closed { channel: 0, why: Closed::Refused },
        ErrorKind::TimedOut | ErrorKind::WouldBlock => LinkError::Closed { channel: 0, why: Closed::TimedOut },
        _ => error.raw_os_error().map_or(LinkError::Closed { channel: 0, why: Closed::Unreachable }, LinkError::System),
    })
}

/// Exchanges greetings with the far end.
fn meet(
    stream: &mut TcpStream,
    wish: &Wish,
    control: &AddressOfQueuePair,
    ours: &[AddressOfQueuePair],
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<(Welcome, Vec<AddressOfQueuePair>), Unmet> {
    let reset = |_| Unmet::Link(LinkError::Closed { channel: 0, why: Closed::Reset });
    let text = greeting::line(&wish.request()) + &greeting::addresses(std::iter::once(control).chain(ours));
    stream.write_all(text.as_bytes()).map_err(reset)?;
    let clock = Clock::start();
    let until = clock.now() + timeout;
    let (mut said, mut bytes) = (Greeting::default(), vec![0; 16 << 10]);
    loop {
        if let Some((line, end)) = said.line().map_err(Unmet::Stranger)? {
            let welcome = Welcome::of(&line).map_err(Unmet::Refused)?;
            if let Some(far) = said.addresses(end, ours.len() + 1).map_err(Unmet::Stranger)? {
                stream.set_nonblocking(true).map_err(reset)?;
                return Ok((welcome, far));
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Unmet::Link(LinkError::Interrupted));
        }
        if clock.now() >= until {
            return Err(Unmet::Link(LinkError::Stalled { millis: timeout.as_millis() as u64 }));
        }
        match stream.read(&mut bytes) {
            Ok(0) => return Err(Unmet::Link(LinkError::Closed { channel: 0, why: Closed::Finished })),
            Ok(count) => said.take(&bytes[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(reset(error)),
        }
    }
}

/// Refuses what operations of this kind cannot do.
pub(crate) fn check(uri: &Uri, plan: &Plan) -> Result<(), Error> {
    let options = LinkOptions::of(uri)?;
    let kind = options.kind;
    if plan.test == Test::Updates && kind != Kind::Send {
        let name = kind.name();
        return Err(Error::Usage(format!("--test updates: updates are sends; leave operation={name} out of `{uri}`")));
    }
    Ok(())
}

/// Binds the far end.
pub(crate) fn serve<B: Backend>(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    let place = Place::of_far_end(uri)?;
    let plain = uri.with_options(|_| false);
    let authority = if uri.authority.is_empty() { LOOPBACK } else { "" };
    let Address::Tcp(at) = plain.socket_address(authority, PORT)? else {
        return Err(Error::Usage(format!("`{uri}` is no address of TCP")));
    };
    let cannot_listen = |error: std::io::Error| {
        Error::Failed(format!("cannot listen on {at}: {error}; choose another port, or stop the process that holds it"))
    };
    let listener = TcpListener::bind(at).map_err(cannot_listen)?;
    let bound = listener.local_addr().map_err(cannot_listen)?;
    let far_end = FarEndSettings {
        place,
        wait: settings.wait,
        socket_buffer: settings.socket_buffer,
        path: settings.path.clone(),
        size_max: settings.size_max,
        channels_max: settings.peers_max,
        facts: settings.facts(&Address::Udp(bound)),
    };
    let failed = |error: DeviceError| Error::Failed(error.to_string());
    let far_end = FarEnd::<B>::new(listener, far_end).map_err(failed)?;
    let cpu = settings.cpus.first().copied();
    let listening = Uri { authority: bound.to_string(), path: String::new(), ..uri.clone() };
    Ok(Server::of(listening, move |stop| {
        if let Some(cpu) = cpu {
            let pinned = affinity::pin_thread(cpu);
            pinned.map_err(|error| Error::Usage(format!("--cpu {cpu}: {error}")))?;
        }
        far_end.run(stop).map_err(failed)
    }))
}

fn address(uri: &Uri) -> Result<SocketAddr, Error> {
    match uri.with_options(|_| false).socket_address("", PORT)? {
        Address::Tcp(address) => Ok(address),
        other => Err(Error::Usage(format!("`{uri}`: {other} is no address of TCP"))),
    }
}
