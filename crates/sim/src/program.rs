use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Stamp};
use std::any::Any;
use std::collections::VecDeque;
use std::convert::Infallible;

/// The application's part of a machine: what it says to an event, at once.
pub(crate) type Application<M> = Box<dyn FnMut(<M as Machine>::Event) -> Option<<M as Machine>::Command> + Send>;

/// A machine of whatever type, with its application.
pub(crate) trait Program: Send {
    fn handle(&mut self, now: Instant, input: &Input<'_, Infallible>);

    /// Says the next thing to be done. An event was kept for the application, or answered by it.
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<()>;

    /// Returns whether the sender of a datagram becomes a peer; otherwise `out` holds the reply.
    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool;

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]>;

    fn has_room(&self, peer: Peer) -> bool;

    fn stamped(&mut self, stamp: Stamp);

    /// Returns whether events wait for the application.
    fn has_events(&self) -> bool;

    fn as_any(&self) -> &dyn Any;

    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A machine, and the events that its application has not taken yet.
pub(crate) struct Running<M: Machine> {
    pub(crate) machine: M,
    pub(crate) events: VecDeque<M::Event>,
    /// The application, which handles events at once; without one they are kept.
    pub(crate) application: Option<Application<M>>,
}

impl<M: Machine> Program for Running<M>
where
    M: Send + 'static,
    M::Event: Send,
{
    fn handle(&mut self, now: Instant, input: &Input<'_, Infallible>) {
        if let Some(input) = input.without_command() {
            self.machine.handle(now, input);
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<()> {
        match self.machine.poll(now, out) {
            Output::Send(peer) => Output::Send(peer),
            Output::Event(event) => {
                match &mut self.application {
                    Some(application) => {
                        if let Some(command) = application(event) {
                            self.machine.handle(now, Input::Command(command));
                        }
                    }
                    None => self.events.push_back(event),
                }
                Output::Event(())
            }
            Output::Open(peer, address) => Output::Open(peer, address),
            Output::Close(peer) => Output::Close(peer),
            Output::Idle(deadline) => Output::Idle(deadline),
        }
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.machine.admits(now, ends, datagram, out)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.machine.landing(peer)
    }

    fn has_room(&self, peer: Peer) -> bool {
        self.machine.has_room(peer)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.machine.stamped(stamp);
    }

    fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
