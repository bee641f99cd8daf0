//! The simulation notices a machine that costs too much, or lets others wait.

use crate::counting;
use crate::sinner;

use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_sim::Transport;
use hodo_sim::conformance::{Bounds, Case, Crowd};
use hodo_sim::cost::{Allowance, Cost, measure_by};
use sinner::{Sinner, Vice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const SERVER: Peer = Peer(0);

/// Says what it is asked to say, and tells when as many kibibytes have come as the bytes ask for.
struct Client {
    address: Option<Address>,
    saying: Vec<Vec<u8>>,
    due: Vec<usize>,
    came: usize,
}

impl Client {
    fn new(node: u32) -> Self {
        Client { address: Some(Address::Node(node)), saying: Vec::new(), due: Vec::new(), came: 0 }
    }
}

impl Machine for Client {
    type Command = Vec<u8>;
    type Event = ();

    fn handle(&mut self, _now: Instant, input: Input<'_, Vec<u8>>) {
        match input {
            Input::Command(bytes) => {
                self.due.push(bytes.iter().map(|byte| usize::from(*byte) << 10).sum());
                self.saying.push(bytes);
            }
            Input::Received(_, bytes) => self.came += bytes.len(),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.address.take() {
            return Output::Open(SERVER, address);
        }
        if let Some(due) = self.due.first().copied().filter(|due| *due <= self.came) {
            self.came -= due;
            self.due.remove(0);
            return Output::Event(());
        }
        if self.saying.is_empty() {
            return Output::Idle(None);
        }
        out.copy(&self.saying.remove(0));
        Output::Send(SERVER)
    }
}

/// Returns the complaint about a server with this vice, if there is one.
fn complaint(check: impl FnOnce()) -> Option<String> {
    measure_by(counting::bytes_here);
    catch_unwind(AssertUnwindSafe(check)).err()?.downcast_ref::<String>().cloned()
}

fn cost(transport: Transport, vice: Vice) -> Option<String> {
    let case = Case {
        transport,
        client: &|_| Client::new(1),
        server: &|_| Sinner::new(vice),
        answer: Some,
        commands: &|_| vec![vec![1; 250]; 16],
        finished: &|events| events.len() == 16,
        check: &|_| Ok(()),
        bounds: Bounds::default(),
    };
    complaint(|| case.conforms_on("delay=20us", 0..1))
}

fn wait(vice: Vice) -> Option<String> {
    let crowd = Crowd {
        transport: Transport::Stream,
        server: &|world| world.add(Sinner::new(vice)).node,
        client: &|node, _| Client::new(node),
        operation: &|_, _| vec![vec![1]],
        greedy: &|_, _| vec![vec![100]],
        is_done: |()| true,
        patience: Duration::from_millis(1),
        cost: Allowance { memory: 4 << 20, ..Allowance::default() },
    };
    complaint(|| crowd.is_fair())
}

#[test]
fn memory_work_and_amplification_have_bounds_in_every_run() {
    assert_eq!(cost(Transport::Stream, Vice::None), None);
    for (transport, vice, what) in [
        (Transport::Stream, Vice::Hoards, "bytes of memory"),
        (Transport::Stream, Vice::Welcomes, "bytes of memory"),
        (Transport::Stream, Vice::Chatters, "outputs"),
        (Transport::Stream, Vice::Copies, "bytes allocated in all"),
        (Transport::Datagram, Vice::Amplifies, "of a stranger with"),
        (Transport::Datagram, Vice::Trusts, "bytes to a stranger"),
    ] {
        let text = cost(transport, vice).unwrap_or_default();
        assert!(text.contains("the machine at node 1") && text.contains(what), "{vice:?}: {text}");
    }
}

#[test]
fn whoever_keeps_the_rules_does_not_wait_for_others() {
    assert_eq!(wait(Vice::None), None);
    let text = wait(Vice::Starves).unwrap_or_default();
    assert!(text.contains("Greedy") && text.contains("waits for more than 1ms"), "{text}");
}

#[test]
fn memory_is_measured_on_the_thread_that_asks_for_it() {
    let is_within = || {
        let mut cost = Cost::default();
        drop(cost.of(|| vec![0_u8; 1 << 20]));
        cost.check(&Allowance::default()).is_ok()
    };
    let within = |measures: bool| {
        let on_its_own = std::thread::spawn(move || {
            if measures {
                measure_by(counting::bytes_here);
            }
            is_within()
        });
        on_its_own.join().expect("it does not panic")
    };
    assert_eq!([within(true), within(false)], [false, true]);
}
