//! The hosts of far ends, and the flows of datagrams between them and this one.
//!
//! Packets go to port 4791 of a host, and come from a source port of its choice, one for each of its queue pairs. So there is
//! one peer of the driver for what is sent to a host, and one for each port that it sends from.

use crate::icrc::Flow;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Ends, Output, Peer, Peers};

/// The table of hosts and flows.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<Option<Host>>,
    sources: Peers<Source>,
    sources_max: usize,
    /// Peers to be opened and closed.
    todo: VecDeque<Todo>,
}

#[derive(Debug)]
struct Host {
    address: Address,
    /// The flow to it, once the driver has opened the peer.
    flow: Option<Flow>,
}

/// What comes from one address.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) flow: Flow,
    pub(super) host: u32,
}

#[derive(Debug)]
enum Todo {
    Open(u32),
    Close(Peer),
}

impl Hosts {
    pub(super) fn new(sources_max: usize) -> Self {
        Hosts { hosts: Vec::new(), sources: Peers::default(), sources_max, todo: VecDeque::new() }
    }

    /// Returns the number of the host at an address, which is opened if it is new.
    pub(super) fn find_or_open(&mut self, address: &Address) -> u32 {
        let is_it = |host: &Option<Host>| host.as_ref().is_some_and(|host| host.address == *address);
        if let Some(number) = self.hosts.iter().position(is_it) {
            return number as u32;
        }
        let host = Some(Host { address: address.clone(), flow: None });
        let number = match self.hosts.iter().position(Option::is_none) {
            Some(free) => {
                self.hosts[free] = host;
                free
            }
            None => {
                self.hosts.push(host);
                self.hosts.len() - 1
            }
        };
        self.todo.push_back(Todo::Open(number as u32));
        number as u32
    }

    pub(super) fn is_open(&self, address: &Address) -> bool {
        self.hosts.iter().flatten().any(|host| host.address == *address && host.flow.is_some())
    }

    /// Forgets a host that no queue pair is connected to.
    pub(super) fn close(&mut self, host: u32) {
        if let Some(place) = self.hosts.get_mut(host as usize)
            && place.take().is_some()
        {
            self.todo.retain(|todo| !matches!(todo, Todo::Open(number) if *number == host));
            let gone: Vec<Peer> =
                self.sources.iter().filter(|(_, source)| source.host == host).map(|(peer, _)| peer).collect();
            for peer in gone {
                self.sources.remove(peer);
                self.todo.push_back(Todo::Close(peer));
            }
        }
    }

    /// Notes that a peer is there. Returns its host if it can be sent to from now on.
    pub(super) fn opened(&mut self, peer: Peer, ends: &Ends) -> Option<u32> {
        let back = Flow::new(&ends.remote, &ends.local);
        if peer.is_accepted() {
            let host = self
                .hosts
                .iter()
                .position(|host| host.as_ref().is_some_and(|host| is_same_host(&host.address, &ends.remote)))?;
            self.sources.insert(peer, Source { flow: back, host: host as u32 });
            return None;
        }
        let host = self.hosts.get_mut(peer.index())?.as_mut()?;
        host.flow = Some(Flow::new(&ends.local, &ends.remote));
        self.sources.insert(peer, Source { flow: back, host: peer.0 });
        Some(peer.0)
    }

    /// Forgets a peer that the driver has closed. Returns the host that cannot be sent to any more.
    pub(super) fn lost(&mut self, peer: Peer) -> Option<u32> {
        self.sources.remove(peer);
        (!peer.is_accepted()).then_some(peer.0)
    }

    #[inline]
    pub(super) fn source(&mut self, peer: Peer) -> Option<&mut Source> {
        self.sources.at(peer)
    }

    /// Returns the peer and the flow to a host.
    #[inline]
    pub(super) fn towards(&self, host: u32) -> Option<(Peer, &Flow)> {
        let flow = self.hosts.get(host as usize)?.as_ref()?.flow.as_ref()?;
        Some((Peer(host), flow))
    }

    /// Returns whether a datagram from an address that is not known comes from this host: from another port of it, and with a
    /// right CRC.
    pub(super) fn admits(&self, host: u32, ends: &Ends, datagram: &[u8]) -> bool {
        let Some(Some(host)) = self.hosts.get(host as usize) else { return false };
        self.sources.len() < self.sources_max
            && is_same_host(&host.address, &ends.remote)
            && Flow::new(&ends.remote, &ends.local).verify(datagram)
    }

    /// Returns what the driver is to do.
    pub(super) fn output<E>(&mut self) -> Option<Output<E>> {
        loop {
            match self.todo.pop_front()? {
                Todo::Open(host) => {
                    if let Some(Some(Host { address, .. })) = self.hosts.get(host as usize) {
                        return Some(Output::Open(Peer(host), address.clone()));
                    }
                }
                Todo::Close(peer) => return Some(Output::Close(peer)),
            }
        }
    }
}

fn is_same_host(one: &Address, other: &Address) -> bool {
    let ip = |address: &Address| address.ip().map(|at| at.ip().to_canonical());
    match (ip(one), ip(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}
