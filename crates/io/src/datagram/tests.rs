use crate::{Clock, Endpoint, SocketSettings, Sockets, sys_datagram};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::io::IoSlice;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

const SIZE: usize = 100;
const STEP: Duration = Duration::from_millis(10);
const STEPS_MOST: u32 = 6000;

/// A machine that counts the bytes of the datagrams that come, each of which has `SIZE`.
struct Counting {
    open: Option<Address>,
    bytes: usize,
}

impl Machine for Counting {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Received(_, bytes) => {
                assert_eq!(bytes.len(), SIZE, "several datagrams came as one");
                self.bytes += bytes.len();
            }
            Input::Closed(_, Closed::Refused) => panic!("the far end is there"),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, _: &mut Outbox) -> Output<()> {
        self.open.take().map_or(Output::Idle(None), |address| Output::Open(Peer(0), address))
    }
}

struct Pair {
    clock: Clock,
    near: Endpoint<Counting, Sockets>,
    far: UdpSocket,
}

impl Pair {
    fn new() -> Pair {
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let open = Some(Address::Udp(far.local_addr().expect("it is bound")));
        let sockets = Sockets::new(SocketSettings::default()).expect("a poller");
        let clock = Clock::start();
        let mut pair = Pair { clock, near: Endpoint::new(Counting { open, bytes: 0 }, sockets, clock), far };
        pair.step_until(|near| near.transport().facts().local.is_some());
        let near = pair.near.transport().facts().local.expect("it is open");
        pair.far.connect(near).expect("it is on this host");
        pair
    }

    fn step_until(&mut self, is_done: impl Fn(&Endpoint<Counting, Sockets>) -> bool) {
        for _ in 0..STEPS_MOST {
            if is_done(&self.near) {
                return;
            }
            let until = self.clock.now() + STEP;
            self.near.step(Wait::Block, until, &mut |()| {}).expect("the sockets work");
        }
        panic!("{} bytes came, and nothing else for {STEPS_MOST} steps", self.near.machine().bytes);
    }

    /// Sends datagrams with one call; the kernel cuts what are several.
    fn send(&self, datagrams: usize) {
        let bytes = vec![7; datagrams * SIZE];
        let each = (datagrams > 1).then_some(SIZE as u16);
        sys_datagram::send(self.far.as_fd(), None, None, &[IoSlice::new(&bytes)], each).expect("a kernel since 4.18");
    }

    fn receive(&mut self, datagrams: usize) {
        let end = self.near.machine().bytes + datagrams * SIZE;
        self.step_until(|near| near.machine().bytes >= end);
    }
}

/// Joined datagrams wait behind the last of so many that came alone. For whoever switches joining off when they come alone, Linux
/// makes one datagram of them.
#[test]
fn what_was_joined_comes_apart_however_many_came_alone_before() {
    for alone in 0..130 {
        let mut pair = Pair::new();
        for _ in 0..10 {
            (0..40).for_each(|_| pair.send(1));
            pair.receive(40);
        }
        for _ in 0..alone {
            pair.send(1);
            pair.receive(1);
        }
        pair.send(1);
        pair.send(3);
        pair.send(3);
        pair.receive(7);
    }
}
