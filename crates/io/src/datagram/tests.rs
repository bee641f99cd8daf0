use crate::{Clock, Endpoint, SocketSettings, Sockets, sys};
use hodo_machine::{Address, Closed, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

const UDP_SEGMENT: libc::c_int = 103;
const SIZE: usize = 100;
const STEP: Duration = Duration::from_millis(10);
const STEPS_MOST: u32 = 6000;

/// A machine that sends one datagram and counts those that come, each of which has `SIZE` bytes.
struct Counting {
    open: Option<Address>,
    greets: bool,
    bytes: usize,
}

impl Machine for Counting {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(..) => self.greets = true,
            Input::Received(_, bytes) => {
                assert_eq!(bytes.len(), SIZE, "several datagrams came as one");
                self.bytes += bytes.len();
            }
            Input::Closed(_, Closed::Refused) => panic!("the far end is there"),
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<()> {
        if let Some(address) = self.open.take() {
            return Output::Open(Peer(0), address);
        }
        if std::mem::take(&mut self.greets) {
            out.copy(b"here");
            return Output::Send(Peer(0));
        }
        Output::Idle(None)
    }
}

/// The near end, and the far end's socket.
struct Pair(Endpoint<Counting, Sockets>, UdpSocket);

impl Pair {
    fn new() -> Pair {
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let open = Some(Address::Udp(far.local_addr().expect("it is bound")));
        let machine = Counting { open, greets: false, bytes: 0 };
        let sockets = Sockets::new(SocketSettings::default()).expect("a poller");
        let mut pair = Pair(Endpoint::new(machine, sockets, Clock::start()), far);
        while pair.0.machine().open.is_some() || pair.0.machine().greets {
            pair.step();
        }
        let (_, from) = pair.1.recv_from(&mut [0; 8]).expect("a greeting");
        pair.1.connect(from).expect("it is on this host");
        pair
    }

    fn step(&mut self) {
        let until = Clock::start().now() + STEP;
        self.0.step(Wait::Block, until, &mut |()| {}).expect("the sockets work");
    }

    /// Sends bytes, of which the kernel makes datagrams of `SIZE` where it is told to cut.
    fn send(&self, datagrams: usize, cut: bool) {
        let size = if cut { SIZE as libc::c_int } else { 0 };
        sys::set_option(self.1.as_fd(), libc::IPPROTO_UDP, UDP_SEGMENT, size).expect("a kernel since 4.18");
        let _ = self.1.send(&[7; 64 * SIZE][..datagrams * SIZE]).expect("it is connected");
    }

    fn receive(&mut self, datagrams: usize) {
        let end = self.0.machine().bytes + datagrams * SIZE;
        let mut steps = 0;
        while self.0.machine().bytes < end {
            assert!(steps < STEPS_MOST, "{} of {end} bytes came", self.0.machine().bytes);
            self.step();
            steps += 1;
        }
    }
}

/// Joined datagrams wait behind the last of so many that came alone. For whoever switches joining off when they come alone, Linux
/// makes one datagram of them.
#[test]
fn what_was_joined_comes_apart_however_many_came_alone_before() {
    for alone in 0..130 {
        let mut pair = Pair::new();
        for _ in 0..10 {
            (0..40).for_each(|_| pair.send(1, false));
            pair.receive(40);
        }
        for _ in 0..alone {
            pair.send(1, false);
            pair.receive(1);
        }
        pair.send(1, false);
        pair.send(3, true);
        pair.send(3, true);
        pair.receive(7);
    }
}
