//! Sources of a builder that are late, come back or are away for long, in virtual time.

use crate::chaos::programs::{Memory, Tape};
use hodo_farm::builder::{BuilderConfig, Event as BuilderEvent};
use hodo_farm::controller::Event as ControllerEvent;
use hodo_farm::source::{Command, Event as SourceEvent};
use hodo_farm::{Builder, Controller, ControllerConfig, Ledger, NoSupply, Ranges, Source};
use hodo_machine::{Address, Instant, Random};
use hodo_sim::{Death, Network, Site, Transport, World, conformance};
use std::collections::BTreeMap;
use std::time::Duration;

/// Seeds of one round; `HODO_CHAOS_SEEDS` asks for more.
const SEEDS: u64 = 60;
const EVENTS: u64 = 60;
/// How long a source is waited for that is gone.
const PATIENCE: Duration = Duration::from_secs(3);
const MILLI: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy)]
enum Deed {
    Come(usize),
    Die(usize),
    End(usize),
    Reset,
    BuilderDies,
    BuilderComes,
}

/// A builder with its sources, between a controller and a node that decides at once.
struct Hall {
    world: World,
    random: Random,
    config: BuilderConfig,
    controller: Site<Controller<NoSupply>>,
    builder: Site<Builder>,
    sources: Vec<(Site<Source<Tape>>, Memory)>,
    agenda: BTreeMap<(Instant, usize), Deed>,
    /// Verdicts on events, and whether each was on all its fragments.
    decided: BTreeMap<u64, bool>,
    /// Fragments that came too late, as their sources were told.
    late: u64,
    /// Events without all fragments, and how many there were when a source was last let in.
    incomplete: u64,
    incomplete_before: u64,
    /// Sources that have come to their end.
    ended: usize,
}

impl Hall {
    fn new(seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 45);
        let network =
            Network { delay: MILLI / 20, jitter: MILLI, loss: 0.01, mtu: Some(1500), seed, ..Network::default() };
        let mut world = World::new(&network);
        let (controller, node, builder) = (world.add_site(), world.add_site(), world.add_site());
        let config = ControllerConfig { nodes: vec![Address::Node(node.node)], ..ControllerConfig::default() };
        world.start(controller, Controller::new(config, NoSupply, Ledger::default()));
        world.start_with(node, crate::node(0), crate::answer);
        let (count, datagrams) = (2 + random.below(3), random.chance(0.5));
        let config = BuilderConfig {
            patience: PATIENCE,
            source_credits: 16,
            datagrams,
            ..BuilderConfig::new(Address::Node(controller.node), count as u32)
        };
        let lossy = Network { loss: 0.1, duplicate: 0.05, ..network };
        let sources = (0..count as u32).map(|number| {
            let site = world.add_site();
            world.set_listening(site.node, false);
            if datagrams {
                world.set_opening(site.node, Transport::Datagram);
                world.set_network_of(Transport::Datagram, site.node, builder.node, &lossy);
                world.set_network_of(Transport::Datagram, builder.node, site.node, &lossy);
            }
            let memory = Memory {
                run: 1,
                number,
                to: builder.node,
                numbers: (0..EVENTS).collect(),
                answered: Ranges::default(),
                doubled: Ranges::default(),
                answered_doubles: Ranges::default(),
                gap: MILLI * random.below(20) as u32,
                datagram: datagrams.then_some(1400),
            };
            (site, memory)
        });
        let sources = sources.collect();
        let (agenda, decided) = (BTreeMap::new(), BTreeMap::new());
        let mut hall = Hall {
            world,
            random,
            config,
            controller,
            builder,
            sources,
            agenda,
            decided,
            late: 0,
            incomplete: 0,
            incomplete_before: 0,
            ended: 0,
        };
        hall.plan(0, 0, Deed::BuilderComes);
        hall
    }

    /// Plans a deed for some moment between these, in milliseconds.
    fn plan(&mut self, from: u64, to: u64, deed: Deed) {
        let at = self.world.now() + MILLI * (from + self.random.below(to - from + 1)) as u32;
        self.agenda.insert((at, self.agenda.len()), deed);
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Come(number) => {
                let (site, memory) = &mut self.sources[number];
                // Half of them remember nothing, and begin anew.
                if self.random.chance(0.5) {
                    memory.answered = Ranges::default();
                }
                let source = memory.source(self.world.now(), self.world.steps());
                self.world.start(*site, source);
            }
            Deed::Die(number) => self.kill(self.sources[number].0.node),
            Deed::End(number) => drop(self.world.command(self.sources[number].0, Command::End)),
            Deed::Reset => {
                let streams = self.world.streams();
                if let Some(stream) = streams.get(self.random.below(streams.len().max(1) as u64) as usize) {
                    self.world.reset(*stream, MILLI);
                }
            }
            Deed::BuilderDies => {
                self.kill(self.builder.node);
                self.plan(0, 500, Deed::BuilderComes);
            }
            Deed::BuilderComes => self.world.start(self.builder, Builder::new(self.config.clone())),
        }
    }

    fn kill(&mut self, node: u32) {
        let death = if self.random.chance(0.5) { Death::Silent } else { Death::Reset };
        if self.world.is_running(node) {
            self.world.kill(node, death);
        }
    }

    fn hear(&mut self, node: u32) {
        if let Some(ControllerEvent::Verdict(last)) =
            self.world.take_event(self.controller).filter(|_| node == self.controller.node)
        {
            assert_eq!(self.decided.insert(last.event, !last.partial), None, "event {} is decided twice", last.event);
        }
        if node == self.builder.node {
            match self.world.take_event(self.builder) {
                Some(BuilderEvent::Incomplete { .. }) => self.incomplete += 1,
                Some(BuilderEvent::Joined { .. }) => self.incomplete_before = self.incomplete,
                _ => {}
            }
        }
        if let Some((site, memory)) = self.sources.iter_mut().find(|(site, _)| site.node == node)
            && let Some(event) = self.world.take_event(*site)
        {
            if let SourceEvent::Answered { event, late, .. } = event {
                memory.answered.insert(event);
                self.late += u64::from(late);
            }
            if event == SourceEvent::Ended {
                self.ended += 1;
                self.world.command(*site, Command::Leave);
            }
        }
    }

    /// Goes on until each source has the answers to all that it has.
    fn run(&mut self) {
        self.run_until(|hall| hall.sources.iter().all(|(_, memory)| memory.is_done()));
        assert_eq!(self.decided.len() as u64, EVENTS);
    }

    /// Goes on until all is done that is planned, and more.
    fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let end = self.world.now() + Duration::from_secs(200);
        while !self.agenda.is_empty() || !is_done(self) {
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            if let Some(node) = self.world.turn(next.unwrap_or(end)) {
                self.hear(node);
            } else if let Some((_, deed)) = self.agenda.pop_first() {
                self.act(deed);
            } else {
                let answered: Vec<_> = self.sources.iter().map(|(_, memory)| memory.answered.count()).collect();
                let builder = self.world.machine(self.builder);
                panic!("no end: {answered:?}, {:?}", builder.map(|builder| (builder.counters(), builder.waited_for())));
            }
        }
    }
}

