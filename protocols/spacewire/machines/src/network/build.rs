//! How a network is put together.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::batch::Scratch;
use super::node::Node;
use super::port::{NEVER, Owner, Port, SECOND};
use super::random_bits::Flips;
use super::router::Router;
use super::schedule::Schedule;
use super::settings::{BUFFERS, WATCHDOG_MIN};
use super::{
    BuildError, CABLE_MAX, Engine, LinkSettings, Network, NodeId, NodeSettings, Observer, Place, RATE_MAX, RATE_MIN,
    Route, RouterId, RouterSettings,
};
use crate::end::End;
use crate::time::Picos;

/// A network that is being put together.
///
/// ```
/// use hodo_spacewire::EndOfPacket;
/// use hodo_spacewire::network::{Builder, LinkSettings, NodeSettings};
/// use hodo_spacewire::Picos;
///
/// let mut builder = Builder::new();
/// let one = builder.node("one", NodeSettings::default())?;
/// let other = builder.node("other", NodeSettings::default())?;
/// builder.link(one, other, &LinkSettings::at_rate(200_000_000))?;
/// let mut network = builder.build()?;
/// network.send(one, b"hello", EndOfPacket::Eop)?;
/// network.run_until(Picos::from_nanos(30_000));
/// let packet = network.receive(other).expect("the link starts in 25 us");
/// assert_eq!(packet.bytes, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Builder {
    engine: Engine,
    nodes: Vec<Node>,
    routers: Vec<Router>,
    ports: Vec<Port>,
}

impl Builder {
    /// Returns an empty network.
    #[must_use]
    pub fn new() -> Self {
        Builder::default()
    }

