//! The scene: a farm in a simulated world, the faults to come, and the end.

use crate::chaos::programs::{Memory, Noise, Place, Storage};
use hodo_farm::builder::BuilderConfig;
use hodo_farm::controller::{self, ControllerConfig, Policy};
use hodo_farm::emulation::{Accept, Decisions, Spread};
use hodo_farm::node::{Decide, Job, NodeConfig};
use hodo_farm::{Builder, Controller, Incomplete, NoSupply, Node, Ranges};
use hodo_machine::{Address, Instant, Random};
use hodo_sim::{Network, Site, Transport, World};
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
/// The bytes of a stream that may be in flight or unread, and unsent before its writer is told to hold back.
const BUFFER: u64 = 20_000;
const BACKLOG: usize = 5_000;

/// A fault, or another deed that is done to the farm.
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
    CutOff,
    Reach(u32),
    Noise,
    NoiseSays(Site<Noise>, bool),
}

/// A plan of an application at its node; nothing comes of it when the process has ended by then.
#[derive(Debug, Clone, Copy)]
enum Business {
    Commit,
    Decide(u64),
    Exit,
}

pub struct Scene {
    world: World,
    controller: Site<Controller<NoSupply>>,
    /// The programs, by node.
    places: Vec<Place>,
    random: Random,
    config: ControllerConfig,
    storage: Storage,
    memories: BTreeMap<u32, Memory>,
    nodes: BTreeMap<u32, NodeConfig>,
    /// The builder, where there is one: who it is, and where.
    builder: Option<(Site<Builder>, BuilderConfig)>,
    /// Builders that have begun, one after the other, and controllers.
    builders: u32,
    controllers: u32,
    jobs: BTreeMap<u64, Job>,
    business: BTreeMap<(Instant, u64), (u32, Business)>,
    stopped: BTreeSet<u32>,
    poison: BTreeSet<u64>,
    agenda: BTreeMap<(Instant, u64), Action>,
    entries: u64,
    is_drained: bool,
    total: usize,
}

