//! The client of a program, over a simulated network in which servers die and come back, streams break, nodes are cut off and searches are
//! lost: every call returns in the time that it has, a monitor's updates stay in order, and when all is well again everything works.

use hodo_machine::{Address, Driver, DriverError, Instant, Random, Wait};
use hodo_pva_host::Client;
use hodo_pva_host::client::{ClientError, Notice, Operation};
use hodo_pva_host::machines::client::{Client as Machine, ClientConfig, Command, Event};
use hodo_pva_host::machines::discovery::{FinderConfig, Target};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{Access, Command as Ask, Event as Asked, Server, ServerConfig};
use hodo_pva_host::machines::wire::Status;
use hodo_pva_host::machines::{Item, Request, Scalar, Value};
use hodo_sim::{BROADCAST, Death, Site, World, conformance};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 12;
const SERVERS: u32 = 2;
const CALLS: u32 = 120;
/// The time in which all is well again: the silence after which a connection counts as dead, and the longest wait of a search.
const RECOVERY: Duration = Duration::from_secs(110);
/// The time in which nothing happens then: longer than a silence after which a connection counts as dead.
const CALM: Duration = Duration::from_secs(50);
/// How long a reply may take, and the longest that a call may last: a put is two executions.
const TIMEOUT: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_millis(4100);
/// The period of the counters, and of what happens to the world.
const TICK: Duration = Duration::from_millis(50);
const NETWORKS: [&str; 5] = [
    "delay=50us",
    "delay=1ms&jitter=2ms",
    "delay=100us&loss=0.02",
    "delay=100us&loss=0.03&duplicate=0.2",
    "delay=200us&rate=100M&queue=64K",
];

/// The state that the test shares with the driver that it has given to the client.
#[derive(Default)]
struct Shared {
    /// Whether nothing more happens.
    is_calm: AtomicBool,
    now_ns: AtomicU64,
}

impl Shared {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }
}

/// A world that the client drives, and to which something happens while time passes.
struct Chaos {
    world: World,
    random: Random,
    client: Site<Machine>,
    servers: Vec<Site<Server>>,
    next_at: Instant,
    count: u32,
    lives: u8,
    shared: Arc<Shared>,
}

impl Chaos {
    fn new(seed: u64, shared: &Arc<Shared>) -> Self {
        let mut random = Random::for_purpose(seed, 5);
        let options = NETWORKS[random.below(NETWORKS.len() as u64) as usize];
        let (network, _) = conformance::networks(options, seed).expect("it is a network");
        let mut world = World::new(&network);
        let target = Target { address: Address::Node(BROADCAST), is_unicast: false };
        let search = FinderConfig { targets: vec![target], seed, ..FinderConfig::default() };
        let client = world.add(Machine::new(ClientConfig { seed, search, ..ClientConfig::default() }));
        let servers = (0..SERVERS).map(|_| world.add_site()).collect();
        let next_at = world.now() + TICK;
        let mut chaos =
            Chaos { world, random, client, servers, next_at, count: 0, lives: 0, shared: Arc::clone(shared) };
        (0..SERVERS).for_each(|server| chaos.start(server));
        chaos
    }

    fn start(&mut self, server: u32) {
        let site = self.servers[server as usize];
        if self.world.is_running(site.node) {
            return;
        }
        self.lives = self.lives.wrapping_add(1);
        let mut config = ServerConfig { guid: [self.lives; 12], ..ServerConfig::default() };
        config.discovery.beacons = vec![Address::Node(BROADCAST)];
        let mut machine = Server::new(config);
        machine.serve(name("box", server), double(1.5), Access::Mailbox);
        machine.serve(name("asked", server), double(1.5), Access::Handled);
        machine.serve(name("count", server), double(f64::from(self.count)), Access::ReadOnly);
        self.world.start_with(site, machine, answer);
    }

    /// Lets the counters grow, and perhaps something happen.
    fn tick(&mut self) {
        self.next_at = self.world.now() + TICK;
        self.count += 1;
        let mut value = double(f64::from(self.count));
        value.unmark();
        value.mark(1);
        for server in 0..SERVERS {
            let post = Ask::Post { name: name("count", server), value: Box::new(value.clone()) };
            self.world.command(self.servers[server as usize], post);
        }
        if self.shared.is_calm.load(Ordering::Relaxed) {
            (0..SERVERS).for_each(|server| self.mend(server));
        } else if self.random.chance(0.15) {
            self.deed();
        }
    }

    fn mend(&mut self, server: u32) {
        let node = self.servers[server as usize].node;
        self.world.resume(node);
        self.world.cut_off(node, false);
        self.start(server);
    }

    fn deed(&mut self) {
        let server = self.random.below(SERVERS.into()) as u32;
        let node = self.servers[server as usize].node;
        match self.random.below(9) {
            0 => self.world.kill(node, Death::Reset),
            1 => self.world.kill(node, Death::Silent),
            2 => self.world.stop(node),
            3 => self.world.cut_off(node, true),
            4 | 5 => {
                let streams = self.world.streams();
                if !streams.is_empty() {
                    let stream = streams[self.random.below(streams.len() as u64) as usize];
                    self.world.reset(stream, Duration::from_millis(self.random.below(20)));
                }
            }
            _ => self.mend(server),
        }
    }
}

impl Driver for Chaos {
    type Machine = Machine;

    fn machine(&self) -> &Machine {
        self.world.machine(self.client).expect("it runs")
    }

    fn machine_mut(&mut self) -> &mut Machine {
        self.world.machine_mut(self.client).expect("it runs")
    }

    fn command(&mut self, command: Command) {
        self.world.command(self.client, command);
    }

