//! Measures reliable connections through shared memory beside the plain floor: one flag and one copy each way.
//!
//! It starts its far end as a process of its own; each end polls on a processor of its own. Run it on a quiet host:
//!
//!     cargo run --release -p hodo-roce-host --example shm_pingpong

use hodo_io::shared_memory::{Channel, ChannelListener, ChannelSet, Received, SharedMemory};
use hodo_io::{Clock, affinity};
use hodo_machine::{Instant, Wait};
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};
use hodo_roce_host::{
    AddressOfQueuePair, Device, Gid, Limits, Region, Reliability, SharedMemoryDevice, SharedMemorySettings,
};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

const SIZES: [usize; 4] = [64, 1024, 4096, 16 << 10];
const ROUNDS: usize = 200;
const ITERATIONS: u32 = 2_000;
const BLOCKING_ITERATIONS: u32 = 20;
const LARGEST: usize = 64 << 10;
const MESSAGES: u64 = 500;
/// Receives that are posted ahead.
const DEPTH: u32 = 128;
/// The time after which an end that nothing reaches gives up.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    match std::env::args().nth(1) {
        Some(path) => {
            pin(1);
            let stdin = std::io::stdin();
            let mut end = End::connect(&mut stdin.lock(), &mut std::io::stdout());
            let floor = Floor::take(&path);
            schedule(&mut end, &floor, Side::Server);
        }
        None => {
            let path = format!("@hodo-shm-pingpong-{}", std::process::id());
            let listener = ChannelListener::bind(&path).expect("a new name");
            let mut far = Command::new(std::env::current_exe().expect("this program"))
                .arg(&path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("this program runs");
            // Afterwards: the far end would inherit it.
            pin(0);
            let (mut to, from) = (far.stdin.take().expect("piped"), far.stdout.take().expect("piped"));
            let mut end = End::connect(&mut BufReader::new(from), &mut to);
            let floor = Floor::offer(&listener);
            schedule(&mut end, &floor, Side::Client).print();
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// Figures of all rounds, by name.
#[derive(Default)]
struct Figures(Vec<(String, &'static str, Vec<f64>)>);

impl Figures {
    fn add(&mut self, name: String, unit: &'static str, figure: f64) {
        match self.0.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., figures)) => figures.push(figure),
            None => self.0.push((name, unit, vec![figure])),
        }
    }

    fn print(mut self) {
        println!("{:<28}{:>10}{:>10}{:>10}", "", "min", "median", "max");
        for (name, unit, figures) in &mut self.0 {
            figures.sort_by(f64::total_cmp);
            let (last, middle) = (figures[figures.len() - 1], figures[figures.len() / 2]);
            println!("{name:<28}{:>10.3}{middle:>10.3}{last:>10.3}  {unit}", figures[0]);
        }
    }
}

/// Measures everything, the backend and the floor in turns. Both ends do the same steps.
fn schedule(end: &mut End, floor: &Floor, side: Side) -> Figures {
    let mut figures = Figures::default();
    let each = |seconds: f64, count: u32| seconds * 1e6 / f64::from(count);
    let rate = |seconds: f64| MESSAGES as f64 * LARGEST as f64 * 8.0 / seconds / 1e9;
    for _ in 0..ROUNDS {
        for size in SIZES {
            let took = end.ping_pong(side, size, ITERATIONS, Wait::Spin);
            figures.add(format!("ping-pong {size} B"), "us", each(took, ITERATIONS));
            let took = floor.ping_pong(side, size, end);
            figures.add(format!("floor {size} B"), "us", each(took, ITERATIONS));
        }
        let took = end.ping_pong(side, 64, BLOCKING_ITERATIONS, Wait::Block);
        figures.add("ping-pong 64 B, sleeping".into(), "us", each(took, BLOCKING_ITERATIONS));
        figures.add("send 64 KiB".into(), "Gbit/s", rate(end.stream(side, Operation::Send)));
        figures.add("write 64 KiB".into(), "Gbit/s", rate(end.stream(side, Operation::Write(end.remote))));
        figures.add("copy 64 KiB (floor)".into(), "Gbit/s", rate(floor.stream(side, end)));
    }
    figures
}

/// One end of the connection.
struct End {
    device: SharedMemoryDevice,
    number: u32,
    region: Region,
    remote: Remote,
    completions: Vec<Completion>,
    posted: u32,
}

impl End {
    /// Opens a device, and exchanges addresses as lines of text.
    fn connect(from: &mut dyn BufRead, to: &mut dyn Write) -> End {
        let mut device =
            SharedMemoryDevice::open(SharedMemorySettings::default(), Clock::start()).expect("shared memory");
        let region = device.register(2 * LARGEST, Access::ALL).expect("a little memory");
        let limits =
            Limits { send_depth: 16, receive_depth: DEPTH, send_entries: 1, receive_entries: 1, inline_bytes: 0 };
        let local = device.create(&limits).expect("a queue pair");
        let AddressOfQueuePair { number, psn, gid, .. } = local;
        let words = [u64::from(number), u64::from(psn), region.address, u64::from(region.remote_key)];
        writeln!(to, "{} {} {} {} {}", gid.address(), words[0], words[1], words[2], words[3]).expect("an open pipe");
        to.flush().expect("an open pipe");
        let mut line = String::new();
        from.read_line(&mut line).expect("an open pipe");
        let mut words = line.split_whitespace();
        let gid = Gid::of(words.next().and_then(|word| word.parse().ok()).expect("an address"));
        let mut next = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
        let remote = AddressOfQueuePair { lid: 0, number: next() as u32, psn: next() as u32, gid };
        let target = Remote { address: next(), key: next() as u32 };
        device.connect(&local, &remote, &Reliability::default()).expect("the far end is there");
        let mut end = End { device, number, region, remote: target, completions: Vec::with_capacity(256), posted: 0 };
        end.post_receives();
        end
    }

    fn post_receives(&mut self) {
        let entry = ScatterEntry {
            address: self.region.address + LARGEST as u64,
            length: LARGEST as u32,
            key: self.region.local_key,
        };
        while self.posted < DEPTH {
            self.device.post_receive(self.number, &ReceiveRequest { id: 1, entries: &[entry] }).expect("room");
            self.posted += 1;
        }
    }

    #[inline]
    fn post(&mut self, operation: Operation, size: usize) {
        let entry = ScatterEntry { address: self.region.address, length: size as u32, key: self.region.local_key };
        self.device.post_send(self.number, &SendRequest::new(2, operation, &[entry])).expect("room");
    }

    /// Waits for completions, and returns how many of sends and of receives there were.
    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant) -> (u64, u64) {
        self.completions.clear();
        self.device.poll(wait, until, &mut self.completions).expect("the device works");
        assert!(!self.completions.is_empty(), "nothing completes");
        assert!(self.completions.iter().all(|completion| completion.status == Status::Success));
        let received = self.completions.iter().filter(|completion| completion.kind.is_receive()).count();
        self.posted -= received as u32;
        if self.posted <= DEPTH / 2 {
            self.post_receives();
        }
        ((self.completions.len() - received) as u64, received as u64)
    }

    /// Exchanges messages as `ibv_rc_pingpong` does. Returns seconds.
    fn ping_pong(&mut self, side: Side, size: usize, count: u32, wait: Wait) -> f64 {
        let began = self.device.now();
        let until = began + PATIENCE;
        let (mut sent, mut received) = (0, 0);
        let mut posted = u64::from(side == Side::Client);
        if side == Side::Client {
            self.post(Operation::Send, size);
        }
        while received < u64::from(count) || sent < u64::from(count) {
            let (sends, receives) = self.poll(wait, until);
            (sent, received) = (sent + sends, received + receives);
            let due = received + u64::from(side == Side::Client);
            if posted < due.min(u64::from(count)) && sent == posted {
                self.post(Operation::Send, size);
                posted += 1;
            }
        }
        (self.device.now() - began).as_secs_f64()
    }

    /// Sends many large messages one way, and waits for a word from the far end. Returns seconds.
    fn stream(&mut self, side: Side, operation: Operation) -> f64 {
        let began = self.device.now();
        let until = began + PATIENCE;
        let (mut sent, mut received) = (0, 0);
        if side == Side::Client {
            for _ in 0..MESSAGES {
                self.post(operation, LARGEST);
                while sent == 0 {
                    sent = self.poll(Wait::Spin, until).0;
                }
                sent = 0;
            }
            self.post(Operation::Send, 0);
            while sent < 1 || received < 1 {
                let (sends, receives) = self.poll(Wait::Spin, until);
                (sent, received) = (sent + sends, received + receives);
            }
        } else {
            let expected = if operation == Operation::Send { MESSAGES + 1 } else { 1 };
            while received < expected {
                received += self.poll(Wait::Spin, until).1;
            }
            self.post(Operation::Send, 0);
            while sent < 1 {
                sent = self.poll(Wait::Spin, until).0;
            }
        }
        (self.device.now() - began).as_secs_f64()
    }
}

