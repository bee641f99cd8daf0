//! A client of two servers to which everything happens that can: servers die and come back, ends stop and go on, streams break, nodes are
//! cut off, and the application starts, gives up, ends and closes as it likes. Every execution ends once, updates stay in order and none is
//! missing in silence; and when all is well again, everything works.

use crate::counting;
use crate::simulation;

use hodo_machine::{Address, Instant, Random};
use hodo_pva::client::{ClientConfig, Command, Event, Failure, Kind};
use hodo_pva::discovery::{FinderConfig, Target};
use hodo_pva::server::ServerConfig;
use hodo_sim::cost::{Allowance, measure_by};
use hodo_sim::{BROADCAST, Death, Site, World, conformance};
use simulation::{App, AppEvent, Source, answer, in_order, number};

use std::time::Duration;

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 12;
const SERVERS: u32 = 2;
const DEEDS: u32 = 60;
const CHANNELS: u32 = 8;
/// Operations of which each channel has as many.
const OPERATIONS: u32 = 24;
const TICK: Duration = Duration::from_millis(20);
/// The time in which all is well again: the silence after which a connection counts as dead, and the longest wait of a search.
const RECOVERY: Duration = Duration::from_secs(110);
const NETWORKS: [&str; 6] = [
    "delay=50us",
    "delay=1ms&jitter=2ms",
    "delay=100us&loss=0.02",
    "delay=100us&loss=0.03&duplicate=0.2",
    "delay=200us&rate=100M&queue=64K",
    "delay=5us&cost=5us&buffer=64K",
];

/// The use of a number by the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Idle(Kind),
    Executing(Kind),
}

