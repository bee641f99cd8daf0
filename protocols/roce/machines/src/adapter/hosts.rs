//! The hosts of far ends, and the flows of datagrams between them and this one.
//!
//! Packets go to port 4791 of a host, and come from a source port of its choice, one for each of its queue pairs. So there is
//! one peer of the driver for what is sent to a host, and one for each port that it sends from.

use crate::icrc::Flow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Ends, Output, Peer, Peers};

/// The table of hosts and flows.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<Option<Host>>,
    sources: Peers<Source>,
    /// The sources that came by themselves. The hand that looks for one that is silent goes round them.
    accepted: VecDeque<Peer>,
    accepted_max: usize,
    /// Peers to be opened and closed.
    todo: VecDeque<Todo>,
}

#[derive(Debug)]
struct Host {
    address: Address,
    /// Queue pairs that are connected to it.
    users: u32,
    way: Way,
    /// Whether the driver has asked to hold back from it.
    is_blocked: bool,
    /// The places of queue pairs with something to send, which wait until it can be sent to.
    waiting: VecDeque<u32>,
}

/// How far the peer is that a host is sent to.
#[derive(Debug)]
enum Way {
    /// The driver will be asked to open it.
    ToBeOpened,
    /// The driver opens it.
    Opening,
    Open(Box<Flow>),
    /// The driver could not open it. The next queue pair that is connected to it has it tried again.
    Lost,
}

/// A source of datagrams: one port of a host.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) flow: Flow,
    pub(super) host: u32,
    /// Datagrams since the hand went by, up to two: one is no more than what any newcomer has sent.
    heard: u8,
}

#[derive(Debug)]
enum Todo {
    Open(u32),
    Close(Peer),
}

impl Hosts {
    pub(super) fn new(accepted_max: usize) -> Self {
        Hosts {
            hosts: Vec::new(),
            sources: Peers::default(),
            accepted: VecDeque::new(),
            accepted_max,
            todo: VecDeque::new(),
        }
    }

    /// Returns the number of the host at an address, which is opened unless it is open, for one more queue pair.
    pub(super) fn join(&mut self, address: &Address) -> u32 {
        let is_it = |host: &Option<Host>| host.as_ref().is_some_and(|host| host.address == *address);
        let number = self.hosts.iter().position(is_it).unwrap_or_else(|| self.add(address)) as u32;
        if let Some(host) = &mut self.hosts[number as usize] {
            host.users += 1;
            if matches!(host.way, Way::Lost) {
                host.way = Way::ToBeOpened;
                self.todo.push_back(Todo::Open(number));
            }
        }
        number
    }

    fn add(&mut self, address: &Address) -> usize {
        let (address, waiting) = (address.clone(), VecDeque::new());
        let host = Some(Host { address, users: 0, way: Way::Lost, is_blocked: false, waiting });
        match self.hosts.iter().position(Option::is_none) {
            Some(free) => {
                self.hosts[free] = host;
                free
            }
            None => {
                self.hosts.push(host);
                self.hosts.len() - 1
            }
        }
    }

    /// Forgets a host after the last of its queue pairs.
    pub(super) fn leave(&mut self, number: u32) {
        let Some(place) = self.hosts.get_mut(number as usize) else { return };
        let Some(host) = place else { return };
        host.users -= 1;
        if host.users > 0 {
            return;
        }
        let peer = Peer(number);
        match place.take().map(|host| host.way) {
            Some(Way::ToBeOpened) => {
                self.todo.retain(|todo| !matches!(todo, Todo::Open(other) if *other == number));
            }
            Some(Way::Opening | Way::Open(_)) => self.todo.push_back(Todo::Close(peer)),
            Some(Way::Lost) | None => {}
        }
        self.sources.remove(peer);
        let Hosts { accepted, sources, todo, .. } = self;
        accepted.retain(|peer| {
            let is_gone = sources.get(*peer).is_none_or(|source| source.host == number);
            if is_gone {
                sources.remove(*peer);
                todo.push_back(Todo::Close(*peer));
            }
            !is_gone
        });
    }

    pub(super) fn is_open(&self, address: &Address) -> bool {
        let is_it = |host: &&Host| host.address == *address;
        self.hosts.iter().flatten().find(is_it).is_some_and(|host| matches!(host.way, Way::Open(_)))
    }

    /// Notes that a peer is there. Returns its host if it can be sent to from now on.
    pub(super) fn opened(&mut self, peer: Peer, ends: &Ends) -> Option<u32> {
        let flow = Flow::new(&ends.remote, &ends.local);
        if peer.is_accepted() {
            let is_it = |host: &Option<Host>| host.as_ref().is_some_and(|host| host.is_at(&ends.remote));
            let host = self.hosts.iter().position(is_it)? as u32;
            self.make_room();
            self.accepted.push_back(peer);
            self.sources.insert(peer, Source { flow, host, heard: 0 });
            return None;
        }
        let host = self.hosts.get_mut(peer.index())?.as_mut()?;
        if !matches!(host.way, Way::Opening) {
            return None;
        }
        host.way = Way::Open(Box::new(Flow::new(&ends.local, &ends.remote)));
        host.is_blocked = false;
        self.sources.insert(peer, Source { flow, host: peer.0, heard: 0 });
        Some(peer.0)
    }

