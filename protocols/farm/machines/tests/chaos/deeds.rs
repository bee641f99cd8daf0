//! The deeds: faults of the farm, its applications, and the checks meanwhile.

use super::{Action, Business, CONTROLLER, NOISE, SOURCE_CREDITS, Scene};
use crate::chaos::programs::{Memory, Noise, Place, expected, is_of, other};
use bytes::Bytes;
use hodo_farm::Error;
use hodo_farm::builder::Event as BuilderEvent;
use hodo_farm::controller::{self, Event as ControllerEvent, Final, Owner};
use hodo_farm::node::{self, Event as NodeEvent};
use hodo_farm::source::Event as SourceEvent;
use hodo_farm::wire::{Hello, Role, Token, Verdict};
use hodo_farm::{Incomplete, Node};
use hodo_sim::{Death, Site};
use std::time::Duration;

impl Scene {
    pub(super) fn act(&mut self, action: Action) {
        let death = if self.random.chance(0.3) { Death::Silent } else { Death::Reset };
        match action {
            Action::KillNode => {
                if let Some(host) = self.one_of_the_nodes() {
                    self.kill(host, death);
                }
            }
            Action::Stop => {
                let host = self.one_of_all();
                self.stopped.insert(host);
                self.world.stop(host);
                self.plan_in(1200, Action::Resume(host));
            }
            Action::Resume(host) => {
                self.stopped.remove(&host);
                self.world.resume(host);
            }
            Action::CutOff => {
                let host = self.one_of_all();
                self.world.cut_off(host, true);
                self.plan_in(600, Action::Reach(host));
            }
            Action::Reach(host) => self.world.cut_off(host, false),
            Action::Leave => {
                if let Some(host) = self.one_of_the_nodes() {
                    self.tell_node(host, node::Command::Drain);
                }
            }
            Action::Join => {
                let emulated = self.poison.is_empty();
                self.new_node(emulated, false);
            }
            Action::Start(host) => self.start(host),
            Action::Reset => self.reset_one(),
            Action::KillSource => {
                let hosts: Vec<u32> = self.memories.keys().copied().collect();
                let host = hosts[self.random.below(hosts.len() as u64) as usize];
                self.kill(host, death);
            }
            Action::KillBuilder => {
                if let Some(host) = self.builder.as_ref().map(|(site, _)| site.node) {
                    self.kill(host, death);
                }
            }
            Action::KillController => {
                // What the storage has written may be in its log although nobody was told.
                let count = self.random.below(self.storage.written.len() as u64 + 1) as usize;
                self.storage.commit(count);
                self.storage.written.clear();
                self.kill(CONTROLLER, death);
            }
            Action::FillDisk => {
                self.storage.is_full = true;
                self.plan_in(800, Action::EmptyDisk);
            }
            Action::EmptyDisk => {
                self.storage.is_full = false;
                self.commit_later();
            }
            Action::Pause => {
                self.command(controller::Command::Pause);
                self.plan_in(500, Action::GoOn);
            }
            Action::GoOn => self.command(controller::Command::Resume),
            Action::Noise => {
                let site = self.world.add_site();
                self.place(Place::Noise(site), site.node);
                self.world.set_listening(site.node, false);
                self.start(site.node);
                let greets = self.random.chance(0.7);
                (0..5).for_each(|said| self.plan_in(300, Action::NoiseSays(site, greets && said == 0)));
            }
            Action::NoiseSays(site, greets) => self.make_noise(site, greets),
        }
    }

    /// Cuts a random connection, anywhere in its bytes.
    fn reset_one(&mut self) {
        let streams = self.world.streams();
        let stream = streams.get(self.random.below(streams.len() as u64) as usize);
        if let Some(stream) = stream.copied() {
            self.world.reset(stream, Duration::from_millis(3));
        }
    }

    fn one_of_all(&mut self) -> u32 {
        self.random.below(self.places.len() as u64) as u32
    }

