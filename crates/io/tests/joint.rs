//! A hub on one endpoint: clients over TCP, boards over UDP, over real sockets.

use crate::forwarder;

use forwarder::{Client, Hub, PAYLOAD_MAX, TIMEOUT, board, with_boards};
use hodo_machine::Wait;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WAITS: [Wait; 3] = [Wait::Block, Wait::Spin, Wait::SpinThenBlock(Duration::from_micros(20))];

/// Returns the board and the payload of a client's request with this number.
fn request(client: usize, number: usize, boards: usize) -> (usize, Vec<u8>) {
    let mixed = (client as u64 ^ (number as u64) << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let length = 1 + (mixed >> 40) as usize % PAYLOAD_MAX;
    ((mixed >> 20) as usize % boards, (0..length).map(|at| (at + number + 31 * client) as u8).collect())
}

/// Sends requests to boards in turn, with `window` of them pending, and checks every reply.
fn exchange(hub: SocketAddr, client: usize, boards: usize, count: usize, window: usize) {
    let mut link = Client::connect(hub);
    let mut open: Vec<std::collections::VecDeque<Vec<u8>>> = vec![Default::default(); boards];
    for number in 0..count + window {
        if number >= window {
            let (from, payload) = link.answer();
            let asked = open[from].pop_front().expect("no answer without a request");
            assert!(payload == Some(&asked[..]), "client {client}: an answer that is not its own");
        }
        if number < count {
            let (to, payload) = request(client, number, boards);
            link.ask(to, &payload);
            open[to].push_back(payload);
        }
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        std::thread::yield_now();
    }
}

#[test]
fn each_client_gets_its_own_answers_from_each_board() {
    for wait in WAITS {
        for (clients, boards, count) in [(1, 1, 300), (1, 8, 300), (12, 1, 60), (12, 8, 60), (2, 40, 200)] {
            let tally = with_boards(boards, |addresses| {
                Hub::new(wait).serve(addresses, |hub, _, _| {
                    std::thread::scope(|scope| {
                        for client in 0..clients {
                            scope.spawn(move || exchange(hub, client, boards, count, 4));
                        }
                    });
                })
            });
            assert_eq!(tally.came.load(Relaxed), clients as u32, "{wait}");
            assert_eq!(tally.refused.load(Relaxed), 0);
        }
    }
}

/// Checks several threads, each of which has a machine and devices of its own.
#[test]
fn several_threads_share_the_clients() {
    let mut hub = Hub::new(Wait::Block);
    hub.options.threads = 2;
    let tally = with_boards(4, |addresses| {
        hub.serve(addresses, |hub, _, _| {
            std::thread::scope(|scope| {
                for client in 0..6 {
                    scope.spawn(move || exchange(hub, client, 4, 60, 4));
                }
            });
        })
    });
    assert_eq!(tally.came.load(Relaxed), 6);
}

#[test]
fn clients_come_and_go_and_their_places_are_used_again() {
    for wait in WAITS {
        let tally = with_boards(2, |addresses| {
            Hub::new(wait).serve(addresses, |hub, tally, _| {
                std::thread::scope(|scope| {
                    for client in 0..3 {
                        scope.spawn(move || (0..15).for_each(|_| exchange(hub, client, 2, 3, 2)));
                    }
                });
                until("all are seen to leave", || tally.left.load(Relaxed) == 45);
            })
        });
        assert_eq!(tally.came.load(Relaxed), 45);
    }
}

#[test]
fn a_board_that_is_absent_is_refused_and_can_come_later() {
    for wait in WAITS {
        with_boards(1, |present| {
            let absent = board();
            let address = absent.local_addr().expect("it is bound");
            drop(absent);
            let tally = Hub::new(wait).serve(&[address, present[0]], |hub, _, _| {
                let mut client = Client::connect(hub);
                for number in 0..20 {
                    client.ask(0, &[number]);
                    client.ask(1, &[number]);
                    let mut answers = [client.answer().0, client.answer().0];
                    answers.sort_unstable();
                    assert_eq!(answers, [0, 1]);
                }
                client.ask(0, b"still away");
                assert_eq!(client.answer(), (0, None));
                let back = std::net::UdpSocket::bind(address).expect("nobody else has taken the port");
                client.ask(0, b"here");
                let mut buffer = [0; 16];
                let (length, from) = back.recv_from(&mut buffer).expect("the hub asks");
                back.send_to(&buffer[..length], from).expect("loopback takes it");
                assert_eq!(client.answer(), (0, Some(&b"here"[..])));
            });
            assert!(tally.refused.load(Relaxed) > 0);
        });
    }
}

#[test]
fn a_client_that_does_not_read_holds_back_nobody_else() {
    for wait in WAITS {
        let tally = with_boards(2, |addresses| {
            Hub::new(wait).serve(addresses, |hub, tally, _| {
                let (payload, asked) = ([7; PAYLOAD_MAX], AtomicU32::new(0));
                let mut silent = Client::connect(hub);
                let mut writer = silent.twin();
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while tally.blocked.load(Relaxed) == 0 {
                            writer.ask(0, &payload);
                            asked.fetch_add(1, Relaxed);
                        }
                    });
                    exchange(hub, 1, 2, 200, 4);
                });
                for _ in 0..asked.load(Relaxed) {
                    assert_eq!(silent.answer(), (0, Some(&payload[..])));
                }
                until("what was kept has gone out", || tally.drained.load(Relaxed) == tally.blocked.load(Relaxed));
            })
        });
        assert!(tally.blocked.load(Relaxed) > 0);
    }
}

