//! `hodo watch`: measures a link again and again, keeps the rows, and shows the latest figures to Prometheus.

mod figures;
mod history;
mod rounds;

use crate::bench::{BenchOptions, ConditionOptions, Follow, FollowOptions, MeasuringOptions, TestOptions, plan};
use crate::link::LinkParser;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, address};
use clap::{Args, value_parser};
use figures::Figures;
use history::History;
use hodo_catalog::Uri;
use hodo_daemon::{Daemon, log};
use hodo_io::Clock;
use hodo_machine::Wait;
use hodo_measure::{Plan, Test, units};
use hodo_tester::{Benchmark, PAGES_ON, brief};
use rounds::Watch;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Where the pages are by default.
const PAGES: &str = "127.0.0.1:9210";
/// The shortest time from one round to the next.
const EVERY_MIN: Duration = Duration::from_millis(100);
/// How long a measurement under way may take to end when the watch is to stop.
const PATIENCE: Duration = Duration::from_millis(500);
/// The interval at which the main thread checks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Watches a link until a signal comes, or so many rounds have been made.
pub fn run(options: &WatchOptions) -> Result<Outcome, Error> {
    options.log.open("hodo watch", false)?;
    options.realtime.begin()?;
    let benchmarks = benchmarks(options)?;
    options.conditions.check(&options.link, options.wait)?;
    let history = options.history.as_deref().map(|file| History::open(file, options.keep as usize)).transpose()?;
    let daemon = Daemon::start(
        &hodo_daemon::Options {
            http: (!options.no_metrics).then_some(options.metrics),
            names: options.pages_name.clone(),
            pid_file: options.pid_file.clone(),
            catches_signals: true,
        },
        |pages| pages,
    )?;
    if options.until_stdin_closes {
        at_the_end_of_stdin(daemon.stop())?;
    }
    let figures = Arc::new(Figures::new(&options.link.to_string()));
    let exposed = Arc::clone(&figures);
    daemon.registry().source(move |to| exposed.expose(to));
    let watch = Watch {
        benchmarks,
        required: options.choice.require.clone(),
        every: options.every,
        count: options.count,
        history,
        figures: Arc::clone(&figures),
        stop: Arc::clone(daemon.stop()),
    };
    let line = format!("watching {} every {}", options.link, units::span_text(options.every));
    daemon.ready(&line);
    let pages = daemon.site().map(|pages| format!("{PAGES_ON}{pages}\n"));
    log::announce(&format!("{line}\n{}", pages.unwrap_or_default()));
    follow(&daemon, watch)?;
    let is_stopped = daemon.stop().load(Ordering::Relaxed);
    let (_, failures) = figures.rounds();
    Ok(if failures == 0 || is_stopped { Outcome::Done } else { Outcome::Failed })
}

