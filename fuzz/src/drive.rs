use crate::cost::{Bounds, Cost};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use std::time::Duration;

/// Outputs in a row after which a machine that is not idle is stuck.
const OUTPUTS_MAX: usize = 100_000;
/// Bytes that a peer takes before it is announced as blocked, as a driver would.
const UNSENT_MAX: usize = 64 << 10;

/// One thing that happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A peer connects.
    Opened(u8),
    /// Bytes from a peer.
    Received(u8, &'a [u8]),
    /// A peer goes.
    Closed(u8),
    /// A peer reads slowly.
    Blocked(u8),
    /// A peer has caught up.
    Drained(u8),
    /// Time goes by.
    Elapsed(Duration),
    /// The application asks for something that these bytes describe.
    Command(&'a [u8]),
}

/// Reads fuzz input as a script: any bytes are one, and a small change of the bytes is a small change of the script.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Iterator for Script<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let (head, rest) = self.0.split_first_chunk::<2>()?;
        let (kind, peer, length) = (head[0] % 8, head[0] >> 6, usize::from(head[1]).min(rest.len()));
        let takes_bytes = matches!(kind, 1 | 2 | 7);
        let (bytes, rest) = rest.split_at(if takes_bytes { length } else { 0 });
        self.0 = rest;
        Some(match kind {
            0 => Step::Opened(peer),
            1 | 2 => Step::Received(peer, bytes),
            3 => Step::Closed(peer),
            4 => Step::Blocked(peer),
            5 => Step::Drained(peer),
            6 => Step::Elapsed(Duration::from_millis(1 << (head[1] % 20))),
            _ => Step::Command(bytes),
        })
    }
}

/// Runs a machine through a script. It must not panic, must come to rest after every step, and stay within [`Bounds`].
///
/// A peer is told as a driver would tell it: opened before anything else, and nothing after it is closed. `accepts`
/// says that peers connect by themselves; otherwise only those that the machine asked for are opened. `command` turns
/// bytes into a command.
pub fn drive<M: Machine>(machine: M, input: &[u8], accepts: bool, command: impl Fn(&[u8]) -> Option<M::Command>) {
    drive_within(Bounds::default(), machine, input, accepts, command);
}

/// Runs a machine through a script, as [`drive`], within other bounds.
pub fn drive_within<M: Machine>(
    bounds: Bounds,
    mut machine: M,
    input: &[u8],
    accepts: bool,
    command: impl Fn(&[u8]) -> Option<M::Command>,
) {
    let mut now = Instant::ZERO;
    let mut peers = Peers::default();
    let mut outbox = Outbox::new();
    let mut cost = Cost::begin();
    cost.steps += 1;
    settle(&mut machine, now, &mut outbox, &mut peers, &mut cost);
    for step in Script(input) {
        cost.steps += 1;
        if let Step::Received(_, bytes) | Step::Command(bytes) = step {
            cost.bytes_in += bytes.len() as u64;
        }
        if let Step::Elapsed(span) = step {
            now = now + span;
        }
        tell(&mut machine, now, step, accepts, &mut peers, &command);
        settle(&mut machine, now, &mut outbox, &mut peers, &mut cost);
        cost.peers = cost.peers.max(peers.open.len() as u64);
        cost.check(&bounds);
    }
}

/// A peer that is there, with the bytes that it has not taken.
struct Slot {
    peer: Peer,
    unsent: usize,
    blocked: bool,
}

/// The peers that are there, and those that the machine has asked for.
#[derive(Default)]
struct Peers {
    open: Vec<Slot>,
    asked: Vec<(Peer, Address)>,
    accepted: u32,
}

impl Peers {
    fn pick(&self, index: u8) -> Option<Peer> {
        self.open.get(usize::from(index) % self.open.len().max(1)).map(|slot| slot.peer)
    }

    fn slot(&mut self, peer: Peer) -> Option<&mut Slot> {
        self.open.iter_mut().find(|slot| slot.peer == peer)
    }

    fn forget(&mut self, peer: Peer) {
        self.open.retain(|slot| slot.peer != peer);
        self.asked.retain(|(other, _)| *other != peer);
    }
}

