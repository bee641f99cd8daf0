//! Prints each datagram that comes to a port, and sends it back: `port ADDRESS:PORT [GROUP%INTERFACE]...`. A line has the
//! address that the datagram was sent to, the index of the interface where it came in, its sender, and its text.

use hodo_io::{Clock, Endpoint, Port, PortOptions, SocketSettings, Sockets};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::net::IpAddr;

/// A machine that reports each datagram, and sends it back.
#[derive(Default)]
struct Echo {
    peers: HashMap<Peer, Ends>,
    reports: VecDeque<String>,
    replies: VecDeque<(Peer, Vec<u8>)>,
}

impl Machine for Echo {
    type Command = ();
    type Event = String;

    fn handle(&mut self, _: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, ends) => {
                self.peers.insert(peer, ends.clone());
            }
            Input::Received(peer, bytes) => {
                if let Some(Ends { local, remote, interface, .. }) = self.peers.get(&peer) {
                    let (interface, text) = (interface.unwrap_or(0), String::from_utf8_lossy(bytes));
                    self.reports.push_back(format!("{local} {interface} {remote} {text}"));
                }
                self.replies.push_back((peer, bytes.to_vec()));
            }
            _ => {}
        }
    }

    fn poll(&mut self, _: Instant, out: &mut Outbox) -> Output<String> {
        if let Some(report) = self.reports.pop_front() {
            return Output::Event(report);
        }
        match self.replies.pop_front() {
            Some((peer, bytes)) => {
                out.copy(&bytes);
                Output::Send(peer)
            }
            None => Output::Idle(None),
        }
    }
}

/// Parses a group and the index of the interface where it is joined.
fn group(text: &str) -> Result<(IpAddr, u32), Box<dyn Error>> {
    let (group, interface) = text.split_once('%').ok_or("a group is GROUP%INTERFACE, the index of an interface")?;
    Ok((group.parse()?, interface.parse()?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("port ADDRESS:PORT [GROUP%INTERFACE]...")?;
    let groups = arguments.map(|text| group(&text)).collect::<Result<_, _>>()?;
    let options = PortOptions { tells_arrival: true, broadcast: true, groups, ..PortOptions::default() };
    let port = Port::bind(&Address::Udp(address.parse()?), &options)?;
    println!("{}", port.address());
    let mut sockets = Sockets::new(SocketSettings::default())?;
    sockets.bind(port)?;
    let mut endpoint = Endpoint::new(Echo::default(), sockets, Clock::start());
    loop {
        endpoint.step(Wait::Block, Instant::MAX, &mut |report| println!("{report}"))?;
    }
}
