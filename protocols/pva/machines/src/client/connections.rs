use crate::client::connection::{Connection, Link, Phase};
use crate::client::tables::{Step, Tables};
use crate::client::{Client, Event, Lost, Timer};
use crate::discovery::Found;
use alloc::boxed::Box;
use alloc::vec::Vec;
use hodo_machine::{Address, BackOff, Closed, Instant, Peer};

/// Connections that are being opened at once: below the usual bound of a listener's queue.
const OPENING_MAX: usize = 256;

impl Client {
    pub(super) fn link(&mut self, number: u32) -> Option<&mut Link> {
        self.connections.at(number)?.as_mut()?.link.as_deref_mut()
    }

    /// Puts a connection among those that may have something to send.
    pub(super) fn wake(&mut self, number: u32) {
        let Some(Some(connection)) = self.connections.at(number) else { return };
        if connection.link.is_some() && !core::mem::replace(&mut connection.is_queued, true) {
            self.ready.push_back(number);
        }
    }

    /// Begins to connect to a server, and returns the number of the connection.
    pub(super) fn connect(&mut self, address: Address, name_server: Option<usize>) -> u32 {
        let (first, max) = self.config.retry;
        let connection = Connection {
            address: address.clone(),
            phase: Phase::Queued,
            link: None,
            channels: Vec::new(),
            name_server,
            back_off: BackOff::new(first, max, self.seed()),
            is_queued: false,
            was_reached: false,
            idle_until: None,
            trouble: None,
        };
        let number = self.connections.insert(Some(Box::new(connection)));
        self.addresses.insert(address, number);
        self.to_open.push_back(number);
        number
    }

    fn seed(&mut self) -> u64 {
        self.seeds += 1;
        self.config.seed.wrapping_add(self.seeds)
    }

    /// Returns the next connection to be opened, and where.
    pub(super) fn next_to_open(&mut self, now: Instant) -> Option<(u32, Address)> {
        while self.opening < OPENING_MAX {
            let number = self.to_open.pop_front()?;
            let Some(Some(connection)) = self.connections.at(number) else { continue };
            if connection.phase == Phase::Queued {
                connection.phase = Phase::Opening;
                self.opening += 1;
                self.timers.arm(Timer::Connection(number), now + self.config.session.greeting_timeout);
                return Some((number, connection.address.clone()));
            }
        }
        None
    }

    pub(super) fn opened(&mut self, now: Instant, number: u32) {
        let Some(Some(connection)) = self.connections.at(number) else { return };
        if connection.phase != Phase::Opening {
            return;
        }
        self.opening -= 1;
        connection.phase = Phase::Open;
        let link = Link::new(number, &self.config.session, connection, now);
        self.timers.arm(Timer::Connection(number), link.talk.session.deadline());
        connection.link = Some(Box::new(link));
    }

    /// Lets a connection take in what came.
    #[inline]
    pub(super) fn read(
        &mut self,
        now: Instant,
        number: u32,
        read: impl FnOnce(&mut Link, &mut Tables) -> Result<(), Lost>,
    ) {
        let Some(Some(connection)) = self.connections.at(number) else { return };
        let Some(link) = &mut connection.link else { return };
        let was_ready = link.talk.session.is_ready();
        let result = read(link, &mut self.tables);
        if !was_ready && link.talk.session.is_ready() {
            connection.back_off.succeeded();
            connection.trouble = None;
            connection.was_reached = true;
            if let Some(name_server) = connection.name_server {
                self.tables.finder.set_name_server(name_server, true);
            }
        }
        self.wake(number);
        for channel in core::mem::take(&mut self.tables.again) {
            self.ask_later(now, channel);
        }
        if let Err(why) = result {
            self.closing.push_back(Peer(number));
            self.lose(now, number, why);
        }
    }

    pub(super) fn block(&mut self, number: u32, is_blocked: bool) {
        if let Some(link) = self.link(number) {
            link.talk.is_blocked = is_blocked;
            self.wake(number);
        }
    }

    /// Takes leave of a connection, which is tried again if it has channels.
    pub(super) fn lose(&mut self, now: Instant, number: u32, why: Lost) {
        let Some(Some(connection)) = self.connections.at(number) else { return };
        self.opening -= usize::from(connection.phase == Phase::Opening);
        connection.phase = Phase::Waiting;
        connection.link = None;
        connection.is_queued = false;
        let was_reached = core::mem::take(&mut connection.was_reached);
        if let Some(name_server) = connection.name_server {
            self.tables.finder.set_name_server(name_server, false);
        }
        let mut channels = core::mem::take(&mut connection.channels);
        channels.retain(|channel| self.lose_channel(now, *channel, was_reached, &why));
        (0..).zip(&channels).for_each(|(place, channel)| self.tables.channels[*channel as usize].place = place);
        let Some(Some(connection)) = self.connections.at(number) else { return };
        if channels.is_empty() && connection.name_server.is_none() {
            return self.forget(number);
        }
        connection.channels = channels;
        connection.trouble = Some(why);
        self.timers.arm(Timer::Connection(number), now + connection.back_off.failed());
    }

