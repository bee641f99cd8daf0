//! Runs ping-pongs and every operation between two queue pairs of an adapter, and prints what the adapter cannot do.
//!
//!     cargo run --release -p hodo-roce-host --example verbs_pingpong -- [DEVICE [PORT [GID]]]

mod operations;

use hodo_io::{Clock, verbs};
use hodo_roce_host::pingpong::{End, PingPong, Side};
use hodo_roce_host::{AddressOfQueuePair, DeviceError, MemoryKind, Reliability, VerbsDevice, VerbsSettings, WaitMode};
use std::error::Error;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = with_itself(&arguments) {
        println!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn with_itself(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut settings = VerbsSettings { device: arguments.first().cloned(), ..VerbsSettings::default() };
    if let Some(port) = arguments.get(1) {
        settings.port = port.parse()?;
    }
    if let Some(gid) = arguments.get(2) {
        settings.gid = Some(gid.parse()?);
    }
    Ok(run(&settings)?)
}

fn run(settings: &VerbsSettings) -> Result<(), DeviceError> {
    let device = VerbsDevice::open(settings, Clock::start())?;
    println!("{}: {:?}", device.name(), device.facts());
    println!("{:?}", device.port());
    println!("GID {:?}", device.gid());
    let mtu = device.port().active_mtu;
    drop(device);
    absent(settings);
    operations::run(settings, mtu.min(1024))?;
    for wait in [WaitMode::Poll, WaitMode::Events, WaitMode::SpinThenBlock(Duration::from_micros(50))] {
        for size in [64, 1024, 4096, 65_536] {
            let us = ping_pong(settings, size, mtu, wait);
            println!("ping-pong {size:6} B, MTU {mtu}, {wait:?}: {us:9.2} us/iter, every byte checked");
        }
    }
    Ok(())
}

/// Prints what the device says to what it may not be able to do.
fn absent(settings: &VerbsSettings) {
    let other = |change: fn(&mut VerbsSettings)| {
        let mut other = settings.clone();
        change(&mut other);
        other
    };
    let kinds = [
        ("explicit ODP", other(|other| other.memory = MemoryKind::OnDemand { prefetch: false })),
        ("implicit ODP", other(|other| other.memory = MemoryKind::Implicit { prefetch: true })),
        ("device memory", other(|other| other.memory = MemoryKind::Device)),
        ("timestamps", other(|other| other.has_timestamps = true)),
        ("another device", other(|other| other.device = Some("mlx5_7".to_owned()))),
        ("port 9", other(|other| other.port = 9)),
        ("GID 200", other(|other| other.gid = Some(200))),
    ];
    for (what, settings) in kinds {
        match VerbsDevice::open(&settings, Clock::start()) {
            Ok(_) => println!("{what}: there"),
            Err(error) => println!("{what}: {error}"),
        }
    }
    match verbs::Library::open_named("libno-such-verbs.so.1") {
        Ok(_) => println!("another library: there"),
        Err(error) => println!("another library: {error}"),
    }
}

/// Exchanges messages between two threads, and returns the microseconds of an iteration. There are more than receives are posted at a
/// time, and fewer of the large ones, of which every byte takes its time in an emulated guest.
fn ping_pong(settings: &VerbsSettings, size: u32, mtu: u32, wait: WaitMode) -> f64 {
    let iterations = ((8 << 20) / u64::from(size)).clamp(128, 500);
    let parameters = PingPong { size, wait, iterations, receive_depth: 100, checks: true, ..PingPong::default() };
    let (to_server, from_client) = channel();
    let (to_client, from_server) = channel();
    let (other, device) = (parameters.clone(), settings.clone());
    let server = std::thread::spawn(move || side(Side::Server, &device, &other, mtu, &to_client, &from_client));
    let us = side(Side::Client, settings, &parameters, mtu, &to_server, &from_server);
    server.join().expect("the server has ended");
    us
}

fn side(
    side: Side,
    settings: &VerbsSettings,
    parameters: &PingPong,
    mtu: u32,
    to: &Sender<AddressOfQueuePair>,
    from: &Receiver<AddressOfQueuePair>,
) -> f64 {
    let mut device = VerbsDevice::open(settings, Clock::start()).expect("it was opened before");
    let mut end = End::new(&mut device, parameters).expect("a queue pair");
    to.send(*end.local()).expect("the other side is there");
    let remote = from.recv().expect("the other side is there");
    end.connect(&remote, &Reliability { mtu, ..Reliability::default() }).expect("connected");
    // The far end sends only when this one is connected.
    to.send(*end.local()).expect("the other side is there");
    from.recv().expect("the other side is there");
    let took = end.run(side).expect("all messages come");
    end.linger(Duration::ZERO).expect("adapters answer by themselves");
    // A queue pair that is gone acknowledges nothing.
    to.send(*end.local()).expect("the other side is there");
    from.recv().expect("the other side is there");
    took.span.as_secs_f64() * 1e6 / took.iterations as f64
}
