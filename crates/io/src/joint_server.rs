use crate::serve::NOTICE;
use crate::trace::Traced;
use crate::{Endpoint, Joint, ServeOptions, SocketSettings, Stop, StreamServer, Streams, Trace, Transport, affinity};
use hodo_machine::{Address, Driver, Instant, Machine};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The application's part of a [`JointServer`]'s thread: what is between the machine and the rest of the program.
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

/// How a [`JointServer`] runs.
#[derive(Debug, Clone)]
pub struct JointOptions {
    /// Threads, and the settings of the streams. With more than one thread each has its share of the clients and a
    /// machine of its own, so that a device that must have one owner needs one thread.
    pub serve: ServeOptions,
    /// The settings of the datagrams.
    pub datagrams: SocketSettings,
    /// How long it may take to answer what is under way when it is to stop.
    pub drain: Duration,
    /// Takes a trace of the first thread's packets.
    pub trace: Option<Arc<Trace>>,
}

/// Accepts TCP connections for machines that reach devices over UDP on the same thread: see [`Joint`].
pub struct JointServer {
    streams: StreamServer,
    options: JointOptions,
}

impl JointServer {
    /// Listens at an address; port 0 is any free one.
    pub fn bind(address: &Address, options: JointOptions) -> io::Result<Self> {
        Ok(JointServer { streams: StreamServer::bind(address, options.serve.clone())?, options })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.streams.address()
    }

    /// Serves until `stop` is set, then until every machine is drained or the time for that is over; nobody can connect
    /// meanwhile. `make` makes the machine of each thread, and who attends to it, on that thread.
    pub fn run<A: Attendant>(self, make: impl Fn(usize) -> (A::Machine, A) + Sync, stop: &Stop) -> io::Result<()> {
        let options = self.options;
        self.streams.run_shards(stop, |index, arrivals, clock| {
            let cpus = &options.serve.cpus;
            if !cpus.is_empty() {
                affinity::pin_thread(cpus[index % cpus.len()])?;
            }
            let (machine, attendant) = make(index);
            let streams = Streams::with(options.serve.settings.clone(), arrivals)?;
            let joint = Joint::with(streams, options.datagrams.clone())?;
            // Two copies of the code, so that a server without a trace pays nothing for it.
            match options.trace.as_ref().and_then(|trace| trace.tap()) {
                None => attend(Endpoint::new(machine, joint, clock), attendant, &options, stop),
                Some(tap) => {
                    let joint = Traced::new(joint, tap, clock);
                    attend(Endpoint::new(machine, joint, clock), attendant, &options, stop)
                }
            }
        })
    }
}

/// One thread's part of the server.
fn attend<A: Attendant, T: Transport + AsRef<Joint> + AsMut<Joint>>(
    mut endpoint: Endpoint<A::Machine, T>,
    mut attendant: A,
    options: &JointOptions,
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
        }
        match end {
            None if stop.load(Ordering::Relaxed) => {
                end = Some(now + options.drain);
                endpoint.transport_mut().as_mut().stop_listening();
                commands.extend(attendant.drain());
            }
            Some(end) if now >= end => return Ok(()),
            Some(_) if attendant.is_drained(endpoint.machine()) && endpoint.transport().as_ref().backlog() == 0 => {
                return Ok(());
            }
            None | Some(_) => {}
        }
        for command in commands.drain(..) {
            endpoint.command(command);
        }
        let until = end.map_or(look_in, |end| end.min(look_in));
        endpoint.step(options.serve.wait, until, &mut |event| commands.extend(attendant.told(event)))?;
    }
}