    /// Takes a channel from a connection that is lost; returns whether it waits there for the next one.
    fn lose_channel(&mut self, now: Instant, number: u32, was_reached: bool, why: &Lost) -> bool {
        self.timers.cancel(Timer::Channel(number));
        self.tables.lost(number, Step::Waiting, why);
        let Some(channel) = self.tables.channel_at(number) else { return false };
        if channel.server.is_some() {
            return true;
        }
        channel.connection = None;
        if was_reached {
            self.search(now, number, true);
        } else {
            // It answers searches, but cannot be connected to.
            channel.step = Step::Refused;
            self.ask_later(now, number);
        }
        false
    }

    fn forget(&mut self, number: u32) {
        let Some(connection) = self.connections.at(number).and_then(Option::take) else { return };
        self.addresses.remove(&connection.address);
        self.timers.cancel(Timer::Connection(number));
        self.connections.release(number);
        if matches!(connection.phase, Phase::Opening | Phase::Open) {
            self.opening -= usize::from(connection.phase == Phase::Opening);
            self.closing.push_back(Peer(number));
        }
    }

    /// Tries a connection again, gives one up that is silent or that nobody needs, and keeps the others alive.
    pub(super) fn connection_elapsed(&mut self, now: Instant, number: u32) {
        let Some(Some(connection)) = self.connections.at(number) else { return };
        match (connection.phase, &mut connection.link) {
            (Phase::Waiting, _) => {
                connection.phase = Phase::Queued;
                self.to_open.push_back(number);
            }
            (Phase::Open, Some(_)) if connection.idle_until.is_some_and(|until| until <= now) => self.forget(number),
            (Phase::Open, Some(link)) => match link.talk.session.elapsed(now) {
                Ok(()) => {
                    let deadline = link.talk.session.deadline();
                    let deadline = connection.idle_until.map_or(deadline, |until| until.min(deadline));
                    self.timers.arm(Timer::Connection(number), deadline);
                    self.wake(number);
                }
                Err(error) => {
                    self.closing.push_back(Peer(number));
                    self.lose(now, number, error.into());
                }
            },
            _ => {
                self.closing.push_back(Peer(number));
                self.lose(now, number, Lost::Closed(Closed::TimedOut));
            }
        }
    }

    /// Takes a channel off its connection, which is closed after a while if it was the last one.
    pub(super) fn detach(&mut self, now: Instant, number: u32) {
        let Some(channel) = self.tables.channel_at(number) else { return };
        let place = channel.place as usize;
        let Some(at) = channel.connection.take() else { return };
        let Some(Some(connection)) = self.connections.at(at) else { return };
        connection.channels.swap_remove(place);
        if let Some(moved) = connection.channels.get(place) {
            self.tables.channels[*moved as usize].place = place as u32;
        }
        if !connection.channels.is_empty() || connection.name_server.is_some() {
            return self.wake(at);
        }
        if connection.phase == Phase::Open {
            let until = now + self.config.idle_timeout;
            connection.idle_until = Some(until);
            self.timers.arm_by(Timer::Connection(at), until);
            self.wake(at);
        } else {
            self.forget(at);
        }
    }

    /// Arranges that a channel is asked for again which its server has refused or closed.
    fn ask_later(&mut self, now: Instant, number: u32) {
        let (first, max) = self.config.retry_refused;
        let seed = self.seed();
        let Some(channel) = self.tables.channel_at(number) else { return };
        if channel.step == Step::Refused {
            let back_off = channel.back_off.get_or_insert_with(|| Box::new(BackOff::new(first, max, seed)));
            let at = now + back_off.failed();
            self.timers.arm(Timer::Channel(number), at);
        }
    }

    pub(super) fn ask_again(&mut self, now: Instant, number: u32) {
        let Some(channel) = self.tables.channel_at(number).filter(|channel| channel.step == Step::Refused) else {
            return;
        };
        if channel.server.is_none() {
            self.detach(now, number);
            return self.search(now, number, true);
        }
        channel.step = Step::Waiting;
        let Some(at) = channel.connection else { return };
        if let Some(link) = self.link(at) {
            link.talk.to_create.push_back(number);
        }
        self.wake(at);
    }

    /// Searches for the server of a channel.
    pub(super) fn search(&mut self, now: Instant, number: u32, is_lost: bool) {
        let Tables { channels, finder, .. } = &mut self.tables;
        if let Some(channel) = channels.get_mut(number as usize) {
            channel.step = Step::Searching;
            finder.search(now, number, &channel.name, is_lost);
        }
    }

    /// Takes in what the search has found.
    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Name { number, server, .. } => {
                if let Some(channel) = self.tables.channel_at(number)
                    && channel.step == Step::Searching
                {
                    channel.step = Step::Waiting;
                    self.attach(number, server);
                }
            }
            other => self.tables.tell(Event::Found(Box::new(other))),
        }
    }

    /// Lets the search do what is due, and name servers be asked.
    pub(super) fn search_elapsed(&mut self, now: Instant) {
        self.tables.finder.elapsed(now);
        for number in 1..=self.config.name_servers.len() as u32 {
            self.wake(number);
        }
    }
}