    fn one_of_the_nodes(&mut self) -> Option<u32> {
        let hosts: Vec<u32> = self.nodes.keys().copied().collect();
        hosts.get(self.random.below(hosts.len() as u64) as usize).copied()
    }

    /// Ends a program, which starts again a little later.
    fn kill(&mut self, host: u32, death: Death) {
        if self.world.is_running(host) {
            self.end(host, death);
            self.plan_in(400, Action::Start(host));
        }
    }

    /// Ends a program, with all that its application has planned.
    fn end(&mut self, host: u32, death: Death) {
        self.world.kill(host, death);
        self.stopped.remove(&host);
        self.business.retain(|_, (of, _)| *of != host);
    }

    fn make_noise(&mut self, site: Site<Noise>, greets: bool) {
        let hello = Hello {
            role: Role::Node,
            flags: 0,
            number: NOISE,
            credits: 2,
            window: 0,
            event_max: 10_000,
            weight: 1,
            instance: 0,
            resumes: None,
        };
        let bytes = if greets {
            hello.encode().to_vec()
        } else if self.random.chance(0.5) {
            let event = self.random.below(100);
            let (verdict, flags) = (Verdict::Accepted, 0);
            let token = Token { event, verdict, credits: 9, flags, run: 1, waited_us: 0, decided_us: 0, length: 0 };
            token.encode().to_vec()
        } else {
            (0..self.random.below(100)).map(|_| self.random.bits() as u8).collect()
        };
        self.world.command(site, bytes);
    }

    pub(super) fn command(&mut self, command: controller::Command) {
        self.world.command(self.controller, command);
    }

    fn tell_node(&mut self, host: u32, command: node::Command) {
        if let Place::Node(site) = self.places[host as usize] {
            self.world.command(site, command);
        }
    }

    /// Does what an application had planned.
    pub(super) fn attend(&mut self, host: u32, business: Business) {
        match business {
            Business::Commit => {
                self.storage.due = false;
                if self.storage.is_full {
                    return;
                }
                let count = 1 + self.random.below(self.storage.written.len() as u64) as usize;
                for likeness in self.storage.commit(count) {
                    self.command(controller::Command::Compared(likeness));
                }
                if !self.storage.written.is_empty() {
                    self.commit_later();
                }
                self.command(controller::Command::Committed(self.storage.committed));
            }
            Business::Decide(what) => {
                let Some(job) = self.jobs.remove(&what) else { return };
                let verdict = if self.random.chance(0.01) { Verdict::Failed } else { expected(job.event) };
                let output = if self.random.chance(0.2) { vec![7; 6000].into() } else { Vec::new().into() };
                let output = if verdict == Verdict::Accepted { output } else { Vec::new().into() };
                self.tell_node(host, node::Command::Decided { job, verdict, output, began: job.came });
            }
            // It comes again, however long it took to leave: a farm without nodes has no end.
            Business::Exit => self.kill(host, Death::Reset),
        }
    }

    fn commit_later(&mut self) {
        if !self.storage.due && !self.storage.is_full && !self.storage.written.is_empty() {
            self.storage.due = true;
            self.plan_business(CONTROLLER, 5000, Business::Commit);
        }
    }

