//! The checker of every protocol, tried on a small protocol that conforms and on small ones that do not.
use crate::common;

use common::{Ask, Caller, CallerEvent, Echo, PEER};
use hodo_machine::{Address, Closed, Input, Instant, Machine, Outbox, Output};
use hodo_sim::Transport;
use hodo_sim::conformance::{Bounds, Case, Run, each_seed};
use hodo_sim::cost::Allowance;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A protocol in a few lines: asks the server for each number, again each millisecond, up to a limit.
#[derive(Debug, Default)]
struct Asker {
    opened: bool,
    wanted: BTreeSet<u8>,
    outgoing: Vec<u8>,
    telling: Vec<Result<u8, u8>>,
    due: Option<Instant>,
    tries: u32,
    /// The fault of this asker.
    fault: Fault,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Fault {
    #[default]
    None,
    NeverGivesUp,
    TellsTwice,
    Panics,
    NeverIdle,
    Undetermined(u64),
}

const EACH: Duration = Duration::from_millis(1);

impl Machine for Asker {
    type Command = u8;
    type Event = Result<u8, u8>;

    fn handle(&mut self, now: Instant, input: Input<'_, u8>) {
        match input {
            Input::Command(number) => {
                self.wanted.insert(number);
                self.outgoing.push(number);
                self.due = self.due.or(Some(now + EACH));
            }
            Input::Received(_, [number, inverse]) if *number == !inverse => {
                let news = self.wanted.remove(number) || self.fault == Fault::TellsTwice;
                self.telling.extend(news.then_some(Ok(*number)));
            }
            Input::Received(..) => assert!(self.fault != Fault::Panics, "a corrupted message"),
            Input::Elapsed if self.due.is_some_and(|due| due <= now) => {
                self.tries += 1;
                self.due = (!self.wanted.is_empty()).then_some(now + EACH);
                if self.tries > 100 && self.fault != Fault::NeverGivesUp {
                    self.telling.extend(std::mem::take(&mut self.wanted).into_iter().map(Err));
                    self.due = None;
                }
                self.outgoing.extend(&self.wanted);
            }
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<Result<u8, u8>> {
        if !self.opened {
            self.opened = true;
            return Output::Open(PEER, Address::Node(1));
        }
        if let Some(told) = self.telling.pop() {
            return Output::Event(told);
        }
        if let Fault::Undetermined(number) = self.fault {
            self.fault = Fault::None;
            out.copy(&number.to_le_bytes());
            return Output::Send(PEER);
        }
        match self.outgoing.pop() {
            Some(number) => {
                out.copy(&[number, !number]);
                Output::Send(PEER)
            }
            None if self.fault == Fault::NeverIdle => Output::Send(PEER),
            None => Output::Idle(self.due),
        }
    }
}

fn each_number_once(run: &Run<Result<u8, u8>>) -> Result<(), String> {
    let mut numbers: Vec<u8> = run.events.iter().map(|(_, told)| told.unwrap_or_else(|number| number)).collect();
    numbers.sort_unstable();
    if numbers == (0..20).collect::<Vec<u8>>() { Ok(()) } else { Err(format!("told of {numbers:?}")) }
}

/// Returns the checker's complaint about an asker with this fault, or `None` if it conforms.
fn verdict(network: Option<&str>, fault: &dyn Fn() -> Fault) -> Option<String> {
    let case = Case {
        transport: Transport::Datagram,
        client: &|_| Asker { fault: fault(), ..Asker::default() },
        server: &|_| Echo::default(),
        answer: Some,
        commands: &|_| (0..20).collect(),
        finished: &|_| false,
        check: &each_number_once,
        // It asks again for all twenty at a time.
        bounds: Bounds {
            steps: 100_000,
            client: Allowance { outputs: 20, ..Allowance::default() },
            ..Bounds::default()
        },
    };
    let cause = catch_unwind(AssertUnwindSafe(|| match network {
        Some(network) => case.conforms_on(network, 0..20),
        None => case.conforms(0..20),
    }))
    .err()?;
    cause.downcast_ref::<String>().cloned()
}

#[test]
fn a_protocol_that_asks_again_conforms() {
    assert_eq!(verdict(None, &|| Fault::None), None);
}

#[test]
fn what_does_not_conform_is_named_with_its_network_and_seed() {
    let partition = Some("partition=0ns..1000s");
    let endless = verdict(partition, &|| Fault::NeverGivesUp).unwrap();
    assert!(endless.contains("partition=0ns..1000s") && endless.contains("seed 0: not finished after"), "{endless}");
    let twice = verdict(Some("duplicate=0.5"), &|| Fault::TellsTwice).unwrap();
    assert!(twice.contains("seed 0: told of"), "{twice}");
    let panics = verdict(Some("corrupt=0.5"), &|| Fault::Panics).unwrap();
    assert!(panics.contains("panicked: a corrupted message"), "{panics}");
    let busy = verdict(Some("loss=0.1"), &|| Fault::NeverIdle).unwrap();
    assert!(busy.contains("node 0 does not become idle"), "{busy}");
    let drawn = Cell::new(0);
    let undetermined = verdict(Some("loss=0"), &|| Fault::Undetermined(drawn.replace(drawn.get() + 1))).unwrap();
    assert!(undetermined.contains("went another way"), "{undetermined}");
    let unknown = verdict(Some("lost=0.1"), &|| Fault::None).unwrap();
    assert!(unknown.contains("unknown option `lost`"), "{unknown}");
}

#[test]
fn bytes_without_bound_are_named() {
    let case = Case {
        transport: Transport::Stream,
        client: &|_| Caller::counting(),
        server: &|_| Echo::default(),
        answer: Some,
        commands: &|_| vec![Ask::Open(PEER, Address::Node(1)), Ask::Send(PEER, vec![0; 1 << 20])],
        finished: &|_| false,
        check: &|_| Ok(()),
        bounds: Bounds { outstanding_bytes: 1 << 19, ..Bounds::default() },
    };
    let cause = catch_unwind(AssertUnwindSafe(|| case.conforms(0..1))).unwrap_err();
    let text = cause.downcast_ref::<String>().unwrap();
    assert!(text.contains("1048576 bytes are outstanding, more than 524288"), "{text}");
}

/// Checks that a stream keeps its bytes in order or ends, whatever the network does.
#[test]
fn streams_conform() {
    let ended = |run: &Run<CallerEvent>| {
        let closed = run.events.iter().filter(|(_, told)| matches!(told, CallerEvent::Closed(..))).count();
        let finished = CallerEvent::Closed(PEER, Closed::Finished);
        let whole = run.back.delivered_bytes == 200_000;
        let wrong = closed > 1 || run.events.iter().any(|(_, told)| *told == finished);
        if wrong || (closed == 0 && !whole) { Err(format!("{:?}", run.events)) } else { Ok(()) }
    };
    let case = Case {
        transport: Transport::Stream,
        client: &|_| Caller::counting(),
        server: &|_| Echo::default(),
        answer: Some,
        commands: &|_| vec![Ask::Open(PEER, Address::Node(1)), Ask::Stream(PEER, 200_000)],
        finished: &|_| false,
        check: &ended,
        bounds: Bounds::default(),
    };
    case.conforms(0..10);
}

#[test]
fn a_scene_that_panics_is_named_by_its_seed() {
    let cause = catch_unwind(|| each_seed(2, |seed| assert!(seed % 2 == 0, "{seed} is odd"))).unwrap_err();
    let said = cause.downcast_ref::<String>().expect("a message");
    let (seed, why) = said.strip_prefix("seed ").and_then(|rest| rest.split_once(": ")).expect("a seed and why");
    assert_eq!(why, format!("{seed} is odd"));
}
