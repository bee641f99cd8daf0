//! A machine that always has more to send still notices its peers, its timers and a stop.

use crate::stopping;

use hodo_io::{Clock, ServeOptions, Server, SocketSettings};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stopping::Stopping;

const SUBSCRIBE: u8 = b's';
const UNSUBSCRIBE: u8 = b'u';
const PING: u8 = b'p';
/// The time within which a message is received, or answered: the median of several tries.
const HEARD_WITHIN: Duration = Duration::from_millis(5);
const STOPPED_WITHIN: Duration = Duration::from_millis(100);
/// The bytes after which a subscriber counts as busy.
const BUSY: usize = 1 << 20;
const TRIES: usize = 15;
const TIMEOUT: Duration = Duration::from_secs(30);

/// A sender of updates to every subscriber for as long as it takes them, which replies to a ping with one byte.
struct Publisher<'a> {
    update: usize,
    subscribers: Vec<Subscriber>,
    answers: VecDeque<Peer>,
    /// The period of the deadline, and the next one.
    period: Option<(Duration, Instant)>,
    /// The number of inputs since the deadline has passed.
    overdue: usize,
    heard: &'a Heard,
}

struct Subscriber {
    peer: Peer,
    blocked: bool,
}

/// The counts of the machine, for the test to read.
#[derive(Default)]
struct Heard {
    unsubscribed: AtomicUsize,
    /// The most inputs that came after a deadline before the machine was notified of it.
    overdue_max: AtomicUsize,
    elapsed: AtomicUsize,
}

impl<'a> Publisher<'a> {
    fn new(update: usize, heard: &'a Heard) -> Self {
        Publisher { update, subscribers: Vec::new(), answers: VecDeque::new(), period: None, overdue: 0, heard }
    }

    fn asked(&mut self, peer: Peer, what: u8) {
        match what {
            SUBSCRIBE => self.subscribers.push(Subscriber { peer, blocked: false }),
            UNSUBSCRIBE => {
                self.heard.unsubscribed.fetch_add(1, Relaxed);
                self.subscribers.retain(|subscriber| subscriber.peer != peer);
            }
            _ => self.answers.push_back(peer),
        }
    }

    fn set_blocked(&mut self, peer: Peer, blocked: bool) {
        for subscriber in self.subscribers.iter_mut().filter(|subscriber| subscriber.peer == peer) {
            subscriber.blocked = blocked;
        }
    }
}

impl Machine for Publisher<'_> {
    type Command = ();
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(peer, bytes) => {
                if self.period.is_some_and(|(_, next)| now >= next) {
                    self.overdue += 1;
                    self.heard.overdue_max.fetch_max(self.overdue, Relaxed);
                }
                bytes.iter().for_each(|what| self.asked(peer, *what));
            }
            Input::Closed(peer, _) => self.subscribers.retain(|subscriber| subscriber.peer != peer),
            Input::Blocked(peer) => self.set_blocked(peer, true),
            Input::Drained(peer) => self.set_blocked(peer, false),
            Input::Elapsed => {
                if let Some((period, next)) = &mut self.period {
                    self.heard.elapsed.fetch_add(1, Relaxed);
                    self.overdue = 0;
                    *next = now + *period;
                }
            }
            _ => {}
        }
    }

    /// Serves the first subscriber as long as it takes anything: the others depend on the endpoint.
    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(subscriber) = self.subscribers.iter().find(|subscriber| !subscriber.blocked) {
            out.copy(&[0; 1024][..self.update]);
            return Output::Send(subscriber.peer);
        }
        match self.answers.pop_front() {
            Some(peer) => {
                out.copy(&[PING]);
                Output::Send(peer)
            }
            None => Output::Idle(self.period.map(|(_, next)| next)),
        }
    }
}

/// Returns a subscriber's connection, which a thread of its own reads as fast as it can, after it has received updates
/// for a while.
fn subscribe(at: &Address) -> TcpStream {
    let mut stream = connect(at);
    stream.write_all(&[SUBSCRIBE]).unwrap();
    let mut reader = stream.try_clone().unwrap();
    let (told, busy) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut buffer, mut total) = (vec![0; 1 << 20], 0);
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            if total < BUSY && total + count >= BUSY {
                // Nobody waits for it where the test has failed.
                let _ = told.send(());
            }
            total += count;
        }
    });
    busy.recv().expect("it is sent updates");
    stream
}

fn connect(at: &Address) -> TcpStream {
    let Address::Tcp(at) = at else { panic!("no TCP") };
    let stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn ping(stream: &mut TcpStream) {
    stream.write_all(&[PING]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

/// Makes the tests run one by one, so that none waits for a processor because of another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that serves.
#[derive(Clone)]
struct Worker(PathBuf);

impl Worker {
    fn this() -> Self {
        Worker(Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap()).join("schedstat"))
    }

    /// Returns the processor time of the thread; `None` if it has ended.
    fn processor_time(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    }

    /// Measures `act` by the clock, or by the processor time of the thread if that is less: if others use the
    /// processors, the thread waits for its turn, and receives nothing meanwhile.
    fn time(&self, act: impl FnOnce()) -> Duration {
        let (asked, used) = (std::time::Instant::now(), self.processor_time().unwrap());
        act();
        asked.elapsed().min(self.processor_time().unwrap() - used)
    }
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    spans[spans.len() / 2]
}

/// Runs a publisher on one thread, and returns how long it took to stop.
fn with_publisher(update: usize, period: Option<Duration>, body: impl FnOnce(&Address, &Heard, &Worker)) -> Duration {
    let wait = Wait::Block;
    let options = ServeOptions { wait, ..ServeOptions::default() };
    let server = Server::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
    let (at, stop, heard) = (server.address().clone(), AtomicBool::new(false), Heard::default());
    let (told, serves) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let heard = &heard;
        let make =
            move || Publisher { period: period.map(|period| (period, Instant::ZERO)), ..Publisher::new(update, heard) };
        let serving = scope.spawn({
            let stop = &stop;
            move || {
                told.send(Worker::this()).unwrap();
                server.run(make, |()| None, stop)
            }
        });
        let worker = serves.recv().unwrap();
        body(&at, heard, &worker);
        let asked = std::time::Instant::now();
        let used = worker.processor_time().unwrap();
        drop(stopping);
        let mut last = used;
        while !serving.is_finished() {
            last = worker.processor_time().unwrap_or(last);
            std::thread::yield_now();
        }
        serving.join().expect("no panic").expect("it ends in order");
        asked.elapsed().min(last - used)
    })
}