    /// Chooses how the network computes.
    pub fn engine(&mut self, engine: Engine) -> &mut Self {
        self.engine = engine;
        self
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If the name exists.
    pub fn node(&mut self, name: &str, settings: NodeSettings) -> Result<NodeId, BuildError> {
        let name = self.new_name(name)?;
        self.nodes.push(Node::new(name, settings));
        Ok(NodeId(self.nodes.len() - 1))
    }

    /// Adds a router.
    ///
    /// # Errors
    /// If the name exists, the number of ports is not 1 to 31, or the watchdog is shorter than a microsecond.
    pub fn router(&mut self, name: &str, settings: RouterSettings) -> Result<RouterId, BuildError> {
        let name = self.new_name(name)?;
        if !(1..=31).contains(&settings.ports) {
            return Err(BuildError::PortCount { router: name, ports: settings.ports });
        }
        check_watchdog(&name, settings.watchdog)?;
        self.routers.push(Router::new(name, settings));
        Ok(RouterId(self.routers.len() - 1))
    }

    /// Adds an entry to the table of a router.
    ///
    /// # Errors
    /// If the router is unknown, the address is not 32 to 254, or an output is not one of the router's.
    pub fn route(&mut self, router: RouterId, address: u8, route: Route) -> Result<(), BuildError> {
        let place = Place::Router(router, 0);
        let this = self.routers.get_mut(router.0).ok_or(BuildError::Unknown { place })?;
        let ports = this.settings.ports;
        if let Some(port) = (0..32u8).find(|port| route.outputs & (1 << port) != 0 && !(1..=ports).contains(port)) {
            return Err(BuildError::UnknownPort { router: this.name.clone(), port, ports });
        }
        this.registers.set_route(address, Some(route))
    }

    /// Sets the watchdog of one port of a router; without this it is that of the router.
    ///
    /// # Errors
    /// If no link is there yet, or the watchdog is shorter than a microsecond.
    pub fn watchdog(&mut self, router: RouterId, port: u8, after: Option<Picos>) -> Result<(), BuildError> {
        let place = Place::Router(router, port);
        let found = self.routers.get(router.0).and_then(|router| router.port(port));
        let found = found.ok_or(BuildError::Unknown { place })?;
        check_watchdog(&self.routers[router.0].name, after)?;
        self.ports[found].watchdog = after.map_or(NEVER, |after| after.0);
        Ok(())
    }

    /// Connects two places.
    ///
    /// # Errors
    /// If a place is unknown or connected, a buffer takes less than 8 N-chars, a rate is 0 or above the range, or the cable is too long.
    pub fn link(
        &mut self,
        first: impl Into<Place>,
        second: impl Into<Place>,
        settings: &LinkSettings,
    ) -> Result<(), BuildError> {
        let places = [first.into(), second.into()];
        if settings.cable > CABLE_MAX {
            return Err(BuildError::Cable { nanos: settings.cable.as_nanos() });
        }
        for (at, place) in places.into_iter().enumerate() {
            self.check_free(place)?;
            self.check_end(place, settings, at)?;
        }
        if places[0] == places[1] {
            return Err(BuildError::ConnectedTwice { at: self.name(places[0]) });
        }
        let routed = places.iter().any(|place| matches!(place, Place::Router(..)));
        for (at, place) in places.into_iter().enumerate() {
            let port = self.ports.len();
            let owner = match place {
                Place::Node(node) => {
                    self.nodes[node.0].port = port;
                    Owner::Node(node.0)
                }
                Place::Router(router, number) => {
                    self.routers[router.0].links[usize::from(number)] = Some(port);
                    Owner::Router(router.0, number)
                }
            };
            let end = End::new(settings.ends[at].clone(), Picos::ZERO);
            let flips = settings.bit_errors[at].filter(|errors| errors.rate > 0.0).map(Flips::new);
            let mut new = Port::new(end, owner, settings.rates[at], settings.cable.0, flips);
            new.routed = routed;
            if let Place::Router(router, _) = place {
                new.watchdog = self.routers[router.0].settings.watchdog.map_or(NEVER, |after| after.0);
            }
            self.ports.push(new);
        }
        Ok(())
    }

    /// Returns the network at time 0, with all links in reset.
    ///
    /// # Errors
    /// If a node has no link.
    pub fn build(self) -> Result<Network, BuildError> {
        self.build_with(())
    }

    /// Returns the network at time 0, with an observer.
    ///
    /// # Errors
    /// If a node has no link.
    pub fn build_with<O: Observer>(self, observer: O) -> Result<Network<O>, BuildError> {
        if let Some(node) = self.nodes.iter().find(|node| node.port == usize::MAX) {
            return Err(BuildError::NotConnected { node: node.name.clone() });
        }
        let isolated = (0..self.ports.len()).step_by(2).filter(|port| !self.ports[*port].routed).collect();
        let mut schedule = Schedule::new(self.ports.len());
        for (number, port) in self.ports.iter().enumerate().filter(|(_, port)| port.routed) {
            schedule.set(number, port.key());
        }
        Ok(Network {
            now: 0,
            engine: self.engine,
            ports: self.ports,
            nodes: self.nodes,
            routers: self.routers,
            isolated,
            schedule,
            next_check: NEVER,
            deadlock: None,
            observer,
            scratch: Scratch::default(),
            routed_scratch: super::routed::Scratch::default(),
            pause: 0,
            early: None,
        })
    }

    fn new_name(&self, name: &str) -> Result<String, BuildError> {
        let mut names = self.nodes.iter().map(|node| &node.name).chain(self.routers.iter().map(|router| &router.name));
        if names.any(|other| other == name) {
            Err(BuildError::DuplicateName { name: name.into() })
        } else {
            Ok(name.to_string())
        }
    }

    fn check_free(&self, place: Place) -> Result<(), BuildError> {
        let free = match place {
            Place::Node(node) => self.nodes.get(node.0).ok_or(BuildError::Unknown { place })?.port == usize::MAX,
            Place::Router(router, port) => {
                let this = self.routers.get(router.0).ok_or(BuildError::Unknown { place })?;
                let ports = this.settings.ports;
                if !(1..=ports).contains(&port) {
                    return Err(BuildError::UnknownPort { router: this.name.clone(), port, ports });
                }
                this.port(port).is_none()
            }
        };
        if free { Ok(()) } else { Err(BuildError::ConnectedTwice { at: self.name(place) }) }
    }

    fn check_end(&self, place: Place, settings: &LinkSettings, end: usize) -> Result<(), BuildError> {
        let (rate, buffer, at) = (settings.rates[end], settings.ends[end].buffer, self.name(place));
        // Faster than a picosecond per bit there is no time between two bits.
        let max = if settings.any_rate { SECOND } else { RATE_MAX };
        if !(RATE_MIN..=max).contains(&rate) {
            return Err(BuildError::Rate { at, rate, min: RATE_MIN, max });
        }
        if buffer < BUFFERS[0] {
            return Err(BuildError::Buffer { at, buffer });
        }
        if settings.bit_errors[end].is_some_and(|errors| !(0.0..=1.0).contains(&errors.rate)) {
            return Err(BuildError::BitErrors { at });
        }
        Ok(())
    }

    /// Returns what an error calls a place.
    fn name(&self, place: Place) -> String {
        match place {
            Place::Node(node) => self.nodes.get(node.0).map(|node| format!("`{}`", node.name)),
            Place::Router(router, port) => self.routers.get(router.0).map(|router| format!("`{}:{port}`", router.name)),
        }
        .unwrap_or_else(|| place.to_string())
    }
}

fn check_watchdog(router: &str, after: Option<Picos>) -> Result<(), BuildError> {
    match after {
        Some(Picos(picos)) if picos < WATCHDOG_MIN.0 => Err(BuildError::Watchdog { at: router.into(), picos }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_has_its_error() {
        let mut builder = Builder::new();
        let node = builder.node("one", NodeSettings::default()).unwrap();
        assert!(matches!(builder.node("one", NodeSettings::default()), Err(BuildError::DuplicateName { .. })));
        let ports = RouterSettings { ports: 32, ..RouterSettings::default() };
        assert!(matches!(builder.router("r", ports), Err(BuildError::PortCount { ports: 32, .. })));
        let router = builder.router("r", RouterSettings::default()).unwrap();
        let link = LinkSettings::default;
        assert!(matches!(builder.link(node, (router, 9), &link()), Err(BuildError::UnknownPort { port: 9, .. })));
        assert!(matches!(builder.link(node, (router, 0), &link()), Err(BuildError::UnknownPort { port: 0, .. })));
        assert!(matches!(builder.link(node, NodeId(7), &link()), Err(BuildError::Unknown { .. })));
        for rate in [0, 1_999_999, 400_000_001] {
            let refused = builder.link(node, (router, 1), &LinkSettings::at_rate(rate));
            assert!(matches!(refused, Err(BuildError::Rate { .. })));
        }
        let mut small = link();
        small.ends[1].buffer = 7;
        assert!(matches!(builder.link(node, (router, 1), &small), Err(BuildError::Buffer { buffer: 7, .. })));
        let long = LinkSettings { cable: Picos::from_nanos(5_001), ..link() };
        assert!(matches!(builder.link(node, (router, 1), &long), Err(BuildError::Cable { .. })));
        assert!(matches!(builder.route(router, 31, Route::to(1)), Err(BuildError::Address { address: 31, .. })));
        assert!(matches!(builder.route(router, 32, Route::to(9)), Err(BuildError::UnknownPort { .. })));
        builder
            .link(node, (router, 1), &LinkSettings { any_rate: true, ..LinkSettings::at_rate(600_000_000) })
            .unwrap();
        let other = builder.node("other", NodeSettings::default()).unwrap();
        assert!(matches!(builder.link(other, (router, 1), &link()), Err(BuildError::ConnectedTwice { .. })));
        assert_eq!(builder.build().err(), Some(BuildError::NotConnected { node: "other".into() }));
    }
}
