//! A wormhole router: addresses, inputs and outputs (ECSS-E-ST-50-12C, clause 10).
//!
//! | leading byte | meaning |
//! |--:|---|
//! | 0 | the configuration port |
//! | 1 to 31 | the output of this number; the byte is deleted |
//! | 32 to 254 | an entry of the table: a set of outputs, any free one of which is taken |
//! | 255 | reserved: the packet is spilled |
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{BuildError, EndOfPacket, RouterSettings, RouterView};
use crate::character::Code;

/// Ports of a router, with the configuration port.
pub(super) const PORTS: usize = 32;
/// Replies of the configuration port that wait for their output.
const REPLIES: usize = 16;

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The outputs, one in each bit. Any free one is taken, the lowest first.
    pub outputs: u32,
    /// Deletes the leading byte.
    pub delete_header: bool,
    /// Goes before packets without it, where several wait for an output.
    pub priority: bool,
}

impl Route {
    /// Returns a route to one output that keeps the leading byte.
    #[must_use]
    pub const fn to(output: u8) -> Self {
        Route { outputs: 1 << (output & 31), delete_header: false, priority: false }
    }

    /// Returns the numbers of the outputs.
    pub(super) fn numbers(self) -> impl Iterator<Item = u8> {
        let mut left = self.outputs & !1;
        core::iter::from_fn(move || {
            let output = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (output < u32::BITS).then_some(output as u8)
        })
    }
}

/// Packets of a port that were not forwarded whole, by their cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortFaults {
    /// Spilled: no route for the address.
    pub invalid_address: u64,
    /// Discarded: nothing between two ends of packets.
    pub empty: u64,
    /// Spilled: the link of the output does not run.
    pub down: u64,
    /// Cut: the watchdog found that the packet stood for too long.
    pub watchdog: u64,
    /// Cut: the link that the packet left through failed.
    pub cut: u64,
    /// Lost: replies of the configuration port for which there was no room.
    pub replies_lost: u64,
    /// Time-codes that were not the one after the last, and so not forwarded.
    pub time_codes: u64,
}

/// The routing table of a router: what its configuration port reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    table: Vec<Option<Route>>,
    name: String,
}

impl Registers {
    pub(super) fn new(name: &str, ports: u8) -> Self {
        let path = |address| (1..=usize::from(ports)).contains(&address).then(|| 1 << address);
        let route = |outputs| Route { outputs, delete_header: true, priority: false };
        Registers { table: (0..256).map(|address| path(address).map(route)).collect(), name: name.into() }
    }

    /// Returns where an address leads.
    #[must_use]
    pub fn route(&self, address: u8) -> Option<Route> {
        self.table[usize::from(address)]
    }

    /// Sets or removes the entry of a logical address.
    ///
    /// # Errors
    /// If the address is not one of 32 to 254.
    pub fn set_route(&mut self, address: u8, route: Option<Route>) -> Result<(), BuildError> {
        if !(32..=254).contains(&address) {
            return Err(BuildError::Address { router: self.name.clone(), address });
        }
        // Bit 0 would be the configuration port, which has its own address.
        self.table[usize::from(address)] = route.map(|route| Route { outputs: route.outputs & !1, ..route });
        Ok(())
    }

    /// Sets whether packets with a path address go before others.
    pub fn set_priority(&mut self, address: u8, priority: bool) {
        if let Some(route) = &mut self.table[usize::from(address)] {
            route.priority = priority;
        }
    }
}

/// A device behind the configuration port of a router, which answers packets.
pub trait Configuration: Send {
    /// Takes a packet that arrived at `port`, without the leading 0. Returns the reply, which leaves through that port; an empty one is none.
    fn answer(&mut self, port: u8, packet: &[u8], end: EndOfPacket, router: &mut RouterView<'_>) -> Vec<u8>;
}

/// The use that an input has for the front of its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worm {
    /// Reads the leading byte of a packet.
    Header,
    /// Waits for one of the outputs of a route.
    Waiting(Route),
    /// Feeds an output.
    Routed(u8),
    /// Drops the rest of a packet.
    Spilling,
    /// Collects a packet for the configuration port.
    Configuring,
}

/// An N-char in a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) code: Code,
    /// When it arrived. It can leave after the latency of its way through the router.
    pub(super) arrived: u64,
    /// Whether it takes a place in the buffer: an EEP that an error left does not.
    pub(super) counts: bool,
}

