//! The far end of a link: a server of [PVs](Pvs) of any size, which posts updates, reports of itself, and returns what it is called with.

mod posting;
mod pvs;

use crate::machines::Value;
use crate::machines::server::{Access, Command, Event, Server, ServerConfig};
use crate::report::{self, REPORT};
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Stamp};
use hodo_measure::Usage;
use posting::Postings;
use std::sync::Arc;

pub(crate) use posting::{DUE, NUMBER, updates_name};
pub(crate) use pvs::{Pvs, bytes_name, name_of};

/// The channel that returns what it is called with.
pub(crate) const ECHO: &str = "hodo:echo";

/// The far end of any number of links.
#[derive(Debug)]
pub(crate) struct FarEnd {
    server: Server,
    pvs: Arc<Pvs>,
    postings: Postings,
    /// Numbers of the channels that are called.
    report: u32,
    echo: u32,
    usage: fn() -> Option<Usage>,
}

impl FarEnd {
    /// Creates a far end with these PVs, whose process uses what `usage` returns.
    pub(crate) fn new(config: ServerConfig, pvs: Pvs, usage: fn() -> Option<Usage>) -> Self {
        let pvs = Arc::new(pvs);
        let mut server = Server::new(ServerConfig { source: pvs.clone().into(), ..config });
        let mut serve = |name: &str| server.serve(name.to_owned(), report::question(false), Access::Handled);
        let (report, echo) = (serve(REPORT), serve(ECHO));
        FarEnd { server, pvs, postings: Postings::default(), report, echo, usage }
    }

    /// Replies to a call.
    fn called(&mut self, now: Instant, call: u64, peer: Peer, channel: u32, argument: Option<Box<Value>>) {
        let value = if channel == self.report {
            let stages = report::asks_for_stages(argument.as_deref());
            self.server.follow(peer, stages);
            Some(Box::new(report::reply(now, (self.usage)(), self.server.stages(peer))))
        } else if channel == self.echo {
            argument
        } else {
            None
        };
        self.server.handle(now, Input::Command(Command::Answer { call, result: Ok(value) }));
    }
}

impl Machine for FarEnd {
    type Command = Command;
    type Event = Event;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        self.server.handle(now, input);
        self.postings.look(now, &self.pvs, &self.server);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Event> {
        loop {
            match self.server.poll(now, out) {
                Output::Event(Event::Call { call, peer, channel, argument }) => {
                    self.called(now, call, peer, channel, argument);
                }
                Output::Idle(deadline) => {
                    if !self.postings.post(now, &mut self.server) {
                        return Output::Idle([deadline, self.postings.next(now)].into_iter().flatten().min());
                    }
                }
                other => return other,
            }
        }
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.server.landing(peer)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.server.stamped(stamp);
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.server.admits(now, ends, datagram, out)
    }
}
