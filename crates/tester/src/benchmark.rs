//! A benchmark from URI to result.

use crate::placement::Placement;
use crate::steps::Steps;
use crate::{Choice, Content, Error, OtherFlow, Settings, Timing, Uri, environment, path, plan};
use hodo_io::{PathOptions, scheduling};
use hodo_machine::Wait;
use hodo_measure::units::cpus_text;
use hodo_measure::{Document, Measurement, Plan, SCHEMA, Snapshot, SnapshotSettings, Tool};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Descriptors that a process needs beside its channels: files, libraries, pollers.
const DESCRIPTORS_BESIDE: u64 = 64;

/// The least size of operations that take several packets; one that fits into a packet leaves by the clock of the run alone.
const SEVERAL_PACKETS: u32 = 1500;

/// A benchmark of one link.
///
/// ```no_run
/// # fn program(catalog: hodo_tester::Catalog) -> Result<(), hodo_tester::Error> {
/// let mut benchmark = hodo_tester::Benchmark::new(catalog.uri("tcp")?);
/// benchmark.choice.sizes = vec![64, 32 << 10];
/// for measurement in benchmark.measure()?.measurements {
///     println!("{} {:?}", measurement.test, measurement.rate.operations_per_s.median);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Benchmark {
    /// The link; one that names no far end has its far end started.
    pub link: Uri,
    /// The tests.
    pub choice: Choice,
    /// The timing of the measurements: duration, repeats and wait.
    pub timing: Timing,
    /// Where and under which settings it runs.
    pub conditions: Conditions,
    /// Another flow that runs at the same time.
    pub beside: Option<OtherFlow>,
}

/// Where and under which settings a benchmark runs.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Processors of both sides; `None` for all that are online, where the far end is started.
    pub cpus: Option<Vec<usize>>,
    /// TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// The marks of the packets, and the way on which they leave.
    pub path: PathOptions,
    /// Socket buffers in bytes; `None` leaves the system's, or what suits the protocol.
    pub socket_buffer: Option<usize>,
    /// Bits per second of the line, for the limit; `None` for the interface's.
    pub line_rate: Option<f64>,
    /// Bytes of the line's largest IP packet, for the limit; `None` for the interface's.
    pub mtu: Option<u32>,
    /// The address of the pages of a daemon between the two ends, which reports its stages there.
    pub pages: Option<SocketAddr>,
    /// Where a far end runs that is started.
    pub far_end: Host,
    /// The content of the operations.
    pub content: Content,
}

/// Where a far end runs that is started.
#[derive(Debug, Clone, Default)]
pub enum Host {
    /// In a thread of this process, whose CPU time then counts for both ends.
    #[default]
    Thread,
    /// In a process of this program, which is `hodo`.
    Program(PathBuf),
}

/// Follows a run.
pub trait Observer: Sync {
    /// Receives a remark on the whole run.
    fn say(&self, _text: &str) {}
    /// Receives the beginning of a step.
    fn begin(&self, _link: &Uri, _plan: &Plan) {}
    /// Receives the progress of the step.
    fn tick(&self, _progress: &hodo_measure::Progress) {}
    /// Returns how steps are followed by snapshots of their counters; `None` if they are not.
    fn snapshots(&self) -> Option<SnapshotSettings> {
        None
    }
    /// Receives a snapshot of the step's counters from a thread that measures, so it has to be quick and must not wait.
    fn snapshot(&self, _snapshot: Snapshot) {}
    /// Receives the end of a step.
    fn end(&self, _measurement: &Measurement) {}
    /// Receives the document after each step, so that it can be written: an interrupt or a failure then loses nothing.
    fn added(&self, _document: &Document) {}
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

impl Benchmark {
    /// Creates a benchmark of the protocol's suite, with the default timing.
    #[must_use]
    pub fn new(link: Uri) -> Benchmark {
        let timing = Timing::of(&link);
        Benchmark { link, choice: Choice::default(), timing, conditions: Conditions::default(), beside: None }
    }

    /// Returns the measurements to be run, one after the other; never none.
    ///
    /// # Errors
    /// [`Error::Usage`] if what is chosen does not fit together or the protocol.
    pub fn plans(&self) -> Result<Vec<Plan>, Error> {
        plan::plans(&self.link, &self.choice, &self.timing)
    }

    /// Checks that no two threads in real time poll on one processor, where neither would ever let the other run.
    fn check_polling(&self, plans: &[Plan], online: &[usize]) -> Result<(), Error> {
        let is_stuck = |plan: &&Plan| plan.wait == Wait::Spin && self.link.wants_far_end() && scheduling::is_realtime();
        let cpu = plans.iter().filter(is_stuck).find_map(|plan| self.placement(plan).shared(online));
        let Some(cpu) = cpu else { return Ok(()) };
        Err(Error::Usage(format!(
            "--realtime --wait spin: both ends would poll on processor {cpu}, and neither lets the other run; take one channel and --cpu with two processors, or --wait adaptive"
        )))
    }

