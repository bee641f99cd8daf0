use crate::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Peers, Timers};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Machines that one driver runs as one, each with the peers that came to an address of its own: many devices that receive
/// few requests then need one thread, and one set of buffers.
///
/// The machines open no peers, and their stages are not stamped.
#[derive(Debug)]
pub struct Apart<M> {
    members: Vec<Member<M>>,
    owners: Peers<u32>,
    /// The machines that may have something to do, in turn.
    ready: VecDeque<u32>,
    timers: Timers<u32>,
}

#[derive(Debug)]
struct Member<M> {
    address: Address,
    machine: M,
    is_ready: bool,
}

impl<M: Machine> Apart<M> {
    /// Creates a machine of these, each with the address that its peers come to.
    pub fn new(machines: impl IntoIterator<Item = (Address, M)>) -> Self {
        let member = |(address, machine)| Member { address, machine, is_ready: true };
        let members: Vec<_> = machines.into_iter().map(member).collect();
        let ready = (0..members.len() as u32).collect();
        Apart { members, owners: Peers::default(), ready, timers: Timers::default() }
    }

    fn pass(&mut self, now: Instant, number: u32, input: Input<'_, M::Command>) {
        let Some(member) = self.members.get_mut(number as usize) else { return };
        member.machine.handle(now, input);
        if !core::mem::replace(&mut member.is_ready, true) {
            self.ready.push_back(number);
        }
    }

    /// Returns the machine whose peer this is.
    fn owner(&mut self, input: &Input<'_, (usize, M::Command)>) -> Option<u32> {
        match input {
            Input::Opened(peer, ends) => {
                let number = self.members.iter().position(|member| member.address == ends.local)? as u32;
                self.owners.insert(*peer, number);
                Some(number)
            }
            Input::Closed(peer, _) => self.owners.remove(*peer).map(|number| *number),
            Input::Received(peer, _) | Input::Landed(peer, _) | Input::Blocked(peer) | Input::Drained(peer) => {
                self.owners.get(*peer).copied()
            }
            Input::Command(_) | Input::Elapsed => None,
        }
    }
}

impl<M: Machine> Machine for Apart<M> {
    /// A command, and the number of the machine that it is for.
    type Command = (usize, M::Command);
    /// An event, and the number of the machine that it comes from.
    type Event = (usize, M::Event);

    fn handle(&mut self, now: Instant, input: Input<'_, Self::Command>) {
        match input {
            Input::Command((number, command)) => self.pass(now, number as u32, Input::Command(command)),
            Input::Elapsed => {
                while let Some(number) = self.timers.pop_due(now) {
                    self.pass(now, number, Input::Elapsed);
                }
            }
            input => {
                if let (Some(number), Some(input)) = (self.owner(&input), input.without_command()) {
                    self.pass(now, number, input);
                }
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Self::Event> {
        while let Some(&number) = self.ready.front() {
            let member = &mut self.members[number as usize];
            match member.machine.poll(now, out) {
                Output::Idle(deadline) => {
                    member.is_ready = false;
                    self.ready.pop_front();
                    self.timers.set(number, deadline);
                }
                Output::Open(peer, _) => member.machine.handle(now, Input::Closed(peer, Closed::Unreachable)),
                Output::Send(peer) => return Output::Send(peer),
                Output::Event(event) => return Output::Event((number as usize, event)),
                Output::Close(peer) => {
                    self.owners.remove(peer);
                    return Output::Close(peer);
                }
            }
        }
        Output::Idle(self.timers.next())
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        let owner = self.members.iter_mut().find(|member| member.address == ends.local);
        owner.is_some_and(|member| member.machine.admits(now, ends, datagram, out))
    }

    fn has_room(&self, peer: Peer) -> bool {
        self.owners.get(peer).is_none_or(|number| self.members[*number as usize].machine.has_room(peer))
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        let number = *self.owners.get(peer)?;
        self.members[number as usize].machine.landing(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    /// Records what it is told, reports it, and has a deadline as many microseconds after each input as it has a name.
    struct Noting {
        name: u64,
        told: VecDeque<&'static str>,
        deadline: Option<Instant>,
    }

    impl Machine for Noting {
        type Command = &'static str;
        type Event = &'static str;

        fn handle(&mut self, now: Instant, input: Input<'_, &'static str>) {
            self.deadline = Some(now + Duration::from_micros(self.name));
            self.told.push_back(match input {
                Input::Opened(..) => "opened",
                Input::Received(..) => "received",
                Input::Closed(_, Closed::Unreachable) => "unreachable",
                Input::Closed(..) => "closed",
                Input::Command(command) => command,
                Input::Elapsed => {
                    self.deadline = None;
                    "elapsed"
                }
                _ => "other",
            });
        }

        fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<&'static str> {
            match self.told.pop_front() {
                Some("open") => Output::Open(Peer(0), Address::Node(9)),
                Some("close") => Output::Close(Peer::accepted(1)),
                Some(told) => Output::Event(told),
                None => Output::Idle(self.deadline),
            }
        }
    }

    /// Polls until it is idle; returns the events and the deadline.
    fn poll(apart: &mut Apart<Noting>, now: Instant) -> (Vec<(usize, &'static str)>, Option<Instant>) {
        let (mut events, mut out) = (Vec::new(), Outbox::new());
        loop {
            match apart.poll(now, &mut out) {
                Output::Event(event) => events.push(event),
                Output::Idle(deadline) => return (events, deadline),
                Output::Close(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn each_has_the_peers_of_its_address_and_its_own_deadlines() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let noting = |name| Noting { name, told: VecDeque::new(), deadline: None };
        let mut apart = Apart::new([(Address::Node(7), noting(20)), (Address::Node(8), noting(10))]);
        assert_eq!(poll(&mut apart, at(0)), (Vec::new(), None));
        for (number, local) in [(0, 7), (1, 8), (2, 99)] {
            apart.handle(at(0), Input::Opened(Peer::accepted(number), &Ends::nodes(local, 1)));
            apart.handle(at(0), Input::Received(Peer::accepted(number), b"of an address that is nobody's: dropped"));
        }
        let all = [(0, "opened"), (0, "received"), (1, "opened"), (1, "received")];
        assert_eq!(poll(&mut apart, at(0)), (all.to_vec(), Some(at(10))));
        apart.handle(at(15), Input::Elapsed);
        assert_eq!(poll(&mut apart, at(15)), ([(1, "elapsed")].to_vec(), Some(at(20))));
        apart.handle(at(16), Input::Command((1, "open")));
        assert_eq!(poll(&mut apart, at(16)).0, [(1, "unreachable")]);
        apart.handle(at(17), Input::Command((1, "close")));
        apart.handle(at(17), Input::Received(Peer::accepted(1), b"after the end"));
        assert_eq!(poll(&mut apart, at(17)).0, [(1, "received")], "closed once it was polled");
        apart.handle(at(18), Input::Received(Peer::accepted(1), b"after the end"));
        apart.handle(at(18), Input::Closed(Peer::accepted(0), Closed::Reset));
        assert_eq!(poll(&mut apart, at(18)).0, [(0, "closed")]);
    }
}
