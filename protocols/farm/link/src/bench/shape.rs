use super::settings::{BenchSettings, Preset};
use hodo_farm::ControllerConfig;
use hodo_farm::controller::Pace;
use hodo_farm::emulation::{GeneratorConfig, Spread};
use hodo_farm_host::process::{AT_ONCE, TOGETHER};
use hodo_io::floor::{Exchange, Floor, Kind};
use hodo_io::{ServeOptions, SocketSettings};
use hodo_machine::Wait;
use hodo_measure::PlainLoop;
use hodo_measure::{Mode, Plan, Repeats, Size, Test, Until};
use std::sync::Arc;
use std::time::Duration;

/// From one thread's events to the next thread's.
const PART: u64 = 1 << 48;

/// A farm that is measured.
#[derive(Debug)]
pub struct Shape {
    pub(super) flow: Flow,
    pub(super) nodes: u32,
    pub(super) credits: u32,
    pub(super) size: u64,
    pub(super) pool: u32,
    /// The rate of a generator that is a process of its own.
    pub(super) rate: Option<f64>,
    pub(super) every: u64,
    pub(super) token_data: u64,
    pub(super) time: String,
    pub(super) threads: usize,
    ahead: u64,
    /// Processors that threads and nodes share in turn; empty: wherever the kernel puts them.
    pub(super) cpus: Vec<usize>,
    pub(super) wait: Wait,
    /// TCP congestion control; `None` for the system's.
    pub congestion: Option<String>,
    pub(super) socket_buffer: Option<usize>,
}

/// How events come to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// One is made for each token.
    Asked,
    /// A process of its own sends them as fast as it can; they wait for tokens, until `bytes_max` bytes wait.
    Queued { bytes_max: u64 },
    /// As fast as connections take them, and nobody answers.
    Poured,
}

impl Shape {
    pub(super) fn of(asked: &BenchSettings, nodes: u32) -> Shape {
        let is_study = asked.preset.is_some();
        let flow = match asked.preset {
            Some(Preset::LhcbV1) => Flow::Queued { bytes_max: asked.memory },
            Some(Preset::LhcbV3) => Flow::Poured,
            Some(Preset::LhcbV2) | None => Flow::Asked,
        };
        let allowed = hodo_io::affinity::allowed_cpus().unwrap_or_default();
        let online = if asked.cpus.is_empty() { allowed } else { asked.cpus.clone() };
        let has_one = matches!(asked.preset, Some(Preset::LhcbV1 | Preset::LhcbV2));
        let threads = asked.threads.unwrap_or(if has_one { 1 } else { online.len().clamp(1, 2) });
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

    /// Returns the processor of a node or a thread.
    pub(super) fn cpu_of(&self, index: usize) -> Option<usize> {
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

    pub(super) fn serve_options(&self) -> ServeOptions {
        ServeOptions { threads: self.threads, cpus: self.cpus.clone(), wait: self.wait, settings: self.settings() }
    }

    /// Returns the configuration of one thread of the controller.
    pub(super) fn controller(&self, pace: &Arc<Pace>, index: usize) -> ControllerConfig {
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

    /// Returns the events that one thread of the controller makes.
    pub(super) fn generator(&self, index: u64) -> GeneratorConfig {
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

    /// Returns the time before the counted part: none for a queue that grows, whose beginning is its best.
    pub(super) fn warm_up(&self) -> Duration {
        Duration::from_millis(if matches!(self.flow, Flow::Queued { .. }) { 0 } else { 500 })
    }

    pub(super) fn plan(&self, until: Until, stall: Duration) -> Plan {
        Plan {
            test: Test::Channels,
            mode: Mode::Send,
            size: Size::Fixed(self.size as u32),
            window: self.credits,
            unbounded: false,
            channels: self.nodes,
            batch: 1,
            rounds: false,
            rate: None,
            pace: None,
            until,
            warmup: self.warm_up(),
            repeats: Repeats::Fixed(1),
            wait: self.wait,
            seed: 1,
            stages: false,
            stall,
        }
    }

    /// Says where the parts run.
    #[must_use]
    pub fn placement(&self) -> String {
        match self.cpus.as_slice() {
            [] => "wherever the kernel puts them".to_owned(),
            cpus => format!("each thread of the controller with its nodes on one of the processors {cpus:?}"),
        }
    }

    /// Measures a plain loop of bare sockets: streams of messages of this size that nobody answers.
    pub(super) fn plain_loop(&self) -> std::io::Result<PlainLoop> {
        let cpus = match self.cpus.as_slice() {
            [] => vec![(None, None)],
            cpus => cpus.iter().map(|cpu| (Some(*cpu), Some(*cpu))).collect(),
        };
        let size = self.size as usize + hodo_farm::wire::HEADER;
        let (kind, exchange) = (Kind::Tcp, Exchange::OneWay { sockets: 1 });
        let (settings, far_settings) = (self.settings(), self.settings());
        let floor = Floor { kind, exchange, size, wait: self.wait, cpus, settings, far_settings };
        let found = floor.measure()?;
        Ok(PlainLoop {
            operations_per_s: found.messages_per_s,
            payload_bits_per_s: 8.0 * self.size as f64 * found.messages_per_s,
            latency_ns: None,
            cost_ns: found.cost_ns,
            looks: 1,
            spread: 0.0,
            shape: format!("{size} B one way by TCP"),
        })
    }
}
