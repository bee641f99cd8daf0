//! Who is there, what happens to them, and what must hold.

use crate::net::{Happening, Net};
use crate::programs::{Memory, Program, Storage, Told};
use hodo_farm::controller::{self, ControllerConfig, Policy};
use hodo_farm::emulation::{Accept, Decisions, Spread};
use hodo_farm::node::{Decide, Job, Node, NodeConfig};
use hodo_farm::{Builder, BuilderConfig, Incomplete, Ranges};
use hodo_machine::{Address, Instant, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[path = "deeds.rs"]
mod deeds;

const CONTROLLER: u32 = 0;
/// Nodes with a number from here on are no nodes.
const NOISE: u32 = 1000;
/// How long things go wrong, and how long after that the farm may take at most.
const CHAOS: Duration = Duration::from_millis(1500);
const CALM: Duration = Duration::from_secs(60);
const STEPS_MAX: u64 = 3_000_000;
const SOURCE_CREDITS: u32 = 20;
/// The application's business at the controller's host.
const COMMIT: u64 = u64::MAX;

/// What is done to the farm.
#[derive(Debug, Clone, Copy)]
enum Action {
    KillNode,
    Stop,
    Resume(u32),
    Leave,
    Join,
    Start(u32),
    Reset,
    KillSource,
    KillBuilder,
    KillController,
    FillDisk,
    EmptyDisk,
    Pause,
    GoOn,
    Noise,
    NoiseSays(u32),
}

pub struct World {
    net: Net,
    random: Random,
    config: ControllerConfig,
    storage: Storage,
    memories: BTreeMap<u32, Memory>,
    nodes: BTreeMap<u32, NodeConfig>,
    /// The builder, where there is one: who it is, and where.
    builder: Option<(u32, BuilderConfig)>,
    jobs: BTreeMap<u64, Job>,
    poison: BTreeSet<u64>,
    agenda: BTreeMap<(Instant, u64), Action>,
    entries: u64,
    is_drained: bool,
    total: usize,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 1);
        let config = ControllerConfig {
            policy: Policy::ALL[random.below(4) as usize],
            credits_max: 1 + random.below(6) as u32,
            // Now and then an event has too many large fragments.
            event_max: if random.chance(0.1) { 12_000 } else { 40_000 },
            pool_bytes: 400_000,
            source_credits: SOURCE_CREDITS,
            sources_max: 8,
            silence: Duration::from_millis(300),
            deadline: random.chance(0.3).then_some(Duration::from_millis(250)),
            uncommitted_max: Some(1 + random.below(40)),
            ..ControllerConfig::default()
        };
        let mut world = World {
            net: Net::new(seed),
            config,
            storage: Storage::default(),
            memories: BTreeMap::new(),
            nodes: BTreeMap::new(),
            builder: None,
            jobs: BTreeMap::new(),
            poison: BTreeSet::new(),
            agenda: BTreeMap::new(),
            entries: 0,
            is_drained: false,
            total: 0,
            random,
        };
        world.settle_down();
        world
    }

    /// Sources, nodes, and the controller last: whoever comes before it tries again.
    fn settle_down(&mut self) {
        assert_eq!(self.net.place_for_one(), CONTROLLER);
        let (sources, events) = (1 + self.random.below(3), 30 + self.random.below(150));
        if self.random.chance(0.5) {
            self.new_builder(sources as u32);
        }
        let builder = self.builder.as_ref().map(|(host, _)| *host);
        let gap = Duration::from_micros(self.random.below(10_000));
        for number in 0..sources {
            let host = self.net.place_for_one();
            let memory = Memory {
                run: if builder.is_some() { 1 } else { 1 + number as u32 % 2 },
                number: number as u32,
                to: builder.unwrap_or(CONTROLLER),
                // Whole events are shared out; of built ones each source has its fragment.
                numbers: match builder {
                    None => (0..events).map(|event| event * sources + number).collect(),
                    Some(_) => (0..events).collect(),
                },
                answered: Ranges::default(),
                // Fragments of one event come at one time.
                gap: if builder.is_some() { gap } else { Duration::from_micros(self.random.below(10_000)) },
                datagram: self.net.datagrams_to.map(|_| 1400),
            };
            self.total = if builder.is_some() { events as usize } else { self.total + memory.numbers.len() };
            self.memories.insert(host, memory);
            self.start(host);
        }
        let emulated = self.random.chance(0.4);
        if !emulated && self.random.chance(0.5) {
            let numbers = if builder.is_some() { events } else { events * sources };
            let poison = (0..1 + self.random.below(2)).map(|_| self.random.below(numbers));
            self.poison = poison.collect();
        }
        for _ in 0..2 + self.random.below(5) {
            let listens = self.random.chance(0.3);
            let host = self.new_node(emulated, listens);
            if listens {
                self.config.nodes.push(Address::Node(host));
            }
        }
        self.start(CONTROLLER);
        for _ in 0..self.random.below(25) {
            let at = Instant::ZERO + Duration::from_nanos(self.random.below(CHAOS.as_nanos() as u64));
            let action = self.draw();
            self.plan(at, action);
        }
    }

    fn draw(&mut self) -> Action {
        use Action::*;
        const ALL: [Action; 16] = [
            KillNode,
            KillNode,
            KillNode,
            Stop,
            Stop,
            Leave,
            Join,
            Reset,
            Reset,
            Reset,
            KillSource,
            KillBuilder,
            KillController,
            FillDisk,
            Pause,
            Noise,
        ];
        ALL[self.random.below(ALL.len() as u64) as usize]
    }

    fn new_node(&mut self, emulated: bool, listens: bool) -> u32 {
        let host = self.net.place_for_one();
        let seed = self.random.bits();
        let output = if self.random.chance(0.5) { vec![7; 6000].into() } else { Vec::new().into() };
        let time = [Spread::Fixed(0), Spread::Uniform(0, 3_000_000), Spread::Exponential(2e6)];
        let time = time[self.random.below(3) as usize];
        let decisions = Decisions { accept: Accept::Every(3), output, time, seed };
        let config = NodeConfig {
            controllers: if listens { Vec::new() } else { vec![Address::Node(CONTROLLER)] },
            number: host,
            credits: 1 + self.random.below(6) as u32,
            weight: 1 + self.random.below(3) as u32,
            event_max: 40_000,
            decide: if emulated { Decide::Emulated(decisions) } else { Decide::Application },
            silence: Duration::from_millis(300),
            instance: 0,
        };
        self.nodes.insert(host, config);
        self.start(host);
        host
    }

    fn new_builder(&mut self, sources: u32) {
        let host = self.net.place_for_one();
        let policy = self.random.below(2) as usize;
        let datagrams = self.random.chance(0.5);
        self.net.datagrams_to = datagrams.then_some(host);
        let config = BuilderConfig {
            patience: Duration::from_millis(20 + self.random.below(100)),
            incomplete: Incomplete::ALL[policy],
            fragment_max: 10_000,
            pool_bytes: 100_000,
            source_credits: SOURCE_CREDITS,
            silence: Duration::from_millis(300),
            datagrams,
            ..BuilderConfig::new(Address::Node(CONTROLLER), sources)
        };
        self.builder = Some((host, config));
        self.start(host);
    }

    fn start(&mut self, host: u32) {
        if self.net.hosts[host as usize].program.is_some() {
            return;
        }
        let program = if host == CONTROLLER {
            self.storage.committed = 0;
            self.storage.due = false;
            Program::controller(&self.config, self.storage.ledger())
        } else if let Some((_, config)) = self.builder.as_ref().filter(|(at, _)| *at == host) {
            Program::Builder(Box::new(Builder::new(config.clone())))
        } else if let Some(memory) = self.memories.get(&host) {
            Program::Source(Box::new(memory.source(self.net.now, self.net.steps)))
        } else {
            Program::Node(Box::new(Node::new(self.nodes[&host].clone())))
        };
        self.net.start(host, program);
    }

    fn plan(&mut self, at: Instant, action: Action) {
        self.entries += 1;
        self.agenda.insert((at, self.entries), action);
    }

    fn plan_in(&mut self, millis: u64, action: Action) {
        let at = self.net.now + Duration::from_micros(self.random.below(millis * 1000));
        self.plan(at, action);
    }

    pub fn run(mut self) {
        let end = Instant::ZERO + CHAOS + CALM;
        while !self.is_done() {
            assert!(self.net.steps < STEPS_MAX, "no end after {STEPS_MAX} steps: {}", self.story());
            assert!(self.net.now < end, "no end: {}", self.story());
            self.turn(end);
        }
        self.check_balance();
        self.command(controller::Command::Drain);
        let end = self.net.now + Duration::from_secs(5);
        while !self.is_drained {
            assert!(self.net.now < end, "it is not told to be drained: {}", self.story());
            self.turn(end);
        }
    }

    fn turn(&mut self, end: Instant) {
        let action = self.agenda.first_key_value().map(|((at, _), _)| *at);
        if let Some(happening) = self.net.next(action.unwrap_or(end)) {
            let host = match happening {
                Happening::Poll { host } => Some(host),
                _ => None,
            };
            if let Some((host, what)) = self.net.happen(happening) {
                self.own(host, what);
            }
            if let Some(host) = host {
                self.carry_out(host);
            }
        } else if let Some(((at, _), action)) = self.agenda.pop_first() {
            self.net.now = self.net.now.max(at);
            self.act(action);
        } else {
            self.net.now = end;
        }
    }

    fn carry_out(&mut self, host: u32) {
        let mut told = Vec::new();
        self.net.carry_out(host, &mut told);
        for told in told {
            match told {
                Told::Source(event) => self.source_told(host, &event),
                Told::Node(event) => self.node_told(host, event),
                Told::Builder(event) => Self::builder_told(&event),
                Told::Controller(event) => self.controller_told(event),
            }
        }
        if self.net.steps.is_multiple_of(64) {
            self.check_bounds();
        }
    }
}