    fn turn(&mut self, _: Wait, until: Instant, told: &mut dyn FnMut(Event)) -> Result<(), DriverError> {
        self.world.continue_later(self.client.node);
        loop {
            let mut has_told = false;
            while let Some(event) = self.world.take_event(self.client) {
                told(event);
                has_told = true;
            }
            if has_told {
                return Ok(());
            }
            self.shared.now_ns.store(self.world.now().as_nanos(), Ordering::Relaxed);
            let is_over = self.world.turn(until.min(self.next_at)).is_none();
            if is_over && self.world.now() >= self.next_at {
                self.tick();
            } else if is_over {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Instant {
        self.world.now()
    }
}

/// Returns the name of a channel: so long that an answer to a search is no longer than it.
fn name(what: &str, server: u32) -> String {
    format!("{what}:of:server:{server}")
}

fn double(number: f64) -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
    value.set("value", number).expect("it fits");
    value
}

/// Returns the answer of a server's application: every third put or call is refused, every fifth never answered.
fn answer(event: Asked) -> Option<Ask> {
    let (Asked::Put { call, .. } | Asked::Call { call, .. }) = &event else { return None };
    let call = *call;
    let result = match event {
        _ if call % 5 == 4 => return None,
        _ if call % 3 == 2 => Err(Status::error("every third is refused")),
        Asked::Call { argument, .. } => Ok(argument),
        _ => Ok(None),
    };
    Some(Ask::Answer { call, result })
}

struct Program {
    client: Client,
    random: Random,
    shared: Arc<Shared>,
    monitors: Vec<(Operation, f64)>,
    done: u32,
}

impl Program {
    fn new(seed: u64) -> Self {
        let shared = Arc::<Shared>::default();
        let mut client = Client::over(Box::new(Chaos::new(seed, &shared)), None);
        client.timeout = TIMEOUT;
        let request = |at: u32| if at == 0 { "record[queueSize=4]" } else { "record[queueSize=4,pipeline=true]" };
        let monitors = (0..SERVERS)
            .map(|server| {
                let request: Request = request(server).parse().expect("it is one");
                (client.monitor(&name("count", server), &request).expect("it is a name"), -1.0)
            })
            .collect();
        Program { client, random: Random::for_purpose(seed, 6), shared, monitors, done: 0 }
    }

    /// Makes one call, which returns in its time.
    fn call(&mut self) -> Result<(), ClientError> {
        let server = self.random.below(SERVERS.into()) as u32;
        match self.random.below(7) {
            0 => self.client.get(&name("box", server)).map(drop),
            1 => self.client.put(&name("box", server), |value| value.set("value", 2.0)),
            2 => self
                .client
                .put_with(&name("asked", server), &Request::default(), false, |value| value.set("value", 3.0)),
            3 => self.client.call(&name("asked", server), Some(double(4.0))).map(drop),
            4 => self.client.info(&name("count", server), "").map(drop),
            5 => {
                let names = ["box", "asked", "count"].map(|what| name(what, server));
                let values = self.client.read_many(&names, &Request::default())?;
                assert_eq!(values.len(), names.len());
                values.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
            }
            _ => {
                self.updates(server, TIMEOUT / 20);
                Ok(())
            }
        }
    }

    /// Takes updates of a monitor for so long: each is later than the one before it.
    fn updates(&mut self, server: u32, within: Duration) -> bool {
        let (monitor, last) = &mut self.monitors[server as usize];
        let mut has_come = false;
        for _ in 0..20 {
            let Some(update) = self.client.next_update(*monitor, within).expect("nothing refuses it") else { break };
            let number = update.value.get("value").and_then(Item::as_f64).expect("a number");
            assert!(number >= *last, "{number} after {last}");
            *last = number;
            has_come = true;
        }
        has_come
    }

    /// Lets so much time pass, and returns the channels that were closed meanwhile.
    fn wait(&mut self, within: Duration) -> Vec<String> {
        let end = self.shared.now() + within;
        let mut closed = Vec::new();
        while self.shared.now() < end {
            if let Some(Notice::Channel(channel)) = self.client.next_notice(within).expect("the network is there")
                && !self.client.is_open(channel)
            {
                closed.push(self.client.name(channel).to_owned());
            }
        }
        closed
    }

    fn run(mut self) -> u32 {
        for _ in 0..CALLS {
            let began = self.shared.now();
            let outcome = self.call();
            let took = self.shared.now() - began;
            assert!(took <= LONGEST, "{took:?}: {outcome:?}");
            self.done += u32::from(outcome.is_ok());
        }
        self.shared.is_calm.store(true, Ordering::Relaxed);
        self.wait(RECOVERY);
        let closed = self.wait(CALM);
        assert!(closed.is_empty(), "{closed:?}, though nothing happens any more");
        for server in 0..SERVERS {
            self.client.put(&name("box", server), |value| value.set("value", 7.0)).expect("all is well");
            let value = self.client.get(&name("box", server)).expect("all is well");
            assert_eq!(value.get("value").and_then(Item::as_f64), Some(7.0));
            assert!(self.updates(server, Duration::from_secs(5)), "the monitor goes on");
        }
        self.done
    }
}

#[test]
fn every_call_returns_in_time_whatever_happens() {
    let mut done = 0;
    let count = conformance::each_seed(SEEDS, |seed| done += u64::from(Program::new(seed).run()));
    // Neither nothing nor everything goes wrong.
    let calls = count * u64::from(CALLS);
    assert!((calls / 4..calls * 19 / 20).contains(&done), "{done} of {calls} calls came out well");
}
