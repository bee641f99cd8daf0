//! A benchmark of a farm on this machine: a controller in this process, and nodes that are started as processes.

mod nodes;
mod queue;
mod settings;
mod shape;
mod table;
mod watch;

pub use settings::{BenchSettings, Preset};
pub use shape::Shape;

use hodo_farm::controller::{Command, Event, Pace};
use hodo_farm::emulation::Generator;
use hodo_farm::wire::LENGTH_MAX;
use hodo_farm::{Controller, ControllerConfig, Ledger, Ranges};
use hodo_farm_host::Error;
use hodo_farm_host::controller::{ControllerSnapshot, snapshot};
use hodo_io::usage::{MachineTime, Usage};
use hodo_io::{Attendant, Clock, Server, Snapshot, Stop, sleep};
use hodo_machine::{Address, Instant};
use hodo_measure::{
    Binding, Cpu, Histogram, Measurement, ProcessCpu, Rate, State, Until, Verdict, stalls_between, statistics,
};
use nodes::Nodes;
use queue::{Queue, Supplied};
use shape::Flow;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;
use watch::Watched;

/// How often the controller is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the nodes may take to connect.
const MEETING: Duration = Duration::from_secs(20);

/// Returns the farms that are measured: one for each number of nodes.
///
/// # Errors
/// [`Error::Settings`] if the settings do not go together.
pub fn shapes(settings: &BenchSettings) -> Result<Vec<Shape>, Error> {
    let wrong = |why: String| Err(Error::Settings(why));
    let shapes: Vec<Shape> = settings.nodes.iter().map(|nodes| Shape::of(settings, *nodes)).collect();
    let Some(shape) = shapes.first() else { return wrong("--nodes: the number is missing".to_owned()) };
    if shape.flow == Flow::Poured && settings.time != "0" {
        return wrong("--time: the nodes of lhcb-v3 do not decide".to_owned());
    }
    if shape.rate.is_some() && !matches!(shape.flow, Flow::Queued { .. }) {
        return wrong("--rate: only lhcb-v1 has a generator of its own; add --preset lhcb-v1".to_owned());
    }
    if shape.size > u64::from(LENGTH_MAX) {
        return wrong(format!("--size {}: an event has at most {LENGTH_MAX} bytes", shape.size));
    }
    Ok(shapes)
}

/// Measures one farm. Results that have no place in a document are returned as text.
///
/// # Errors
/// [`Error::Run`] if the controller cannot serve, or nodes cannot be started; [`Error::TimedOut`] if they do not connect.
pub fn measure(
    settings: &BenchSettings,
    shape: &Shape,
    stop: &Arc<AtomicBool>,
) -> Result<(Measurement, String), Error> {
    let (mut found, rest) = run(settings, shape, stop)?;
    let plain_loop = shape.plain_loop().ok();
    found.set_limit(plain_loop.as_ref().map(|plain_loop| plain_loop.as_limit(Binding::Unknown)), plain_loop);
    let nodes = table::nodes(&found);
    Ok((found, nodes + &rest))
}

