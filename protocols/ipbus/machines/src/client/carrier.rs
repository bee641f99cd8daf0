use super::packing::Room;
use super::plain::Plain;
use super::shared::Shared;
use super::stream::Stream;
use super::{ClientConfig, PAYLOAD_MIN, Path};
use crate::Error;
use crate::single::Single;
use crate::window::{Answer, Step, Window, WindowConfig, WindowCounters};
use crate::wire::Version;
use alloc::vec::Vec;
use hodo_machine::{Instant, Outbox};

/// The carrier of packets to the device and back.
#[derive(Debug)]
// A client has one.
#[expect(clippy::large_enum_variant)]
pub(super) enum Carrier {
    /// UDP, packets with ids.
    Window(Window),
    /// UDP, one packet of version 1.3.
    Single(Single),
    /// UDP, packets without ids.
    Plain(Plain),
    /// UDP, packets with ids only where nobody else sends such.
    Shared(Shared),
    /// TCP, to the device or the hub.
    Stream(Stream),
}

/// A step of a carrier.
pub(super) enum Move {
    /// There are bytes in the outbox.
    Send,
    /// The packet gets no reply.
    Failed { key: u64, error: Error },
    /// The device cannot be reached.
    Down(Error),
    /// Nothing to do before this instant.
    Idle(Option<Instant>),
}

