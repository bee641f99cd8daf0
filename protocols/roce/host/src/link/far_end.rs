//! The far end of links: one device on one thread, for many clients at the same time.

mod room;

use super::backend::{Backend, Surroundings};
use super::greeting::{self, Welcome, Wish};
use super::greetings::{Greeted, Greetings, Tally};
use super::options::Place;
use super::served::{self, Served, Why};
use crate::{AddressOfQueuePair, DeviceError};
use hodo_io::{Clock, PathOptions};
use hodo_machine::{Address, Allowance, Charges, Instant, Peer, Pool, Wait};
use hodo_measure::FarEndFacts;
use hodo_roce::Completion;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at the TCP connections, and at the flag that stops it.
const LOOK: Duration = Duration::from_millis(20);
/// The time between two looks while a client is being greeted.
const LOOK_GREETING: Duration = Duration::from_millis(1);
/// The time that a client may take to take its welcome.
const WELCOME: Duration = Duration::from_secs(5);
/// Connections that are accepted in one look.
const ACCEPTED_OF_A_LOOK: usize = 32;
/// Clients of which one look notices that they are gone.
const CLIENTS_OF_A_LOOK: usize = 256;
/// Bytes of greetings that are read in one look, and those that one has before the others have their turn: those of some channels are
/// there at once, however long the others' are.
const BYTES_OF_A_LOOK: usize = 64 << 10;
const AT_ONCE: usize = 2 << 10;

/// The work of one look on clients that are about to be welcome, in receives that are posted: some 0.5 ms.
const WORK_OF_A_LOOK: u32 = 16 << 10;
/// The part of it that one client has before the others have their turn.
const SHARE: u32 = 2 << 10;
/// The work of a queue pair, in the same unit.
const OF_A_QUEUE_PAIR: u32 = 256;

/// How a far end runs.
#[derive(Debug, Clone)]
pub(super) struct FarEndSettings {
    pub(super) place: Place,
    pub(super) wait: Wait,
    pub(super) socket_buffer: Option<usize>,
    pub(super) path: PathOptions,
    pub(super) size_max: u32,
    /// Channels of all clients together.
    pub(super) channels_max: usize,
    /// Bytes of memory that may be retained for clients.
    pub(super) memory: u64,
    pub(super) facts: FarEndFacts,
}

/// The far end of links.
pub(super) struct FarEnd<B> {
    settings: FarEndSettings,
    listener: TcpListener,
    /// The device, once it is known where it is to be: a listener at any address has it where the first client comes.
    device: Option<B>,
    greetings: Greetings,
    clients: Vec<Option<Served>>,
    /// The places of clients that lack queue pairs, of those that have not taken the whole of their welcome, and of those with subscriptions.
    starting: VecDeque<usize>,
    welcoming: VecDeque<usize>,
    fed: Vec<usize>,
    /// The place of the client that is looked at next.
    looked_at: usize,
    /// Memory that is retained for greetings, by their numbers, and for clients, by their places.
    charges: Charges,
    /// Greetings that gave their places to others.
    displaced: Tally,
    completions: Vec<Completion>,
    /// Orders that came with the completions of the last turn.
    orders: Vec<Completion>,
    channels: usize,
    /// Queue pairs, those for control too.
    pairs: usize,
    bytes: Box<[u8]>,
    clock: Clock,
}

/// The work that is left for this turn, and for the client whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work(u32);

impl Work {
    pub(super) fn is_over(self) -> bool {
        self.0 == 0
    }

    /// Takes `most` units, or as many as are left.
    pub(super) fn take(&mut self, most: u32) -> u32 {
        let taken = most.min(self.0);
        self.0 -= taken;
        taken
    }

    /// Takes the work of creating and connecting a queue pair.
    pub(super) fn take_queue_pair(&mut self) {
        self.take(OF_A_QUEUE_PAIR);
    }
}

impl<B: Backend> FarEnd<B> {
    /// Opens the device, unless the listener is at any address.
    ///
    /// # Errors
    /// [`DeviceError`] if the device cannot be opened.
    pub(super) fn new(listener: TcpListener, settings: FarEndSettings) -> Result<Self, DeviceError> {
        let refused = |error: io::Error| DeviceError::Missing(format!("the listener has failed: {error}"));
        listener.set_nonblocking(true).map_err(refused)?;
        let at = listener.local_addr().map_err(refused)?.ip();
        let mut far_end = FarEnd {
            charges: Charges::new(Allowance::of_bytes(settings.memory), Pool::default()),
            settings,
            listener,
            device: None,
            greetings: Greetings::default(),
            clients: Vec::new(),
            starting: VecDeque::new(),
            welcoming: VecDeque::new(),
            fed: Vec::new(),
            looked_at: 0,
            displaced: Tally::default(),
            completions: Vec::with_capacity(256),
            orders: Vec::new(),
            channels: 0,
            pairs: 0,
            bytes: vec![0; AT_ONCE].into_boxed_slice(),
            clock: Clock::start(),
        };
        if !at.is_unspecified() || far_end.settings.place.address.is_some() {
            far_end.open_device(at)?;
        }
        Ok(far_end)
    }