/// Runs the farm, and watches it.
fn run(settings: &BenchSettings, shape: &Shape, stop: &Arc<AtomicBool>) -> Result<(Measurement, String), Error> {
    let failed = |why: std::io::Error| Error::run("the controller cannot serve", &why);
    let server =
        Server::bind(&Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))), shape.serve_options()).map_err(failed)?;
    let Address::Tcp(at) = *server.address() else {
        return Err(stuck());
    };
    let snapshots: Vec<Arc<Snapshot<ControllerSnapshot>>> = (0..shape.threads).map(|_| Arc::default()).collect();
    let (end, pace) = (Stop::new(false), Pace::of(shape.threads));
    let over = Arc::new(AtomicBool::new(false));
    let queue = matches!(shape.flow, Flow::Queued { .. }).then(Arc::<Queue>::default);
    let make = |index: usize, _| {
        let config = ControllerConfig { policy: settings.policy, ..shape.controller(&pace, index) };
        let supply = match &queue {
            Some(queue) => Supplied::Queue(Arc::clone(queue)),
            None => Supplied::Made(Box::new(Generator::new(shape.generator(index as u64), Ranges::default()))),
        };
        let (snapshots, over) = (Arc::clone(&snapshots[index]), Arc::clone(&over));
        (
            Controller::new(config, supply, Ledger::default()),
            BenchThread { snapshots, over, queue: queue.clone(), paused: false },
        )
    };
    std::thread::scope(|scope| {
        let serving = Builder::new().spawn_scoped(scope, || server.attend_woken(make, &end)).map_err(failed)?;
        let found = Nodes::start(shape, at).and_then(|mut nodes| {
            meet(shape, &snapshots, stop)?;
            if let Some(queue) = &queue {
                let generator = nodes.start_generator(shape)?;
                let (queue, end) = (Arc::clone(queue), &end);
                let fill = move || queue::fill(&queue, shape, generator, end);
                Builder::new().spawn_scoped(scope, fill).map_err(failed)?;
            }
            let (found, rest) = watch(settings, shape, &snapshots, &nodes, stop)?;
            if shape.flow != Flow::Poured {
                return Ok((found, rest));
            }
            over.store(true, Ordering::Relaxed);
            settle(&snapshots, stop).map(|reported| (found, rest + &reported))
        });
        end.store(true, Ordering::Relaxed);
        let served = serving.join().expect("the controller does not panic");
        served.map_err(failed).and(found)
    })
}

/// Waits until all nodes are connected.
fn meet(shape: &Shape, snapshots: &[Arc<Snapshot<ControllerSnapshot>>], stop: &AtomicBool) -> Result<(), Error> {
    wait(snapshots, stop, |now| {
        let present = now.counters.nodes;
        if present >= u64::from(shape.nodes) {
            Ok(())
        } else {
            Err(format!("only {present} of {} nodes have connected", shape.nodes))
        }
    })
}

/// Waits until the nodes have reported all events that were dispatched to them. Returns a line about it.
fn settle(snapshots: &[Arc<Snapshot<ControllerSnapshot>>], stop: &AtomicBool) -> Result<String, Error> {
    wait(snapshots, stop, |now| {
        let reported: u64 = now.nodes.iter().map(|node| node.answered).sum();
        let given = now.counters.given;
        if reported == given {
            Ok(format!("the nodes report {reported} events since they connected: all that were sent to them\n"))
        } else {
            Err(format!("the nodes report {reported} of the {given} events that were sent to them"))
        }
    })
}

/// Waits until `is_so` succeeds, at most as long as nodes may take to connect; its last error is the reason of the failure.
fn wait<T>(
    snapshots: &[Arc<Snapshot<ControllerSnapshot>>],
    stop: &AtomicBool,
    is_so: impl Fn(&ControllerSnapshot) -> Result<T, String>,
) -> Result<T, Error> {
    let clock = Clock::start();
    loop {
        match is_so(&look(snapshots)?) {
            Ok(so) => return Ok(so),
            Err(why) if clock.now() >= Instant::ZERO + MEETING || stop.load(Ordering::Relaxed) => {
                return Err(Error::TimedOut(why));
            }
            Err(_) => sleep(LOOK),
        }
    }
}

/// Returns the snapshots of all threads added up.
fn look(threads: &[Arc<Snapshot<ControllerSnapshot>>]) -> Result<ControllerSnapshot, Error> {
    snapshot(threads).ok_or_else(stuck)
}

/// Makes the error of a controller that does not answer.
fn stuck() -> Error {
    Error::TimedOut("the controller does not respond".to_owned())
}

