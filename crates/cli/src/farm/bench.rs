//! `hodo farm bench`: how fast is a farm on this machine?

mod nodes;
mod options;
mod queue;
mod shape;
mod table;
mod watch;

use crate::bench::{Outputs, Progress, Recorder};
use crate::{Error, Outcome, interrupt, terminal};
use hodo_catalog::farm::controller::{Command, Event, Pace};
use hodo_catalog::farm::emulation::Generator;
use hodo_catalog::farm::{Controller, ControllerConfig, Ledger, Ranges};
use hodo_daemon::Snapshot;
use hodo_farm_host::controller::{ControllerSnapshot, snapshot};
use hodo_farm_host::report::process_cpu;
use hodo_io::usage::{MachineTime, ProcessUsage};
use hodo_io::{Attendant, Stop, StreamServer};
use hodo_machine::{Address, Instant};
use hodo_measure::{Binding, Cpu, Histogram, Limit, Loss, Measurement, Rate, Run, State, Until, Verdict, statistics};
use hodo_tester::Observer;
use nodes::Nodes;
pub use options::BenchOptions;
use queue::{Queue, Supplied};
use shape::{Flow, Shape};
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

/// Measures a farm whose nodes are started here.
pub fn run(asked: &BenchOptions) -> Result<Outcome, Error> {
    hodo_tester::check_congestion(asked.congestion.as_deref())?;
    let shapes: Vec<Shape> = asked.nodes.iter().map(|nodes| Shape::of(asked, *nodes)).collect();
    let Some(shape) = shapes.first() else { return Err(Error::Usage("--nodes: no number".to_owned())) };
    if shape.flow == Flow::Poured && asked.time != "0" {
        return Err(Error::Usage("--time: the nodes of lhcb-v3 do not decide".to_owned()));
    }
    if shape.rate.is_some() && !matches!(shape.flow, Flow::Queued { .. }) {
        return Err(Error::Usage("--rate: only lhcb-v1 has a generator of its own; add --preset lhcb-v1".to_owned()));
    }
    if shape.size > u64::from(hodo_catalog::farm::wire::LENGTH_MAX) {
        return Err(Error::Usage(format!("--size {}: an event has 268435455 bytes at most", shape.size)));
    }
    let outputs = Outputs::prepare(&asked.output, None)?;
    let stdout_is_taken = outputs.take_stdout();
    let stop = interrupt::flag()?;
    let mut document = hodo_tester::document(option_env!("HODO_COMMIT"), std::env::args().skip(1).collect());
    let environment = &mut document.environment;
    if shape.congestion.is_some() {
        environment.congestion_control.clone_from(&shape.congestion);
    }
    hodo_tester::environment::add_placement(environment, &shape.placement());
    let progress = Progress::new(crate::args::Progress::Plain, true, shapes.len());
    let recorder = Recorder::new(&progress, outputs);
    let until = asked.events.map_or(Until::Elapsed(Duration::from_secs_f64(asked.seconds.max(0.1))), Until::Count);
    for shape in &shapes {
        let (mut found, rest) = measure(asked, shape, until, &stop)?;
        found.limit =
            shape.floor().ok().map(|per_s| Limit::of_baseline(per_s, None, shape.size as f64, Binding::Unknown));
        let limit = found.limit.as_ref().and_then(|limit| limit.operations_per_s);
        found.share_of_limit = limit.map(|limit| found.rate.operations_per_s.median / limit);
        let nodes = table::nodes(&found);
        document.measurements.push(found);
        recorder.added(&document);
        if !asked.quiet && shapes.len() == 1 {
            let table = hodo_report::table(&document.measurements, terminal::style(stdout_is_taken));
            terminal::tell(&format!("\n{table}\n{nodes}{rest}"), stdout_is_taken)?;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if !asked.quiet && shapes.len() > 1 {
        let table = hodo_report::table(&document.measurements, terminal::style(stdout_is_taken));
        terminal::tell(&format!("\n{table}"), stdout_is_taken)?;
    }
    recorder.finish(&document)
}

/// Runs the farm, and watches it; what the document has no place for is told as text.
fn measure(
    asked: &BenchOptions,
    shape: &Shape,
    until: Until,
    stop: &Arc<AtomicBool>,
) -> Result<(Measurement, String), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("the controller cannot serve: {error}"));
    let server = StreamServer::bind(&Address::Socket(SocketAddr::from(([127, 0, 0, 1], 0))), shape.serve_options())
        .map_err(failed)?;
    let Address::Socket(at) = *server.address() else {
        return Err(Error::Failed("the controller has no address".to_owned()));
    };
    let seen: Vec<Arc<Snapshot<ControllerSnapshot>>> = (0..shape.threads).map(|_| Arc::default()).collect();
    let (end, pace) = (Stop::new(false), Pace::of(shape.threads));
    let over = Arc::new(AtomicBool::new(false));
    let queue = matches!(shape.flow, Flow::Queued { .. }).then(Arc::<Queue>::default);
    let make = |index: usize, _| {
        let config = ControllerConfig { policy: asked.policy.into(), ..shape.controller(&pace, index) };
        let supply = match &queue {
            Some(queue) => Supplied::Queue(Arc::clone(queue)),
            None => Supplied::Made(Box::new(Generator::new(shape.generator(index as u64), Ranges::default()))),
        };
        let (seen, over) = (Arc::clone(&seen[index]), Arc::clone(&over));
        (
            Controller::new(config, supply, Ledger::default()),
            Attending { seen, over, queue: queue.clone(), paused: false },
        )
    };
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.attend(Duration::ZERO, make, &end));
        let found = Nodes::start(shape, at).and_then(|mut nodes| {
            meet(shape, &seen, stop)?;
            if let Some(queue) = &queue {
                let generator = nodes.start_generator(shape)?;
                let (queue, end) = (Arc::clone(queue), &end);
                scope.spawn(move || queue::fill(&queue, shape, generator, end));
            }
            let (found, rest) = watch(asked, shape, until, &seen, &nodes, stop)?;
            if shape.flow != Flow::Poured {
                return Ok((found, rest));
            }
            over.store(true, Ordering::Relaxed);
            settle(&seen, stop).map(|reported| (found, rest + &reported))
        });
        end.store(true, Ordering::Relaxed);
        let served = serving.join().expect("the controller does not panic");
        served.map_err(failed).and(found)
    })
}