#[test]
fn sources_that_come_late_or_again_are_in_every_event() {
    conformance::each_seed(SEEDS, |seed| {
        let mut hall = Hall::new(seed);
        for number in 0..hall.sources.len() {
            hall.plan(0, 9000, Deed::Come(number));
        }
        // The last one has come.
        hall.plan(9000, 9300, Deed::Reset);
        let number = hall.random.below(hall.sources.len() as u64) as usize;
        hall.plan(9000, 9300, Deed::Die(number));
        hall.plan(9400, 9800, Deed::Come(number));
        if hall.random.chance(0.5) {
            hall.plan(9000, 9600, Deed::BuilderDies);
        }
        hall.run();
        let partial: Vec<_> = hall.decided.iter().filter(|(_, is_whole)| !**is_whole).collect();
        assert_eq!((partial, hall.late), (vec![], 0));
    });
}

#[test]
fn one_that_is_away_for_long_is_in_all_events_but_those_of_that_time() {
    let mut lacking = 0;
    conformance::each_seed(SEEDS, |seed| {
        let mut hall = Hall::new(seed);
        (0..hall.sources.len()).for_each(|number| hall.plan(0, 100, Deed::Come(number)));
        hall.plan(100, 700, Deed::Die(0));
        hall.plan(5000, 9000, Deed::Come(0));
        hall.run();
        let partial = hall.decided.values().filter(|is_whole| !**is_whole).count() as u64;
        assert_eq!((hall.incomplete, hall.incomplete_before), (partial, partial), "none after its return");
        assert_eq!(hall.late, partial, "it is told of each");
        lacking += partial;
    });
    assert!(lacking > 0);
}

#[test]
fn a_builder_that_was_started_again_tells_it_too() {
    conformance::each_seed(SEEDS, |seed| {
        let mut hall = Hall::new(seed);
        (0..hall.sources.len()).for_each(|number| hall.plan(0, 100, Deed::Come(number)));
        hall.plan(100, 700, Deed::Die(0));
        hall.plan(4000, 9000, Deed::BuilderDies);
        hall.plan(5000, 9000, Deed::Come(0));
        hall.run();
        let partial = hall.decided.values().filter(|is_whole| !**is_whole).count() as u64;
        assert_eq!(hall.late, partial);
    });
}

#[test]
fn a_run_that_is_ended_ends_at_one_number_for_all() {
    conformance::each_seed(SEEDS, |seed| {
        let mut hall = Hall::new(seed);
        // A source whose connection is reset may notice it late.
        hall.config.patience = 4 * PATIENCE;
        for number in 0..hall.sources.len() {
            hall.sources[number].1.numbers = (0..100_000).collect();
            hall.plan(0, 300, Deed::Come(number));
            // Not all are told at one time.
            hall.plan(800, 1500, Deed::End(number));
        }
        hall.plan(300, 1500, Deed::Reset);
        hall.run_until(|hall| hall.ended == hall.sources.len());
        let counts: Vec<_> = hall.sources.iter().map(|(_, memory)| memory.answered.count()).collect();
        let partial = hall.decided.iter().find(|(_, is_whole)| !**is_whole);
        assert_eq!(partial, None, "{counts:?} of {}", hall.decided.len());
        assert!(counts.iter().all(|count| *count == hall.decided.len() as u64), "{counts:?} of {}", hall.decided.len());
    });
}
