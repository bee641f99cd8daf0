//! Options that several commands of a farm have.

use super::spread;
use crate::Error;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use clap::Args;
use hodo_farm_host::machines::emulation::{GeneratorConfig, Spread};
use hodo_farm_host::machines::wire;
use hodo_farm_host::process::ProcessSettings;
use hodo_machine::Wait;
use hodo_measure::units::{self, Cpus};

/// Where a controller listens by default.
pub const CONTROLLER: &str = "127.0.0.1:5500";

const _: () = assert!(wire::CONTROLLER_PORT == 5500);

/// How a process of the farm runs.
#[derive(Debug, Args)]
pub struct ProcessOptions {
    /// How to wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait)]
    pub wait: Wait,
    /// The scheduling class.
    #[command(flatten)]
    pub realtime: RealtimeOptions,
    /// Processors to run on, one per thread [default: the kernel's choice].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Size of each socket's send and receive buffer [default: the system's].
    #[arg(long, value_name = "BYTES", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// Log every peer that connects or disconnects, like --log-level debug.
    #[arg(long)]
    pub verbose: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Stop when standard input closes, so that it never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

impl ProcessOptions {
    /// Opens the log of a part of the farm, and enters the scheduling class of its threads, which are so many.
    pub fn open_log(&self, part: &str, threads: u16) -> Result<(), Error> {
        self.log.open(&format!("hodo farm {part}"), self.verbose)?;
        self.realtime.begin_serving(self.wait, usize::from(threads))
    }

    /// Returns the settings of a process.
    pub fn settings(&self) -> Result<ProcessSettings, Error> {
        hodo_tester::check_congestion(self.congestion.as_deref())?;
        Ok(ProcessSettings {
            wait: self.wait,
            cpus: self.cpu.as_ref().map_or_else(Vec::new, |Cpus(cpus)| cpus.clone()),
            congestion: self.congestion.clone(),
            socket_buffer: self.socket_buffer,
        })
    }
}

/// Events that are made, rather than read out.
#[derive(Debug, Clone, Args)]
pub struct MadeOptions {
    /// Number of events to generate; by default a source never stops, and a controller makes none.
    #[arg(long, value_name = "N")]
    pub events: Option<u64>,
    /// Size of an event in bytes: 32K, uniform:1K..64K, exponential:32K, normal:32K,4K.
    #[arg(long, value_name = "SIZE", default_value = "32000", value_parser = spread::sizes)]
    pub size: Spread,
    /// Events per second [default: as many as possible].
    #[arg(long, value_name = "N", value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Space events at random, like those of a detector (a Poisson process).
    #[arg(long, requires = "rate")]
    pub poisson: bool,
    /// Number of different events, which are sent over and over.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub different: u32,
    /// Begin each event with its number, so that no two are equal.
    #[arg(long)]
    pub numbered: bool,
    /// Seed of sizes, times and bytes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl MadeOptions {
    /// Returns the settings of a generator of these events, numbered from `first` in steps of `step`.
    pub fn generator(&self, first: u64, step: u64) -> GeneratorConfig {
        GeneratorConfig {
            first,
            step,
            count: self.events,
            size: self.size,
            rate: self.rate,
            poisson: self.poisson,
            pool: self.different as usize,
            numbered: self.numbered,
            seed: self.seed,
        }
    }
}
