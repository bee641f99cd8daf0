//! `hodo farm bench`: how fast is a farm on this machine?

mod nodes;
mod watch;

use super::pages;
use super::reading::Node;
use super::seen::Seen;
use super::shares::evenness;
use super::storing::Stored;
use crate::args::{FarmBench, Preset, units::Cpus};
use crate::bench::{Outputs, Recorder};
use crate::{Error, Outcome, congestion, environment, interrupt, terminal};
use hodo_catalog::farm::controller::{Command, Event, Pace};
use hodo_catalog::farm::emulation::{Generator, GeneratorConfig, Spread};
use hodo_catalog::farm::{Controller, ControllerConfig, Ledger, Ranges};
use hodo_daemon::Snapshot;
use hodo_io::floor::{Exchange, Floor, Kind};
use hodo_io::usage::{MachineTime, ProcessUsage};
use hodo_io::{Attendant, ServeOptions, SocketSettings, Stop, StreamServer};
use hodo_machine::{Address, Instant, Wait};
use hodo_measure::{
    Binding, Cpu, Histogram, Limit, Loss, Measurement, Mode, Plan, ProcessCpu, Rate, Repeats, Run, Size, State, Test,
    Until, Verdict, statistics,
};
use nodes::Nodes;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use watch::Watched;

/// How often the controller is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the nodes may take to come.
const MEETING: Duration = Duration::from_secs(20);
/// What goes ahead of the counted time.
const WARM_UP: Duration = Duration::from_millis(500);
/// From one thread's events to the next thread's.
const PART: u64 = 1 << 48;

/// The farm that is measured.
pub struct Shape {
    pub nodes: u32,
    pub credits: u32,
    size: u64,
    pool: u32,
    pub every: u64,
    pub token_data: u64,
    pub time: String,
    threads: usize,
    ahead: u64,
    /// Processors that threads and nodes share in turn; empty: wherever the kernel puts them.
    cpus: Vec<usize>,
    pub wait: Wait,
    pub congestion: Option<String>,
    pub socket_buffer: Option<usize>,
}

impl Shape {
    fn of(asked: &FarmBench) -> Shape {
        let is_study = asked.preset == Some(Preset::LhcbV2);
        let allowed = hodo_io::affinity::allowed_cpus().unwrap_or_default();
        let online = asked.cpu.as_ref().map_or(allowed, |Cpus(cpus)| cpus.clone());
        let threads = asked.threads.map_or(if is_study { 1 } else { online.len().clamp(1, 2) }, usize::from);
        Shape {
            nodes: asked.nodes,
            credits: asked.credits.unwrap_or(if is_study { 1 } else { 2 }),
            size: asked.size.unwrap_or(if is_study { 32_000 } else { 32 << 10 }),
            pool: asked.pool,
            every: asked.every,
            token_data: asked.token_data,
            time: asked.time.clone(),
            ahead: asked.ahead.unwrap_or(if is_study { 0 } else { 64 }),
            // A thread and its nodes on one processor: an event, its token and its node then share a cache.
            cpus: if threads > 1 { online.into_iter().take(threads).collect() } else { Vec::new() },
            threads,
            wait: asked.wait,
            congestion: asked.congestion.clone(),
            socket_buffer: asked.socket_buffer,
        }
    }

    /// The processor of a node or a thread.
    pub fn cpu_of(&self, index: usize) -> Option<usize> {
        self.cpus.get(index % self.cpus.len().max(1)).copied()
    }

    fn settings(&self) -> SocketSettings {
        SocketSettings {
            congestion: self.congestion.clone(),
            socket_buffer: self.socket_buffer,
            peers_max: self.nodes as usize + 16,
            at_once: super::AT_ONCE,
            together: super::TOGETHER,
            ..SocketSettings::default()
        }
    }

    fn plan(&self, until: Until) -> Plan {
        Plan {
            test: Test::Channels,
            mode: Mode::Send,
            size: Size::Fixed(self.size as u32),
            window: self.credits,
            channels: self.nodes,
            batch: 1,
            rate: None,
            until,
            warmup: WARM_UP,
            repeats: Repeats::Fixed(1),
            wait: self.wait,
            seed: 1,
            stages: false,
            stall: MEETING,
        }
    }
}

