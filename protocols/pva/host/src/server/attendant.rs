use super::handlers::{Call, ClientName, Put};
use super::orders::Order;
use super::pv::{Shared, Taken, stamp};
use super::workers::Job;
use super::{Core, ServerState, listing};
use crate::machines::Value;
use crate::machines::server::{Access, ClientStatistics, Command, Ended, Event, Server};
use crate::machines::wire::Status;
use hodo_io::Attendant;
use hodo_machine::{Instant, Peer};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An observer of a server, on its serving thread: it must not wait for anything.
pub trait Watch {
    /// Learns that a client is connected.
    fn connected(&mut self, client: &ClientName) {
        let _ = client;
    }

    /// Learns that a client is gone.
    fn disconnected(&mut self, client: &ClientName, statistics: &ClientStatistics, why: &Ended) {
        let _ = (client, statistics, why);
    }

    /// Runs about every 80 ms.
    fn look_in(&mut self, now: Instant) {
        let _ = now;
    }

    /// Learns that the server is about to stop.
    fn draining(&mut self) {}
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Watch for Quiet {}

/// The serving thread's part between the machine and the rest of the program.
pub(crate) struct Serving<W> {
    core: Arc<Core>,
    watch: W,
    /// The PVs by the numbers of their channels.
    channels: Vec<Option<Arc<Shared>>>,
    clients: HashMap<Peer, Arc<ClientName>>,
    orders: VecDeque<Order>,
    taken: Taken,
    merged: u64,
}

impl<W: Watch> Serving<W> {
    pub(crate) fn new(core: Arc<Core>, watch: W) -> Self {
        Serving {
            core,
            watch,
            channels: Vec::new(),
            clients: HashMap::new(),
            orders: VecDeque::new(),
            taken: Taken::default(),
            merged: 0,
        }
    }

    fn serve(&mut self, pv: Arc<Shared>, value: Value, machine: &mut Server) {
        let can_change = pv.handlers.check.is_some() || pv.handlers.put.is_some() || pv.handlers.call.is_some();
        let access = if can_change { Access::Handled } else { Access::ReadOnly };
        let before = machine.number(&pv.name);
        if let Some(before) = before {
            self.forget(before);
        }
        let number = machine.serve(pv.name.clone(), value, access);
        let at = number as usize;
        if self.channels.len() <= at {
            self.channels.resize_with(at + 1, || None);
        }
        pv.set_channel(Some(number));
        self.core.served().insert(number, Arc::clone(&pv));
        self.channels[at] = Some(pv);
    }

    fn forget(&mut self, number: u32) {
        if let Some(pv) = self.channels.get_mut(number as usize).and_then(Option::take) {
            pv.set_channel(None);
            self.core.served().remove(&number);
        }
    }

    fn pv(&self, channel: u32) -> Option<&Arc<Shared>> {
        self.channels.get(channel as usize)?.as_ref()
    }

    fn client(&self, peer: Peer) -> Arc<ClientName> {
        self.clients.get(&peer).map_or_else(ClientName::unknown, Arc::clone)
    }

    /// Decides about a put, or leaves it to a worker.
    fn put(&mut self, call: u64, peer: Peer, channel: u32, mut value: Box<Value>) -> Option<Command> {
        let refuse = |why: String| Some(Command::Answer { call, result: Err(Status::error(why)) });
        let Some(pv) = self.pv(channel).map(Arc::clone) else { return refuse("the PV is served no more".into()) };
        let client = self.client(peer);
        match &pv.handlers.check {
            None if pv.handlers.put.is_none() => return refuse("the PV can be called, not put".into()),
            None => {}
            Some(check) => {
                if let Err(why) = pv.with_latest(|latest| check(latest, &mut value, &client)) {
                    return refuse(why);
                }
            }
        }
        if pv.handlers.put.is_some() {
            let put = Put::new(&self.core, &pv, call, client, value);
            self.core.workers.push(&pv, Job::Put(put));
            return None;
        }
        match stamp(&mut value).and_then(|()| pv.post_here(&value, self.core.posts_max)) {
            Err(why) => return refuse(why.to_string()),
            Ok(true) => _ = self.core.orders.push_here(Order::Post(Arc::clone(&pv))),
            Ok(false) => {}
        }
        // Behind the update, which a client that was answered may rely on.
        self.core.orders.push_here(Order::Answer { call, result: Ok(None) });
        None
    }

    fn call(&mut self, call: u64, peer: Peer, channel: u32, argument: Option<Box<Value>>) -> Option<Command> {
        match self.pv(channel) {
            Some(pv) if pv.handlers.call.is_some() => {
                let job = Job::Call(Call::new(&self.core, pv, call, self.client(peer), argument));
                self.core.workers.push(pv, job);
                None
            }
            _ => Some(Command::Answer { call, result: Err(Status::error("the PV cannot be called")) }),
        }
    }
}

impl<W: Watch> Attendant for Serving<W> {
    type Machine = Server;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Put { call, peer, channel, value } => return self.put(call, peer, channel, value),
            Event::Call { call, peer, channel, argument } => return self.call(call, peer, channel, argument),
            Event::Connected(peer, client) => {
                let name = Arc::new(ClientName::of(&client));
                self.watch.connected(&name);
                self.clients.insert(peer, name);
            }
            Event::Disconnected(peer, client, why) => {
                let name = self.clients.remove(&peer).unwrap_or_else(|| Arc::new(ClientName::of(&client)));
                self.watch.disconnected(&name, &client, &why);
            }
        }
        None
    }

    fn look_in(&mut self, now: Instant, machine: &Server) -> Option<Command> {
        self.core.snapshot.offer(|| ServerState {
            pvs: machine.channels() - usize::from(machine.number(listing::NAME).is_some()),
            counters: machine.counters(),
            discovery: machine.discovery(),
            merged_posts: self.merged,
            waiting: self.core.workers.waiting(),
            overloaded: self.core.workers.overloaded.load(Ordering::Relaxed),
            clients: machine.clients().collect(),
        });
        self.watch.look_in(now);
        None
    }

    fn wanted(&mut self, machine: &mut Server) -> Option<Command> {
        let mut has_posted = false;
        loop {
            let Some(order) = self.orders.pop_front() else {
                self.core.orders.take(&mut self.orders);
                if self.orders.is_empty() {
                    return has_posted.then_some(Command::Publish);
                }
                continue;
            };
            match order {
                Order::Serve(pv, value) => self.serve(pv, *value, machine),
                Order::Remove(pv) => {
                    if let Some(number) = pv.channel() {
                        machine.remove(&pv.name);
                        self.forget(number);
                    }
                }
                Order::Post(pv) => self.merged += pv.publish(machine, &mut self.taken),
                Order::Rule(rules) => machine.rule(rules),
                // Everything before it is done.
                Order::Answer { call, result } => return Some(Command::Answer { call, result }),
            }
            has_posted = true;
        }
    }

    fn drain(&mut self) -> Option<Command> {
        self.watch.draining();
        Some(Command::Drain)
    }

    fn is_drained(&self, machine: &Server) -> bool {
        machine.is_drained() && self.orders.is_empty() && !self.core.orders.has_some()
    }
}
