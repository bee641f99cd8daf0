//! The sockets of a server.

use super::{ServerError, ServerOptions};
use crate::environment::ServerNetwork;
use crate::machines::server::DiscoveryConfig;
use hodo_io::nic::interfaces;
use hodo_io::{PortOptions, ServeOptions, Server, SocketSettings};
use hodo_machine::Address;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

/// Binds the sockets, and sets the discovery. Returns the first address on which clients connect.
///
/// # Errors
/// [`ServerError::Listen`] if an address is in use or does not belong to this host.
pub(crate) fn bind(options: &mut ServerOptions) -> Result<(Server, SocketAddr), ServerError> {
    let host = interfaces();
    let sockets = Sockets::new(options);
    let network = &options.network;
    let wrong = |at: String| move |why: io::Error| ServerError::Listen { at, why: why.to_string() };
    let listened = network.listen(&host, &mut |at| sockets.listen(at));
    let bound = listened.map_err(wrong(listed(network)))?;
    let at = bound
        .first()
        .and_then(Address::ip)
        .ok_or_else(|| ServerError::Listen { at: listed(network), why: "no address is named".to_owned() })?;
    if network.port != 0 && network.port != at.port() {
        tracing::warn!("TCP port {} is in use by another program: listening on {at}", network.port);
    }
    let discovery = if options.is_found {
        let found = network.bind(&host, at.port(), &mut |at, port| sockets.port(at, port));
        found.map_err(wrong(format!("UDP port {}", network.broadcast_port)))?
    } else {
        DiscoveryConfig { port: at.port(), ..DiscoveryConfig::default() }
    };
    let seed = u64::from_ne_bytes(std::array::from_fn(|at| options.config.guid[at]));
    let given = &options.config.discovery;
    options.config.discovery =
        DiscoveryConfig { seed, address: given.address, answers_per_second: given.answers_per_second, ..discovery };
    Ok((sockets.server.into_inner(), at))
}

/// A server whose sockets are added one by one.
struct Sockets {
    options: ServeOptions,
    server: RefCell<Server>,
}

impl Sockets {
    fn new(options: &ServerOptions) -> Self {
        let serve = ServeOptions {
            threads: 1,
            cpus: options.cpu.into_iter().collect(),
            wait: options.wait,
            settings: SocketSettings { peers_max: options.clients_max, ..SocketSettings::default() },
        };
        Sockets { server: RefCell::new(Server::new(serve.clone())), options: serve }
    }

    fn listen(&self, at: &Address) -> io::Result<Address> {
        self.add(|server| server.and(at))
    }

    fn port(&self, at: &Address, options: &PortOptions) -> io::Result<Address> {
        self.add(|server| server.and_port(at, options))
    }

    /// Adds a socket. After an error there are none: only the first one may fail and be tried elsewhere.
    fn add(&self, add: impl FnOnce(Server) -> io::Result<Server>) -> io::Result<Address> {
        let server = self.server.replace(Server::new(self.options.clone()));
        let server = add(server)?;
        let bound = server.addresses().last().cloned();
        self.server.replace(server);
        bound.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

/// Returns the addresses that a server is to listen at, for people.
fn listed(network: &ServerNetwork) -> String {
    let port = |at: SocketAddr| if at.port() == 0 { network.port } else { at.port() };
    let each = network.interfaces.iter().map(|one| SocketAddr::new(one.address.ip(), port(one.address)).to_string());
    let all: Vec<String> = each.collect();
    if all.is_empty() { format!("port {}", network.port) } else { all.join(", ") }
}