/// Measures a farm whose nodes are started here.
pub fn run(asked: &FarmBench) -> Result<Outcome, Error> {
    congestion::check(asked.congestion.as_deref())?;
    let shape = Shape::of(asked);
    if shape.size > u64::from(hodo_catalog::farm::wire::LENGTH_MAX) {
        return Err(Error::Usage(format!("--size {}: an event has 268435455 bytes at most", shape.size)));
    }
    let outputs = Outputs::prepare(&asked.output, None)?;
    let stdout_is_taken = outputs.take_stdout();
    let stop = interrupt::flag()?;
    let mut environment = environment::of_host(std::env::args().skip(1).collect());
    if shape.congestion.is_some() {
        environment.congestion_control.clone_from(&shape.congestion);
    }
    environment::add_placement(&mut environment, &placement(&shape));
    let mut recorder = Recorder::new(environment, outputs);
    let until = asked.events.map_or(Until::Elapsed(Duration::from_secs_f64(asked.seconds.max(0.1))), Until::Count);
    let mut found = measure(asked, &shape, until, &stop)?;
    found.limit = floor(&shape).ok().map(|per_s| Limit::of_floor(per_s, None, shape.size as f64, Binding::Cpu));
    let limit = found.limit.as_ref().and_then(|limit| limit.operations_per_s);
    found.share_of_limit = limit.map(|limit| found.rate.operations_per_s.median / limit);
    let shares = shares(&found);
    recorder.add(found);
    if !asked.quiet {
        let table = hodo_report::table(recorder.measurements(), terminal::style(stdout_is_taken));
        terminal::tell(&format!("\n{table}\n{shares}"), stdout_is_taken)?;
    }
    recorder.finish()
}

fn placement(shape: &Shape) -> String {
    match shape.cpus.as_slice() {
        [] => "wherever the kernel puts them".to_owned(),
        cpus => format!("each thread of the controller with its nodes on one of the processors {cpus:?}"),
    }
}

/// What bare sockets do: streams of messages of this size that nobody answers.
fn floor(shape: &Shape) -> std::io::Result<f64> {
    let cpus = match shape.cpus.as_slice() {
        [] => vec![(None, None)],
        cpus => cpus.iter().map(|cpu| (Some(*cpu), Some(*cpu))).collect(),
    };
    let size = shape.size as usize + hodo_catalog::farm::wire::HEADER;
    let floor =
        Floor { kind: Kind::Tcp, exchange: Exchange::OneWay, size, wait: shape.wait, cpus, settings: shape.settings() };
    floor.measure().map(|found| found.messages_per_s)
}

/// Runs the farm, and watches it.
fn measure(asked: &FarmBench, shape: &Shape, until: Until, stop: &Arc<AtomicBool>) -> Result<Measurement, Error> {
    let options =
        ServeOptions { threads: shape.threads, cpus: shape.cpus.clone(), wait: shape.wait, settings: shape.settings() };
    let failed = |error: std::io::Error| Error::Failed(format!("the controller cannot serve: {error}"));
    let server =
        StreamServer::bind(&Address::Socket(SocketAddr::from(([127, 0, 0, 1], 0))), options).map_err(failed)?;
    let Address::Socket(at) = *server.address() else {
        return Err(Error::Failed("the controller has no address".to_owned()));
    };
    let seen: Vec<Arc<Snapshot<Seen>>> = (0..shape.threads).map(|_| Arc::default()).collect();
    let (end, pace) = (Stop::new(false), Pace::of(shape.threads));
    let make = |index: usize, _| {
        let config = ControllerConfig {
            policy: asked.policy.into(),
            credits_max: shape.credits,
            event_max: (shape.size.max(shape.token_data) as u32).max(1),
            sources_max: 0,
            nodes_max: shape.nodes,
            ahead_max: (shape.ahead > 0).then_some(shape.ahead),
            pace: Some((Arc::clone(&pace), index)),
            ..ControllerConfig::default()
        };
        let generator = Generator::new(generator(shape, index as u64), Ranges::default());
        (Controller::new(config, generator, Ledger::default()), Attending { seen: Arc::clone(&seen[index]) })
    };
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.attend(Duration::ZERO, make, &end));
        let found = Nodes::start(shape, at).and_then(|nodes| {
            let found = watch(shape, until, &seen, &nodes, stop);
            drop(nodes);
            found
        });
        end.store(true, Ordering::Relaxed);
        let served = serving.join().expect("the controller does not panic");
        served.map_err(failed).and(found)
    })
}

fn generator(shape: &Shape, index: u64) -> GeneratorConfig {
    GeneratorConfig {
        first: index * PART,
        step: 1,
        count: None,
        size: Spread::Fixed(shape.size),
        rate: None,
        poisson: false,
        pool: shape.pool as usize,
        numbered: false,
        seed: 1 + index,
    }
}

/// What all threads have seen, together.
fn look(threads: &[Arc<Snapshot<Seen>>]) -> Result<Seen, Error> {
    pages::look(threads).ok_or_else(|| Error::Failed("the controller is stuck".to_owned()))
}

