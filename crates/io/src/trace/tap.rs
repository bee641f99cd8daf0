use super::blocks::Blocks;
use super::headers::{Flow, SEGMENT};
use super::pcapng::{self, About, Direction};
use crate::Clock;
use crate::sockets::Sockets;
use crate::transport::{Batch, Transport};
use hodo_machine::{
    self as machine, Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Stamp, Wait,
};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

/// The interfaces of a trace, as [`interface`] numbers them.
pub(super) const INTERFACES: [&str; 2] = ["udp", "tcp"];
/// The room that a packet needs besides its payload: headers of 60 bytes, a block of 32, options with a remark.
const ROOM: usize = 256 + super::NOTES_MAX;

/// The serving thread's end of a trace.
pub(crate) struct Tap {
    blocks: Blocks,
    /// The clock's origin, in ns since 1970.
    origin_ns: u64,
    flows: HashMap<Peer, Flow>,
    scratch: Vec<u8>,
    /// Packets lost since the last one that was recorded, for each interface.
    dropped: [u64; INTERFACES.len()],
}

impl Tap {
    pub(super) fn new(blocks: Blocks) -> Self {
        Tap { blocks, origin_ns: 0, flows: HashMap::new(), scratch: Vec::new(), dropped: [0; INTERFACES.len()] }
    }

    /// Records bytes to or from a peer: a datagram, or bytes of a stream.
    fn take(&mut self, now: Instant, peer: Peer, direction: Direction, mut bytes: &[u8]) {
        let Some(transport) = self.flows.get(&peer).map(|flow| flow.transport) else { return };
        if transport == machine::Transport::Datagram {
            return self.take_packet(now, peer, direction, bytes);
        }
        while !bytes.is_empty() {
            let (segment, rest) = bytes.split_at(bytes.len().min(SEGMENT));
            self.take_packet(now, peer, direction, segment);
            bytes = rest;
        }
    }

    fn take_packet(&mut self, now: Instant, peer: Peer, direction: Direction, payload: &[u8]) {
        let Some(flow) = self.flows.get_mut(&peer) else { return };
        let interface = interface(flow.transport);
        let dropped = self.dropped[interface];
        let unix_ns = self.origin_ns + now.as_nanos();
        let is_recorded = self.blocks.add(now, payload.len() + ROOM, |shared, out| {
            let noted = shared.noted.load(Relaxed) && shared.noted.swap(false, Relaxed);
            let comment =
                noted.then(|| std::mem::take(&mut *shared.notes.lock().unwrap_or_else(PoisonError::into_inner)));
            let about = About {
                interface: interface as u32,
                unix_ns,
                direction,
                missing: 0,
                dropped,
                comment: comment.as_deref().unwrap_or_default(),
            };
            pcapng::packet(&about, out, |out| flow.packet(direction, payload, out));
        });
        self.dropped[interface] = if is_recorded { 0 } else { dropped + 1 };
        flow.passed(direction, payload.len());
    }

    /// Records messages that are about to be sent.
    #[inline(never)]
    fn take_sent(&mut self, clock: &Clock, batch: &Batch, out: &Outbox) {
        if self.is_paused() {
            return;
        }
        let now = clock.now();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut start = 0;
        for message in &batch.messages {
            scratch.clear();
            out.pieces()[start..message.pieces_end].iter().for_each(|piece| scratch.extend(out.bytes(piece)));
            self.take(now, message.peer, Direction::Out, &scratch);
            start = message.pieces_end;
        }
        self.scratch = scratch;
    }

    fn is_paused(&self) -> bool {
        self.blocks.shared().paused.load(Relaxed)
    }
}

fn interface(transport: machine::Transport) -> usize {
    match transport {
        machine::Transport::Datagram => 0,
        machine::Transport::Stream => 1,
    }
}

/// A server's sockets, whose packets are traced if it has a trace.
pub(crate) struct Served {
    sockets: Sockets,
    tap: Option<Tap>,
    clock: Clock,
}