/// The receive buffer of a port. That of port 0 holds replies.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) stored: VecDeque<Stored>,
    pub(super) worm: Worm,
    /// When it last moved.
    pub(super) moved: u64,
}

impl Input {
    /// Tells whether a packet for the configuration port stands behind another one.
    pub(super) fn holds_command(&self) -> bool {
        let behind = self.stored.iter().skip(1);
        self.stored
            .iter()
            .zip(behind)
            .any(|(end, first)| !matches!(end.code, Code::Data(_)) && first.code == Code::Data(0))
    }
}

/// Which packet an output sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Free,
    Input(u8),
    /// No input any more: an EEP has to end what was sent.
    Ending,
}

/// The sending side of a port.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) source: Source,
    /// From when it can send, having switched to this source.
    pub(super) switched: u64,
    /// How long an N-char takes from the source to here.
    pub(super) latency: u64,
    /// Whether something of the packet has left.
    pub(super) begun: bool,
    /// The inputs served last without and with priority, each for its round robin.
    pub(super) last: [u8; 2],
}

/// A wormhole router.
pub(super) struct Router {
    pub(super) name: String,
    pub(super) settings: RouterSettings,
    pub(super) registers: Registers,
    /// The port of the network at each of its ports.
    pub(super) links: [Option<usize>; PORTS],
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    /// The inputs that wait for an output, one in each bit.
    pub(super) waiting: u32,
    pub(super) time: u8,
    pub(super) configuration: Option<Box<dyn Configuration>>,
    /// The packet for the configuration port that arrives at each input.
    pub(super) collected: Vec<Vec<u8>>,
    pub(super) replies: VecDeque<(u8, Vec<u8>)>,
}

impl Router {
    pub(super) fn new(name: String, settings: RouterSettings) -> Self {
        let input = |_| Input { stored: VecDeque::new(), worm: Worm::Header, moved: 0 };
        let output = |_| Output { source: Source::Free, switched: 0, latency: 0, begun: false, last: [0, 0] };
        Router {
            registers: Registers::new(&name, settings.ports),
            name,
            settings,
            links: [None; PORTS],
            inputs: (0..PORTS).map(input).collect(),
            outputs: (0..PORTS).map(output).collect(),
            waiting: 0,
            time: 0,
            configuration: None,
            collected: vec![Vec::new(); PORTS],
            replies: VecDeque::new(),
        }
    }

    pub(super) fn port(&self, number: u8) -> Option<usize> {
        *self.links.get(usize::from(number))?
    }

    /// Tells whether nothing but packets from link to link passes through, as far as its outputs and port 0 are concerned.
    pub(super) fn is_simple(&self) -> bool {
        let configuration = &self.inputs[0];
        configuration.worm == Worm::Header
            && configuration.stored.is_empty()
            && self.replies.is_empty()
            && self.outputs.iter().all(|output| output.source != Source::Ending)
    }

    /// Returns the N-char that an output has to send now.
    pub(super) fn offered(&self, output: u8, now: u64) -> Option<Code> {
        let output = &self.outputs[usize::from(output)];
        match output.source {
            Source::Free => None,
            Source::Ending => Some(Code::Eep),
            Source::Input(_) if output.switched > now => None,
            Source::Input(input) => {
                let front = self.inputs[usize::from(input)].stored.front()?;
                (front.arrived + output.latency <= now).then_some(front.code)
            }
        }
    }

    /// Chooses the input that gets an output: those with priority first, and on each level the next one after the last.
    pub(super) fn arbitrate(&self, output: u8) -> Option<(u8, bool)> {
        if self.waiting == 0 {
            return None;
        }
        [true, false].into_iter().find_map(|level| {
            let wants = |input: &u8| match self.inputs[usize::from(*input)].worm {
                Worm::Waiting(route) => route.outputs & (1 << output) != 0 && route.priority == level,
                _ => false,
            };
            let last = self.outputs[usize::from(output)].last[usize::from(level)];
            (1..=PORTS as u8).map(|step| (last + step) % PORTS as u8).find(wants).map(|input| (input, level))
        })
    }

    /// Puts a reply of the configuration port into its queue. Returns `false` if that is full.
    pub(super) fn reply(&mut self, output: u8, reply: Vec<u8>) -> bool {
        let room = self.replies.len() < REPLIES;
        if room {
            self.replies.push_back((output, reply));
        }
        room
    }
}