/// Waits until all nodes are there.
fn meet(shape: &Shape, seen: &[Arc<Snapshot<ControllerSnapshot>>], stop: &AtomicBool) -> Result<(), Error> {
    wait(seen, stop, |now| {
        let present = now.counters.nodes;
        if present >= u64::from(shape.nodes) {
            Ok(())
        } else {
            Err(format!("{present} of {} nodes have come", shape.nodes))
        }
    })
}

/// Waits until the nodes have reported all that they were given; answers with a line about it.
fn settle(seen: &[Arc<Snapshot<ControllerSnapshot>>], stop: &AtomicBool) -> Result<String, Error> {
    wait(seen, stop, |now| {
        let reported: u64 = now.nodes.iter().map(|node| node.answered).sum();
        let given = now.counters.given;
        if reported == given {
            Ok(format!("the nodes report {reported} events since they came: all that they were given\n"))
        } else {
            Err(format!("the nodes report {reported} of the {given} events they were given"))
        }
    })
}

/// Waits until the farm is so, at most as long as nodes may take to come; else it has failed for this reason.
fn wait<T>(
    seen: &[Arc<Snapshot<ControllerSnapshot>>],
    stop: &AtomicBool,
    is_so: impl Fn(&ControllerSnapshot) -> Result<T, String>,
) -> Result<T, Error> {
    let begun = std::time::Instant::now();
    loop {
        match is_so(&look(seen)?) {
            Ok(so) => return Ok(so),
            Err(why) if begun.elapsed() >= MEETING || stop.load(Ordering::Relaxed) => return Err(Error::Failed(why)),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// What all threads have seen, together.
fn look(threads: &[Arc<Snapshot<ControllerSnapshot>>]) -> Result<ControllerSnapshot, Error> {
    snapshot(threads).ok_or_else(|| Error::Failed("the controller is stuck".to_owned()))
}

/// Warms up, counts.
fn watch(
    asked: &BenchOptions,
    shape: &Shape,
    until: Until,
    seen: &[Arc<Snapshot<ControllerSnapshot>>],
    nodes: &Nodes,
    stop: &AtomicBool,
) -> Result<(Measurement, String), Error> {
    std::thread::sleep(shape.warm_up());
    let start = look(seen)?;
    let (ours, theirs, machine) = (ProcessUsage::of_process(), nodes.usage(), MachineTime::until_now());
    let mut watched = Watched::from(shape.flow, start);
    loop {
        std::thread::sleep(LOOK);
        watched.look(look(seen)?);
        let is_over = match until {
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
    let (ours, theirs) = (ProcessUsage::of_process().since(&ours), nodes.usage().since(&theirs));
    let busy = MachineTime::until_now().zip(machine).and_then(|(now, then)| now.since(&then).busy_percent());
    let events = watched.events();
    let per_event = |usage: &ProcessUsage| Some(usage.cpu_s() * 1e9 / events as f64);
    let cpu = if events == 0 {
        Cpu::default()
    } else {
        Cpu {
            machine_percent: busy,
            busiest_percent: None,
            local: Some(process_cpu(&ours, elapsed_s)),
            remote: Some(process_cpu(&theirs, elapsed_s)),
            local_ns_per_operation: per_event(&ours),
            remote_ns_per_operation: per_event(&theirs),
        }
    };
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
        cpu,
        tcp: None,
        loss: Loss::default(),
        stages: Vec::new(),
        nodes: watched.nodes(),
        verdict: verdict(&watched, stop),
        intervals: watched.intervals(),
        error: None,
    };
    // Several numbers of nodes are rows of one table.
    let several = asked.nodes.len() > 1;
    let link = if several { "farm://127.0.0.1".to_owned() } else { format!("farm://127.0.0.1?nodes={}", shape.nodes) };
    let found = run.into_measurement("farm", &link, &shape.plan(until, MEETING));
    let rest = match shape.flow {
        Flow::Queued { bytes_max } => table::queue(&watched, shape.size, bytes_max),
        Flow::Asked | Flow::Poured => String::new(),
    };
    Ok((Measurement { fairness: watched.fairness(), ..found }, rest))
}

fn verdict(watched: &Watched, stop: &AtomicBool) -> Verdict {
    let mut verdict = hodo_measure::verdict(&watched.intervals());
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
        let _ = write!(verdict.text, "; {lost} nodes lost, {redispatched} events given again");
    }
    verdict
}

struct Attending {
    seen: Arc<Snapshot<ControllerSnapshot>>,
    /// No more events are to be given; the nodes are asked what they had.
    over: Arc<AtomicBool>,
    /// Where its events come from, in the study's version 1.
    queue: Option<Arc<Queue>>,
    paused: bool,
}

impl Attendant for Attending {
    type Machine = Controller<Supplied>;

    #[inline]
    fn told(&mut self, _: Event) -> Option<Command> {
        None
    }

    fn look_in(&mut self, now: Instant, controller: &Controller<Supplied>) -> Option<Command> {
        self.seen.offer(|| {
            let mut seen = ControllerSnapshot::of(now, controller);
            if let Some(queue) = &self.queue {
                (seen.counters.events_waiting, seen.counters.waited_for_token) = queue.counts();
            }
            seen
        });
        if !self.over.load(Ordering::Relaxed) {
            return None;
        }
        Some(if std::mem::replace(&mut self.paused, true) { Command::Report } else { Command::Pause })
    }
}
