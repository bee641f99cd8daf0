use crate::connection::End;
use crate::fabric::{Fabric, Letter};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output};

/// How often a place that a machine offers to receive into is used.
const LANDINGS: f64 = 0.5;
/// A machine that has more than this to do at one instant has lost its way.
const OUTPUTS_MAX: u32 = 1 << 20;

/// A machine at its place in the simulated network.
#[derive(Debug)]
pub(crate) struct Node<M> {
    pub(crate) machine: M,
    id: u32,
    outbox: Outbox,
}

impl<M: Machine> Node<M> {
    pub(crate) fn new(id: u32, machine: M) -> Self {
        Node { machine, id, outbox: Outbox::new() }
    }

    /// Handles the next letter in the inbox, and all that comes of it.
    pub(crate) fn work(&mut self, fabric: &mut Fabric, told: &mut dyn FnMut(M::Event) -> Option<M::Command>) {
        match fabric.take_letter(self.id) {
            Some(Letter::Parcel(key)) => self.receive(fabric, key),
            Some(Letter::Readable(end)) => self.read(fabric, end),
            Some(Letter::Opened(end)) => {
                if let Some((peer, address)) = fabric.peer(end) {
                    fabric.note(self.id, "opened", peer, &[]);
                    self.machine.handle(fabric.now, Input::Opened(peer, &address));
                }
            }
            Some(Letter::Closed(end, why)) => {
                if let Some(peer) = fabric.forget(end) {
                    fabric.note(self.id, "closed", peer, &[]);
                    self.machine.handle(fabric.now, Input::Closed(peer, why));
                }
            }
            Some(Letter::Drained(end)) => {
                if let Some((peer, _)) = fabric.peer(end) {
                    fabric.note(self.id, "drained", peer, &[]);
                    self.machine.handle(fabric.now, Input::Drained(peer));
                }
            }
            None => {}
        }
        self.carry_out(fabric, told);
        fabric.letter_done(self.id);
    }

    /// Tells the machine that its deadline has come.
    pub(crate) fn elapse(&mut self, fabric: &mut Fabric, told: &mut dyn FnMut(M::Event) -> Option<M::Command>) {
        self.machine.handle(fabric.now, Input::Elapsed);
        self.carry_out(fabric, told);
    }

    /// Carries out what the machine wants until it is idle.
    pub(crate) fn carry_out(&mut self, fabric: &mut Fabric, told: &mut dyn FnMut(M::Event) -> Option<M::Command>) {
        let now = fabric.now;
        for _ in 0..OUTPUTS_MAX {
            match self.machine.poll(now, &mut self.outbox) {
                Output::Send(peer) => {
                    let sending = fabric.free_at(self.id);
                    let blocked = fabric.send(self.id, peer, &self.outbox);
                    self.outbox.clear();
                    self.stamp(sending, fabric.free_at(self.id));
                    if blocked {
                        self.machine.handle(now, Input::Blocked(peer));
                    }
                }
                Output::Event(event) => {
                    if let Some(command) = told(event) {
                        self.machine.handle(now, Input::Command(command));
                    }
                }
                Output::Open(peer, address) => fabric.open(self.id, peer, &address),
                Output::Close(peer) => fabric.close(self.id, peer),
                Output::Idle(deadline) => {
                    self.stamp(now, now);
                    fabric.flush(self.id);
                    fabric.set_deadline(self.id, deadline);
                    return;
                }
            }
        }
        panic!("the machine at node {} does not become idle: {OUTPUTS_MAX} outputs at {now:?}", self.id);
    }

    /// Stamps the marks made since the last time; the processor was busy with the bytes that belong to them from one of
    /// these times to the other.
    fn stamp(&mut self, sending: Instant, sent: Instant) {
        for mark in self.outbox.drain_marks() {
            self.machine.stamped(mark.stamp(sending, sent));
        }
    }

    fn receive(&mut self, fabric: &mut Fabric, key: u32) {
        let Some(claim) = fabric.claim(self.id, key) else { return };
        if let Some(from) = claim.new_from {
            fabric.note(self.id, "opened", claim.peer, &[]);
            self.machine.handle(fabric.now, Input::Opened(claim.peer, &Address::Node(from)));
        }
        // Taken out for the call, so that noting it can borrow the rest.
        let bytes = std::mem::take(&mut fabric.parcels.at(key).bytes);
        fabric.note(self.id, "received", claim.peer, &bytes);
        self.machine.handle(fabric.now, Input::Received(claim.peer, &bytes));
        fabric.parcels.at(key).bytes = bytes;
        fabric.drop_parcel(key);
    }

    fn read(&mut self, fabric: &mut Fabric, end: End) {
        let Some((peer, _)) = fabric.peer(end) else { return };
        let mut count = fabric.portion(end);
        if count == 0 {
            return;
        }
        let lands = fabric.random.chance(LANDINGS);
        let place = if lands { self.machine.landing(peer).filter(|place| !place.is_empty()) } else { None };
        if let Some(place) = place {
            count = count.min(place.len());
            place[..count].copy_from_slice(fabric.front(end, count));
            self.machine.handle(fabric.now, Input::Landed(peer, count));
        } else {
            self.machine.handle(fabric.now, Input::Received(peer, fabric.front(end, count)));
        }
        fabric.note_read(self.id, peer, end, count);
        fabric.consumed(end, count);
    }
}
