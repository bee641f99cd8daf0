use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use hodo_sim::cost::{Allowance, Cost};
use std::time::Duration;

/// Outputs in a row after which a machine that is not idle is stuck.
const OUTPUTS_MAX: u64 = 100_000;
/// Bytes that a peer takes before it is announced as blocked, as a driver would.
const UNSENT_MAX: usize = 64 << 10;
/// Steps between two newcomers.
const NEWCOMERS: u64 = 16;
/// How often a peer says the same again when a newcomer comes.
const AGAIN: u64 = 16;

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

/// The peers that come to a machine by themselves.
#[derive(Debug, Clone)]
pub struct Accepts {
    /// The transport.
    pub transport: Transport,
    /// A peer that keeps the rules; `None` for a machine that loses messages on purpose.
    pub newcomer: Option<Newcomer>,
}

impl Accepts {
    /// Describes peers of which those that keep the rules say `says`, and receive as many bytes as `gets` at once.
    #[must_use]
    pub const fn new(transport: Transport, says: Vec<u8>, gets: usize) -> Self {
        Accepts { transport, newcomer: Some(Newcomer { says, gets }) }
    }
}

/// A peer that keeps the rules, and is to be served whatever the others do.
#[derive(Debug, Clone)]
pub struct Newcomer {
    says: Vec<u8>,
    gets: usize,
}

/// Runs a machine through a script. It must not panic, must come to rest after every step, must stay within [`Allowance`], and
/// must serve a newcomer now and then.
///
/// A peer is told as a driver would tell it: opened before anything else, and nothing after it is closed. `accepts`
/// describes the peers that connect by themselves; without it only those that the machine asked for are opened. `command`
/// turns bytes into a command.
pub fn drive<M: Machine>(
    machine: M,
    input: &[u8],
    accepts: Option<&Accepts>,
    command: impl Fn(&[u8]) -> Option<M::Command>,
) {
    drive_within(Allowance::default(), machine, input, accepts, command);
}

/// Runs a machine through a script, as [`drive`], within another allowance.
pub fn drive_within<M: Machine>(
    allowance: Allowance,
    machine: M,
    input: &[u8],
    accepts: Option<&Accepts>,
    command: impl Fn(&[u8]) -> Option<M::Command>,
) {
    let mut floor = Floor {
        machine,
        accepts,
        now: Instant::ZERO,
        outbox: Outbox::new(),
        peers: Peers::default(),
        cost: Cost::default(),
        said: None,
    };
    floor.settle(None);
    for (number, step) in (1..).zip(Script(input)) {
        floor.take(step, &command);
        floor.settle(None);
        floor.check(&allowance);
        if number % NEWCOMERS == 0 {
            floor.serve_newcomer(&allowance);
        }
    }
    floor.serve_newcomer(&allowance);
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

    /// Returns the next peer that comes by itself, and its address.
    fn next(&mut self) -> (Peer, Address) {
        self.accepted += 1;
        (Peer(Peer::FIRST_ACCEPTED + self.accepted - 1), Address::Node(self.accepted - 1))
    }

    fn slot(&mut self, peer: Peer) -> Option<&mut Slot> {
        self.open.iter_mut().find(|slot| slot.peer == peer)
    }

    fn forget(&mut self, peer: Peer) {
        self.open.retain(|slot| slot.peer != peer);
        self.asked.retain(|(other, _)| *other != peer);
    }
}

/// A machine, and what surrounds it.
struct Floor<'a, M> {
    machine: M,
    accepts: Option<&'a Accepts>,
    now: Instant,
    outbox: Outbox,
    peers: Peers,
    cost: Cost,
    /// The peer that said something last, and what.
    said: Option<(Peer, &'a [u8])>,
}

impl<'a, M: Machine> Floor<'a, M> {
    fn check(&self, allowance: &Allowance) {
        if let Err(over) = self.cost.check(allowance) {
            panic!("{over}");
        }
    }

    fn tell(&mut self, input: Input<'_, M::Command>) {
        self.cost.inputs += 1;
        self.cost.of(|| self.machine.handle(self.now, input));
    }

    fn take(&mut self, step: Step<'a>, command: &impl Fn(&[u8]) -> Option<M::Command>) {
        match step {
            Step::Opened(_) => {
                let (peer, address) = match self.peers.asked.pop() {
                    Some(asked) => asked,
                    None if self.accepts.is_some() => self.peers.next(),
                    None => return,
                };
                self.open(peer, address, true);
            }
            Step::Received(index, bytes) => {
                self.hear_stranger(bytes);
                if let Some(peer) = self.peers.pick(index) {
                    self.said = Some((peer, bytes));
                    self.receive(peer, bytes);
                }
            }
            Step::Closed(index) => {
                let asked = self.peers.asked.pop().map(|(peer, _)| (peer, Closed::Refused));
                let picked = asked.or_else(|| self.peers.pick(index).map(|peer| (peer, Closed::Reset)));
                if let Some((peer, why)) = picked {
                    self.close(peer, why);
                }
            }
            Step::Blocked(index) | Step::Drained(index) => {
                let Some(slot) = self.peers.pick(index).and_then(|peer| self.peers.slot(peer)) else { return };
                let blocks = matches!(step, Step::Blocked(_));
                if slot.blocked != blocks {
                    slot.blocked = blocks;
                    slot.unsent = 0;
                    let peer = slot.peer;
                    self.tell(if blocks { Input::Blocked(peer) } else { Input::Drained(peer) });
                }
            }
            Step::Elapsed(span) => {
                self.now = self.now + span;
                self.tell(Input::Elapsed);
            }
            Step::Command(bytes) => {
                self.cost.bytes_in += bytes.len() as u64;
                if let Some(asked) = self.cost.of(|| command(bytes)) {
                    self.tell(Input::Command(asked));
                }
            }
        }
    }