    /// Checks that this machine has the processors, the congestion control and the descriptors that the plans need.
    ///
    /// # Errors
    /// [`Error::Usage`] if the machine lacks any, [`Error::Failed`] if it does not report them.
    pub fn check(&self, plans: &[Plan]) -> Result<(), Error> {
        let online = online_cpus();
        if let Some(cpus) = &self.conditions.cpus
            && let Some(cpu) = cpus.iter().find(|cpu| !online.is_empty() && !online.contains(cpu))
        {
            return Err(Error::Usage(format!("--cpu {cpu}: this process may run on {} only", cpus_text(&online))));
        }
        let channels = plans.iter().map(|plan| plan.channels).max().unwrap_or(1);
        let wanted = u64::from(channels) + DESCRIPTORS_BESIDE;
        let allowed = hodo_io::host::raise_descriptor_limit()
            .map_err(|why| Error::Failed(format!("the limit of open files cannot be read: {why}")))?;
        let has_many = !self.link.simulated && !self.link.protocol.description().shares_connections;
        if has_many && allowed < wanted {
            return Err(Error::Usage(format!(
                "--channels {channels}: that needs {wanted} open files, and this process may have {allowed}; raise the limit with `ulimit -n {wanted}` as root, or take 1..={}",
                allowed.saturating_sub(DESCRIPTORS_BESIDE)
            )));
        }
        self.check_polling(plans, &online)?;
        crate::congestion::check_congestion(self.conditions.congestion.as_deref())?;
        self.beside.as_ref().map_or(Ok(()), |other| other.check(self))?;
        if let Some(local) =
            self.conditions.path.local.as_ref().filter(|local| self.choice.reconnect && local.has_port())
        {
            return Err(Error::Usage(format!(
                "--bind {local}: with --reconnect each operation has a connection of its own, beside the one that greets the far end; leave the port out"
            )));
        }
        path::check_host(&self.link, &self.path(channels))?;
        path::resolved(&self.link, &self.conditions.path)?;
        self.check_simulation(plans)
    }

    /// Checks that a simulated link can be opened, which costs next to nothing.
    fn check_simulation(&self, plans: &[Plan]) -> Result<(), Error> {
        let Some(plan) = plans.first().filter(|_| self.link.simulated) else { return Ok(()) };
        let settings = self.settings(plan, &self.placement(plan));
        crate::open(&self.link, &settings, &AtomicBool::new(false)).map(drop)
    }

    /// Runs the benchmark and returns the document with its measurements.
    ///
    /// # Errors
    /// [`Error::Usage`] if the benchmark is not possible, [`Error::Failed`] if a measurement failed.
    pub fn measure(&self) -> Result<Document, Error> {
        let plans = self.plans()?;
        self.check(&plans)?;
        let mut document = document(None, std::env::args().collect());
        self.run(&plans, &mut document, &Unobserved, &AtomicBool::new(false))?;
        Ok(document)
    }

    /// Runs plans in turn, and adds each measurement to the document. The measurements are there also after an error,
    /// and after `stop` was set.
    ///
    /// # Errors
    /// [`Error::Usage`] if nothing can be measured so, [`Error::Failed`] if a measurement failed.
    pub fn run(
        &self,
        plans: &[Plan],
        document: &mut Document,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        Steps { benchmark: self, stop, observer, document }.run(plans)
    }

    /// Returns the number of rows and pairs of rows that are run for these plans.
    #[must_use]
    pub fn steps(&self, plans: &[Plan]) -> usize {
        plans.len() * if self.beside.as_ref().is_some_and(|other| other.is_compared) { 2 } else { 1 }
    }

    /// Returns the processors and buffers of both sides.
    pub(crate) fn placement(&self, plan: &Plan) -> Placement {
        // A round is of all channels, so one thread drives them.
        self.placement_of(plan, if plan.rounds { 1 } else { plan.channels })
    }

    /// Returns the processors and buffers of both sides for this many channels that run at the same time.
    pub(crate) fn placement_of(&self, plan: &Plan, channels: u32) -> Placement {
        let asked = self.conditions.cpus.as_deref();
        let far_end_here = self.link.wants_far_end();
        let placement = Placement::of(asked, &online_cpus(), channels, far_end_here);
        placement.with_far_on_one(self.link.protocol.description().has_one_thread).with_buffers(
            self.conditions
                .socket_buffer
                .or_else(|| if far_end_here { self.link.protocol.socket_buffer(plan.channels) } else { None }),
        )
    }

    /// Returns the options of the sockets of a link with this many channels.
    fn path(&self, channels: u32) -> PathOptions {
        // Where channels share connections, each thread has one.
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u32);
        let shares = self.link.protocol.description().shares_connections;
        self.conditions.path.for_sockets(if shares { channels.min(threads) } else { channels })
    }

    /// Returns the settings of the link.
    pub(crate) fn settings(&self, plan: &Plan, placement: &Placement) -> Settings {
        Settings {
            cpus: placement.here.clone(),
            congestion: self.conditions.congestion.clone(),
            path: self.path(plan.channels),
            socket_buffer: placement.socket_buffer,
            pace: plan.pace.filter(|_| plan.size.bounds().0 >= SEVERAL_PACKETS),
            reconnect: self.choice.reconnect,
            content: self.conditions.content.clone(),
            ..Settings::of(plan)
        }
    }
}

/// Returns a document without measurements, with the facts of this host.
#[must_use]
pub fn document(commit: Option<&str>, arguments: Vec<String>) -> Document {
    let tool = Tool {
        name: "hodo".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit.map(str::to_owned),
    };
    let environment = environment::of_host(arguments);
    Document { schema: SCHEMA.to_owned(), tool, environment, measurements: Vec::new(), diagnosis: None, slo: None }
}

/// Returns the processors that this process may run on; none if the kernel does not report them.
pub(crate) fn online_cpus() -> Vec<usize> {
    hodo_io::affinity::allowed_cpus().unwrap_or_default()
}