    fn open_device(&mut self, here: IpAddr) -> Result<&mut B, DeviceError> {
        let (socket_buffer, path) = (self.settings.socket_buffer, self.settings.path.clone());
        let surroundings = Surroundings { here, clock: self.clock, socket_buffer, path, pairs: 1 };
        if self.device.is_none() {
            self.device = Some(B::open(&self.settings.place, &surroundings)?);
        }
        Ok(self.device.as_mut().expect("it was opened above"))
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has failed as a whole.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), DeviceError> {
        let mut look = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if now >= look {
                self.look(now);
                let is_busy = !self.greetings.is_empty() || !self.starting.is_empty() || !self.welcoming.is_empty();
                look = now + if is_busy { LOOK_GREETING } else { LOOK };
            }
            let due = self.feed(now);
            let until = due.map_or(look, |due| due.min(look));
            let wait = if self.orders.is_empty() { self.settings.wait } else { Wait::Never };
            match &mut self.device {
                Some(device) => device.poll(wait, until, &mut self.completions)?,
                None => hodo_io::sleep(until - now),
            }
            self.take_completions();
        }
        self.clients.iter().flatten().for_each(|client| dismiss(&client.stream, "the far end is stopped"));
        Ok(())
    }

    /// Takes what the device found in this turn, and then the orders of the turn before.
    ///
    /// Completions of different queue pairs are in no order: a device that looks at one after the other finds an order before what had
    /// arrived when it was given. One turn later all of that is there, and a report counts it.
    #[inline]
    fn take_completions(&mut self) {
        let (mut completions, mut orders) = (std::mem::take(&mut self.completions), std::mem::take(&mut self.orders));
        for completion in &completions {
            if served::is_order(completion) {
                self.orders.push(*completion);
            } else {
                self.completed(completion);
            }
        }
        orders.drain(..).for_each(|order| self.completed(&order));
        completions.clear();
        self.completions = completions;
    }

    #[inline]
    fn completed(&mut self, completion: &Completion) {
        let place = (completion.id >> 32 & 0x3FFF_FFFF) as usize;
        let (Some(Some(client)), Some(device)) = (self.clients.get_mut(place), &mut self.device) else { return };
        match client.completed(device, completion) {
            Ok(()) if client.begins_to_be_fed(completion) => self.fed.push(place),
            Ok(()) => {}
            Err(why) => self.leave(place, &why),
        }
    }

    /// Sends the updates that are due, and returns when the next one is.
    #[inline]
    fn feed(&mut self, now: Instant) -> Option<Instant> {
        if self.fed.is_empty() {
            return None;
        }
        let (mut next, mut fed): (Option<Instant>, _) = (None, std::mem::take(&mut self.fed));
        fed.retain(|place| {
            let (Some(Some(client)), Some(device)) = (self.clients.get_mut(*place), &mut self.device) else {
                return false;
            };
            match client.feed(device, now) {
                Ok(due) => {
                    next = next.into_iter().chain(due).min();
                    client.is_fed()
                }
                Err(why) => {
                    self.leave(*place, &why);
                    false
                }
            }
        });
        self.fed = fed;
        next
    }

    /// Accepts new clients, goes on with those that are not welcome yet, and lets those go that are gone.
    fn look(&mut self, now: Instant) {
        self.accept(now);
        let (mut left, mut silent) = (BYTES_OF_A_LOOK, 0);
        while left > 0
            && silent < self.greetings.len()
            && let Some(greeted) = self.greetings.next()
        {
            let before = left;
            match self.greet(greeted, now, &mut left) {
                Ok(greeted) => {
                    self.greetings.put_back(greeted);
                    silent = if left == before { silent + 1 } else { 0 };
                }
                Err(peer) => self.release(peer),
            }
        }
        self.prepare(now);
        for _ in 0..self.welcoming.len().min(CLIENTS_OF_A_LOOK) {
            let Some(place) = self.welcoming.pop_front() else { break };
            self.go_on_welcoming(place, now);
        }
        for _ in 0..self.clients.len().min(CLIENTS_OF_A_LOOK) {
            self.looked_at = (self.looked_at + 1) % self.clients.len();
            let Some(client) = &mut self.clients[self.looked_at] else { continue };
            client.look(now);
            if is_gone(&client.stream) {
                self.leave(self.looked_at, "");
            }
        }
        if let Some(count) = self.displaced.due(now) {
            tracing::warn!("{count} connections that had not greeted have given their places to others");
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_OF_A_LOOK {
            let Ok((stream, from)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.greetings.is_full()
                && let Some(oldest) = self.greetings.displace()
            {
                self.displaced.note();
                dismiss(&oldest.stream, "others greet, and this connection has not yet");
                self.release(oldest.peer);
            }
            if let Some(peer) = self.greetings.add(stream, from, now) {
                self.charges.open(peer, &Address::Tcp(from));
            }
        }
    }

    /// Takes its share of a greeting, and returns it if it goes on; otherwise its number.
    fn greet(&mut self, mut client: Greeted, now: Instant, left: &mut usize) -> Result<Greeted, Peer> {
        let over = client.peer;
        let most = (*left).min(AT_ONCE);
        match client.stream.read(&mut self.bytes[..most]) {
            Ok(0) => return Err(over),
            Ok(count) => {
                client.greeting.take(&self.bytes[..count]);
                *left -= count;
                match self.admit(&client, now) {
                    Ok(true) => return Err(over),
                    Ok(false) => {}
                    Err(why) => {
                        tracing::debug!("{} is refused: {why}", client.from);
                        dismiss(&client.stream, &why);
                        return Err(over);
                    }
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(over),
        }
        if now < client.until { Ok(client) } else { Err(over) }
    }

    /// Makes a client of a peer whose greeting is whole. Returns whether it is.
    fn admit(&mut self, client: &Greeted, now: Instant) -> Result<bool, Why> {
        self.charge(client.peer, client.greeting.retained(), client.from)?;
        let Some((line, end)) = client.greeting.line()? else { return Ok(false) };
        let wish = Wish::of(&line)?;
        self.check(&wish, client.from)?;
        // Before all its addresses are there, which are much more to read.
        self.idle_instead(&wish, now)?;
        let Some(addresses) = client.greeting.addresses(end, wish.channels as usize + 1)? else { return Ok(false) };
        let from = client.from.ip().to_canonical();
        if let Some(other) = addresses.iter().find(|address| !B::proves(from, address.gid)) {
            return Err(format!(
                "queue pairs are at {}, and the connection comes from {from}: connect over the network of the adapter",
                other.gid
            ));
        }
        for place in self.idle_instead(&wish, now)? {
            self.end(Peer(place as u32), "this client was idle, and another one needs its channels");
        }
        let place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
        let peer = Peer(place as u32);
        self.charges.open(peer, &Address::Tcp(client.from));
        let created = self
            .charge(peer, Served::retained(&wish), client.from)
            .and_then(|()| self.create(client, wish, peer.0, addresses));
        let served = created.inspect_err(|_| self.charges.close(peer))?;
        self.channels += served.channel_count();
        self.pairs += served.channel_count() + 1;
        if place == self.clients.len() {
            self.clients.push(None);
        }
        self.clients[place] = Some(served);
        self.starting.push_back(place);
        Ok(true)
    }

    fn create(
        &mut self,
        client: &Greeted,
        wish: Wish,
        place: u32,
        far: Vec<AddressOfQueuePair>,
    ) -> Result<Served, Why> {
        let stream = client.stream.try_clone().map_err(|error| error.to_string())?;
        let here = stream.local_addr().map_err(|error| error.to_string())?.ip();
        let device = self.open_device(here).map_err(|error| error.to_string())?;
        Served::new(device, (stream, client.from), wish, place, far).map_err(|error| error.to_string())
    }

    /// Creates queue pairs of the clients that lack some, in turn, and welcomes those that lack none.
    fn prepare(&mut self, now: Instant) {
        let mut work = Work(WORK_OF_A_LOOK);
        while !work.is_over()
            && let Some(place) = self.starting.pop_front()
        {
            let (Some(Some(client)), Some(device)) = (self.clients.get_mut(place), &mut self.device) else { continue };
            if client.is_prepared() {
                // It has the place of one that is gone, and was prepared in that one's turn.
                continue;
            }
            let mut share = Work(work.take(SHARE));
            let prepared = client.prepare(device, &mut share);
            work.0 += share.0;
            match prepared {
                Ok(()) if client.is_prepared() => {
                    let facts = self.settings.facts.clone();
                    let welcome = Welcome { udp_port: device.udp_port(), memory: client.memory(), facts };
                    let text = greeting::line(&welcome.request()) + &greeting::addresses(client.addresses());
                    client.welcome(text.into_bytes(), now + WELCOME);
                    self.go_on_welcoming(place, now);
                }
                Ok(()) => self.starting.push_back(place),
                Err(why) => self.leave(place, &why.to_string()),
            }
        }
    }

    fn go_on_welcoming(&mut self, place: usize, now: Instant) {
        let Some(Some(client)) = self.clients.get_mut(place) else { return };
        match client.go_on_welcoming(now) {
            Ok(()) if client.is_being_welcomed() => self.welcoming.push_back(place),
            Ok(()) => {}
            Err(_) => self.leave(place, ""),
        }
    }
}

/// Tells a peer why it is let go, as far as it takes that at once.
fn dismiss(mut stream: &TcpStream, why: &str) {
    if !why.is_empty() {
        // A peer that is gone need not be told.
        let _ = stream.write(greeting::line(&greeting::refused(why)).as_bytes());
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Returns whether the far side of a connection is gone: a client sends nothing after its greeting.
pub(super) fn is_gone(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

#[cfg(test)]
mod tests;
