//! Connections that are greeting: each has its time, and where there are as many as there may be, the oldest one of the host that has most of
//! them gives its place to the next.

use super::greeting::Greeting;
use hodo_machine::{Instant, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// The time that a greeting may take.
const GREETING: Duration = Duration::from_secs(5);
/// Greetings at the same time.
const GREETINGS_MAX: u32 = 256;
/// The time between two lines of the log about the same thing.
const QUIET: Duration = Duration::from_secs(10);

/// A client that is being greeted.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: TcpStream,
    pub(super) from: SocketAddr,
    pub(super) greeting: Greeting,
    pub(super) until: Instant,
    /// The number under which its memory is charged.
    pub(super) peer: Peer,
}

/// The clients that are being greeted, in the order of their turns.
#[derive(Debug)]
pub(super) struct Greetings {
    waiting: VecDeque<Greeted>,
    free: Vec<Peer>,
}

impl Default for Greetings {
    fn default() -> Self {
        let free = (0..GREETINGS_MAX).rev().map(Peer::accepted).collect();
        Greetings { waiting: VecDeque::new(), free }
    }
}

impl Greetings {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether the next one takes the place of another.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Adds a connection, and returns its number; `None` if all places are taken.
    pub(super) fn add(&mut self, stream: TcpStream, from: SocketAddr, now: Instant) -> Option<Peer> {
        let peer = self.free.pop()?;
        self.waiting.push_back(Greeted { stream, from, greeting: Greeting::default(), until: now + GREETING, peer });
        Some(peer)
    }

    /// Takes out the one whose turn it is.
    pub(super) fn next(&mut self) -> Option<Greeted> {
        self.waiting.pop_front()
    }

    /// Puts one back, behind the others.
    pub(super) fn put_back(&mut self, greeted: Greeted) {
        self.waiting.push_back(greeted);
    }

    /// Frees the place of one that was taken out.
    pub(super) fn release(&mut self, peer: Peer) {
        self.free.push(peer);
    }

    /// Takes out the one of this number.
    pub(super) fn remove(&mut self, peer: Peer) -> Option<Greeted> {
        let place = self.waiting.iter().position(|greeted| greeted.peer == peer)?;
        self.waiting.remove(place)
    }

    /// Takes out the one that gives its place to another.
    pub(super) fn displace(&mut self) -> Option<Greeted> {
        let mut hosts: BTreeMap<IpAddr, u32> = BTreeMap::new();
        for greeted in &self.waiting {
            *hosts.entry(greeted.from.ip()).or_default() += 1;
        }
        let most = hosts.values().max().copied()?;
        let waiting = self.waiting.iter().enumerate();
        let of_most = waiting.filter(|(_, greeted)| hosts.get(&greeted.from.ip()) == Some(&most));
        let (place, _) = of_most.min_by_key(|(_, greeted)| greeted.until)?;
        self.waiting.remove(place)
    }
}

/// The count of something that may happen too often to be logged each time.
#[derive(Debug, Default)]
pub(super) struct Tally {
    count: u64,
    logged: u64,
    /// When the next line may be logged.
    next: Option<Instant>,
}

impl Tally {
    pub(super) fn note(&mut self) {
        self.count += 1;
    }

    /// Returns the count if it has changed since it was logged, and that is a while ago.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        if self.count == self.logged || self.next.is_some_and(|next| now < next) {
            return None;
        }
        (self.logged, self.next) = (self.count, Some(now + QUIET));
        Some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Returns a connection of this process.
    fn stream() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    fn from(host: u8, number: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], number))
    }

    #[test]
    fn the_oldest_of_the_host_with_most_gives_its_place() {
        let mut greetings = Greetings::default();
        greetings.add(stream(), from(1, 0), Instant::ZERO).unwrap();
        for number in 0..20 {
            greetings.add(stream(), from(2, number), Instant::ZERO).unwrap();
        }
        let displaced = greetings.displace().unwrap();
        assert_eq!((displaced.from, greetings.len()), (from(2, 0), 20));
        greetings.release(displaced.peer);
        assert_eq!(greetings.add(stream(), from(3, 0), Instant::ZERO), Some(displaced.peer), "its place is free");
        assert_eq!(greetings.displace().unwrap().from, from(2, 1));
    }

    #[test]
    fn of_one_host_the_oldest_gives_its_place() {
        let mut greetings = Greetings::default();
        let stream = stream();
        for number in 0..GREETINGS_MAX as u16 {
            assert!(!greetings.is_full());
            greetings.add(stream.try_clone().unwrap(), from(1, number), Instant::ZERO).unwrap();
        }
        assert!(greetings.is_full() && greetings.add(stream, from(1, 999), Instant::ZERO).is_none());
        assert_eq!(greetings.displace().unwrap().from, from(1, 0));
    }

    #[test]
    fn a_tally_is_logged_at_once_and_then_now_and_then() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut tally = Tally::default();
        assert_eq!(tally.due(at(0)), None);
        tally.note();
        assert_eq!((tally.due(at(1)), tally.due(at(20))), (Some(1), None));
        tally.note();
        tally.note();
        assert_eq!((tally.due(at(21)), tally.due(at(22))), (Some(3), None));
        tally.note();
        assert_eq!((tally.due(at(22)), tally.due(at(31))), (None, Some(4)));
    }
}