/// Runs the rounds on a thread of their own. When the watch is to stop, a measurement that does not end at once is left behind: the
/// process ends with it under way.
fn follow(daemon: &Daemon, watch: Watch) -> Result<(), Error> {
    let (done, ended) = sync_channel(1);
    let spawned = std::thread::Builder::new().name("rounds".to_owned()).spawn(move || {
        // The main thread may have stopped waiting.
        let _ = done.send(watch.run());
    });
    let thread = spawned.map_err(|why| Error::Failed(format!("no thread can be started: {why}")))?;
    let (clock, mut rounds) = (Clock::start(), daemon.rounds("main"));
    let mut stopped_at = None;
    loop {
        match ended.recv_timeout(LOOK_UP) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Disconnected) => {
                return thread.join().map_err(|_| Error::Failed("the measuring thread has panicked".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if rounds.look_in(clock.now()) {
            rounds.reloaded("watching");
        }
        if daemon.stop().load(Ordering::Relaxed) {
            let stopped_at: Instant = *stopped_at.get_or_insert_with(Instant::now);
            if stopped_at.elapsed() >= PATIENCE {
                return Ok(());
            }
        }
    }
}

/// Returns the benchmarks of a round with their plans. Without a test they are the times of lone operations and the rate, of one size each.
fn benchmarks(options: &WatchOptions) -> Result<Vec<(Benchmark, Vec<Plan>)>, Error> {
    let bench = BenchOptions {
        link: options.link.clone(),
        choice: options.choice.clone(),
        slo: crate::bench::SloOptions::default(),
        measure: options.measuring(),
        output: crate::bench::OutputOptions::default(),
        follow: FollowOptions { quiet: true, progress: Follow::Auto },
        stream: crate::bench::StreamOptions::default(),
    };
    plan::check_one_flow(&options.choice, "hodo watch")?;
    let is_short = options.choice.test.is_none() && options.choice.preset.is_none();
    let mut found = Vec::new();
    for benchmark in plan::benchmarks(&bench)? {
        let mut plans = benchmark.plans()?;
        if is_short {
            let short = brief(&plans);
            let is_usual = |plan: &Plan| matches!(plan.test, Test::Latency | Test::Rate);
            plans = if short.iter().any(is_usual) { short.into_iter().filter(is_usual).collect() } else { short };
        }
        benchmark.check(&plans)?;
        found.push((benchmark, plans));
    }
    Ok(found)
}

/// Options of a watch.
///
/// A far end that is away, restarts or hangs is a round that failed, and never the end of the watch. SIGTERM ends it with status 0.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct WatchOptions {
    /// A URI such as tcp://host:4242, or the name of a protocol, whose far end is then started on this host for each round.
    #[arg(value_name = "LINK", value_parser = LinkParser, hide_possible_values = true)]
    pub link: Uri,
    /// Time from the beginning of one round to that of the next.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = every)]
    pub every: Duration,
    /// End after this many rounds, with status 1 if one failed [default: go on].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Append each row to this file; FILE.tsv gets the columns of --tsv, any other name a line of JSON for each row.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Rows that the history keeps; the oldest are dropped.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub keep: u32,
    /// Address of its pages: /metrics for Prometheus, /health.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = address::listen)]
    pub metrics: SocketAddr,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Write the process number to this file; a second watch with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// The measurement; without --test latency and rate, of one size each.
    #[command(flatten)]
    pub choice: TestOptions,
    /// Length of one repeat; a bare number is in seconds [default: 500ms, or 100ms for a simulated link].
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, help_heading = "Measuring")]
    pub duration: Option<Duration>,
    /// Time before counting starts [default: 200ms, or 20ms for a simulated link].
    #[arg(long, value_name = "TIME", value_parser = units::warmup, allow_hyphen_values = true, help_heading = "Measuring")]
    pub warmup: Option<Duration>,
    /// Number of repeats.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000), help_heading = "Measuring")]
    pub repeat: u32,
    /// How both sides wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait, help_heading = "Measuring")]
    pub wait: Wait,
    /// The scheduling class.
    #[command(flatten, next_help_heading = "Measuring")]
    pub realtime: RealtimeOptions,
    /// Where and under which settings it runs.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// Seed of everything that is drawn at random.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Measuring")]
    pub seed: u64,
    /// How long to wait for a connection or a reply before the far end counts as lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration, allow_hyphen_values = true, help_heading = "Measuring")]
    pub timeout: Duration,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Stop when standard input closes, so that the watch never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

impl WatchOptions {
    fn measuring(&self) -> MeasuringOptions {
        MeasuringOptions {
            duration: self.duration,
            count: None,
            warmup: self.warmup,
            repeat: self.repeat,
            confidence: None,
            interval: None,
            max_repeats: self.repeat,
            wait: self.wait,
            realtime: self.realtime.clone(),
            conditions: self.conditions.clone(),
            stages: false,
            hub_pages: None,
            seed: self.seed,
            timeout: self.timeout,
        }
    }
}

/// Parses the time from one round to the next.
fn every(text: &str) -> Result<Duration, String> {
    let every = units::span(text)?;
    if every >= EVERY_MIN { Ok(every) } else { Err(format!("{text} is under 100ms; take a longer one")) }
}

const EXAMPLES: &str = "\
Examples:
  hodo watch tcp://there:4242                             every five minutes: lone operations, and the rate
  hodo watch udp://there:4242 --every 1m --history lab.tsv
  hodo watch pva://ioc:5075 --test latency --sizes 8 --require 'p99<1ms'
  curl http://127.0.0.1:9210/metrics                      the latest figures, for Prometheus";