    pub(super) fn source_told(&mut self, host: u32, event: &SourceEvent) {
        match *event {
            SourceEvent::Answered { run, event, verdict, duplicate, conflict, late } => {
                let (has_builder, builders) = (self.builder.is_some(), self.builders);
                let drops = self.builder.as_ref().is_some_and(|(_, config)| config.incomplete == Incomplete::Drop);
                let knows_all = self.knows_fragments(run, event);
                let memory = self.memories.get_mut(&host).expect("a source");
                let stored = self.storage.log.get(&(run, event)).copied();
                let is_apart = self.storage.conflicts.contains(&(run, event));
                assert!(is_apart || !conflict, "a source is told of other data of event {event} that are in no log");
                assert!(
                    !conflict || !knows_all || memory.doubled.contains(event),
                    "other data of another source are laid to one that gave event {event}"
                );
                if memory.answered.contains(event) {
                    // A builder that was started again does not know what the sources gave to the one before, and a controller that
                    // was, or has forgotten, not what of an event without all fragments. What a builder drops nobody compares.
                    let is_given_up = has_builder && (verdict == Verdict::Incomplete || drops);
                    let is_known = conflict || is_given_up || (builders > 1 && !knows_all);
                    assert!(is_known, "other data of event {event} are swallowed: {verdict:?}, duplicate: {duplicate}");
                    memory.answered_doubles.insert(event);
                    return;
                }
                // The fragment of another source may be the one that is different.
                assert!(has_builder || !conflict, "event {event} is the first of its number");
                assert!(stored.is_some(), "a source is told of event {event} before it is in the log");
                // A fragment that was late is in no event, whatever became of that.
                assert!(
                    !late || has_builder && verdict == Verdict::Incomplete,
                    "event {event}: {verdict:?} to one that was late"
                );
                assert!(
                    duplicate || late || conflict || stored == Some(verdict),
                    "event {event}: {verdict:?} is told, {stored:?} is stored"
                );
                memory.answered.insert(event);
            }
            SourceEvent::Left(error) => check_honest(&error),
            SourceEvent::TooLarge { event, .. } => panic!("event {event} is too large"),
            SourceEvent::Joined(_) | SourceEvent::Ended => {}
        }
    }

    pub(super) fn node_told(&mut self, site: Site<Node>, event: NodeEvent) {
        let host = site.node;
        match event {
            NodeEvent::Work { job, payload: bytes, partial } => {
                assert!(self.is_of(&bytes, job.run, job.event, partial), "event {}", job.event);
                if self.poison.contains(&job.event) {
                    return self.kill(host, Death::Reset);
                }
                self.entries += 1;
                self.jobs.insert(self.entries, job);
                self.plan_business(host, 3000, Business::Decide(self.entries));
            }
            NodeEvent::Left(_, error) => check_honest(&error),
            NodeEvent::Drained => self.plan_business(host, 0, Business::Exit),
            NodeEvent::Joined(..) | NodeEvent::ReportAsked(..) => {}
        }
    }

    fn is_of(&self, bytes: &[u8], run: u32, event: u64, partial: bool) -> bool {
        let sources = self.builder.as_ref().map(|(_, config)| config.sources);
        is_of(bytes, run, event, sources, self.source_of(event), partial)
    }

    fn source_of(&self, event: u64) -> u32 {
        let of = self.memories.values().find(|memory| memory.numbers.contains(&event));
        of.expect("each event has a source").number
    }

    pub(super) fn controller_told(&mut self, event: ControllerEvent) {
        match event {
            ControllerEvent::Verdict(last) => {
                if last.partial {
                    self.storage.partial.insert((last.run, last.event));
                }
                self.check_final(&last);
                self.storage.written.push_back(last);
                self.commit_later();
            }
            ControllerEvent::Left { hello, error, .. } if hello.number < NOISE => check_honest(&error),
            ControllerEvent::Drained => self.is_drained = true,
            _ => {}
        }
    }

    pub(super) fn builder_told(event: &BuilderEvent) {
        match event {
            // It was started again before its death was noticed, or has another connection.
            BuilderEvent::Left { error: Error::Replaced { .. }, .. }
            | BuilderEvent::Refused(_, Error::Replaced { .. }) => {}
            BuilderEvent::Left { error, .. } | BuilderEvent::Refused(_, error) | BuilderEvent::Lost(error) => {
                check_honest(error);
            }
            _ => {}
        }
    }