/// Memory of both ends with nothing around it: a flag and a buffer for each direction.
struct Floor {
    memory: SharedMemory,
    source: SharedMemory,
}

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

    fn take(path: &str) -> Floor {
        let channel = Channel::connect(path).expect("the other process listens");
        let mut set = ChannelSet::new().expect("a set");
        set.add(&channel, 0).expect("a channel");
        set.wait(Some(PATIENCE)).expect("a wait");
        let mut files = Vec::new();
        let received = channel.receive(&mut [0; 16], &mut files).expect("an open channel");
        assert_eq!(received, Received::Message(5));
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

    fn ping_pong(&self, side: Side, size: usize, end: &End) -> f64 {
        let began = end.device.now();
        for number in 1..=ITERATIONS {
            if side == Side::Client {
                self.send(0, size, number);
                self.receive(1, number);
            } else {
                self.receive(0, number);
                self.send(1, size, number);
            }
        }
        self.finish(side, end)(began)
    }

    fn stream(&self, side: Side, end: &End) -> f64 {
        let began = end.device.now();
        if side == Side::Client {
            (0..MESSAGES).for_each(|_| self.source.copy_to(0, &self.memory, BUFFERS[0], LARGEST).expect("in bounds"));
            self.send(0, 0, 1);
            self.receive(1, 1);
        } else {
            self.receive(0, 1);
            self.send(1, 0, 1);
        }
        self.finish(side, end)(began)
    }

    /// Takes the time, and lowers the flags again, in step with the far end.
    fn finish<'a>(&'a self, side: Side, end: &'a End) -> impl Fn(Instant) -> f64 + 'a {
        let now = end.device.now();
        if side == Side::Client {
            self.send(0, 0, 0);
            self.receive(1, 0);
        } else {
            self.receive(0, 0);
            self.send(1, 0, 0);
        }
        move |began| (now - began).as_secs_f64()
    }
}
