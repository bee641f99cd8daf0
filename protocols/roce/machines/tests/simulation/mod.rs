//! Adapters on a simulated network, with connections between them and random programs at both ends of each.

#![allow(dead_code, reason = "each test uses a part of it")]

mod checks;
pub mod draw;
mod end;
mod port;
mod program;

use draw::Pace;
use end::{Area, End};
use hodo_machine::{Instant, Random, Transport};
use hodo_roce::{Access, Adapter, AdapterCommand, AdapterConfig, Completion, Counters};
use hodo_sim::cost::Allowance;
use hodo_sim::{Death, Network, Site, World};
use port::{Faults, Port};
use program::{Scope, Sheet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

/// The time after which a run counts as stuck. Where 40 % of the packets are lost, a message of 70 KB may take 1000 s.
const PATIENCE: Duration = Duration::from_secs(7200);
/// The number of things that happen in a run at most.
const STEPS_MAX: u64 = 2_000_000;
/// Bits of a counter, of which each is set once.
const BITS: u32 = 60;

/// One adapter.
struct Node {
    site: Site<Port>,
    /// The counter that every far end may add to.
    counter: Area,
    /// Bits of the counter that were given out.
    bits: u32,
    /// Bits that were set for sure, with what the counter was before.
    counted: Vec<(u32, u64)>,
    /// Ends by the numbers of their queue pairs.
    ends: HashMap<u32, usize>,
    lives: u64,
}

/// Adapters, their network, and both ends of each connection.
pub struct Scene {
    world: World,
    random: Random,
    seed: u64,
    network: Network,
    window_bytes: u32,
    /// Whether losses and receivers that are not ready are retried for as long as it takes; otherwise connections fail.
    is_patient: bool,
    nodes: Vec<Node>,
    ends: Vec<End>,
    agenda: BinaryHeap<Reverse<(Instant, usize)>>,
}

/// Sums over runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observed {
    pub requests: u64,
    pub succeeded: u64,
    pub failures: u64,
    pub counters: Counters,
    pub steps: u64,
    /// The virtual time of the longest run.
    pub longest: Duration,
}

impl Scene {
    pub fn new(seed: u64, is_patient: bool) -> Scene {
        let mut random = Random::for_purpose(seed, 77);
        let network = draw::network(&mut random, seed);
        let mut world = World::new(&network);
        let window_bytes = draw::one(&mut random, &[1, 4096, 16 << 10, 64 << 10, 1 << 20]);
        let nodes = (0..2 + random.below(2)).map(|_| add_node(&mut world)).collect();
        let (ends, agenda) = (Vec::new(), BinaryHeap::new());
        let mut scene = Scene { world, random, seed, network, window_bytes, is_patient, nodes, ends, agenda };
        (0..scene.nodes.len()).for_each(|node| scene.start(node));
        for _ in 0..1 + scene.random.below(3) {
            let count = scene.nodes.len() as u64;
            let first = scene.random.below(count);
            let other = (first + 1 + scene.random.below(count - 1)) % count;
            scene.connect([first as usize, other as usize]);
        }
        scene
    }

    /// Starts an adapter at a node.
    fn start(&mut self, node: usize) {
        let Node { site, lives, .. } = self.nodes[node];
        let seed = self.seed << 8 | (node as u64) << 4 | lives;
        let config = AdapterConfig { window_bytes: self.window_bytes, seed, ..AdapterConfig::default() };
        let mut adapter = Adapter::new(config);
        let (key, address) = adapter.register(vec![0; 8], Access::ALL, None).expect("there is room");
        if self.random.chance(0.2) {
            self.world.set_late(site.node, 0.2, 2 * self.network.delay);
        }
        let faults = Faults::draw(&mut self.random, draw::round_trip(&self.network));
        self.world.start(site, Port::new(adapter, faults, seed));
        let known = &mut self.nodes[node];
        known.counter = Area { key, address };
        known.lives += 1;
        (known.bits, known.counted, known.ends) = (0, Vec::new(), HashMap::new());
    }