    /// Closes a source from which nothing has come for a while, if there are as many as there may be.
    fn make_room(&mut self) {
        while self.accepted.len() >= self.accepted_max.max(1) {
            let Some(peer) = self.accepted.pop_front() else { return };
            match self.sources.at(peer) {
                Some(Source { heard, .. }) if *heard > 1 => {
                    *heard = 1;
                    self.accepted.push_back(peer);
                }
                _ => {
                    self.sources.remove(peer);
                    self.todo.push_back(Todo::Close(peer));
                }
            }
        }
    }

    /// Forgets a peer that the driver has closed. Returns the host if it cannot be reached at all. One that was open is opened
    /// again: a refusal may come from a far end that is about to return, and retries have a bound of their own.
    pub(super) fn lost(&mut self, peer: Peer) -> Option<u32> {
        if peer.is_accepted() {
            self.sources.remove(peer);
            self.accepted.retain(|accepted| *accepted != peer);
            return None;
        }
        let host = self.hosts.get_mut(peer.index())?.as_mut()?;
        match host.way {
            Way::ToBeOpened | Way::Lost => None,
            Way::Opening => {
                host.way = Way::Lost;
                Some(peer.0)
            }
            Way::Open(_) => {
                host.way = Way::ToBeOpened;
                self.sources.remove(peer);
                self.todo.push_back(Todo::Open(peer.0));
                None
            }
        }
    }

    /// Returns where a datagram came from.
    #[inline]
    pub(super) fn source(&mut self, peer: Peer) -> Option<&mut Source> {
        let source = self.sources.at(peer)?;
        source.heard = (source.heard + 1).min(2);
        Some(source)
    }

    /// Returns the peer and the flow to a host, if it can be sent to now.
    #[inline]
    pub(super) fn towards(&mut self, host: u32) -> Option<(Peer, &mut Flow)> {
        let known = self.hosts.get_mut(host as usize)?.as_mut()?;
        match &mut known.way {
            Way::Open(flow) if !known.is_blocked => Some((Peer(host), flow)),
            _ => None,
        }
    }

    /// Holds back from a host, or ends that. Returns the host.
    pub(super) fn set_blocked(&mut self, peer: Peer, is_blocked: bool) -> Option<u32> {
        // Nothing is sent to the sources that came by themselves.
        let host = self.hosts.get_mut(peer.index()).filter(|_| !peer.is_accepted())?.as_mut()?;
        host.is_blocked = is_blocked;
        Some(peer.0)
    }

    pub(super) fn is_blocked(&self, host: u32) -> bool {
        self.hosts.get(host as usize).and_then(Option::as_ref).is_some_and(|host| host.is_blocked)
    }

    /// Has the queue pair at a place wait until its host can be sent to. Returns whether it will be.
    #[cold]
    pub(super) fn wait(&mut self, host: u32, place: u32) -> bool {
        let Some(Some(host)) = self.hosts.get_mut(host as usize) else { return false };
        let is_lost = matches!(host.way, Way::Lost);
        if !is_lost {
            host.waiting.push_back(place);
        }
        !is_lost
    }

    /// Returns the places of the queue pairs that wait for a host.
    pub(super) fn waiting(&mut self, host: u32) -> Option<&mut VecDeque<u32>> {
        self.hosts.get_mut(host as usize)?.as_mut().map(|host| &mut host.waiting)
    }

    /// Returns whether two hosts are one, with different ports.
    #[cold]
    pub(super) fn are_one(&self, one: u32, other: u32) -> bool {
        let host = |number: u32| self.hosts.get(number as usize)?.as_ref();
        host(one).zip(host(other)).is_some_and(|(one, other)| one.is_at(&other.address))
    }

    /// Returns whether a datagram from an address that is not known comes from this host: from another port of it, and with a
    /// right CRC.
    pub(super) fn admits(&self, host: u32, ends: &Ends, datagram: &[u8]) -> bool {
        let Some(Some(host)) = self.hosts.get(host as usize) else { return false };
        self.accepted_max > 0 && host.is_at(&ends.remote) && Flow::new(&ends.remote, &ends.local).verify(datagram)
    }

    /// Returns what the driver is to do.
    #[inline]
    pub(super) fn output<E>(&mut self) -> Option<Output<E>> {
        if self.todo.is_empty() {
            return None;
        }
        self.next_todo()
    }

    #[cold]
    fn next_todo<E>(&mut self) -> Option<Output<E>> {
        loop {
            match self.todo.pop_front()? {
                Todo::Open(number) => {
                    if let Some(Some(host)) = self.hosts.get_mut(number as usize) {
                        host.way = Way::Opening;
                        return Some(Output::Open(Peer(number), host.address.clone()));
                    }
                }
                Todo::Close(peer) => return Some(Output::Close(peer)),
            }
        }
    }
}

impl Host {
    /// Returns whether an address is this host's, whatever the port.
    fn is_at(&self, address: &Address) -> bool {
        let ip = |address: &Address| address.ip().map(|at| at.ip().to_canonical());
        match (ip(&self.address), ip(address)) {
            (Some(one), Some(other)) => one == other,
            _ => self.address == *address,
        }
    }
}
