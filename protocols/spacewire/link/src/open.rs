//! A URI becomes a link or the tester's far end.

use crate::arrivals::Arrivals;
use crate::options::{Far, Options};
use crate::pages::Pages;
use crate::ports::Ports;
use crate::real::{RealLink, RealSettings};
use crate::simulated::SimulatedLink;
use hodo_io::{Clock, Endpoint, Sockets};
use hodo_machine::{Address, Transport};
use hodo_measure::Link;
use hodo_spacewire::client::{Client, ClientSettings, Port};
use hodo_spacewire::far_end::{FarEnd, FarEndEvent, FarEndSettings};
use hodo_spacewire::rmap::{Initiator, InitiatorSettings};
use hodo_spacewire::ssdtp2;
use hodo_spacewire_host::port::NamedPort;
use hodo_tester::{
    Error, LOOPBACK, Opened, ServeSettings, Server, Service, Settings, Uri, cannot, in_parts, socket_settings,
};
use std::ops::Range;

/// Opens a link over sockets.
pub(crate) fn open(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    if uri.scheme == "spw" {
        return Err(Error::Usage(format!(
            "`{uri}`: this program drives no SpaceWire card; name a bridge as ssdtp2://HOST or gresb://HOST, or measure a simulated link with \
             spw+sim"
        )));
    }
    let options = Options::of(uri)?;
    let first = port(uri, None)?;
    let mut ports = vec![first.clone()];
    if let Far::Back(second) = &options.far {
        let [at, _] = addresses(&first.port);
        let Address::Tcp(at) = *at else { return Err(Error::Usage(format!("`{uri}` is no TCP address"))) };
        let second = port(uri, Some(&second.authority(at)))?;
        let taken = addresses(&first.port);
        if addresses(&second.port).into_iter().any(|at| taken.contains(&at)) {
            return Err(Error::Usage(format!(
                "`{uri}`: back= names a port of the link itself, which serves one host; name another one, or write \
                 far=echo if its packets come back"
            )));
        }
        ports.push(second);
    }
    let pages = options.pages.as_deref().map(|place| Pages::of(uri, place)).transpose()?;
    let to = Bridge { uri, options: &options, ports: &ports, pages };
    in_parts(settings, |channels, clock, opened| open_part(&to, settings, &channels, clock, opened))
}

/// Returns the addresses that a port has, first the one that takes packets: GRESB has one for each direction.
fn addresses(port: &Port) -> [&Address; 2] {
    match port {
        Port::Ssdtp2(at) => [at, at],
        Port::Gresb { to_bridge, to_host, .. } => [to_bridge, to_host],
    }
}

/// The bridge that a link leads to.
struct Bridge<'a> {
    uri: &'a Uri,
    options: &'a Options,
    ports: &'a [NamedPort],
    pages: Option<Pages>,
}

fn open_part(
    to: &Bridge<'_>,
    settings: &Settings,
    channels: &Range<u32>,
    clock: Clock,
    opened: &mut Opened,
) -> Result<(), Error> {
    let Bridge { uri, options, ports, pages } = *to;
    let failed = |error: std::io::Error| Error::Failed(format!("opening {uri}: {error}"));
    let of_port = |port: &NamedPort, is_second: bool| {
        let mut arrivals = Arrivals { bounces: is_second, ..Arrivals::default() };
        if let Far::Rmap(target) = &options.far {
            let outstanding_max = settings.window.min(1 << 15) as u16;
            let settings = InitiatorSettings { logical_address: target.initiator, outstanding_max };
            arrivals.initiator = Some(Initiator::new(settings));
        }
        // The window bounds what waits.
        let packet_max = (settings.size_max as usize + 256).max(64 << 10);
        let settings = ClientSettings { packet_max, queue_max: usize::MAX, ..ClientSettings::new(port.port.clone()) };
        Client::new(settings, arrivals)
    };
    let mut clients: Vec<_> = channels.clone().map(|_| of_port(&ports[0], false)).collect();
    clients.extend(ports[1..].iter().map(|port| of_port(port, true)));
    let mut sockets = socket_settings(settings);
    sockets.peers_max = sockets.peers_max.max(2 * clients.len() + 1);
    let endpoint = Endpoint::new(Ports::new(clients), Sockets::new(sockets).map_err(failed)?, clock);
    let settings = RealSettings {
        far: options.far.clone(),
        path: options.path.clone(),
        back_path: options.back_path.clone(),
        channels: channels.len() as u32,
        window: settings.window,
        size_max: settings.size_max,
        timeout: settings.timeout,
        far_process: settings.far_process.clone(),
        pages,
        time_codes_per_s: options.line.map_or(0.0, |line| line.time_codes_per_s),
    };
    let link = RealLink::open(endpoint, settings).map_err(|error| cannot(uri, &error))?;
    opened.note(link.driver().transport().facts());
    opened.links.push(Box::new(link));
    Ok(())
}

/// Opens a link over a simulated network.
pub(crate) fn simulate(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    if uri.scheme != "spw" {
        return Err(Error::Usage(format!(
            "`{uri}`: no bridge is simulated in this process; write spw+sim://, or start `hodo spacewire bridge` and name its ports"
        )));
    }
    uri.without_host()?;
    let options = Options::of(uri)?;
    let Some(line) = options.line else { return Err(Error::Usage(format!("`{uri}` has no rate"))) };
    let in_flight = (settings.window as usize, settings.size_max as usize);
    let link = SimulatedLink::new(line, &options.far, options.bit_errors, settings.seed, in_flight)
        .map_err(|error| Error::Usage(format!("`{uri}`: {error}")))?;
    let links: Vec<Box<dyn Link + Send>> = vec![Box::new(link)];
    Ok(Opened::new(links))
}

/// Binds the tester's far end.
pub(crate) fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    if uri.scheme != "ssdtp2" || uri.simulated {
        return Err(Error::Usage(format!(
            "`{uri}` has no far end of its own to start: `hodo bench spw+sim` measures a simulated link, `hodo bench ssdtp2` a bridge's \
             protocol over TCP; for a network, start `hodo spacewire bridge`, and measure its ports as ssdtp2://HOST:10030?far=echo&path=5"
        )));
    }
    let address = uri.socket_address(LOOPBACK, ssdtp2::PORT)?;
    let packet_max = (settings.size_max as usize).max(1 << 20) + 256;
    let service = Service {
        make: move |_| FarEnd::new(FarEndSettings { packet_max }),
        answer: |event| match event {
            FarEndEvent::Malformed(..) => None,
        },
        transport: Transport::Stream,
        threads: settings.thread_count(),
        listeners: 1,
    };
    Server::bind(uri, &address, settings, service)
}

/// Returns the port that a URI names, or another one with its scheme.
fn port(uri: &Uri, place: Option<&str>) -> Result<NamedPort, Error> {
    let own = uri.with_options(|name| name == "link" || name == "status");
    let own = place.map_or(own.clone(), |place| Uri { authority: place.to_owned(), ..own });
    NamedPort::resolve(&own.to_string()).map_err(|error| Error::Usage(error.to_string()))
}