/// Takes a reply of the packet with this key, or why there is none; answers whether it is one.
pub(super) type OnReply<'a> = &'a mut dyn FnMut(u64, Result<Answer<'_>, Error>) -> bool;

impl Move {
    /// Returns the step of a carrier that follows from a window's, and puts what is to be sent into the outbox.
    #[inline]
    pub(super) fn of(step: &Step<'_>, out: &mut Outbox) -> Self {
        match *step {
            Step::Send(bytes) => {
                out.copy(bytes);
                Move::Send
            }
            Step::Failed { key, cause } => Move::Failed { key, error: cause.into() },
            Step::Down(cause) => Move::Down(cause.into()),
            Step::Idle(deadline) => Move::Idle(deadline),
        }
    }
}

/// Gives up a window's device, and takes the failures that follow.
pub(super) fn clear(window: &mut Window, now: Instant) {
    window.give_up();
    while !matches!(window.poll(now), Step::Idle(_)) {}
}

impl Carrier {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let &ClientConfig { path, version, in_flight, timeout, calm, .. } = config;
        let window =
            WindowConfig { in_flight, patience: timeout, calm, own_ids: config.seed, ..WindowConfig::default() };
        match path {
            Path::Udp { .. } | Path::SharedUdp if version == Version::V1_3 => Carrier::Single(Single::new(window)),
            Path::Udp { reliable: true } => Carrier::Window(Window::new(window)),
            Path::Udp { reliable: false } => Carrier::Plain(Plain::new(in_flight, timeout)),
            Path::SharedUdp => Carrier::Shared(Shared::new(window)),
            Path::Tcp => Carrier::Stream(Stream::new(None, in_flight, timeout, config.payload_max)),
            Path::Hub(target) => Carrier::Stream(Stream::new(Some(target), in_flight, timeout, config.payload_max)),
        }
    }

    /// Begins if nothing has begun: the link is open, or something is asked for again.
    pub(super) fn open(&mut self, now: Instant) {
        match self {
            Carrier::Window(window) => window.open(now),
            Carrier::Single(single) => single.open(now),
            Carrier::Shared(shared) => shared.open(now),
            Carrier::Plain(_) | Carrier::Stream(_) => {}
        }
    }

    /// Tells whether the device can be reached, as far as can be known.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Carrier::Window(_) | Carrier::Single(_) => self.room() > 0,
            Carrier::Plain(_) | Carrier::Shared(_) | Carrier::Stream(_) => true,
        }
    }

    /// Tells whether a reply says which packet it answers, before it is looked into.
    #[inline]
    pub(super) fn names_packets(&self) -> bool {
        match self {
            Carrier::Plain(_) => false,
            Carrier::Shared(shared) => shared.window().is_some(),
            _ => true,
        }
    }

    /// Tells whether packets have ids of their own.
    #[inline]
    pub(super) fn numbers_packets(&self) -> bool {
        self.window().is_some()
    }

    #[inline]
    fn window(&self) -> Option<&Window> {
        match self {
            Carrier::Window(window) => Some(window),
            Carrier::Shared(shared) => shared.window(),
            _ => None,
        }
    }

    /// Returns how many packets it takes now.
    #[inline]
    pub(super) fn room(&self) -> usize {
        match self {
            Carrier::Window(window) => window.room(),
            Carrier::Single(single) => single.room(),
            Carrier::Plain(plain) => plain.room(),
            Carrier::Shared(shared) => shared.room(),
            Carrier::Stream(stream) => stream.room(),
        }
    }

    /// Narrows the room to what the device has buffers for.
    #[inline]
    pub(super) fn narrow(&self, room: Room) -> Room {
        let Some(window) = self.window() else { return room };
        let buffer = (window.device().buffer_bytes as usize).max(PAYLOAD_MIN);
        Room { request: room.request.min(buffer), reply: room.reply.min(buffer) }
    }

    /// Takes a packet, and leaves some buffer in its place. `only_reads` tells whether it may be done twice.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, key: u64, packet: &mut Vec<u8>, only_reads: impl FnOnce() -> bool) {
        let fill = |buffer: &mut Vec<u8>| core::mem::swap(buffer, packet);
        match self {
            Carrier::Window(window) => {
                window.push(now, key, fill);
            }
            Carrier::Single(single) => single.push(now, key, fill),
            // With several in flight, a second sending could read what a later packet wrote.
            Carrier::Plain(plain) => plain.push(key, packet, false),
            Carrier::Shared(shared) => shared.push(now, key, packet, only_reads()),
            Carrier::Stream(stream) => stream.push(now, key, packet),
        }
    }

    /// Takes in what came. An error: the stream makes no sense any more.
    #[inline]
    pub(super) fn received(&mut self, now: Instant, bytes: &[u8], told: OnReply<'_>) -> Result<(), Error> {
        let mut take = |answer: Answer<'_>| told(answer.key, Ok(answer));
        match self {
            Carrier::Window(window) => {
                window.received(now, bytes, take);
            }
            Carrier::Single(single) => {
                single.received(now, bytes, take);
            }
            Carrier::Plain(plain) => plain.received(bytes, &mut take),
            Carrier::Shared(shared) => shared.received(now, bytes, told),
            Carrier::Stream(stream) => return stream.received(now, bytes, told),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Move {
        let step = match self {
            Carrier::Window(window) => window.poll(now),
            Carrier::Single(single) => single.poll(now),
            Carrier::Plain(plain) => return plain.poll(now, out),
            Carrier::Shared(shared) => return shared.poll(now, out),
            Carrier::Stream(stream) => return stream.poll(now, out),
        };
        Move::of(&step, out)
    }

    /// Forgets what is in flight: the link is gone, or the device is.
    pub(super) fn reset(&mut self, now: Instant) {
        match self {
            Carrier::Window(window) => clear(window, now),
            Carrier::Single(single) => {
                single.give_up();
                while !matches!(single.poll(now), Step::Idle(_)) {}
            }
            Carrier::Plain(plain) => plain.reset(),
            Carrier::Shared(shared) => shared.reset(now),
            Carrier::Stream(stream) => stream.reset(),
        }
    }

    /// Notes whether more than the driver's bound is unsent.
    pub(super) fn set_blocked(&mut self, blocked: bool) {
        if let Carrier::Stream(stream) = self {
            stream.set_blocked(blocked);
        }
    }

    pub(super) fn counters(&self) -> WindowCounters {
        match self {
            Carrier::Window(window) => window.counters(),
            Carrier::Single(single) => single.counters(),
            Carrier::Plain(plain) => plain.counters(),
            Carrier::Shared(shared) => shared.counters(),
            Carrier::Stream(stream) => WindowCounters { packets: stream.packets(), ..WindowCounters::default() },
        }
    }
}