struct Scene {
    world: World,
    random: Random,
    servers: Vec<Site<Source>>,
    is_cut: [bool; SERVERS as usize],
    client: Site<App>,
    /// Whether the client finds the servers by itself.
    searches: bool,
    lives: u8,
    open: Vec<bool>,
    uses: Vec<Use>,
    told: Vec<AppEvent>,
    /// Ends of executions: done, and failed.
    ends: (u64, u64),
    monitors: u32,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 9);
        let options = NETWORKS[random.below(NETWORKS.len() as u64) as usize];
        let (network, _) = conformance::networks(options, seed).expect("it is a network");
        let mut world = World::new(&network);
        let client = world.add_site();
        let servers: Vec<Site<Source>> = (0..SERVERS).map(|_| world.add_site()).collect();
        let target = Target { address: Address::Node(BROADCAST), is_unicast: false };
        let search = FinderConfig { targets: vec![target], seed, ..FinderConfig::default() };
        let config = ClientConfig { seed, search, ..ClientConfig::default() };
        world.start(client, App::new(config, 0));
        world.set_allowance(client.node, Allowance { memory: 2 << 20, ..Allowance::default() });
        let open = vec![false; CHANNELS as usize];
        let uses = vec![Use::Free; OPERATIONS as usize];
        let mut scene = Scene {
            world,
            random,
            servers,
            is_cut: [false; SERVERS as usize],
            client,
            searches: seed % 2 == 1,
            lives: 0,
            open,
            uses,
            told: Vec::new(),
            ends: (0, 0),
            monitors: 0,
        };
        (0..SERVERS).for_each(|number| scene.start(number));
        (0..CHANNELS).for_each(|channel| scene.open(channel));
        scene
    }

    fn start(&mut self, server: u32) {
        let site = self.servers[server as usize];
        if !self.world.is_running(site.node) {
            self.lives += 1;
            let mut config = ServerConfig { guid: [self.lives; 12], ..ServerConfig::default() };
            config.discovery.beacons = vec![Address::Node(BROADCAST)];
            let source = Source::new(config, self.world.now(), TICK, Instant::MAX, &suffix(server));
            self.world.start_with(site, source, answer);
        }
    }

    fn command(&mut self, command: Command) {
        self.world.command(self.client, command);
    }

    fn open(&mut self, channel: u32) {
        let (name, server) = (["count", "box", "asked", "wave"][channel as usize / 2], channel % SERVERS);
        let name = format!("{name}{}", suffix(server));
        let server = (!self.searches).then(|| Address::Node(self.servers[server as usize].node));
        self.command(Command::Open { channel, name, server });
        self.open[channel as usize] = true;
        let each = OPERATIONS / CHANNELS;
        (channel * each..(channel + 1) * each).for_each(|operation| self.prepare(operation));
    }

    fn prepare(&mut self, operation: u32) {
        let channel = operation / (OPERATIONS / CHANNELS);
        let kind = match (channel / 2, operation % 3) {
            (0, 2) | (_, 0) => Kind::Get,
            (0, _) => Kind::Monitor,
            (1, 1) | (2, 2) => Kind::Put,
            (1, _) => Kind::Process,
            (2, _) => Kind::Call,
            _ => Kind::Get,
        };
        let text =
            if operation.is_multiple_of(2) { "record[queueSize=2]" } else { "record[queueSize=4,pipeline=true]" };
        let request = Box::new(text.parse().expect("a request"));
        self.command(Command::Prepare { operation, channel, kind, request });
        self.uses[operation as usize] = Use::Idle(kind);
    }

    fn execute(&mut self, operation: u32) {
        let Use::Idle(kind) = self.uses[operation as usize] else { return };
        let command = match kind {
            Kind::Put => Command::Put { operation, value: Box::new(number(3.0)) },
            Kind::Call => Command::Call { operation, argument: None },
            _ => Command::Execute { operation },
        };
        self.command(command);
        if kind != Kind::Monitor {
            self.uses[operation as usize] = Use::Executing(kind);
        }
    }

    /// Lets time pass, and the application hear.
    fn pass(&mut self, span: Duration) {
        let until = self.world.now() + span;
        while self.world.turn(until).is_some() {
            self.hear();
        }
        self.hear();
    }

    fn hear(&mut self) {
        while let Some(told) = self.world.take_event(self.client) {
            if let AppEvent::Client(Event::Done { operation } | Event::Failed { operation, .. }) = &told {
                let known = &mut self.uses[*operation as usize];
                match *known {
                    Use::Executing(kind) => {
                        *known = Use::Idle(kind);
                        let is_done = matches!(told, AppEvent::Client(Event::Done { .. }));
                        self.ends.0 += u64::from(is_done);
                        self.ends.1 += u64::from(!is_done);
                    }
                    other => panic!("{told:?}, but it is {other:?}"),
                }
            }
            if let AppEvent::Update { operation, .. } = &told {
                assert!(matches!(self.uses[*operation as usize], Use::Idle(Kind::Monitor)), "{told:?}");
            }
            self.told.push(told);
        }
    }

    fn deed(&mut self) {
        let server = self.random.below(SERVERS.into()) as u32;
        let node = self.servers[server as usize].node;
        let channel = self.random.below(CHANNELS.into()) as u32;
        match self.random.below(16) {
            0 => self.world.kill(node, Death::Reset),
            1 => self.world.kill(node, Death::Silent),
            2 | 3 => self.start(server),
            4 => self.world.stop(if self.random.chance(0.3) { self.client.node } else { node }),
            5 | 6 => (0..=SERVERS).for_each(|node| self.world.resume(node)),
            7 => {
                let streams = self.world.streams();
                if !streams.is_empty() {
                    let stream = streams[self.random.below(streams.len() as u64) as usize];
                    self.world.reset(stream, Duration::from_millis(self.random.below(20)));
                }
            }
            8 => self.cut_off(server, true),
            9 | 10 => self.cut_off(server, false),
            11 => self.close(channel),
            12 if !self.open[channel as usize] => self.open(channel),
            13 => self.leave(),
            _ => (0..OPERATIONS).for_each(|operation| {
                if self.random.chance(0.5) {
                    self.execute(operation);
                }
            }),
        }
    }

    /// Cuts a server off, or does so no more.
    fn cut_off(&mut self, server: u32, is_cut: bool) {
        if core::mem::replace(&mut self.is_cut[server as usize], is_cut) != is_cut {
            self.world.cut_off(self.servers[server as usize].node, is_cut);
        }
    }

    fn close(&mut self, channel: u32) {
        self.command(Command::Close { channel });
        self.open[channel as usize] = false;
        let each = (OPERATIONS / CHANNELS) as usize;
        for operation in channel as usize * each..(channel as usize + 1) * each {
            self.retire(operation);
        }
    }

    /// Checks what a monitor has told whose number is free now.
    fn retire(&mut self, operation: usize) {
        if self.uses[operation] == Use::Idle(Kind::Monitor) {
            self.check(operation as u32);
            self.monitors += 1;
        }
        self.uses[operation] = Use::Free;
        let is_other = |told: &AppEvent| match told {
            AppEvent::Update { operation: number, .. } | AppEvent::Client(Event::Ready { operation: number }) => {
                *number as usize != operation
            }
            _ => true,
        };
        self.told.retain(is_other);
    }

    fn check(&self, operation: u32) {
        in_order(self.told.iter(), operation).unwrap_or_else(|what| panic!("monitor {operation}: {what}"));
    }

    /// Gives up, stops or ends an operation.
    fn leave(&mut self) {
        let operation = self.random.below(OPERATIONS.into()) as u32;
        let known = self.uses[operation as usize];
        match self.random.below(3) {
            0 => self.command(Command::Cancel { operation }),
            1 if known == Use::Idle(Kind::Monitor) => self.command(Command::Stop { operation }),
            _ if known != Use::Free => {
                self.command(Command::Finish { operation });
                self.retire(operation as usize);
                self.prepare(operation);
            }
            _ => {}
        }
    }

    fn run(mut self) {
        for _ in 0..DEEDS {
            self.deed();
            let most = if self.random.chance(0.05) { 20_000 } else { 200 };
            let wait = self.random.below(most);
            self.pass(Duration::from_millis(wait));
        }
        (0..=SERVERS).for_each(|node| self.world.resume(node));
        (0..SERVERS).for_each(|server| {
            self.cut_off(server, false);
            self.start(server);
        });
        self.pass(RECOVERY);
        let waiting = self.uses.iter().filter(|known| matches!(known, Use::Executing(_))).count();
        assert_eq!(waiting, 0, "executions that never ended: {:?}", self.uses);
        (0..OPERATIONS).for_each(|operation| self.check(operation));
        self.works();
    }

    /// Checks that everything works when all is well.
    fn works(&mut self) {
        for channel in 0..CHANNELS {
            if !self.open[channel as usize] {
                self.open(channel);
            }
        }
        // A search or its answer may be lost a few times.
        self.pass(Duration::from_secs(20));
        self.told.clear();
        let executing = (0..OPERATIONS).filter(|operation| self.uses[*operation as usize] != Use::Free).count() as u64;
        let monitors = self.uses.iter().filter(|known| **known == Use::Idle(Kind::Monitor)).count() as u64;
        self.ends = (0, 0);
        (0..OPERATIONS).for_each(|operation| self.execute(operation));
        self.pass(Duration::from_secs(5));
        assert_eq!((executing, self.ends.0 + self.ends.1), (OPERATIONS.into(), executing - monitors));
        let refused =
            |told: &&AppEvent| matches!(told, AppEvent::Client(Event::Failed { why: Failure::Refused(_), .. }));
        assert_eq!(self.told.iter().filter(refused).count() as u64, self.ends.1, "{:?}", self.told);
        let now = (self.world.now().as_nanos() / TICK.as_nanos() as u64) as f64;
        for operation in (0..OPERATIONS).filter(|operation| self.uses[*operation as usize] == Use::Idle(Kind::Monitor))
        {
            let last = self.told.iter().rev().find_map(|told| match told {
                AppEvent::Update { operation: known, number, .. } if *known == operation => Some(*number),
                _ => None,
            });
            assert!(last.is_some_and(|last| now - last <= 200.0), "monitor {operation}: {last:?} at {now}");
        }
    }
}

/// Returns the end of the names of a server. They are so long that an answer to a search is no longer than it.
fn suffix(server: u32) -> String {
    format!(":of:server:{server}")
}

#[test]
fn every_execution_ends_once_whatever_happens() {
    measure_by(counting::bytes_here);
    conformance::each_seed(SEEDS, |seed| Scene::new(seed).run());
}
