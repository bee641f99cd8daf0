//! Devices that lose packets, on real sockets: directly and through the hub everything is done once, in order, and what
//! is read is what was written.

use crate::plans;

use hodo_io::{Attendant, ServeOptions, Server, SocketSettings};
use hodo_ipbus_host::hub::{AllowList, Hub, HubCommand, HubConfig, HubEvent};
use hodo_ipbus_host::{Access, Session, SessionSettings};
use hodo_machine::Address;
use plans::served::{Served, serve_settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Losses of requests and of replies, and the other faults of a network.
const FAULTS: &[&str] = &[
    "",
    "loss=0.001&seed=1",
    "loss=0.01&seed=2",
    "out.loss=0.05&seed=3",
    "back.loss=0.05&seed=4",
    "loss=0.1&seed=5",
    "duplicate=0.1&reorder=0.1&seed=6",
    "loss=0.01&duplicate=0.01&reorder=0.05&jitter=100us&seed=7",
    "wrong_id=0.02&seed=8",
    "wrong_id=0.02&loss=0.02&seed=9",
];
const COUNTER: u32 = 0x10;
const SUMS: u32 = 3_000;
const WORDS: u32 = 1 << 16;

struct Quiet;

impl Attendant for Quiet {
    type Machine = Hub;

    fn told(&mut self, _: HubEvent) -> Option<HubCommand> {
        None
    }
}

/// The hub, until it is dropped.
struct RunningHub {
    address: Address,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunningHub {
    fn start() -> RunningHub {
        let settings = SocketSettings::default();
        let options = ServeOptions { settings, ..ServeOptions::default() };
        let server = Server::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), options).expect("a free port");
        let server = server.with_drain(Duration::from_secs(1));
        let address = server.address().clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // A loaded machine may leave a board without a processor for longer than a network would.
        let mut config = HubConfig::default();
        config.window.patience = Duration::from_secs(20);
        let run = move || server.attend(|_| (Hub::new(config, AllowList::ALL), Quiet), &stopped).expect("the hub runs");
        RunningHub { address, stop, thread: Some(std::thread::spawn(run)) }
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was running").expect("the hub does not panic");
        }
    }
}

fn session(uri: &str) -> Session {
    let settings = SessionSettings { timeout: Duration::from_secs(20), ..SessionSettings::default() };
    Session::open(&uri.parse().expect("a URI of a device"), &settings).expect("a session")
}

/// Counts, so that what is done twice or not at all shows, and what is out of order; and a block of a quarter of a megabyte both ways.
fn is_whole(mut session: Session, what: &str) {
    let sums: Vec<_> = (0..SUMS).map(|_| session.queue(Access::rmw_sum(COUNTER, 1)).unwrap()).collect();
    session.dispatch().unwrap_or_else(|why| panic!("{what}: {why}"));
    for (due, sum) in (0..).zip(sums) {
        assert_eq!(session.take(sum), Ok(due), "{what}");
    }
    assert_eq!(session.call(Access::read(COUNTER)), Ok(SUMS), "{what}");
    let data: Vec<u32> = (0..WORDS).map(|word| word.wrapping_mul(0x9E37_79B9)).collect();
    session.call(Access::write_block(0x1000, data.clone())).unwrap_or_else(|why| panic!("{what}: {why}"));
    let back = session.call(Access::read_block(0x1000, WORDS)).unwrap_or_else(|why| panic!("{what}: {why}"));
    assert!(back == data, "{what}: what is read is what was written");
}

fn device(faults: &str) -> Served {
    Served::at(&plans::uri(&format!("ipbusudp-2.0://127.0.0.1:0?{faults}")), &serve_settings())
}

#[test]
fn over_datagrams_whatever_is_lost() {
    for faults in FAULTS {
        is_whole(session(&device(faults).uri.to_string()), faults);
    }
}

#[test]
fn through_the_hub_whatever_is_lost() {
    let hub = RunningHub::start();
    for faults in FAULTS {
        let device = device(faults);
        let uri = format!("chtcp-2.0://{}?target={}", hub.address, device.uri.authority);
        is_whole(session(&uri), &format!("hub, {faults}"));
    }
}
