use super::options::{BenchOptions, Preset};
use crate::args::units::Cpus;
use hodo_catalog::farm::ControllerConfig;
use hodo_catalog::farm::controller::Pace;
use hodo_catalog::farm::emulation::{GeneratorConfig, Spread};
use hodo_farm_host::process::{AT_ONCE, TOGETHER};
use hodo_io::floor::{Exchange, Floor, Kind};
use hodo_io::{ServeOptions, SocketSettings};
use hodo_machine::Wait;
use hodo_measure::{Mode, Plan, Repeats, Size, Test, Until};
use std::sync::Arc;
use std::time::Duration;

/// From one thread's events to the next thread's.
const PART: u64 = 1 << 48;

/// The farm that is measured.
pub struct Shape {
    pub flow: Flow,
    pub nodes: u32,
    pub credits: u32,
    pub size: u64,
    pub pool: u32,
    /// Of the generator, where it is a process of its own.
    pub rate: Option<f64>,
    pub every: u64,
    pub token_data: u64,
    pub time: String,
    pub threads: usize,
    ahead: u64,
    /// Processors that threads and nodes share in turn; empty: wherever the kernel puts them.
    pub cpus: Vec<usize>,
    pub wait: Wait,
    pub congestion: Option<String>,
    pub socket_buffer: Option<usize>,
}

/// How events come to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// One is made for each token.
    Asked,
    /// A process of its own gives them as fast as it can; they wait for tokens, until so many bytes do.
    Queued { bytes_max: u64 },
    /// As fast as connections take them, and nobody answers.
    Poured,
}

impl Shape {
    pub fn of(asked: &BenchOptions, nodes: u32) -> Shape {
        let is_study = asked.preset.is_some();
        let flow = match asked.preset {
            Some(Preset::LhcbV1) => Flow::Queued { bytes_max: asked.memory },
            Some(Preset::LhcbV3) => Flow::Poured,
            Some(Preset::LhcbV2) | None => Flow::Asked,
        };
        let allowed = hodo_io::affinity::allowed_cpus().unwrap_or_default();
        let online = asked.cpu.as_ref().map_or(allowed, |Cpus(cpus)| cpus.clone());
        let has_one = matches!(asked.preset, Some(Preset::LhcbV1 | Preset::LhcbV2));
        let threads = asked.threads.map_or(if has_one { 1 } else { online.len().clamp(1, 2) }, usize::from);
        Shape {
            flow,
            nodes,
            credits: asked.credits.unwrap_or(match flow {
                // So many are written with each call.
                Flow::Poured => 4,
                Flow::Asked | Flow::Queued { .. } if is_study => 1,
                Flow::Asked | Flow::Queued { .. } => 2,
            }),
            size: asked.size.unwrap_or(if is_study { 32_000 } else { 32 << 10 }),
            pool: asked.pool,
            rate: asked.rate,
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
            at_once: AT_ONCE,
            together: TOGETHER,
            ..SocketSettings::default()
        }
    }

    pub fn serve_options(&self) -> ServeOptions {
        ServeOptions { threads: self.threads, cpus: self.cpus.clone(), wait: self.wait, settings: self.settings() }
    }

    /// Of one thread of the controller.
    pub fn controller(&self, pace: &Arc<Pace>, index: usize) -> ControllerConfig {
        ControllerConfig {
            credits_max: self.credits,
            event_max: (self.size.max(self.token_data) as u32).max(1),
            sources_max: 0,
            nodes_max: self.nodes,
            ahead_max: (self.ahead > 0).then_some(self.ahead),
            pace: Some((Arc::clone(pace), index)),
            without_tokens: self.flow == Flow::Poured,
            ..ControllerConfig::default()
        }
    }

    /// What one thread of the controller makes.
    pub fn generator(&self, index: u64) -> GeneratorConfig {
        GeneratorConfig {
            first: index * PART,
            step: 1,
            count: None,
            size: Spread::Fixed(self.size),
            rate: None,
            poisson: false,
            pool: self.pool as usize,
            numbered: false,
            seed: 1 + index,
        }
    }

    /// What goes ahead of the counted time. Of a queue that grows the beginning is the best, and counts.
    pub fn warm_up(&self) -> Duration {
        Duration::from_millis(if matches!(self.flow, Flow::Queued { .. }) { 0 } else { 500 })
    }

    pub fn plan(&self, until: Until, stall: Duration) -> Plan {
        Plan {
            test: Test::Channels,
            mode: Mode::Send,
            size: Size::Fixed(self.size as u32),
            window: self.credits,
            channels: self.nodes,
            batch: 1,
            rate: None,
            until,
            warmup: self.warm_up(),
            repeats: Repeats::Fixed(1),
            wait: self.wait,
            seed: 1,
            stages: false,
            stall,
        }
    }

    /// Where its parts run, for people.
    pub fn placement(&self) -> String {
        match self.cpus.as_slice() {
            [] => "wherever the kernel puts them".to_owned(),
            cpus => format!("each thread of the controller with its nodes on one of the processors {cpus:?}"),
        }
    }

    /// What bare sockets do: streams of messages of this size that nobody answers.
    pub fn floor(&self) -> std::io::Result<f64> {
        let cpus = match self.cpus.as_slice() {
            [] => vec![(None, None)],
            cpus => cpus.iter().map(|cpu| (Some(*cpu), Some(*cpu))).collect(),
        };
        let size = self.size as usize + hodo_catalog::farm::wire::HEADER;
        let (kind, exchange) = (Kind::Tcp, Exchange::OneWay);
        let floor = Floor { kind, exchange, size, wait: self.wait, cpus, settings: self.settings() };
        floor.measure().map(|found| found.messages_per_s)
    }
}
