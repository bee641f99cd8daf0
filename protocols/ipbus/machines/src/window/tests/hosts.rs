//! Several hosts that fill one board, each from another distance.
use super::MICRO;
use crate::device::{Board, DeviceConfig};
use crate::window::{Step, Window, WindowConfig};
use crate::wire::Version;
use crate::wire::packet::{Header, Kind, Packet};
use crate::wire::{Order, WORD};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{Instant, Transport};
use hodo_sim::Random;

/// The board's time for a datagram.
const SERVICE: u64 = 10 * MICRO;
const JITTER: u64 = 5 * MICRO;
/// No failure counts before they know of each other: of several packets in flight some may find their numbers taken.
const MET: u64 = 50_000 * MICRO;
/// How long a host has no processor at the least; it is twice that at the most.
const STALL: u64 = 4000 * MICRO;
const LASTS: u64 = 1_000_000 * MICRO;

/// A host that always has packets for the board.
struct Host {
    window: Window,
    /// One way to the board.
    way: u64,
    begins: u64,
    pushed: u64,
    answered: u64,
    failed: u64,
    failed_later: u64,
    /// When the last packet was answered, and the longest time without an answer.
    last: u64,
    longest: u64,
    wakes: Option<u64>,
    /// It loses its processor after so many datagrams on average, and has it again at this time; what comes meanwhile waits.
    stalls: Option<u64>,
    back: u64,
    inbox: Vec<Vec<u8>>,
}

impl Host {
    fn new(seed: u64, way: u64, begins: u64) -> Self {
        let config = WindowConfig { own_ids: Some(seed), ..WindowConfig::default() };
        let window = Window::new(config);
        let (wakes, inbox) = (Some(begins), Vec::new());
        let (pushed, answered, failed, failed_later, longest, back) = (0, 0, 0, 0, 0, 0);
        Host {
            window,
            way,
            begins,
            pushed,
            answered,
            failed,
            failed_later,
            last: begins,
            longest,
            wakes,
            stalls: None,
            back,
            inbox,
        }
    }

    /// Fills the window, and returns what it sends.
    fn pump(&mut self, now: u64) -> Vec<Vec<u8>> {
        let (at, mut sent) = (Instant::from_nanos(now), Vec::new());
        if now < self.begins.max(self.back) {
            return sent;
        }
        for bytes in core::mem::take(&mut self.inbox) {
            self.received(now, &bytes);
        }
        loop {
            self.window.open(at);
            while self.window.room() > 0 {
                let header = Header { id: 0, kind: Kind::Control }.encode();
                let read: &[u32] = &[header, 0x2000_010F, 0x40];
                let words = if self.pushed.is_multiple_of(2) { read } else { &[header, 0x2000_011F, 0x40, 7] };
                self.window.push(at, self.pushed, |packet| Order::Big.append(words, packet));
                self.pushed += 1;
            }
            match self.window.poll(at) {
                Step::Send(bytes) => sent.push(bytes.to_vec()),
                Step::Failed { .. } => {
                    self.failed += 1;
                    self.failed_later += u64::from(now >= self.begins + MET);
                }
                Step::Down(cause) => panic!("the board is there: {cause}"),
                Step::Resumed => {}
                Step::Idle(until) => {
                    self.wakes = until.map(Instant::as_nanos);
                    return sent;
                }
            }
        }
    }

    fn received(&mut self, now: u64, bytes: &[u8]) {
        let mut answered = 0;
        self.window.received(Instant::from_nanos(now), bytes, |_| {
            answered += 1;
            true
        });
        if answered > 0 {
            self.longest = self.longest.max(now - self.last);
            (self.last, self.answered) = (now, self.answered + answered);
        }
    }
}

/// Has the hosts fill a board at once.
fn run(seed: u64, mut hosts: Vec<Host>) -> Vec<Host> {
    let mut board = Board::new(DeviceConfig::new(Transport::Datagram, Version::V2_0));
    let mut random = Random::new(seed);
    let (mut under_way, mut sent, mut now, mut busy) = (BTreeMap::new(), 0, 0, 0);
    // Each way keeps its order.
    let mut latest = [[0; 2]; 4];
    while now < LASTS {
        for (number, host) in hosts.iter_mut().enumerate() {
            for bytes in host.pump(now) {
                let at = (now + host.way + random.below(JITTER)).max(latest[number][0] + 1);
                (latest[number][0], sent) = (at, sent + 1);
                under_way.insert((at, sent), (number, true, bytes));
            }
        }
        let arrives = under_way.first_key_value().map(|((at, _), _)| *at);
        let wakes = hosts.iter().filter_map(|host| host.wakes).filter(|wakes| *wakes > now);
        now = wakes.chain(arrives).min().expect("there is always something to do").max(now);
        while let Some(entry) = under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (number, to_board, bytes) = entry.remove();
            if !to_board {
                hosts[number].inbox.push(bytes);
                if hosts[number].stalls.is_some_and(|every| random.below(every) == 0) {
                    let back = now + STALL + random.below(STALL);
                    (hosts[number].back, hosts[number].wakes) = (back, Some(back));
                }
                continue;
            }
            let mut reply = Vec::new();
            board.answer(&bytes, &mut reply);
            busy = busy.max(now) + SERVICE;
            if !reply.is_empty() {
                assert!(Packet::decode(&reply).is_ok() && reply.len().is_multiple_of(WORD));
                let at = (busy + hosts[number].way + random.below(JITTER)).max(latest[number][1] + 1);
                (latest[number][1], sent) = (at, sent + 1);
                under_way.insert((at, sent), (number, false, reply));
            }
        }
    }
    hosts
}

/// Lets a host in that comes when another has long filled the board. It is not known of the packets of one that is twenty times as far away
/// whether they were done, where the other sends more than the board keeps until it hears of it.
#[test]
fn no_host_is_kept_from_a_board_that_another_fills() {
    for (near, far) in [(20, 20), (20, 60), (60, 20), (20, 400), (400, 20)] {
        for seed in 0..10 {
            let hosts = [(near, 0), (far, 50_000)].into_iter().zip(2 * seed..);
            let hosts = hosts.map(|((way, begins), seed)| Host::new(seed, way * MICRO, begins * MICRO)).collect();
            for host in run(seed, hosts) {
                let seen = (host.answered, host.failed, Duration::from_nanos(host.longest));
                let is_far = near.max(far) > 100;
                let (least, most, longest) = if is_far { (30, 50, 125) } else { (500, 2, 15) };
                let is_served = host.answered >= least && host.longest < longest * 1000 * MICRO;
                assert!(is_served && host.failed <= most, "{near}, {far} us, seed {seed}: {seen:?}");
            }
        }
    }
}

/// A number that a host was told is old once it has its processor again: others have sent more packets since than the board keeps replies.
#[test]
fn hosts_that_lose_their_processor_now_and_then_know_what_was_done() {
    let (mut answered, mut failed) = (0, 0);
    for seed in 0..20 {
        let hosts = [20, 20, 30].into_iter().zip(3 * seed..);
        let hosts = hosts.map(|(way, seed)| Host { stalls: Some(1000), ..Host::new(seed, way * MICRO, 0) }).collect();
        for host in run(seed, hosts) {
            (answered, failed) = (answered + host.answered, failed + host.failed_later);
        }
    }
    assert!(failed * 10_000 < answered, "{failed} of {answered}");
}
