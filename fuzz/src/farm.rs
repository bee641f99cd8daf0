use crate::{Accepts, Script, Step, drive, drive_within};
use bytes::Bytes;
use hodo_farm::builder::Command as BuilderCommand;
use hodo_farm::controller::{Command, Event, FarCounters, Final, Owner};
use hodo_farm::emulation::{Accept, Decisions, Spread};
use hodo_farm::node::{self, Decide, Job};
use hodo_farm::source::Command as SourceCommand;
use hodo_farm::wire::{HEADER, HELLO, Header, Hello, Role, SEGMENT, Segment, TOKEN, Token, Verdict};
use hodo_farm::{
    Builder, BuilderConfig, Controller, ControllerConfig, Incomplete, Ledger, Likeness, NoSupply, Node, NodeConfig,
    Policy, Source, SourceConfig,
};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use hodo_sim::cost::Allowance;
use std::collections::BTreeSet;
use std::time::Duration;

const EVENT_MAX: u32 = 1 << 14;

/// Returns a peer that greets: it is greeted, or told why not.
fn newcomer(role: Role, transport: Transport) -> Accepts {
    let hello = Hello {
        role,
        flags: 0,
        number: 0,
        credits: 1,
        window: 0,
        event_max: EVENT_MAX,
        weight: 1,
        instance: 1,
        resumes: None,
    };
    Accepts::new(transport, hello.encode().to_vec(), HEADER)
}

/// Checks that a decoded message is encoded to the bytes that it came from, if those have one meaning only.
pub fn wire(input: &[u8]) {
    let Some((bytes, rest)) = input.split_first_chunk::<HEADER>() else { return };
    let Ok(header) = Header::decode(bytes) else { return };
    assert_eq!(header.encode(), *bytes);
    if let Ok(hello) = Hello::decode(&header, rest) {
        let again = hello.encode();
        let (head, body) = again.split_first_chunk::<HEADER>().expect("it begins with a header");
        assert_eq!(body.len(), HELLO + hello.resumes.map_or(0, |_| 12));
        assert_eq!(Header::decode(head).and_then(|header| Hello::decode(&header, body)), Ok(hello));
    }
    if let Some(bytes) = input.first_chunk::<SEGMENT>()
        && let Ok(segment) = Segment::decode(bytes)
    {
        assert_eq!(segment.encode(), *bytes);
    }
    if let Some(bytes) = input.first_chunk::<TOKEN>()
        && let Ok(token) = Token::decode(bytes)
    {
        assert_eq!(Token::decode(&token.encode()), Ok(token));
    }
    if let Ok(counters) = FarCounters::decode(rest) {
        assert_eq!(FarCounters::decode(&counters.encode()), Ok(counters));
    }
}

/// Drives a controller. The first byte chooses the policy, commits, reachable nodes and memory; the rest is a script.
/// No event has two verdicts, and the balance holds.
pub fn controller(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let config = ControllerConfig {
        policy: Policy::ALL[usize::from(choice % 4)],
        event_max: EVENT_MAX,
        pool_bytes: 1 << 16,
        source_credits: 8,
        sources_max: 3,
        nodes_max: 3,
        deadline: (choice & 4 != 0).then_some(Duration::from_millis(200)),
        uncommitted_max: (choice & 8 != 0).then_some(4),
        nodes: if choice & 16 == 0 { Vec::new() } else { vec![Address::Node(1), Address::Node(2)] },
        ..ControllerConfig::default()
    };
    let ledger = if choice & 32 == 0 { Ledger::default() } else { Ledger::with_memory(0) };
    let controller = Controller::new(config, NoSupply, ledger);
    let balanced = Balanced { controller, decided: BTreeSet::new() };
    drive(balanced, script, Some(&newcomer(Role::Node, Transport::Stream)), controller_command);
}

/// A controller whose verdicts are looked at.
struct Balanced {
    controller: Controller<NoSupply>,
    decided: BTreeSet<(u32, u64)>,
}

impl Machine for Balanced {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        self.controller.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        let output = self.controller.poll(now, out);
        match &output {
            Output::Event(Event::Verdict(Final { owner: Owner::Other | Owner::Unknown { .. }, verdict, .. })) => {
                assert_eq!(*verdict, Verdict::Quarantined, "it decides nothing");
            }
            Output::Event(Event::Verdict(Final { run, event, verdict, .. })) => {
                assert!(self.decided.insert((*run, *event)), "event {event} of run {run} has two verdicts");
                assert_ne!(*verdict, Verdict::Failed, "that is never final");
            }
            Output::Idle(_) => {
                let counts = self.controller.counts();
                assert_eq!(counts.decided(), self.decided.len() as u64);
                assert!(counts.taken_in >= counts.decided());
            }
            _ => {}
        }
        output
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.controller.landing(peer)
    }
}