#[test]
fn what_is_under_way_is_answered_before_the_end_and_nobody_new_is_taken() {
    for (wait, threads) in WAITS.map(|wait| (wait, 1)).into_iter().chain([(Wait::Block, 2)]) {
        let slow = board();
        let address = slow.local_addr().expect("it is bound");
        let mut hub = Hub::new(wait);
        hub.options.threads = threads;
        hub.serve(&[address], |hub, _, stop| {
            let mut client = Client::connect(hub);
            client.ask(0, b"last");
            let mut buffer = [0; 16];
            let (length, from) = slow.recv_from(&mut buffer).expect("the hub asks");
            stop.store(true, Relaxed);
            until("the hub listens no more", || TcpStream::connect(hub).is_err());
            slow.send_to(&buffer[..length], from).expect("loopback takes it");
            assert_eq!(client.answer(), (0, Some(&b"last"[..])));
        });
    }
}

#[test]
fn a_board_that_never_answers_holds_up_the_end_for_so_long_only() {
    let mute = board();
    let address = mute.local_addr().expect("it is bound");
    let mut hub = Hub::new(Wait::Block);
    hub.drain = Duration::from_millis(50);
    hub.serve(&[address], |hub, _, _| {
        let mut client = Client::connect(hub);
        client.ask(0, b"?");
        mute.recv_from(&mut [0; 16]).expect("the hub asks");
    });
}

#[test]
fn a_client_that_is_closed_and_never_reads_does_not_keep_its_place() {
    for wait in WAITS {
        let mut hub = Hub::new(wait);
        hub.options.settings.peers_max = 1;
        hub.options.settings.close_within = Duration::from_millis(100);
        hub.cuts = true;
        let tally = with_boards(1, |addresses| {
            hub.serve(addresses, |hub, tally, _| {
                let mut silent = Client::connect(hub);
                while silent.try_to_ask(0, &[7; PAYLOAD_MAX]).is_ok() {}
                until("the next is taken", || {
                    // One that finds no room is closed at once.
                    drop(TcpStream::connect(hub));
                    tally.came.load(Relaxed) > 1
                });
            })
        });
        assert_eq!(tally.drained.load(Relaxed), 0);
    }
}