impl Scene {
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
        let network = Network {
            delay: Duration::from_micros(1),
            jitter: Duration::from_micros(500),
            loss: 0.01,
            mtu: Some(1500),
            cost: Duration::ZERO,
            buffer_bytes: BUFFER,
            seed,
            ..Network::default()
        };
        let mut world = World::new(&network);
        let controller = world.add_site();
        let mut scene = Scene {
            world,
            controller,
            places: Vec::new(),
            config,
            // Often it forgets what was given, and the storage compares.
            storage: Storage { memory: if random.chance(0.5) { 1 << 20 } else { 512 }, ..Storage::default() },
            memories: BTreeMap::new(),
            nodes: BTreeMap::new(),
            builder: None,
            builders: 0,
            controllers: 0,
            jobs: BTreeMap::new(),
            business: BTreeMap::new(),
            stopped: BTreeSet::new(),
            poison: BTreeSet::new(),
            agenda: BTreeMap::new(),
            entries: 0,
            is_drained: false,
            total: 0,
            random,
        };
        scene.settle_down(&network);
        scene
    }

    /// Sources, nodes, and the controller last: whoever comes before it tries again.
    fn settle_down(&mut self, network: &Network) {
        self.place(Place::Controller(self.controller), CONTROLLER);
        let (sources, events) = (1 + self.random.below(3), 30 + self.random.below(150));
        if self.random.chance(0.5) {
            self.new_builder(sources as u32);
        }
        let builder = self.builder.as_ref().map(|(site, config)| (site.node, config.datagrams));
        let lossy = Network { loss: 0.1, duplicate: 0.05, jitter: Duration::from_millis(1), ..network.clone() };
        let gap = Duration::from_micros(self.random.below(10_000));
        for number in 0..sources {
            let site = self.world.add_site();
            self.place(Place::Source(site), site.node);
            self.world.set_listening(site.node, false);
            let datagrams_to = builder.filter(|(_, datagrams)| *datagrams).map(|(node, _)| node);
            if let Some(builder) = datagrams_to {
                self.world.set_opening(site.node, Transport::Datagram);
                self.world.set_network_of(Transport::Datagram, site.node, builder, &lossy);
                self.world.set_network_of(Transport::Datagram, builder, site.node, &lossy);
            }
            let mut memory = Memory {
                run: if builder.is_some() { 1 } else { 1 + number as u32 % 2 },
                number: number as u32,
                to: builder.map_or(CONTROLLER, |(node, _)| node),
                // Whole events are shared out; of built ones each source has its fragment.
                numbers: match builder {
                    None => (0..events).map(|event| event * sources + number).collect(),
                    Some(_) => (0..events).collect(),
                },
                answered: Ranges::default(),
                doubled: Ranges::default(),
                answered_doubles: Ranges::default(),
                // Fragments of one event come at one time.
                gap: if builder.is_some() { gap } else { Duration::from_micros(self.random.below(10_000)) },
                datagram: datagrams_to.map(|_| 1400),
            };
            if self.random.chance(0.5) {
                for _ in 0..1 + self.random.below(5) {
                    memory.doubled.insert(memory.numbers[self.random.below(events) as usize]);
                }
            }
            self.total = if builder.is_some() { events as usize } else { self.total + memory.numbers.len() };
            self.memories.insert(site.node, memory);
            self.start(site.node);
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
        const ALL: [Action; 17] = [
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
            CutOff,
            Noise,
        ];
        ALL[self.random.below(ALL.len() as u64) as usize]
    }

    fn new_node(&mut self, emulated: bool, listens: bool) -> u32 {
        let site = self.world.add_site();
        let host = site.node;
        self.place(Place::Node(site), host);
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
        let site = self.world.add_site();
        self.place(Place::Builder(site), site.node);
        let policy = self.random.below(2) as usize;
        let datagrams = self.random.chance(0.5);
        let config = BuilderConfig {
            patience: Duration::from_millis(20 + self.random.below(100)),
            behind: Duration::from_millis(200 + self.random.below(2000)),
            starts_without: self.random.chance(0.2),
            incomplete: Incomplete::ALL[policy],
            fragment_max: 10_000,
            pool_bytes: 100_000,
            source_credits: SOURCE_CREDITS,
            silence: Duration::from_millis(300),
            datagrams,
            ..BuilderConfig::new(Address::Node(CONTROLLER), sources)
        };
        self.builder = Some((site, config));
        self.start(site.node);
    }

    /// Makes room for machines of one kind at a node.
    fn place(&mut self, place: Place, node: u32) {
        assert_eq!(self.places.len(), node as usize);
        self.places.push(place);
        self.world.set_late(node, 0.2, Duration::from_micros(300));
        self.world.set_backlog(node, BACKLOG);
    }

    fn start(&mut self, host: u32) {
        if self.world.is_running(host) {
            return;
        }
        match self.places[host as usize] {
            Place::Controller(site) => {
                self.controllers += 1;
                self.storage.committed = 0;
                self.storage.due = false;
                let controller = Controller::new(self.config.clone(), NoSupply, self.storage.ledger());
                self.world.start(site, controller);
            }
            Place::Builder(site) => {
                self.builders += 1;
                let (_, config) = self.builder.as_ref().expect("it has its place with its configuration");
                self.world.start(site, Builder::new(config.clone()));
            }
            Place::Source(site) => {
                let source = self.memories[&host].source(self.world.now(), self.world.steps());
                self.world.start(site, source);
            }
            Place::Node(site) => self.world.start(site, Node::new(self.nodes[&host].clone())),
            Place::Noise(site) => self.world.start(site, Noise::default()),
        }
    }

    fn plan(&mut self, at: Instant, action: Action) {
        self.entries += 1;
        self.agenda.insert((at, self.entries), action);
    }

    fn plan_in(&mut self, millis: u64, action: Action) {
        let at = self.world.now() + Duration::from_micros(self.random.below(millis * 1000));
        self.plan(at, action);
    }

    /// Plans business of a node's application.
    fn plan_business(&mut self, host: u32, micros: u64, business: Business) {
        self.entries += 1;
        let at = self.world.now() + Duration::from_micros(self.random.below(micros + 1));
        self.business.insert((at, self.entries), (host, business));
    }

    pub fn run(mut self) {
        let end = Instant::ZERO + CHAOS + CALM;
        while !self.is_done() {
            assert!(self.world.steps() < STEPS_MAX, "no end after {STEPS_MAX} steps: {}", self.story());
            assert!(self.world.now() < end, "no end: {}", self.story());
            self.turn(end);
        }
        self.check_balance();
        self.command(controller::Command::Drain);
        let end = self.world.now() + Duration::from_secs(5);
        while !self.is_drained {
            assert!(self.world.now() < end, "it is not told to be drained: {}", self.story());
            self.turn(end);
        }
    }

    fn turn(&mut self, end: Instant) {
        let action = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let business = self.business.iter().find(|(_, (host, _))| !self.stopped.contains(host));
        let business = business.map(|(key, _)| *key);
        let until = [Some(end), action, business.map(|(at, _)| at)].into_iter().flatten().min().unwrap_or(end);
        if let Some(host) = self.world.turn(until) {
            self.hear(host);
        } else if let Some(key) = business.filter(|(at, _)| *at <= until)
            && let Some((host, business)) = self.business.remove(&key)
        {
            self.attend(host, business);
        } else if action.is_some_and(|at| at <= until)
            && let Some((_, action)) = self.agenda.pop_first()
        {
            self.act(action);
        }
    }

    /// Takes the next event that the machine at a node has for its application.
    fn hear(&mut self, host: u32) {
        match self.places[host as usize] {
            Place::Source(site) => {
                if let Some(event) = self.world.take_event(site) {
                    self.source_told(host, &event);
                }
            }
            Place::Node(site) => {
                if let Some(event) = self.world.take_event(site) {
                    self.node_told(site, event);
                }
            }
            Place::Builder(site) => {
                if let Some(event) = self.world.take_event(site) {
                    Self::builder_told(&event);
                }
            }
            Place::Controller(site) => {
                if let Some(event) = self.world.take_event(site) {
                    self.controller_told(event);
                }
            }
            Place::Noise(_) => {}
        }
        if self.world.steps().is_multiple_of(64) {
            self.check_bounds();
        }
    }
}
