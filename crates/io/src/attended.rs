use crate::serve::NOTICE;
use crate::{Endpoint, Mailbox, Stop, Transport};
use hodo_machine::{Driver, Instant, Machine, Wait};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The application's part of a server's thread: what is between the machine and the rest of the program.
pub trait Attendant {
    /// The machine that it attends to.
    type Machine: Machine;

    /// Takes what the machine tells, and may ask it for something.
    fn told(&mut self, event: <Self::Machine as Machine>::Event) -> Option<<Self::Machine as Machine>::Command>;

    /// Looks in at the start and then about every 80 ms, however busy the machine is: to read its counters, to pass on
    /// what the rest of the program wants. Has to be quick, since nothing is forwarded meanwhile.
    fn look_in(&mut self, now: Instant, machine: &Self::Machine) -> Option<<Self::Machine as Machine>::Command> {
        let _ = (now, machine);
        None
    }

    /// What the rest of the program wants now: asked after each turn until it is nothing, so it has to be quick to say
    /// so. Whoever leaves something wakes the thread with its [`Waker`].
    fn wanted(&mut self, machine: &mut Self::Machine) -> Option<<Self::Machine as Machine>::Command> {
        let _ = machine;
        None
    }

    /// Whether the thread is to end, although nobody has stopped it.
    fn is_over(&self, machine: &Self::Machine) -> bool {
        let _ = machine;
        false
    }

    /// The server is to stop: how the machine is told to take in nothing new.
    fn drain(&mut self) -> Option<<Self::Machine as Machine>::Command> {
        None
    }

    /// Whether a machine that is to stop owes nobody anything any more, but for bytes that it has handed over.
    fn is_drained(&self, machine: &Self::Machine) -> bool {
        let _ = machine;
        true
    }
}

/// Wakes the thread that serves, so that it asks what is wanted.
#[derive(Clone)]
pub struct Waker(pub(crate) Arc<Mailbox>);

impl Waker {
    /// Wakes it, where it sleeps.
    pub fn wake(&self) {
        self.0.wake();
    }
}

/// The attendant of a server whose application answers each event by itself.
pub(crate) struct Answering<'a, M, A> {
    answer: &'a A,
    machine: PhantomData<fn(M)>,
}

impl<'a, M, A> Answering<'a, M, A> {
    pub(crate) fn new(answer: &'a A) -> Self {
        Answering { answer, machine: PhantomData }
    }
}

impl<M: Machine, A: Fn(M::Event) -> Option<M::Command>> Attendant for Answering<'_, M, A> {
    type Machine = M;

    fn told(&mut self, event: M::Event) -> Option<M::Command> {
        (self.answer)(event)
    }
}

/// Runs a machine and its attendant until `stop` is set, then until it is drained or the time for that is over.
pub(crate) fn attend<A: Attendant, T: Transport>(
    mut endpoint: Endpoint<A::Machine, T>,
    mut attendant: A,
    wait: Wait,
    drain: Duration,
    stop: &Stop,
) -> io::Result<()> {
    let mut commands = Vec::new();
    let mut look_in = Instant::ZERO;
    let mut end = None;
    loop {
        let now = endpoint.last_turn();
        if now >= look_in {
            look_in = now + NOTICE;
            commands.extend(attendant.look_in(now, endpoint.machine()));
            // Not looked at after each turn: it is in nobody's cache.
            if end.is_none() && stop.load(Ordering::Relaxed) {
                end = Some(now + drain);
                endpoint.transport_mut().stop_listening();
                commands.extend(attendant.drain());
            }
        }
        match end {
            Some(end) if now >= end => return Ok(()),
            Some(_) if attendant.is_drained(endpoint.machine()) && endpoint.transport().backlog() == 0 => {
                return Ok(());
            }
            None | Some(_) => {}
        }
        if attendant.is_over(endpoint.machine()) {
            return Ok(());
        }
        while let Some(command) = attendant.wanted(endpoint.machine_mut()) {
            commands.push(command);
        }
        if !commands.is_empty() {
            commands.drain(..).for_each(|command| endpoint.command(command));
        }
        // Not the next look itself: a lone stream is read directly as long as nothing is due soon.
        let look_up = now + NOTICE;
        let until = end.map_or(look_up, |end| end.min(look_up));
        endpoint.step(wait, until, &mut |event| commands.extend(attendant.told(event)))?;
    }
}
