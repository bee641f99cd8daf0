use super::{Client, ClientConfig, Command, Event};
use crate::window::WindowCounters;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer, Sampling, Stamp, Stamps, Timers};

/// Several devices, or several clients of one, on one driver: clients that are told apart by their place.
#[derive(Debug)]
pub struct Clients {
    clients: Vec<Client>,
    /// Clients that may have something to do, each once.
    ready: VecDeque<u32>,
    is_ready: Vec<bool>,
    /// The deadline of each client, by its place.
    timers: Timers<u32>,
    stamps: Stamps,
}

impl Clients {
    /// Clients that begin at once to reach their devices. Each is named by its place, from 0.
    #[must_use]
    pub fn new(configs: impl IntoIterator<Item = ClientConfig>) -> Self {
        let clients: Vec<Client> = configs.into_iter().map(Client::new).collect();
        Clients {
            ready: (0..clients.len() as u32).collect(),
            is_ready: clients.iter().map(|_| true).collect(),
            timers: Timers::default(),
            stamps: Stamps::default(),
            clients,
        }
    }

    /// Returns the counters of all of them.
    #[must_use]
    pub fn counters(&self) -> WindowCounters {
        let mut all = WindowCounters::default();
        self.clients.iter().for_each(|client| all += client.counters());
        all
    }

    /// Stamps these operations from now on, and no others.
    pub fn sample(&mut self, taken: Sampling) {
        self.clients.iter_mut().for_each(|client| client.stamps().sampling = taken);
    }

    /// Returns the stamps of all of them, whose tags are the application's.
    pub fn stamps(&mut self) -> &mut Stamps {
        &mut self.stamps
    }

    fn hand(&mut self, now: Instant, number: u32, input: Input<'_, Command>) {
        let Some(client) = self.clients.get_mut(number as usize) else { return };
        client.handle(now, input);
        self.wake(number);
    }

    fn wake(&mut self, number: u32) {
        if !core::mem::replace(&mut self.is_ready[number as usize], true) {
            self.ready.push_back(number);
        }
    }
}

impl Machine for Clients {
    /// A client's place, and what it is asked.
    type Command = (u32, Command);
    /// A client's place, and what it tells.
    type Event = (u32, Event);

    fn handle(&mut self, now: Instant, input: Input<'_, Self::Command>) {
        match input {
            Input::Received(Peer(number), bytes) => self.hand(now, number, Input::Received(super::PEER, bytes)),
            Input::Command((number, command)) => self.hand(now, number, Input::Command(command)),
            Input::Opened(Peer(number), ends) => self.hand(now, number, Input::Opened(super::PEER, ends)),
            Input::Closed(Peer(number), why) => self.hand(now, number, Input::Closed(super::PEER, why)),
            Input::Blocked(Peer(number)) => self.hand(now, number, Input::Blocked(super::PEER)),
            Input::Drained(Peer(number)) => self.hand(now, number, Input::Drained(super::PEER)),
            Input::Landed(..) => {}
            Input::Elapsed => {
                while let Some(number) = self.timers.pop_due(now) {
                    self.wake(number);
                }
            }
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Self::Event> {
        while let Some(&number) = self.ready.front() {
            let index = number as usize;
            match self.clients[index].poll(now, out) {
                Output::Send(_) => return Output::Send(Peer(number)),
                Output::Event(event) => return Output::Event((number, event)),
                Output::Open(_, address) => return Output::Open(Peer(number), address),
                Output::Close(_) => return Output::Close(Peer(number)),
                Output::Idle(deadline) => {
                    self.ready.pop_front();
                    self.is_ready[index] = false;
                    self.timers.set(number, deadline);
                }
            }
        }
        Output::Idle(self.timers.next())
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stamps.keep(stamp);
    }
}