impl Served {
    pub(crate) fn new(sockets: Sockets, mut tap: Option<Tap>, clock: Clock) -> Self {
        if let Some(tap) = &mut tap {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            tap.origin_ns = (since_1970.as_nanos() as u64).saturating_sub(clock.now().as_nanos());
        }
        Served { sockets, tap, clock }
    }
}

impl Transport for Served {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        self.sockets.open(peer, address)
    }

    fn close(&mut self, peer: Peer) {
        if let Some(tap) = &mut self.tap {
            tap.flows.remove(&peer);
        }
        self.sockets.close(peer);
    }

    fn send(&mut self, batch: &Batch, out: &mut Outbox) -> io::Result<()> {
        if let Some(tap) = &mut self.tap {
            tap.take_sent(&self.clock, batch, out);
        }
        self.sockets.send(batch, out)
    }

    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        self.sockets.announce(now, machine)
    }

    fn has_held(&self) -> bool {
        self.sockets.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        self.sockets.release(now, machine);
    }

    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        match &mut self.tap {
            None => self.sockets.receive(wait, until, clock, machine),
            Some(tap) => receive_tapped(&mut self.sockets, wait, until, clock, machine, tap),
        }
    }

    fn stop_listening(&mut self) {
        self.sockets.stop_listening();
    }

    fn backlog(&self) -> usize {
        self.sockets.backlog()
    }
}

/// Receives for any machine: compiled once, and not for each machine as without a trace.
#[inline(never)]
fn receive_tapped(
    sockets: &mut Sockets,
    wait: Wait,
    until: Instant,
    clock: &Clock,
    machine: &mut dyn Receiver,
    tap: &mut Tap,
) -> io::Result<Option<Instant>> {
    let paused = tap.is_paused();
    let seen = sockets.receive(wait, until, clock, &mut Tapped { machine, tap, paused });
    tap.blocks.hand_over_old(clock.now());
    seen
}

/// A machine as sockets that receive see it: they pass it what comes, and neither command nor poll it.
trait Receiver {
    fn pass(&mut self, now: Instant, input: &Input<'_, Infallible>);
    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool;
    fn has_room(&self, peer: Peer) -> bool;
    fn stamped(&mut self, stamp: Stamp);
}

impl<M: Machine> Receiver for M {
    fn pass(&mut self, now: Instant, input: &Input<'_, Infallible>) {
        if let Some(input) = input.without_command() {
            self.handle(now, input);
        }
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        Machine::admits(self, now, ends, datagram, out)
    }

    fn has_room(&self, peer: Peer) -> bool {
        Machine::has_room(self, peer)
    }

    fn stamped(&mut self, stamp: Stamp) {
        Machine::stamped(self, stamp);
    }
}

/// A machine while its sockets pass it input.
struct Tapped<'a> {
    machine: &'a mut dyn Receiver,
    tap: &'a mut Tap,
    paused: bool,
}

impl Machine for Tapped<'_> {
    type Command = Infallible;
    type Event = Infallible;

    fn handle(&mut self, now: Instant, input: Input<'_, Infallible>) {
        match input {
            Input::Opened(peer, ends) => self.tap.flows.extend(Flow::new(ends).map(|flow| (peer, flow))),
            Input::Closed(peer, _) => drop(self.tap.flows.remove(&peer)),
            Input::Received(peer, bytes) if !self.paused => self.tap.take(now, peer, Direction::In, bytes),
            _ => {}
        }
        self.machine.pass(now, &input);
    }

    /// Has nothing to say: the endpoint polls the machine itself.
    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<Infallible> {
        Output::Idle(None)
    }

    /// Returns whether the sender becomes a peer. Packets of others are not traced, because nothing is kept of them.
    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.machine.admits(now, ends, datagram, out)
    }

    /// Returns no place, because landed bytes could not be recorded.
    fn landing(&mut self, _: Peer) -> Option<&mut [u8]> {
        None
    }

    fn has_room(&self, peer: Peer) -> bool {
        self.machine.has_room(peer)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.machine.stamped(stamp);
    }
}
