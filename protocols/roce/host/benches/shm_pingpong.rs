//! Measures ping-pongs through shared memory, in turns with the plain floor: one flag and one copy each way.
//!
//! It starts its far end as a process of its own; each end polls on a processor of its own. Figures are full round trips, as
//! `ibv_rc_pingpong` prints them. Run it on a quiet host:
//!
//!     cargo bench -p hodo-roce-host --bench shm_pingpong [-- ROUNDS]

use hodo_io::shared_memory::{Channel, ChannelListener, ChannelSet, SharedMemory};
use hodo_io::{Clock, affinity};
use hodo_roce_host::WaitMode;
use hodo_roce_host::pingpong::{PingPong, Side};
use hodo_roce_host::session::{Backend, Session, listen};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

const SIZES: [u32; 6] = [64, 1024, 4096, 16 << 10, 64 << 10, 1 << 20];
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of each direction in a measurement.
const BYTES: u64 = 256 << 20;

fn main() {
    // Cargo adds a word of its own.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let rounds = words.next().map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    match words.next() {
        Some(name) => {
            pin(1);
            let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).expect("a free port");
            println!("{}", listener.local_addr().expect("it listens").port());
            schedule(rounds, &End::Server(listener), &Floor::take(&name));
        }
        None => {
            let name = format!("@hodo-shm-pingpong-{}", std::process::id());
            let listener = ChannelListener::bind(&name).expect("a new name");
            let mut far = Command::new(std::env::current_exe().expect("this program"))
                .args([&rounds.to_string(), &name])
                .stdout(Stdio::piped())
                .spawn()
                .expect("this program runs");
            // Afterwards: the far end would inherit it.
            pin(0);
            let mut line = String::new();
            BufReader::new(far.stdout.take().expect("piped")).read_line(&mut line).expect("it tells its port");
            let port = line.trim().parse().expect("a port");
            print(schedule(rounds, &End::Client(port), &Floor::offer(&listener)));
            far.wait().expect("it ends");
        }
    }
}

/// Pins this process to one of its processors.
fn pin(index: usize) {
    let cpus = affinity::allowed_cpus().expect("the processors of this process");
    assert!(cpus.len() > 1, "both ends poll: they need two processors");
    affinity::pin_thread(cpus[index]).expect("a processor");
}

/// Figures of all rounds in microseconds, by size: the ping-pong, the floor, and the ping-pong that sleeps.
type Figures = Vec<[Vec<f64>; 3]>;

/// Measures everything. Both ends do the same steps.
fn schedule(rounds: usize, end: &End, floor: &Floor) -> Figures {
    let mut figures = vec![<[Vec<f64>; 3]>::default(); SIZES.len()];
    for _ in 0..rounds {
        for (size, figures) in SIZES.into_iter().zip(&mut figures) {
            let iterations = (BYTES / u64::from(size)).min(20_000);
            figures[0].push(end.ping_pong(size, iterations, WaitMode::Poll));
            figures[1].push(floor.ping_pong(end.side(), size as usize, iterations as u32));
            figures[2].push(end.ping_pong(size, 50, WaitMode::Events));
        }
    }
    figures
}

fn print(figures: Figures) {
    println!(
        "us/iteration  polling: min   median    floor: min   median   events: min   median   polling, min: Gbit/s"
    );
    for (size, mut figures) in SIZES.into_iter().zip(figures) {
        figures.iter_mut().for_each(|figures| figures.sort_by(f64::total_cmp));
        let [polled, floor, events] = figures.map(|figures| (figures[0], figures[figures.len() / 2]));
        let rate = f64::from(size) * 16.0 / polled.0 / 1e3;
        println!(
            "{size:>8} B {:>14.3} {:>8.3} {:>13.3} {:>8.3} {:>13.1} {:>8.1} {rate:>23.1}",
            polled.0, polled.1, floor.0, floor.1, events.0, events.1
        );
    }
}

/// One end of the sessions.
enum End {
    Client(u16),
    Server(TcpListener),
}

impl End {
    const fn side(&self) -> Side {
        match self {
            End::Client(_) => Side::Client,
            End::Server(_) => Side::Server,
        }
    }

    /// Exchanges messages in a new session. Returns microseconds per round trip.
    fn ping_pong(&self, size: u32, iterations: u64, wait: WaitMode) -> f64 {
        let parameters = PingPong { size, iterations, wait, patience: PATIENCE, ..PingPong::default() };
        let session = Session { connect_within: PATIENCE, ..Session::new(Backend::SharedMemory, parameters) };
        let took = match self {
            End::Client(port) => session.client("127.0.0.1", *port, &mut |_| {}),
            End::Server(listener) => session.server(listener, &mut |_| {}),
        };
        took.expect("all messages come").expect("it is a ping-pong").span.as_secs_f64() * 1e6 / iterations as f64
    }
}

/// Memory of both ends with nothing around it: a flag and a buffer for each direction.
struct Floor {
    memory: SharedMemory,
    source: SharedMemory,
}

const LARGEST: usize = SIZES[SIZES.len() - 1] as usize;
const FLAGS: [usize; 2] = [0, 128];
const BUFFERS: [usize; 2] = [4096, 4096 + LARGEST];
const FLOOR_BYTES: usize = 4096 + 2 * LARGEST;

impl Floor {
    fn with(memory: SharedMemory) -> Floor {
        Floor { memory, source: SharedMemory::create("hodo-floor", LARGEST).expect("a little memory") }
    }

    fn offer(listener: &ChannelListener) -> Floor {
        let memory = SharedMemory::create("hodo-floor", FLOOR_BYTES).expect("a little memory");
        let mut set = ChannelSet::new().expect("a set");
        set.add_listener(listener, 0).expect("a listener");
        set.wait(Some(PATIENCE)).expect("a wait");
        let channel = listener.accept().expect("it listens").expect("the far end has come");
        assert!(channel.send(b"floor", &[memory.file().expect("created here")]).expect("an open channel"));
        Floor::with(memory)
    }

    fn take(name: &str) -> Floor {
        let channel = Channel::connect(name).expect("the other process listens");
        let mut set = ChannelSet::new().expect("a set");
        set.add(&channel, 0).expect("a channel");
        set.wait(Some(PATIENCE)).expect("a wait");
        let mut files = Vec::new();
        channel.receive(&mut [0; 16], &mut files).expect("an open channel");
        Floor::with(SharedMemory::map(&files[0], FLOOR_BYTES).expect("sealed memory"))
    }

    #[inline]
    fn send(&self, direction: usize, size: usize, number: u32) {
        self.source.copy_to(0, &self.memory, BUFFERS[direction], size).expect("in bounds");
        self.memory.word32(FLAGS[direction]).store(number, Release);
    }

    #[inline]
    fn receive(&self, direction: usize, number: u32) {
        while self.memory.word32(FLAGS[direction]).load(Acquire) != number {
            std::hint::spin_loop();
        }
    }

    /// Exchanges messages. Returns microseconds per round trip. The last one lowers the flags again.
    fn ping_pong(&self, side: Side, size: usize, iterations: u32) -> f64 {
        let clock = Clock::start();
        let began = clock.now();
        for number in (1..=iterations).chain([0]) {
            if side == Side::Client {
                self.send(0, size, number);
                self.receive(1, number);
            } else {
                self.receive(0, number);
                self.send(1, size, number);
            }
        }
        (clock.now() - began).as_secs_f64() * 1e6 / f64::from(iterations)
    }
}
