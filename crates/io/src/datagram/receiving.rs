use super::{Datagrams, Origin, Sender, Source, socket};
use crate::Clock;
use crate::sys::RawAddress;
use crate::sys_datagram as batch;
use hodo_machine::{Closed, Input, Instant, Machine, Peer};
use std::io::{self, ErrorKind};

impl Datagrams {
    /// Receives once, and passes all datagrams that arrived to the machine. Returns when, or `None` if nothing
    /// happened.
    #[inline]
    pub(crate) fn read<M: Machine>(
        &mut self,
        source: Source,
        flags: i32,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        let Some(fd) = socket(&self.ports, &self.opened, source) else { return Ok(None) };
        let (named, tells) = match source {
            Source::Port(number) => (true, self.ports[number as usize].tells_arrival),
            Source::Opened(_) => (false, false),
        };
        let outcome = if tells || self.joining.is_needed() {
            self.received.receive(fd, flags, named)
        } else {
            self.received.receive_one(fd, flags, named)
        };
        let count = match outcome {
            Ok(count) => count,
            Err(error) => return Ok(self.not_received(source, &error, clock, machine)),
        };
        let now = clock.now();
        let mut datagrams = 0;
        for index in 0..count {
            let peer = match source {
                Source::Opened(number) => {
                    if let Some(Some(opened)) = self.opened.get_mut(number as usize) {
                        self.owed -= usize::from(std::mem::take(&mut opened.owes));
                    }
                    Peer(number)
                }
                Source::Port(port) => match self.sender(port, index, now, machine) {
                    Some(peer) => peer,
                    None => continue,
                },
            };
            let run = self.received.run(index);
            for datagram in run.bytes.chunks(run.each) {
                datagrams += 1;
                machine.handle(now, Input::Received(peer, datagram));
            }
        }
        if self.joining.note(datagrams) {
            self.set_joining(source, false);
        }
        Ok(Some(now))
    }

    /// Checks whether more datagrams are waiting right after the last ones were handled, if the decision on joining
    /// needs it.
    #[inline]
    pub(crate) fn look_on<M: Machine>(
        &mut self,
        source: Source,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        if !self.joining.wants_look() {
            return Ok(None);
        }
        let seen = self.read(source, libc::MSG_DONTWAIT, clock, machine)?;
        if self.joining.looked(seen.is_some()) {
            self.set_joining(source, true);
        }
        Ok(seen)
    }

    fn set_joining(&self, source: Source, on: bool) {
        if let Some(fd) = socket(&self.ports, &self.opened, source) {
            // A kernel before 5.0 does not know how to join; each datagram then comes alone.
            let _ = batch::set_joining(fd, on);
        }
    }

    fn not_received<M: Machine>(
        &mut self,
        source: Source,
        error: &io::Error,
        clock: &Clock,
        machine: &mut M,
    ) -> Option<Instant> {
        let Source::Opened(number) = source else { return None };
        if error.kind() != ErrorKind::ConnectionRefused {
            return None;
        }
        let now = clock.now();
        self.close(Peer(number));
        machine.handle(now, Input::Closed(Peer(number), Closed::Refused));
        Some(now)
    }

    /// Returns the peer that a datagram comes from, and announces a new one to the machine.
    #[inline]
    fn sender<M: Machine>(&mut self, port: u32, index: usize, now: Instant, machine: &mut M) -> Option<Peer> {
        let run = self.received.run(index);
        let tells = self.ports[port as usize].tells_arrival;
        let arrival = if tells { self.received.arrival(index) } else { None };
        let origin = Origin { port, from: run.from.to_ip()?, arrival };
        if let Some((last, number)) = self.last
            && last == origin
        {
            return Some(Peer(number));
        }
        // A peer that the machine has opened replies from where it was reached, to whatever address of this host.
        let opened = || self.numbers.get(&Origin { arrival: None, ..origin });
        if let Some(&number) = self.numbers.get(&origin).or_else(opened) {
            self.last = Some((origin, number));
            return Some(Peer(number));
        }
        if self.numbers.len() >= self.settings.peers_max {
            self.refused += 1;
            return None;
        }
        let peer = self.numbering.take(&mut self.accepted);
        let sender = Sender { origin, to: RawAddress::ip(origin.from) };
        self.accepted[peer.index()] = Some(sender);
        self.numbers.insert(origin, peer.0);
        self.last = Some((origin, peer.0));
        machine.handle(now, Input::Opened(peer, &self.ends(peer)?));
        Some(peer)
    }
}