/// Waits for the nodes, warms up, counts.
fn watch(
    shape: &Shape,
    until: Until,
    seen: &[Arc<Snapshot<Seen>>],
    nodes: &Nodes,
    stop: &AtomicBool,
) -> Result<Measurement, Error> {
    let begun = std::time::Instant::now();
    loop {
        let present = look(seen)?.counters.nodes;
        if present >= u64::from(shape.nodes) {
            break;
        }
        if begun.elapsed() >= MEETING || stop.load(Ordering::Relaxed) {
            return Err(Error::Failed(format!("{present} of {} nodes have come", shape.nodes)));
        }
        std::thread::sleep(LOOK);
    }
    std::thread::sleep(WARM_UP);
    let start = look(seen)?;
    let (ours, theirs, machine) = (ProcessUsage::of_process(), nodes.usage(), MachineTime::until_now());
    let mut watched = Watched::from(start);
    loop {
        std::thread::sleep(LOOK);
        watched.look(look(seen)?);
        let is_over = match until {
            Until::Count(count) => watched.events() >= count,
            Until::Elapsed(span) => watched.elapsed_s() >= span.as_secs_f64(),
        };
        if is_over || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let elapsed_s = watched.elapsed_s().max(1e-9);
    let (ours, theirs) = (ProcessUsage::of_process().since(&ours), nodes.usage().since(&theirs));
    let busy = MachineTime::until_now().zip(machine).and_then(|(now, then)| now.since(&then).busy_percent());
    let events = watched.events();
    let per_event = |usage: &ProcessUsage| Some(usage.cpu_s() * 1e9 / (events as f64).max(1.0));
    let rate = |amount: f64| statistics::estimate(&[amount / elapsed_s], 95.0);
    let run = Run {
        operations: events,
        payload_bytes: watched.bytes(),
        elapsed_s,
        repeats: 1,
        rate: Rate {
            operations_per_s: rate(events as f64),
            payload_bits_per_s: rate(events as f64 * shape.size as f64 * 8.0),
        },
        latency: Histogram::from(&watched.answers()).latency(),
        cpu: Cpu {
            machine_percent: busy,
            local: Some(process_cpu(&ours, elapsed_s)),
            remote: Some(process_cpu(&theirs, elapsed_s)),
            local_ns_per_operation: per_event(&ours),
            remote_ns_per_operation: per_event(&theirs),
        },
        loss: Loss::default(),
        stages: Vec::new(),
        verdict: verdict(&watched, stop),
        intervals: watched.intervals().to_vec(),
        error: None,
    };
    let link = format!("farm://127.0.0.1?nodes={}", shape.nodes);
    let found = run.into_measurement("farm", &link, &shape.plan(until));
    Ok(Measurement { nodes: watched.nodes(), fairness: watched.fairness(), ..found })
}

fn verdict(watched: &Watched, stop: &AtomicBool) -> Verdict {
    let mut verdict = hodo_measure::verdict(watched.intervals());
    if stop.load(Ordering::Relaxed) {
        verdict = Verdict { state: State::Interrupted, text: "interrupted".to_owned() };
    }
    if let Some(fairness) = watched.fairness() {
        let _ = write!(verdict.text, "; shares of nodes {:.3} least over most", fairness.min_over_max);
    }
    let (redispatched, lost) = watched.troubles();
    if lost > 0 || redispatched > 0 {
        let _ = write!(verdict.text, "; {lost} nodes lost, {redispatched} events given again");
    }
    verdict
}

/// What a process has used in so many seconds, as documents have it.
pub fn process_cpu(usage: &ProcessUsage, elapsed_s: f64) -> ProcessCpu {
    ProcessCpu {
        percent: usage.cpu_s() / elapsed_s * 100.0,
        user_s: usage.user_s,
        system_s: usage.system_s,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        max_rss_bytes: usage.max_rss_bytes,
    }
}

/// The table of the nodes, as the study prints it.
fn shares(found: &Measurement) -> String {
    let mut text = String::from("node      events    events/s   share\n");
    let most = found.nodes.iter().map(|node| node.events).max().unwrap_or(0).max(1);
    for node in &found.nodes {
        let per_s = node.events as f64 / found.elapsed_s;
        let _ = writeln!(
            text,
            "{:>4} {:>11} {per_s:>11.0} {:>7.3}",
            node.number,
            node.events,
            node.events as f64 / most as f64
        );
    }
    let nodes = found.nodes.iter().map(|node| Node { given: node.events, ..Node::default() });
    let _ = writeln!(text, "{}", evenness(&nodes.collect::<Vec<_>>()));
    if let Some((window_s, worst)) =
        found.fairness.and_then(|fairness| Some((fairness.window_s, fairness.worst_window?)))
    {
        let _ = writeln!(text, "min/max of the worst {window_s:.0} s: {worst:.4}");
    }
    let cpu = |ns: Option<f64>| ns.unwrap_or(0.0) / 1000.0;
    let (here, there) = (cpu(found.cpu.local_ns_per_operation), cpu(found.cpu.remote_ns_per_operation));
    let _ = writeln!(text, "CPU of an event: controller {here:.2} us, nodes {there:.2} us");
    text
}

struct Attending {
    seen: Arc<Snapshot<Seen>>,
}

impl Attendant for Attending {
    type Machine = Controller<Generator>;

    #[inline]
    fn told(&mut self, _: Event) -> Option<Command> {
        None
    }

    fn look_in(&mut self, now: Instant, controller: &Controller<Generator>) -> Option<Command> {
        self.seen.offer(|| Seen::of(now, controller, Stored::default()));
        None
    }
}