/// Warms up, then counts.
fn watch(
    settings: &BenchSettings,
    shape: &Shape,
    snapshots: &[Arc<Snapshot<ControllerSnapshot>>],
    nodes: &Nodes,
    stop: &AtomicBool,
) -> Result<(Measurement, String), Error> {
    sleep(shape.warm_up());
    let start = look(snapshots)?;
    let (ours, theirs, machine) = (Usage::of_process(), nodes.usage(), MachineTime::until_now());
    let mut watched = Watched::from(shape.flow, start);
    loop {
        sleep(LOOK);
        watched.look(look(snapshots)?);
        let is_over = match settings.until {
            Until::Count(count) => watched.events() >= count,
            Until::Elapsed(span) => watched.elapsed_s() >= span.as_secs_f64(),
        };
        let is_full = match shape.flow {
            Flow::Queued { bytes_max } => watched.waiting() * shape.size >= bytes_max,
            Flow::Asked | Flow::Poured => false,
        };
        if is_over || is_full || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let elapsed_s = watched.elapsed_s().max(1e-9);
    let (ours, theirs) = (Usage::of_process().since(&ours), nodes.usage().since(&theirs));
    let busy = MachineTime::until_now().zip(machine).and_then(|(now, then)| now.since(&then).busy_percent());
    let events = watched.events();
    let sides = [ours, theirs].map(|usage| Some(ProcessCpu::of(&usage, elapsed_s)).filter(|_| events > 0));
    let cpu = Cpu { machine_percent: busy.filter(|_| events > 0), ..Cpu::of_sides(sides[0], sides[1], events) };
    let rate = |amount: f64| statistics::estimate(&[amount / elapsed_s], 95.0);
    // Several numbers of nodes are rows of one table.
    let several = settings.nodes.len() > 1;
    let link = if several { "farm://127.0.0.1".to_owned() } else { format!("farm://127.0.0.1?nodes={}", shape.nodes) };
    let (nodes, intervals) = (watched.nodes(), watched.intervals());
    let found = Measurement {
        operations: events,
        payload_bytes: watched.bytes(),
        elapsed_s,
        repeats: 1,
        rate: Rate {
            operations_per_s: rate(events as f64),
            payload_bits_per_s: rate(events as f64 * shape.size as f64 * 8.0),
        },
        latency_ns: Histogram::from(&watched.answers()).latency(),
        cpu,
        nodes,
        stalls: stalls_between(&intervals),
        intervals,
        fairness: watched.fairness(),
        ..shape.plan(settings.until, MEETING).unmeasured("farm", &link, verdict(&watched, stop))
    };
    let rest = match shape.flow {
        Flow::Queued { bytes_max } => table::queue(&watched, shape.size, bytes_max),
        Flow::Asked | Flow::Poured => String::new(),
    };
    Ok((found, rest))
}

fn verdict(watched: &Watched, stop: &AtomicBool) -> Verdict {
    let intervals = watched.intervals();
    let stalled = hodo_measure::stalled(&stalls_between(&intervals), watched.elapsed_s());
    let mut verdict = stalled.unwrap_or_else(|| hodo_measure::verdict(&intervals));
    if stop.load(Ordering::Relaxed) {
        verdict = Verdict { state: State::Interrupted, text: "interrupted".to_owned() };
    } else if watched.events() == 0 {
        let text = "failed: no event was answered in the counted time".to_owned();
        return Verdict { state: State::Failed, text };
    }
    if let Some(fairness) = watched.fairness() {
        let _ = write!(verdict.text, "; {}", fairness.text());
    }
    let (redispatched, lost) = watched.troubles();
    if lost > 0 || redispatched > 0 {
        let _ = write!(verdict.text, "; {lost} nodes lost, {redispatched} events dispatched again");
    }
    verdict
}

/// One thread of the measured controller.
struct BenchThread {
    snapshots: Arc<Snapshot<ControllerSnapshot>>,
    /// No more events are to be given; the nodes are asked what they had.
    over: Arc<AtomicBool>,
    /// Where its events come from, in the study's version 1.
    queue: Option<Arc<Queue>>,
    paused: bool,
}

impl Attendant for BenchThread {
    type Machine = Controller<Supplied>;

    #[inline]
    fn told(&mut self, _: Event) -> Option<Command> {
        None
    }

    fn look_in(&mut self, now: Instant, controller: &Controller<Supplied>) -> Option<Command> {
        self.snapshots.offer(|| {
            let mut snapshots = ControllerSnapshot::of(now, controller);
            if let Some(queue) = &self.queue {
                (snapshots.counters.events_waiting, snapshots.counters.waited_for_token) = queue.counts();
            }
            snapshots
        });
        if !self.over.load(Ordering::Relaxed) {
            return None;
        }
        Some(if std::mem::replace(&mut self.paused, true) { Command::Report } else { Command::Pause })
    }
}