fn controller_command(bytes: &[u8]) -> Option<Command> {
    let (kind, rest) = bytes.split_first()?;
    let number = u64::from(rest.first().copied().unwrap_or(0));
    Some(match kind % 8 {
        0 | 1 => Command::Event { number, payload: Bytes::copy_from_slice(rest), stamped: number % 2 == 1 },
        2 => Command::Committed(number),
        3 => Command::Pause,
        4 => Command::Resume,
        5 => Command::Run(number as u32),
        6 => Command::Report,
        7 if number % 4 == 1 => Command::Compared(Likeness::Other),
        7 if number % 4 == 3 => Command::Compared(Likeness::Unknown),
        _ => Command::Drain,
    })
}

/// Drives a node. The first byte chooses who decides; the rest is a script.
pub fn node(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let output = Bytes::from_static(&[7; 5000]);
    let time = if choice & 2 == 0 { Spread::Fixed(0) } else { Spread::Uniform(0, 5_000_000) };
    let decisions = Decisions { accept: Accept::Every(2), output, time, seed: 1 };
    let config = NodeConfig {
        controllers: if choice & 4 == 0 { Vec::new() } else { vec![Address::Node(1), Address::Node(2)] },
        number: 0,
        credits: 4,
        weight: 1,
        event_max: EVENT_MAX,
        decide: if choice & 1 == 0 { Decide::Application } else { Decide::Emulated(decisions) },
        silence: Duration::from_millis(600),
        instance: 0,
    };
    let deciding = Deciding { node: Node::new(config), jobs: Vec::new() };
    let mut accepts = newcomer(Role::Controller, Transport::Stream);
    // One that drains takes nobody new.
    if Script(script).any(|step| matches!(step, Step::Command([0, ..]))) {
        accepts.newcomer = None;
    }
    drive(deciding, script, Some(&accepts), |bytes| Some(bytes.to_vec()));
}

/// A node with an application that answers when a script says so.
struct Deciding {
    node: Node,
    jobs: Vec<Job>,
}

impl Machine for Deciding {
    type Command = Vec<u8>;
    type Event = ();

    fn handle(&mut self, now: Instant, input: Input<'_, Vec<u8>>) {
        if let Some(input) = input.without_command() {
            return self.node.handle(now, input);
        }
        let Input::Command(bytes) = input else { return };
        let command = match bytes.first() {
            Some(0) => node::Command::Drain,
            Some(1) => node::Command::Report { peer: Peer(0), value: 1, process: FarCounters::default() },
            Some(pick) if !self.jobs.is_empty() => {
                let job = self.jobs[usize::from(*pick) % self.jobs.len()];
                let verdicts = [Verdict::Accepted, Verdict::Rejected, Verdict::Failed];
                let verdict = verdicts[usize::from(pick % 3)];
                let output = Bytes::copy_from_slice(&bytes[1..]);
                node::Command::Decided { job, verdict, output, began: job.came }
            }
            _ => return,
        };
        self.node.handle(now, Input::Command(command));
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<()> {
        match self.node.poll(now, out) {
            Output::Event(event) => {
                if let node::Event::Work { job, .. } = event {
                    self.jobs.push(job);
                }
                Output::Event(())
            }
            Output::Send(peer) => Output::Send(peer),
            Output::Open(peer, address) => Output::Open(peer, address),
            Output::Close(peer) => Output::Close(peer),
            Output::Idle(at) => Output::Idle(at),
        }
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.node.landing(peer)
    }
}

/// Drives a source. The first byte chooses the transport; the rest is a script.
pub fn source(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let datagram = (choice & 1 != 0).then_some(40);
    let source = Source::new(SourceConfig { datagram, ..SourceConfig::new(Address::Node(1), 0, 1) }, NoSupply);
    drive(source, script, None, |bytes| {
        let (kind, rest) = bytes.split_first()?;
        let number = u64::from(rest.first().copied().unwrap_or(0));
        Some(match kind % 8 {
            0 => SourceCommand::Leave,
            1 => SourceCommand::Run(number as u32),
            _ => SourceCommand::Event { number, payload: Bytes::copy_from_slice(rest) },
        })
    });
}

/// Drives a builder. The first byte chooses the fate of incomplete events, the number of sources and the transport; the
/// rest is a script.
pub fn builder(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let config = BuilderConfig {
        patience: Duration::from_millis(50),
        incomplete: Incomplete::ALL[usize::from(choice % 2)],
        fragment_max: EVENT_MAX,
        pool_bytes: 1 << 16,
        source_credits: 8,
        datagrams: choice & 8 != 0,
        ..BuilderConfig::new(Address::Node(1), 1 + u32::from(choice / 2 % 3))
    };
    let transport = if config.datagrams { Transport::Datagram } else { Transport::Stream };
    // It greets a source over datagrams, and asks whether it is there and for what is missing: a threefold is what
    // RFC 9000, 8.1, allows.
    let allowance = Allowance { to_strangers: 3, ..Allowance::default() };
    let accepts = newcomer(Role::Source, transport);
    drive_within(allowance, Builder::new(config), script, Some(&accepts), |_| Some(BuilderCommand::Drain));
}