fn tell<M: Machine>(
    machine: &mut M,
    now: Instant,
    step: Step<'_>,
    accepts: bool,
    peers: &mut Peers,
    command: &impl Fn(&[u8]) -> Option<M::Command>,
) {
    match step {
        Step::Opened(_) => {
            let (peer, address) = match peers.asked.pop() {
                Some(asked) => asked,
                None if accepts => (Peer(Peer::FIRST_ACCEPTED + peers.accepted), Address::Node(peers.accepted)),
                None => return,
            };
            peers.accepted += u32::from(peer.is_accepted());
            peers.open.push(Slot { peer, unsent: 0, blocked: false });
            machine.handle(now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
        }
        Step::Received(index, bytes) => {
            check_stranger(machine, now, accepts, bytes);
            let Some(peer) = peers.pick(index) else { return };
            if let Some(landing) = machine.landing(peer).filter(|landing| !landing.is_empty() && !bytes.is_empty()) {
                let count = landing.len().min(bytes.len());
                landing[..count].copy_from_slice(&bytes[..count]);
                machine.handle(now, Input::Landed(peer, count));
            } else {
                machine.handle(now, Input::Received(peer, bytes));
            }
        }
        Step::Closed(index) => {
            let asked = peers.asked.pop().map(|(peer, _)| (peer, Closed::Refused));
            let Some((peer, why)) = asked.or_else(|| peers.pick(index).map(|peer| (peer, Closed::Reset))) else {
                return;
            };
            peers.forget(peer);
            machine.handle(now, Input::Closed(peer, why));
        }
        Step::Blocked(index) | Step::Drained(index) => {
            let Some(slot) = peers.pick(index).and_then(|peer| peers.slot(peer)) else { return };
            let blocks = matches!(step, Step::Blocked(_));
            if slot.blocked != blocks {
                slot.blocked = blocks;
                slot.unsent = 0;
                machine.handle(now, if blocks { Input::Blocked(slot.peer) } else { Input::Drained(slot.peer) });
            }
        }
        Step::Elapsed(_) => machine.handle(now, Input::Elapsed),
        Step::Command(bytes) => {
            if let Some(asked) = command(bytes) {
                machine.handle(now, Input::Command(asked));
            }
        }
    }
}

/// Passes a datagram of an address that has never been a peer: if it is to become none, no more goes back to it than came.
fn check_stranger<M: Machine>(machine: &mut M, now: Instant, accepts: bool, bytes: &[u8]) {
    let mut reply = Outbox::new();
    let ends = Ends::nodes(0, u32::MAX);
    if accepts && !machine.admits(now, &ends, bytes, &mut reply) {
        assert!(reply.len() <= bytes.len(), "a stranger sent {} bytes and gets {}", bytes.len(), reply.len());
    }
}

fn settle<M: Machine>(machine: &mut M, now: Instant, outbox: &mut Outbox, peers: &mut Peers, cost: &mut Cost) {
    for _ in 0..OUTPUTS_MAX {
        let output = machine.poll(now, outbox);
        cost.outputs += u64::from(!matches!(output, Output::Idle(_)));
        match output {
            Output::Idle(_) => return,
            Output::Send(peer) => {
                let slot = peers.slot(peer).unwrap_or_else(|| panic!("bytes for {peer:?}, which is not there"));
                slot.unsent += outbox.len();
                cost.bytes_out += outbox.len() as u64;
                if slot.unsent > UNSENT_MAX && !slot.blocked {
                    slot.blocked = true;
                    machine.handle(now, Input::Blocked(peer));
                }
            }
            Output::Event(_) => {}
            Output::Open(peer, address) => {
                assert!(!peer.is_accepted(), "{peer:?} is numbered like one that came by itself");
                peers.asked.push((peer, address));
            }
            Output::Close(peer) => peers.forget(peer),
        }
        outbox.clear();
        outbox.drain_marks().for_each(|mark| machine.stamped(mark.stamp(now, now)));
    }
    panic!("not idle after {OUTPUTS_MAX} outputs");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends back what it gets; stuck for ever once it has received a 9.
    #[derive(Default)]
    struct Echo {
        pending: Vec<(Peer, Vec<u8>)>,
        stuck: bool,
    }

    impl Machine for Echo {
        type Command = ();
        type Event = ();

        fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
            if let Input::Received(peer, bytes) = input {
                self.stuck |= bytes.contains(&9);
                self.pending.push((peer, bytes.to_vec()));
            }
        }

        fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<()> {
            if self.stuck {
                return Output::Event(());
            }
            let Some((peer, bytes)) = self.pending.pop() else { return Output::Idle(None) };
            out.copy(&bytes);
            Output::Send(peer)
        }
    }

    #[test]
    fn any_bytes_are_a_script() {
        let steps: Vec<Step<'_>> = Script(&[0, 0, 1, 2, 7, 8, 6, 3, 3, 0, 7, 200, 5]).collect();
        assert_eq!(
            steps,
            [
                Step::Opened(0),
                Step::Received(0, &[7, 8]),
                Step::Elapsed(Duration::from_millis(8)),
                Step::Closed(0),
                Step::Command(&[5]),
            ]
        );
    }

    #[test]
    fn a_machine_that_comes_to_rest_passes() {
        drive(Echo::default(), &[0, 0, 1, 2, 7, 8, 3, 0], true, |_| None);
    }

    #[test]
    #[should_panic(expected = "not idle")]
    fn a_machine_that_is_stuck_is_found() {
        drive(Echo::default(), &[0, 0, 1, 1, 9], true, |_| None);
    }
}