    /// Connects two nodes, with a program for each direction.
    fn connect(&mut self, nodes: [usize; 2]) {
        let pace = Pace::new(&mut self.random, &self.network, self.is_patient);
        let first = self.ends.len();
        for (side, sheet) in self.programs(nodes, &pace).into_iter().enumerate() {
            let (index, node) = (first + side, nodes[side]);
            let capacity = draw::capacity(&mut self.random);
            let adapter = self.world.machine_mut(self.nodes[node].site).expect("it runs");
            let mut end = End::new(adapter, &capacity, sheet);
            (end.index, end.node, end.far, end.may_fail) = (index, node, first + 1 - side, !self.is_patient);
            let before = self.nodes[node].ends.insert(end.number, index);
            assert_eq!(before, None, "the number of a queue pair that was there");
            self.ends.push(end);
        }
        for side in 0..2 {
            let [end, far] = self.ends.get_disjoint_mut([first + side, first + 1 - side]).expect("two ends");
            let far_node = &self.nodes[far.node];
            end.knows(far, far_node.counter);
            let connection = pace.connection(&mut self.random, side, far_node.site.node, far.number);
            let adapter = self.world.machine_mut(self.nodes[end.node].site).expect("it runs");
            adapter.connect(end.number, &connection).expect("it is new");
        }
        (first..first + 2).for_each(|end| self.post(end));
    }

    /// Writes the programs of both directions.
    fn programs(&mut self, nodes: [usize; 2], pace: &Pace) -> [Sheet; 2] {
        let Scene { random, nodes: all, world, is_patient, network, .. } = self;
        let is_rough = network.loss + network.corrupt + network.reorder > 0.1 || network.rate.is_some();
        let scope = Scope {
            begins: world.now(),
            span: draw::SPAN * pace.round_trip,
            requests: draw::one(random, &[2, 8, 8, 50]),
            mtu: pace.mtu,
            large: if is_rough { 0.003 } else { 0.03 },
            rewrites: *is_patient,
            late: draw::one(random, &[0.0, 0.2, 1.0]),
        };
        let mut sheets = [Sheet::default(), Sheet::default()];
        for side in 0..2 {
            let node = &mut all[nodes[1 - side]];
            let mut count = || {
                node.bits += 1;
                Some(node.bits - 1).filter(|bit| *bit < BITS)
            };
            let [first, second] = &mut sheets;
            let (near, far) = if side == 0 { (first, second) } else { (second, first) };
            program::write(random, scope, near, far, &mut count);
        }
        for sheet in &mut sheets {
            // Nothing is written behind the end.
            sheet.local.add(random, 16, 1);
            sheet.shared.add(random, 16, 1);
        }
        sheets
    }

    /// Lets things happen up to `until`, or until nothing is left to happen.
    fn pass(&mut self, until: Instant) {
        loop {
            let due = self.agenda.peek().map(|Reverse((at, _))| *at);
            if due.is_some_and(|at| at <= self.world.now()) {
                if let Some(Reverse((at, end))) = self.agenda.pop()
                    && self.ends[end].posts_at == Some(at)
                {
                    self.ends[end].posts_at = None;
                    self.post(end);
                }
                continue;
            }
            if self.world.turn(due.unwrap_or(until).min(until)).is_some() {
                self.take_events();
            } else if self.world.now() >= until || due.is_none() {
                return;
            }
            assert!(self.world.steps() < STEPS_MAX, "it does not come to an end");
            assert!(self.world.now() < Instant::ZERO + PATIENCE, "it does not come to an end");
        }
    }

    /// Has an end post what is due.
    fn post(&mut self, end: usize) {
        let now = self.world.now();
        let end = &mut self.ends[end];
        let site = self.nodes[end.node].site;
        if end.is_gone {
            return;
        }
        let adapter = self.world.machine_mut(site).expect("it runs");
        if let Some(at) = end.post(adapter, now)
            && end.posts_at.is_none_or(|before| at < before)
        {
            end.posts_at = Some(at);
            self.agenda.push(Reverse((at, end.index)));
        }
        self.world.continue_later(site.node);
    }

    fn take_events(&mut self) {
        for node in 0..self.nodes.len() {
            let site = self.nodes[node].site;
            while let Some(completion) = self.world.take_event(site) {
                self.take(node, &completion);
            }
        }
    }

    fn take(&mut self, node: usize, completion: &Completion) {
        let known = self.nodes[node].ends.get(&completion.queue_pair);
        let index = *known.unwrap_or_else(|| panic!("a completion of no queue pair: {completion:?}"));
        let adapter = self.world.machine_mut(self.nodes[node].site).expect("it runs");
        let far = self.ends[index].far;
        let [end, far] = self.ends.get_disjoint_mut([index, far]).expect("two ends");
        if completion.kind.is_receive() {
            end.received(adapter, completion, &far.sheet);
        } else if let Some(found) = end.sent(adapter, completion)
            && !far.is_gone
        {
            self.nodes[far.node].counted.push(found);
        }
        self.post(index);
    }

