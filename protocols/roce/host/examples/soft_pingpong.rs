//! Measures ping-pongs of two software adapters over loopback, each on a processor of its own.
//!
//!     cargo run --release -p hodo-roce-host --example soft_pingpong

use hodo_io::{Clock, affinity};
use hodo_roce_host::pingpong::{End, PingPong, Side};
use hodo_roce_host::{AddressOfQueuePair, Reliability, SoftDevice, SoftSettings, WaitMode};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

fn main() {
    let wait = match std::env::args().nth(1).as_deref() {
        Some("events") => WaitMode::Events,
        Some("spin") => WaitMode::SpinThenBlock(Duration::from_micros(50)),
        _ => WaitMode::Poll,
    };
    let only: Option<u32> = std::env::args().nth(2).and_then(|size| size.parse().ok());
    for (size, mtu) in [(64, 1024), (4096, 1024), (4096, 4096), (16_384, 1024), (16_384, 4096), (65_536, 4096)] {
        if only.is_some_and(|only| only != size) {
            continue;
        }
        let iterations = std::env::args().nth(3).and_then(|count| count.parse().ok()).unwrap_or(50_000);
        let parameters = PingPong { size, iterations, wait, patience: Duration::from_secs(5), ..PingPong::default() };
        let (to_server, from_client) = channel();
        let (to_client, from_server) = channel();
        let other = parameters.clone();
        let server = std::thread::spawn(move || run(Side::Server, &other, mtu, &to_client, &from_client));
        let us = run(Side::Client, &parameters, mtu, &to_server, &from_server);
        server.join().expect("the server has ended");
        println!("{size:6} B mtu {mtu:4}: {us:6.2} us/iter");
    }
}

fn run(
    side: Side,
    parameters: &PingPong,
    mtu: u32,
    to: &Sender<AddressOfQueuePair>,
    from: &Receiver<AddressOfQueuePair>,
) -> f64 {
    affinity::pin_thread(usize::from(side == Side::Client)).expect("two processors");
    let address = if side == Side::Client { [127, 0, 0, 2] } else { [127, 0, 0, 1] };
    let mut device = SoftDevice::open(SoftSettings::at(address.into()), Clock::start()).expect("port 4791 is free");
    let mut end = End::new(&mut device, parameters).expect("a queue pair");
    to.send(*end.local()).expect("the other side is there");
    let remote = from.recv().expect("the other side is there");
    end.connect(&remote, &Reliability { mtu, ..Reliability::default() }).expect("connected");
    to.send(*end.local()).expect("the other side is there");
    from.recv().expect("the other side is there");
    let took = end.run(side);
    if let Err(error) = &took {
        eprintln!("{side:?} {error} {:?}", end.device().counters());
    }
    let took = took.expect("all messages come");
    end.linger(Duration::from_millis(200)).expect("the socket is there");
    drop(end);
    if std::env::var("COUNTERS").is_ok() {
        eprintln!("{side:?} {:?}", device.counters());
    }
    took.span.as_secs_f64() * 1e6 / took.iterations as f64
}