    fn open(&mut self, peer: Peer, address: Address, is_proven: bool) {
        self.peers.open.push(Slot { peer, unsent: 0, blocked: false });
        self.cost.opened(peer, is_proven);
        self.tell(Input::Opened(peer, &Ends::new(Address::Node(0), address)));
    }

    fn receive(&mut self, peer: Peer, bytes: &[u8]) {
        self.cost.received(peer, bytes.len());
        let machine = &mut self.machine;
        let landing = self.cost.of(|| machine.landing(peer));
        if let Some(landing) = landing.filter(|landing| !landing.is_empty() && !bytes.is_empty()) {
            let count = landing.len().min(bytes.len());
            landing[..count].copy_from_slice(&bytes[..count]);
            self.tell(Input::Landed(peer, count));
        } else {
            self.tell(Input::Received(peer, bytes));
        }
    }

    fn close(&mut self, peer: Peer, why: Closed) {
        self.forget(peer);
        self.tell(Input::Closed(peer, why));
    }

    fn forget(&mut self, peer: Peer) {
        self.peers.forget(peer);
        self.cost.closed(peer);
        self.said = self.said.filter(|(other, _)| *other != peer);
    }

    /// Passes a datagram of an address that has never been a peer. If it is to become none, no more goes back to it than
    /// came; if it becomes one, nothing has proven its address.
    fn hear_stranger(&mut self, bytes: &[u8]) {
        if self.accepts.is_none_or(|accepts| accepts.transport != Transport::Datagram) {
            return;
        }
        let (mut reply, ends) = (Outbox::new(), Ends::nodes(0, u32::MAX));
        if self.cost.of(|| self.machine.admits(self.now, &ends, bytes, &mut reply)) {
            let (stranger, _) = self.peers.next();
            self.open(stranger, ends.remote, false);
            self.receive(stranger, bytes);
        } else {
            assert!(reply.len() <= bytes.len(), "a stranger sent {} bytes and gets {}", bytes.len(), reply.len());
        }
    }

    /// Lets the last to say something say it again and again, and a newcomer ask: it is answered before the machine has done
    /// more than the others may have it do.
    fn serve_newcomer(&mut self, allowance: &Allowance) {
        let Some(Newcomer { says, gets }) = self.accepts.and_then(|accepts| accepts.newcomer.as_ref()) else { return };
        let mut bytes = says.len();
        if let Some((peer, said)) = self.said {
            for _ in 0..AGAIN {
                self.receive(peer, said);
                bytes += said.len();
            }
        }
        let (peer, address) = self.peers.next();
        self.open(peer, address, true);
        self.receive(peer, says);
        let inputs = AGAIN + 2 + self.peers.open.len() as u64;
        let most = allowance.outputs_for(inputs, bytes as u64);
        let others = self.settle(Some((peer, *gets)));
        assert!(others.is_some(), "a newcomer that keeps the rules is not answered: {:?}", self.cost);
        assert!(others <= Some(most), "a newcomer is answered after {others:?} outputs, more than {most}");
        self.settle(None);
        if self.peers.slot(peer).is_some() {
            self.close(peer, Closed::Finished);
            self.settle(None);
        }
        self.check(allowance);
    }

    /// Carries out what the machine wants until it is idle, or a peer has got so many bytes; returns after how many outputs that
    /// was.
    fn settle(&mut self, until: Option<(Peer, usize)>) -> Option<u64> {
        let mut got = 0;
        for outputs in 1..=OUTPUTS_MAX {
            let (now, machine, outbox) = (self.now, &mut self.machine, &mut self.outbox);
            let output = self.cost.of(|| machine.poll(now, outbox));
            self.cost.outputs += u64::from(!matches!(output, Output::Idle(_)));
            match output {
                Output::Idle(_) => return None,
                Output::Send(peer) => {
                    let bytes = self.outbox.len();
                    self.cost.sent(peer, bytes);
                    let slot =
                        self.peers.slot(peer).unwrap_or_else(|| panic!("bytes for {peer:?}, which is not there"));
                    slot.unsent += bytes;
                    if slot.unsent > UNSENT_MAX && !slot.blocked {
                        slot.blocked = true;
                        self.tell(Input::Blocked(peer));
                    }
                    if let Some((_, gets)) = until.filter(|(newcomer, _)| *newcomer == peer) {
                        got += bytes;
                        if got >= gets {
                            self.clear();
                            return Some(outputs);
                        }
                    }
                }
                Output::Event(_) => {}
                Output::Open(peer, address) => {
                    assert!(!peer.is_accepted(), "{peer:?} is numbered like one that came by itself");
                    self.peers.asked.push((peer, address));
                }
                Output::Close(peer) => self.forget(peer),
            }
            self.clear();
        }
        panic!("not idle after {OUTPUTS_MAX} outputs");
    }

    fn clear(&mut self) {
        let Floor { machine, outbox, now, cost, .. } = self;
        cost.of(|| outbox.clear());
        outbox.drain_marks().for_each(|mark| machine.stamped(mark.stamp(*now, *now)));
    }
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

    fn newcomer() -> Accepts {
        Accepts::new(Transport::Stream, vec![1, 2, 3], 3)
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
        drive(Echo::default(), &[0, 0, 1, 2, 7, 8, 3, 0], Some(&newcomer()), |_| None);
    }

    #[test]
    #[should_panic(expected = "not idle")]
    fn a_machine_that_is_stuck_is_found() {
        drive(Echo::default(), &[0, 0, 1, 1, 9], Some(&newcomer()), |_| None);
    }
}
