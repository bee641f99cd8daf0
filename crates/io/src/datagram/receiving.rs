use super::{Datagrams, Origin, SEGMENTS, Source, gather, socket};
use crate::Clock;
use crate::sys::RawAddress;
use crate::sys_datagram as batch;
use hodo_machine::{Closed, Ends, Input, Instant, Machine, Peer};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;

/// The sender of a run of datagrams.
enum Sender {
    Known(Peer),
    /// An address that is no peer's.
    Stranger(Origin),
    /// An address of another family, which no peer has.
    Nowhere,
}

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
        // Whether more are waiting shows without a look of its own: this receive takes a second one, if it is there.
        let probes = self.joining.is_to_probe();
        let outcome = if probes {
            self.received.receive_two(fd, flags, named)
        } else if tells || self.joining.is_on() {
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
                Source::Port(port) => match self.sender(port, index) {
                    Sender::Known(peer) => peer,
                    Sender::Stranger(origin) => {
                        datagrams += self.strange(origin, index, now, machine);
                        continue;
                    }
                    Sender::Nowhere => continue,
                },
            };
            let run = self.received.run(index);
            for datagram in run.bytes.chunks(run.each) {
                datagrams += 1;
                machine.handle(now, Input::Received(peer, datagram));
            }
        }
        if matches!(source, Source::Opened(_)) {
            self.in_flight = self.in_flight.saturating_sub(datagrams as usize);
        }
        if !probes {
            self.joining.called();
        } else if self.joining.probed(count > 1) {
            self.join(source);
        }
        Ok(Some(now))
    }

    /// Lets the kernel join what comes to a socket. It is never told to stop.
    pub(super) fn join(&self, source: Source) {
        if let Some(fd) = socket(&self.ports, &self.opened, source) {
            // A kernel before 5.0 does not know how to join; each datagram then comes alone.
            let _ = batch::join(fd);
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

    /// Returns who sent a run of datagrams.
    #[inline]
    fn sender(&mut self, port: u32, index: usize) -> Sender {
        let run = self.received.run(index);
        let tells = self.ports[port as usize].tells_arrival;
        let arrival = if tells { self.received.arrival(index) } else { None };
        let Some(from) = run.from.to_ip() else { return Sender::Nowhere };
        let origin = Origin { port, from, arrival };
        if let Some((last, number)) = self.last
            && last == origin
        {
            return Sender::Known(Peer(number));
        }
        // A peer that the machine has opened replies from where it was reached, to whatever address of this host.
        let opened = || self.numbers.get(&Origin { arrival: None, ..origin });
        if let Some(&number) = self.numbers.get(&origin).or_else(opened) {
            self.last = Some((origin, number));
            return Sender::Known(Peer(number));
        }
        Sender::Stranger(origin)
    }

    /// Passes on a run of datagrams from an address that is no peer's, as far as the machine takes the sender as one. Returns
    /// how many datagrams there were.
    #[cold]
    fn strange<M: Machine>(&mut self, origin: Origin, index: usize, now: Instant, machine: &mut M) -> u32 {
        let ends = self.ends_of(&origin);
        let (mut peer, mut count) = (None, 0);
        // Taken out for the calls, which borrow the rest; an empty one has no buffers.
        let received = std::mem::take(&mut self.received);
        let run = received.run(index);
        for datagram in run.bytes.chunks(run.each) {
            count += 1;
            peer = peer.or_else(|| self.admit(origin, &ends, datagram, now, machine));
            if let Some(peer) = peer {
                machine.handle(now, Input::Received(peer, datagram));
            }
        }
        self.received = received;
        count
    }

    /// Returns the new peer if the machine takes the sender of a datagram; otherwise the machine's reply goes back, which is
    /// never longer than the datagram.
    fn admit<M: Machine>(
        &mut self,
        origin: Origin,
        ends: &Ends,
        datagram: &[u8],
        now: Instant,
        machine: &mut M,
    ) -> Option<Peer> {
        let to = RawAddress::ip(origin.from);
        let is_taken = machine.admits(now, ends, datagram, &mut self.reply);
        if is_taken && self.numbers.len() < self.settings.peers_max {
            self.reply.clear();
            let peer = self.numbering.take(&mut self.accepted);
            self.accepted[peer.index()] = Some(super::Sender { origin, to });
            self.numbers.insert(origin, peer.0);
            self.last = Some((origin, peer.0));
            machine.handle(now, Input::Opened(peer, ends));
            return Some(peer);
        }
        self.refused += u64::from(is_taken);
        if !is_taken && !self.reply.is_empty() && self.reply.len() <= datagram.len() {
            let mut slices = [IoSlice::new(&[]); 2 * SEGMENTS + 2];
            let count = gather(self.reply.pieces(), &self.reply, &mut slices);
            let fd = self.ports[origin.port as usize].fd.as_fd();
            // Lost where the kernel has no room for it: whoever asked asks again.
            let _ = batch::send(fd, Some(&to), origin.arrival, &slices[..count], None);
        }
        self.reply.clear();
        None
    }
}
