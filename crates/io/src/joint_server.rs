use crate::attended::{Attendant, attend};
use crate::trace::Traced;
use crate::{Endpoint, Joint, ServeOptions, SocketSettings, Stop, StreamServer, Streams, Trace, affinity};
use hodo_machine::Address;
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
                None => {
                    attend(Endpoint::new(machine, joint, clock), attendant, options.serve.wait, options.drain, stop)
                }
                Some(tap) => {
                    let joint = Traced::new(joint, tap, clock);
                    attend(Endpoint::new(machine, joint, clock), attendant, options.serve.wait, options.drain, stop)
                }
            }
        })
    }
}