    /// Returns whether the controller knows all fragments of an event that it was given: it has not begun anew since, and has
    /// forgotten nothing.
    fn knows_fragments(&self, run: u32, event: u64) -> bool {
        self.controllers == 1 && self.storage.memory > 512 && !self.storage.partial.contains(&(run, event))
    }

    fn check_final(&self, last: &Final) {
        let Final { run, event, verdict, ref data, attempts, partial, node, .. } = *last;
        if last.owner != Owner::Itself {
            if matches!(last.owner, Owner::Unknown { .. }) && self.is_of(data, run, event, false) {
                return;
            }
            let is_doubled = |memory: &&Memory| memory.run == run && memory.doubled.contains(event);
            let mut doubles = self.memories.values().filter(is_doubled).map(|memory| other(run, event, memory.number));
            let is_there = |double: Bytes| data.windows(double.len()).any(|part| *part == double[..]);
            let is_other = doubles.any(is_there);
            let may_be_same = self.builder.is_some() && !self.knows_fragments(run, event);
            assert!(is_other || may_be_same, "the quarantine of event {event} has {data:?}");
            return;
        }
        let is_poison = self.poison.contains(&event);
        let is_whole = self.is_of(data, run, event, partial);
        match verdict {
            Verdict::Quarantined => {
                assert!(is_whole && attempts == 3, "event {event}");
            }
            Verdict::Accepted => assert!(is_whole || data[..] == [7; 6000], "event {event}"),
            Verdict::Incomplete => {
                assert!(self.builder.is_some() && partial && data.is_empty(), "event {event}");
                return;
            }
            _ => assert!(data.is_empty(), "event {event}"),
        }
        // Noise that was given an event may say what it likes of it.
        if verdict != Verdict::Quarantined && node != NOISE {
            assert!(verdict == expected(event) && !is_poison, "event {event} is {verdict:?}");
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let total = self.total;
        self.storage.log.len() == total
            && self.agenda.is_empty()
            && self.memories.values().all(Memory::is_done)
            && self.world.machine(self.controller).is_some_and(|controller| controller.counts().in_hand() == 0)
    }

    pub(super) fn check_balance(&self) {
        let counts = self.world.machine(self.controller).expect("it runs").counts();
        let of = |verdict| self.storage.log.values().filter(|is| **is == verdict).count() as u64;
        let stored = [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete].map(of);
        assert_eq!([counts.accepted, counts.rejected, counts.quarantined, counts.incomplete], stored);
        assert_eq!((counts.taken_in, counts.decided()), (self.total as u64, self.total as u64));
    }

    pub(super) fn check_bounds(&self) {
        let sources = self.memories.len() as u64;
        if let Some(controller) = self.world.machine(self.controller) {
            let in_hand = controller.counts().in_hand();
            assert!(in_hand <= 3 * sources * u64::from(SOURCE_CREDITS), "{in_hand} events are in hand");
        }
        for host in self.memories.keys() {
            if let Place::Source(site) = self.places[*host as usize]
                && let Some(source) = self.world.machine(site)
            {
                assert!(source.kept() <= SOURCE_CREDITS as usize + 1, "{} events are kept", source.kept());
            }
        }
    }

    pub(super) fn story(&self) -> String {
        let (stored, total, written) = (self.storage.log.len(), self.total, self.storage.written.len());
        let memories: Vec<_> = self.memories.values().map(|memory| memory.answered.count()).collect();
        let counters = self.world.machine(self.controller);
        let counters = counters.map(|controller| (controller.counts(), controller.counters(), controller.shares()));
        format!("{stored} of {total} stored, {written} written, answered {memories:?}, {counters:?}")
    }
}

/// Asserts that nobody who keeps the rules is accused of breaking them.
fn check_honest(error: &Error) {
    assert!(!error.is_misbehaviour() || matches!(error, Error::Full { .. }), "{error}");
    assert!(!matches!(error, Error::RefusedBy { code } if *code <= 12), "{error}");
}
