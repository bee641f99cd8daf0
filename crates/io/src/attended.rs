use crate::serve::NOTICE;
use crate::{Endpoint, Mailbox, Stop, Transport};
use hodo_machine::{Driver, Instant, Machine, Wait};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The application's part of a server's thread: the connection between the machine and the rest of the program.
pub trait Attendant {
    /// The machine that the attendant serves.
    type Machine: Machine;

    /// Takes an event of the machine, and may return a command for it.
    fn told(&mut self, event: <Self::Machine as Machine>::Event) -> Option<<Self::Machine as Machine>::Command>;

    /// Runs at the start, about every 80 ms, and when the server's [`Bell`](crate::Bell) is rung, however busy the machine
    /// is: to read its counters, to pass on a command from the rest of the program. It has to be quick, since nothing is
    /// forwarded meanwhile.
    fn look_in(&mut self, now: Instant, machine: &Self::Machine) -> Option<<Self::Machine as Machine>::Command> {
        let _ = (now, machine);
        None
    }

    /// Returns the next command from the rest of the program. It is called before each turn until it returns `None`, so
    /// that it has to be quick when there is nothing. A thread that leaves a command wakes this one with its [`Waker`].
    fn wanted(&mut self, machine: &mut Self::Machine) -> Option<<Self::Machine as Machine>::Command> {
        let _ = machine;
        None
    }

    /// Returns whether the thread is to end although `stop` is not set. Called before each turn, and once more at the end.
    fn is_over(&self, machine: &Self::Machine) -> bool {
        let _ = machine;
        false
    }

    /// Returns the command that makes the machine accept nothing new, because the server is to stop.
    fn drain(&mut self) -> Option<<Self::Machine as Machine>::Command> {
        None
    }

    /// Returns whether a machine that is to stop has nothing left to answer, apart from bytes that it has handed over. It is asked
    /// when all events have been told, and no message waits for the next round.
    fn is_drained(&self, machine: &Self::Machine) -> bool {
        let _ = machine;
        true
    }
}

/// A handle that wakes the serving thread, so that it calls [`Attendant::wanted`].
#[derive(Clone)]
pub struct Waker(pub(crate) Arc<Mailbox>);

impl Waker {
    /// Wakes the thread if it sleeps.
    pub fn wake(&self) {
        self.0.wake();
    }
}

/// The attendant of a server whose application replies to each event by itself.
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

/// Runs a machine and its attendant until `stop` is set, then until the machine is drained or `drain` has passed.
pub(crate) fn attend<A: Attendant, T: Transport>(
    mut endpoint: Endpoint<A::Machine, T>,
    mut attendant: A,
    wait: Wait,
    drain: Duration,
    stop: &Stop,
    mailbox: Option<&Mailbox>,
) -> io::Result<()> {
    let mut commands = Vec::new();
    let mut look_in = Instant::ZERO;
    let mut end = None;
    loop {
        let now = endpoint.last_turn();
        let is_due = now >= look_in || mailbox.is_some_and(Mailbox::is_called);
        if is_due {
            look_in = now + NOTICE;
            commands.extend(attendant.look_in(now, endpoint.machine()));
        }
        // Not looked at after each turn: it is in nobody's cache. A signal ends a sleep without input.
        if (is_due || !endpoint.has_heard()) && end.is_none() && stop.load(Ordering::Relaxed) {
            end = Some(now + drain);
            endpoint.transport_mut().stop_listening();
            commands.extend(attendant.drain());
        }
        let is_late = end.is_some_and(|end| now >= end);
        let is_drained = || {
            let has_nothing = commands.is_empty() && !endpoint.is_interrupted();
            has_nothing && attendant.is_drained(endpoint.machine()) && endpoint.transport().backlog() == 0
        };
        if attendant.is_over(endpoint.machine()) || is_late || end.is_some() && is_drained() {
            // The reply to the request that stopped this still goes out, and what the machine knows is told.
            commands.drain(..).for_each(|command| endpoint.command(command));
            endpoint.tell_all(&mut |event| drop(attendant.told(event)))?;
            return if is_late { endpoint.step(Wait::Never, now, &mut |_| {}) } else { Ok(()) };
        }
        while let Some(command) = attendant.wanted(endpoint.attended()) {
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
