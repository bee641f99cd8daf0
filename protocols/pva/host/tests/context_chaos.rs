//! One context of many threads, over sockets, while its server is killed, comes back, stands still and answers late: every call returns in
//! the time that it has, monitors go on, and memory stays bounded.

use hodo_io::Clock;
use hodo_pva_host::client::ClientOptions;
use hodo_pva_host::context::ConnectionState;
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::{Item, Request, Scalar, Value};
use hodo_pva_host::server::{Call, Server, ServerOptions};
use hodo_pva_host::{Context, ContextOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(300);
/// A put may be two executions, and other programs take the processor.
const LONGEST: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_secs(30);
const PORT: &str = "HODO_CHAOS_PORT";
const ROUNDS: u32 = 3;
/// Threads of each kind.
const EACH: usize = 3;
/// The memory that the process may hold more after the chaos.
const GROWTH_MAX: u64 = 64 << 20;

fn double() -> Value {
    Value::of(Normative::scalar(Scalar::F64).build())
}

fn number(value: &Value) -> f64 {
    value.get("value").and_then(Item::as_f64).unwrap()
}

/// The server of the chaos, in a process of its own: this program again, which passes at once if nobody asks for the server.
#[test]
fn serves_if_the_chaos_asks() {
    let Ok(port) = std::env::var(PORT) else { return };
    // It ends with the process that has started it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let at = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
    let server = Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(at)).unwrap();
    let _set = server.pv("SET", double()).accept_puts().serve();
    let calls = AtomicU64::new(0);
    let late = move |call: Call| {
        let is_late = calls.fetch_add(1, Ordering::Relaxed) % 3 == 2;
        std::thread::spawn(move || {
            hodo_io::sleep(if is_late { 2 * TIMEOUT } else { Duration::ZERO });
            let argument = call.argument.as_deref().cloned();
            call.reply(argument);
        });
    };
    let _late = server.pv("LATE", double()).on_call(late).serve();
    let count = server.pv("COUNT", double()).serve();
    writeln!(std::io::stdout(), "listening on {}", server.address()).unwrap();
    for to in 0_i64.. {
        count.update(|value| value.set("value", to)).unwrap();
        hodo_io::sleep(Duration::from_millis(5));
    }
}

struct Process {
    child: Child,
    at: SocketAddr,
}

impl Process {
    fn start(port: u16) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serves_if_the_chaos_asks", "--nocapture"])
            .env(PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = lines.find_map(|line| line.unwrap().split_once("listening on ")?.1.parse().ok());
        Process { child, at: at.expect("the server says where it listens") }
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The outcomes of all threads so far.
#[derive(Default)]
struct Tally {
    is_over: AtomicBool,
    done: [AtomicU64; 3],
    failed: [AtomicU64; 3],
    updates: AtomicU64,
    connected: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    fn wait_for_success(&self, what: &str) {
        let [gets, puts, calls] = &self.done;
        wait_for_rise(what, &[gets, puts, calls, &self.updates], 5);
    }

    fn wait_for_errors(&self, what: &str) {
        wait_for_rise(what, &self.failed.each_ref(), EACH as u64 + 1);
    }
}

/// Waits until each of these has risen by as many.
fn wait_for_rise(what: &str, counts: &[&AtomicU64], by: u64) {
    let clock = Clock::start();
    let began = clock.now();
    let before: Vec<u64> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let has_risen = || counts.iter().zip(&before).all(|(count, before)| count.load(Ordering::Relaxed) >= before + by);
    while !has_risen() {
        assert!(clock.now() - began < SOON, "{what}: not within {SOON:?}");
        hodo_io::sleep(Duration::from_millis(2));
    }
}

/// Makes one kind of call until the chaos is over; each returns in time.
fn calls(context: &Context, tally: &Tally, kind: usize) {
    let clock = Clock::start();
    let mut last = 0;
    while !tally.is_over.load(Ordering::Relaxed) {
        let began = clock.now();
        last += 1;
        let outcome = match kind {
            0 => context.get("COUNT").map(|value| assert!(number(&value) >= 0.0)),
            1 => context.put("SET", |value| value.set("value", last)),
            _ => {
                let mut argument = double();
                argument.set("value", last).unwrap();
                // A reply that came late is never taken for that of a later call.
                context.call("LATE", Some(argument)).map(|reply| assert_eq!(number(&reply.unwrap()), f64::from(last)))
            }
        };
        let took = clock.now() - began;
        assert!(took < LONGEST, "kind {kind} took {took:?}: {outcome:?}");
        let counts = if outcome.is_ok() { &tally.done } else { &tally.failed };
        counts[kind].fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes updates until the chaos is over: never an end, and never one that waits longer than it is asked to.
fn takes(context: &Context, tally: &Tally) {
    let clock = Clock::start();
    let mut monitor = context.monitor("COUNT", &Request::default()).unwrap();
    while !tally.is_over.load(Ordering::Relaxed) {
        let began = clock.now();
        let update = monitor.next_update(TIMEOUT).expect("a monitor outlives its server");
        assert!(clock.now() - began < LONGEST);
        tally.updates.fetch_add(u64::from(update.is_some()), Ordering::Relaxed);
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Kills the server, starts it again, and has it stand still; each time until every kind of call has met it.
fn torment(tally: &Tally, mut process: Process) {
    for _ in 0..ROUNDS {
        tally.wait_for_success("all is well");
        process.signal("-STOP");
        tally.wait_for_errors("the server stands still");
        process.signal("-CONT");
        tally.wait_for_success("it goes on");
        let (connected, lost) = (&tally.connected, &tally.lost);
        let [before, lost_before] = [connected, lost].map(|count| count.load(Ordering::Relaxed));
        let at = process.at;
        drop(process);
        tally.wait_for_errors("the server is dead");
        process = Process::start(at.port());
        tally.wait_for_success("it is back");
        assert!(lost.load(Ordering::Relaxed) > lost_before, "the loss is told");
        assert!(connected.load(Ordering::Relaxed) > before, "the return is told");
    }
}

#[test]
fn every_call_of_every_thread_returns_in_time_whatever_becomes_of_the_server() {
    let process = Process::start(0);
    let client = ClientOptions { server: Some(process.at.to_string()), timeout: TIMEOUT, ..ClientOptions::default() };
    let context = Context::open(&ContextOptions::of(client)).unwrap();
    let tally = std::sync::Arc::new(Tally::default());
    let told = std::sync::Arc::clone(&tally);
    let watch = context
        .watch("COUNT", move |state| {
            let count = if matches!(state, ConnectionState::Connected(_)) { &told.connected } else { &told.lost };
            count.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    // A monitor that nobody takes from holds no more than its queue.
    let untaken = context.monitor("COUNT", &Request::default()).unwrap();
    let before = std::thread::scope(|scope| {
        for at in 0..4 * EACH {
            let (context, tally) = (context.clone(), &tally);
            scope.spawn(move || if at < 3 * EACH { calls(&context, tally, at % 3) } else { takes(&context, tally) });
        }
        tally.wait_for_success("it begins");
        let before = resident_bytes();
        let torment = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| torment(&tally, process)));
        tally.is_over.store(true, Ordering::Relaxed);
        torment.unwrap_or_else(|why| std::panic::resume_unwind(why));
        before
    });
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes");
    let (tell, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop((watch, untaken, context));
        tell.send(()).unwrap();
    });
    ended.recv_timeout(SOON).expect("it ends when the last of it is dropped");
}
