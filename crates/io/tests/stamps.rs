//! An endpoint stamps a mark with the moment that it names: before the write, after it, or what the machine knew.

use crate::echo;
use crate::stopping;

use echo::Echo;
use hodo_io::{Clock, Endpoint, ServeOptions, Server, SocketSettings, Sockets};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Moment, Outbox, Output, Peer, Stamp, Wait};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stopping::Stopping;

const PEER: Peer = Peer(0);
const PINGS: u64 = 200;
const TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout after which a datagram that has not come back is sent again.
const PATIENCE: Duration = Duration::from_millis(200);

/// A sender of one numbered datagram at a time, which marks the moments before and after the send, and when it is back.
#[derive(Default)]
struct Pinger {
    open: Option<Address>,
    ready: bool,
    marks: bool,
    sent: u64,
    back: Option<u64>,
    resend: Instant,
    /// The time of the input that brought each datagram back.
    heard: Vec<Instant>,
    stamps: Vec<Stamp>,
}

impl Machine for Pinger {
    type Command = ();
    type Event = u64;

    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) | Input::Elapsed => self.ready = true,
            Input::Received(_, bytes) => {
                let number = u64::from_le_bytes(*bytes.first_chunk().expect("none is shorter"));
                if number == self.sent {
                    self.back = Some(number);
                    self.heard.push(now);
                }
            }
            other => panic!("{other:?} on a loopback where somebody listens"),
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<u64> {
        if let Some(address) = self.open.take() {
            return Output::Open(PEER, address);
        }
        if let Some(number) = self.back.take() {
            if self.marks {
                out.mark("away", number, Moment::At(now));
            }
            self.ready = true;
            self.sent += 1;
            return Output::Event(number);
        }
        if !std::mem::take(&mut self.ready) {
            return Output::Idle(Some(self.resend));
        }
        out.copy(&self.sent.to_le_bytes());
        if self.marks {
            out.mark("queue", self.sent, Moment::Sending);
            out.mark("send", self.sent, Moment::Sent);
        }
        self.resend = now + PATIENCE;
        Output::Send(PEER)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stamps.push(stamp);
    }
}

/// Returns a pinger after all datagrams are back, and when each turn began and ended.
fn pinged(marks: bool) -> (Pinger, Vec<(Instant, Instant)>) {
    let settings = SocketSettings::default();
    let options = ServeOptions { settings: settings.clone(), ..ServeOptions::default() };
    let server = Server::bind(&Address::Udp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
    let pinger = Pinger { open: Some(server.address().clone()), marks, ..Pinger::default() };
    let clock = Clock::start();
    let (stop, mut turns) = (AtomicBool::new(false), Vec::new());
    let mut endpoint = Endpoint::new(pinger, Sockets::new(settings).expect("a poller"), clock);
    std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let serving = scope.spawn(|| server.run(Echo::default, |()| None, &stop));
        let end = clock.now() + TIMEOUT;
        while endpoint.machine().sent < PINGS {
            let began = clock.now();
            assert!(began < end, "{} of {PINGS} back in {TIMEOUT:?}", endpoint.machine().sent);
            endpoint.step(Wait::Block, began + PATIENCE, &mut |_| {}).expect("the sockets work");
            turns.push((began, clock.now()));
        }
        drop(stopping);
        serving.join().expect("the server does not panic").expect("it ends in order");
    });
    let machine = std::mem::take(endpoint.machine_mut());
    (machine, turns)
}

#[test]
fn stamps_are_the_moments_that_marks_name() {
    let (pinger, turns) = pinged(true);
    assert_eq!(pinger.heard.len() as u64, PINGS);
    for (number, heard) in (0..).zip(&pinger.heard) {
        let of = |stage: &str| {
            let stamps = pinger.stamps.iter().filter(move |stamp| stamp.tag == number && stamp.stage == stage);
            stamps.map(|stamp| stamp.at).collect::<Vec<_>>()
        };
        let (queue, send, away) = (of("queue"), of("send"), of("away"));
        // One that was sent again has two of each.
        let (Some(sending), Some(sent)) = (queue.first(), send.first()) else { panic!("{number} has no stamps") };
        assert_eq!((queue.len(), away), (send.len(), vec![*heard]));
        assert!(sending < sent, "the write of {number} takes time: {sending:?} to {sent:?}");
        assert!(sent <= heard || queue.len() > 1, "{number} was written by {sent:?}, and back at {heard:?}");
        let within = |(began, ended): &(Instant, Instant)| began <= sending && sent <= ended;
        assert!(turns.iter().any(within), "{number} was written in some turn");
    }
    let written: Vec<Instant> =
        pinger.stamps.iter().filter(|stamp| stamp.stage != "away").map(|stamp| stamp.at).collect();
    assert!(written.is_sorted(), "marks are stamped in their order");
}

#[test]
fn a_machine_that_marks_nothing_is_told_nothing() {
    let (pinger, _) = pinged(false);
    assert_eq!((pinger.stamps, pinger.heard.len() as u64), (Vec::new(), PINGS));
}