#[test]
#[ignore = "timing"]
fn hears_a_subscriber_that_reads_as_fast_as_it_is_sent_to() {
    let _alone = alone();
    for update in [32, 1024] {
        with_publisher(update, None, |at, heard, worker| {
            let mut spans = Vec::new();
            for number in 0..TRIES {
                let mut subscriber = subscribe(at);
                spans.push(worker.time(|| {
                    subscriber.write_all(&[UNSUBSCRIBE]).unwrap();
                    while heard.unsubscribed.load(Relaxed) == number {
                        std::thread::yield_now();
                    }
                }));
            }
            let heard_after = median(spans.clone());
            assert!(heard_after < HEARD_WITHIN, "{update} B: heard after {spans:?}");
        });
    }
}

#[test]
#[ignore = "timing"]
fn answers_others_while_a_subscriber_reads_as_fast_as_it_is_sent_to() {
    let _alone = alone();
    for update in [32, 1024] {
        with_publisher(update, None, |at, _, worker| {
            let mut other = connect(at);
            ping(&mut other);
            let _subscriber = subscribe(at);
            let spans: Vec<_> = (0..TRIES).map(|_| worker.time(|| ping(&mut other))).collect();
            assert!(median(spans.clone()) < HEARD_WITHIN, "{update} B: answered after {spans:?}");
        });
    }
}

#[test]
#[ignore = "timing"]
fn stops_while_a_subscriber_reads_as_fast_as_it_is_sent_to() {
    let _alone = alone();
    for update in [32, 1024] {
        let mut subscriber = None;
        let after = with_publisher(update, None, |at, _, _| {
            subscriber = Some(subscribe(at));
            ping(&mut connect(at));
        });
        assert!(after < STOPPED_WITHIN, "{update} B: stopped after {after:?}");
    }
}

#[test]
#[ignore = "timing"]
fn a_machine_that_works_only_when_time_has_passed_keeps_time_on_a_busy_socket() {
    let _alone = alone();
    let period = Duration::from_millis(2);
    with_publisher(32, Some(period), |at, heard, _| {
        let mut busy = connect(at);
        let clock = Clock::start();
        while clock.now() < Instant::ZERO + Duration::from_millis(200) {
            // More is there each time that the machine has dealt with some.
            busy.write_all(&[PING; 64]).unwrap();
            busy.read_exact(&mut [0; 64]).unwrap();
        }
        let (elapsed, overdue) = (heard.elapsed.load(Relaxed), heard.overdue_max.load(Relaxed));
        assert!(elapsed > 10, "called {elapsed} times");
        assert!(overdue <= 4, "{overdue} inputs came before it was called");
    });
}

#[test]
#[ignore = "timing"]
fn answers_others_over_udp_while_a_subscriber_is_sent_to_without_end() {
    let _alone = alone();
    for update in [32, 1024] {
        let settings = SocketSettings { peers_max: 4, ..SocketSettings::default() };
        let options = ServeOptions { settings, ..ServeOptions::default() };
        let at = Address::Udp(([127, 0, 0, 1], 0).into());
        let server = Server::bind(&at, options).expect("a free port");
        let Address::Udp(at) = *server.address() else { panic!("no UDP") };
        let (stop, heard) = (AtomicBool::new(false), Heard::default());
        std::thread::scope(|scope| {
            let stopping = Stopping(&stop);
            let (stop, heard) = (&stop, &heard);
            let (told, serves) = std::sync::mpsc::channel();
            let serving = scope.spawn(move || {
                told.send(Worker::this()).unwrap();
                server.run(move || Publisher::new(update, heard), |()| None, stop)
            });
            let worker = serves.recv().unwrap();
            let connect = || {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(at).unwrap();
                socket.set_read_timeout(Some(TIMEOUT)).unwrap();
                socket
            };
            let (subscriber, other) = (connect(), connect());
            subscriber.send(&[SUBSCRIBE]).unwrap();
            subscriber.recv(&mut [0; 1024]).unwrap();
            let ping = || {
                other.send(&[PING]).unwrap();
                other.recv(&mut [0]).unwrap();
            };
            let spans: Vec<_> = (0..TRIES).map(|_| worker.time(ping)).collect();
            drop(stopping);
            serving.join().expect("no panic").expect("it ends in order");
            assert!(median(spans.clone()) < HEARD_WITHIN, "{update} B: answered after {spans:?}");
        });
    }
}