    /// Runs to the end, and checks everything.
    pub fn run(mut self) -> Observed {
        self.pass(Instant::MAX);
        self.check();
        self.observe()
    }

    /// Runs while ends are stopped now and then.
    pub fn run_with_stops(mut self) -> Observed {
        for _ in 0..self.random.below(3) {
            self.pass_a_while();
            let end = &self.ends[self.random.below(self.ends.len() as u64) as usize];
            self.world.command(self.nodes[end.node].site, AdapterCommand::Fail(end.number));
        }
        self.run()
    }

    /// Runs while adapters end, and others begin at their nodes.
    pub fn run_with_restarts(mut self) -> Observed {
        for _ in 0..1 + self.random.below(2) {
            self.pass_a_while();
            let node = self.random.below(self.nodes.len() as u64) as usize;
            self.restart(node);
        }
        self.run()
    }

    fn pass_a_while(&mut self) {
        let delay = self.network.delay + self.network.jitter;
        let until = self.world.now() + draw::time(&mut self.random, 20 * delay);
        self.pass(until);
    }

    /// Ends the adapter at a node, and connects another one to the far ends of the first one.
    fn restart(&mut self, node: usize) {
        let death = if self.random.chance(0.5) { Death::Reset } else { Death::Silent };
        self.world.kill(self.nodes[node].site.node, death);
        let mut orphans = Vec::new();
        for end in self.ends.iter_mut().filter(|end| end.node == node) {
            let was_gone = end.is_gone;
            orphans.extend(Some(end.goes()).filter(|_| !was_gone));
        }
        for far in &orphans {
            self.ends[*far].may_fail = true;
        }
        if self.random.chance(0.5) {
            self.pass_a_while();
        }
        self.start(node);
        for far in orphans {
            let other = self.ends[far].node;
            // A far end is destroyed before or after it has noticed.
            if self.random.chance(0.3) {
                self.pass_a_while();
            }
            if !self.ends[far].is_gone {
                self.destroy(far);
                self.connect([node, other]);
            }
        }
    }

    fn destroy(&mut self, end: usize) {
        let end = &mut self.ends[end];
        let node = &mut self.nodes[end.node];
        let adapter = self.world.machine_mut(node.site).expect("it runs");
        adapter.destroy(end.number);
        end.goes();
        end.freeze(adapter);
        // What was reported before is with the application.
        while let Some(completion) = self.world.take_event(node.site) {
            assert_eq!(completion.queue_pair, end.number, "events are taken at once");
        }
        node.ends.remove(&end.number);
        self.world.continue_later(node.site.node);
    }

    fn observe(&self) -> Observed {
        let mut observed = Observed::default();
        for node in &self.nodes {
            observed.add_counters(&self.world.machine(node.site).expect("it runs").counters());
        }
        observed.requests = self.ends.iter().map(|end| end.complete as u64).sum();
        observed.succeeded = self.ends.iter().map(|end| end.succeeded as u64).sum();
        observed.failures = self.ends.iter().filter(|end| end.failure.is_some()).count() as u64;
        observed.steps = self.world.steps();
        observed.longest = self.world.now() - Instant::ZERO;
        observed
    }
}

fn add_node(world: &mut World) -> Node {
    let site = world.add_site();
    world.set_opening(site.node, Transport::Datagram);
    // What is posted is no input, and data that is read is more than its request.
    world.set_allowance(site.node, Allowance { outputs: 1024, ..Allowance::default() });
    Node { site, counter: Area::default(), bits: 0, counted: Vec::new(), ends: HashMap::new(), lives: 0 }
}

impl Observed {
    /// Adds what happened in another run.
    pub fn add(&mut self, other: &Observed) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.failures += other.failures;
        self.steps += other.steps;
        self.longest = self.longest.max(other.longest);
        self.add_counters(&other.counters);
    }

    fn add_counters(&mut self, counters: &Counters) {
        let all = &mut self.counters;
        all.sent += counters.sent;
        all.received += counters.received;
        all.discarded += counters.discarded;
        all.wrong_icrc += counters.wrong_icrc;
        all.retransmitted += counters.retransmitted;
        all.duplicates += counters.duplicates;
        all.out_of_order += counters.out_of_order;
        all.receiver_not_ready += counters.receiver_not_ready;
        all.timeouts += counters.timeouts;
        all.naks_sent += counters.naks_sent;
        all.naks_received += counters.naks_received;
        all.far_receiver_not_ready += counters.far_receiver_not_ready;
    }
}
