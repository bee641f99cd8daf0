//! Datagrams arrive whole and in one piece or not at all, whatever is sent together and received together.

use crate::echo;
use crate::stopping;

use echo::Echo;
use hodo_io::{Clock, Endpoint, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Bytes, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stopping::Stopping;

/// The number of datagrams in flight; those that are not back after a pause are lost.
const WINDOW: u64 = 48;
const PAUSE: Duration = Duration::from_millis(5);
/// The number of pauses after the last datagram in which those that a busy machine has delayed may still come.
const LATE: u32 = 50;
const TIMEOUT: Duration = Duration::from_secs(30);
const PEER: Peer = Peer(0);

/// Returns the datagram with this number: there are runs of one length, which are sent with one call, and other
/// lengths.
fn datagram(number: u64, size_max: u64) -> Vec<u8> {
    let mixed = |value: u64| value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let run = if (number / 40).is_multiple_of(3) { number } else { number / 40 };
    let size = 8 + mixed(run + 1) % (size_max - 7);
    let body = (0..size - 8).map(|place| mixed(number ^ place << 32) as u8);
    number.to_le_bytes().into_iter().chain(body).collect()
}

/// A sender of numbered datagrams, which checks those that come back.
struct Sender {
    count: u64,
    size_max: u64,
    open: Option<Address>,
    ready: bool,
    next: u64,
    in_flight: u64,
    resume: Option<Instant>,
    late: u32,
    back: Vec<bool>,
}

impl Machine for Sender {
    type Command = ();
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) => self.ready = true,
            Input::Received(peer, bytes) => {
                assert_eq!(peer, PEER);
                let number = u64::from_le_bytes(*bytes.first_chunk().expect("none is shorter"));
                assert!(number < self.next, "{number} was not sent yet");
                assert!(bytes == datagram(number, self.size_max), "number {number} is not as it was sent");
                assert!(!std::mem::replace(&mut self.back[number as usize], true), "number {number} came twice");
                self.in_flight = self.in_flight.saturating_sub(1);
                self.resume = Some(now + PAUSE);
            }
            // Comes after a large share of a round; this machine holds back by its window.
            Input::Blocked(_) | Input::Drained(_) => {}
            Input::Elapsed => {
                let all_sent = self.next == self.count;
                self.late += u32::from(all_sent);
                self.in_flight = 0;
                self.resume = (all_sent && self.late < LATE).then_some(now + PAUSE);
            }
            other => panic!("{other:?} on a loopback where somebody listens"),
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.open.take() {
            return Output::Open(PEER, address);
        }
        if !self.ready || self.next == self.count || self.in_flight == WINDOW {
            return Output::Idle(self.resume);
        }
        let bytes = datagram(self.next, self.size_max);
        let (front, rest) = bytes.split_at(8);
        out.copy(front);
        out.share(Bytes::copy_from_slice(rest));
        self.next += 1;
        self.in_flight += 1;
        self.resume = Some(now + PAUSE);
        Output::Send(PEER)
    }
}

/// Sends `count` datagrams, and returns how many came back.
fn echoed(count: u64, size_max: u64, socket_buffer: Option<usize>, wait: Wait) -> u64 {
    let settings = SocketSettings { socket_buffer, ..SocketSettings::default() };
    let options = ServeOptions { threads: 1, cpus: Vec::new(), wait, settings: settings.clone() };
    let server = Server::bind(&Address::Udp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
    let sender = Sender {
        count,
        size_max,
        open: Some(server.address().clone()),
        ready: false,
        next: 0,
        in_flight: 0,
        resume: None,
        late: 0,
        back: vec![false; count as usize],
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let serving = scope.spawn(|| server.run(Echo::default, |()| None, &stop));
        let clock = Clock::start();
        let mut endpoint = Endpoint::new(sender, Sockets::new(settings).expect("a poller"), clock);
        let end = clock.now() + TIMEOUT;
        let is_done =
            |sender: &Sender| sender.next == count && (sender.late >= LATE || sender.back.iter().all(|back| *back));
        while !is_done(endpoint.machine()) {
            let now = clock.now();
            assert!(now < end, "{} of {count} sent in {TIMEOUT:?}", endpoint.machine().next);
            endpoint.step(wait, now + PAUSE, &mut |()| {}).expect("the sockets work");
        }
        drop(stopping);
        serving.join().expect("the server does not panic").expect("it ends in order");
        endpoint.machine().back.iter().filter(|back| **back).count() as u64
    })
}

#[test]
fn each_comes_back_as_it_was_sent() {
    for size_max in [8, 64, 1400, 9000, 65_507] {
        for wait in [Wait::Block, Wait::Spin] {
            let back = echoed(2000, size_max, None, wait);
            // A window of the largest is more than some systems let a socket hold.
            let least = if size_max <= 1400 { 1900 } else { 20 };
            assert!((least..=2000).contains(&back), "{back} of 2000 of up to {size_max} bytes, {wait}");
        }
    }
}

#[test]
fn what_gets_through_tiny_buffers_is_whole() {
    for size_max in [64, 1400] {
        let back = echoed(2000, size_max, Some(4 << 10), Wait::Block);
        assert!((20..=2000).contains(&back), "{back} of 2000 of up to {size_max} bytes");
    }
}
