//! A URI becomes a link to devices or a device in software, on sockets or simulated.

use crate::boards::Boards;
use crate::device::{self, Served};
use crate::link::IpbusLink;
use hodo_io::{Clock, Endpoint, Sockets};
use hodo_ipbus::wire::DEVICE_PORT;
use hodo_ipbus::{ClientConfig, Clients, Device};
use hodo_machine::Transport;
use hodo_sim::Sim;
use hodo_tester::{
    Error, LOOPBACK, Opened, ServeSettings, Server, Service, Settings, Uri, cannot, in_parts, networks, simulated,
    socket_settings,
};
use std::ops::Range;

/// Opens a link over sockets.
pub(crate) fn open(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    let boards = Boards::of(uri)?;
    in_parts(settings, |channels, clock, opened| open_part(uri, &boards, settings, channels, clock, opened))
}

/// Opens one thread's part of a link.
fn open_part(
    uri: &Uri,
    boards: &Boards,
    settings: &Settings,
    channels: Range<u32>,
    clock: Clock,
    opened: &mut Opened,
) -> Result<(), Error> {
    if settings.reconnect {
        return Err(Error::Usage("--reconnect: IPbus keeps its connections; leave it out".into()));
    }
    let failed = |error: std::io::Error| Error::Failed(format!("opening {uri}: {error}"));
    let (sockets, timeout) = (socket_settings(settings), settings.timeout);
    let asked = boards.asked(channels.clone(), settings);
    let client = |channel| ClientConfig { seed: Some(hodo_io::random_bits()), ..boards.client(channel, settings) };
    let clients = Clients::new(channels.map(client));
    let endpoint = Endpoint::new(clients, Sockets::new(sockets).map_err(failed)?, clock);
    let link = IpbusLink::open(endpoint, asked, timeout).map_err(|why| cannot(uri, &why))?;
    opened.note(link.driver().transport().facts());
    opened.links.push(Box::new(link));
    Ok(())
}

/// Opens a link over the simulated network, with a device for each channel.
pub(crate) fn simulate(uri: &Uri, settings: &Settings) -> Result<Opened, Error> {
    if uri.scheme.starts_with("chtcp") {
        return Err(Error::Usage(format!(
            "`{uri}`: there is no simulated hub; measure a device with sim+ipbusudp-2.0"
        )));
    }
    let (boards, network) = Boards::simulated(uri, settings.channels)?;
    let (out, back) = networks(uri, &network, settings)?;
    let (transport, device) = boards.device();
    let device = || Device::new(device.clone());
    let servers = (0..settings.channels).map(|_| device()).collect();
    let clients = Clients::new((0..settings.channels).map(|channel| boards.client(channel, settings)));
    let sim = Sim::new(transport, (&out, &back), clients, servers, |_| None);
    let asked = boards.asked(0..settings.channels, settings);
    let link = IpbusLink::open(sim, asked, settings.timeout).map_err(|error| cannot(uri, &error))?;
    let model = link.driver().model();
    Ok(simulated(Box::new(link), model, settings.channels))
}

/// Binds a device in software, or several.
pub(crate) fn serve(uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
    // Without options: what makes the device is nothing that its clients have to say.
    let place = uri.with_options(|_| false);
    let address = |port| place.socket_address(LOOPBACK, port);
    let Some(scheme) = device::scheme(uri) else {
        return Err(Error::Usage(format!("`{uri}` is the link through a hub; start `hodo hub` for it")));
    };
    if settings.threads > 1 || settings.cpus.len() > 1 {
        return Err(Error::Usage(format!(
            "`{uri}` is one device, and one thread serves it; leave --threads out, and name one processor"
        )));
    }
    let served = Served::new(uri, scheme)?;
    let (transport, listeners) = (scheme.transport, served.boards());
    if listeners > 1 && transport == Transport::Stream {
        return Err(Error::Usage(format!(
            "boards={listeners}: a process serves one device over TCP; start one process per port"
        )));
    }
    let address = address(DEVICE_PORT)?;
    let bound = if served.is_faulty() {
        let make = move |number| served.faulty_device(number);
        Server::bind(&place, &address, settings, Service { make, answer: |_| None, transport, threads: 1, listeners })
    } else {
        let make = move |_| served.device();
        Server::bind(&place, &address, settings, Service { make, answer: |_| None, transport, threads: 1, listeners })
    };
    bound.map_err(|error| match error {
        Error::Usage(text) if listeners > 1 => Error::Usage(format!("boards={listeners}: {text}")),
        other => other,
    })
}
