//! The far end of a link: a server of [PVs](Pvs) of any size, which posts updates and reports of itself.

mod posting;
mod pvs;

use crate::report::{self, REPORT};
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Stamp};
use hodo_measure::Usage;
use hodo_pva::Value;
use hodo_pva::server::{Access, Command, Event, Server, ServerConfig};
use hodo_pva::wire::Status;
use posting::Postings;
use std::sync::Arc;

pub(crate) use posting::{DUE, NUMBER, updates_name};
pub(crate) use pvs::{Pvs, any_name, bytes_name, name_of};

/// The far end of any number of links.
#[derive(Debug)]
pub(crate) struct FarEnd {
    server: Server,
    pvs: Arc<Pvs>,
    postings: Postings,
    /// Number of the channel of reports.
    report: u32,
    usage: fn() -> Option<Usage>,
}

impl FarEnd {
    /// Creates a far end with these PVs, whose process uses what `usage` returns.
    pub(crate) fn new(config: ServerConfig, pvs: Pvs, usage: fn() -> Option<Usage>) -> Self {
        let pvs = Arc::new(pvs);
        let mut server = Server::new(ServerConfig { source: pvs.clone().into(), ..config });
        let report = server.serve(REPORT.to_owned(), report::question(false), Access::Handled);
        FarEnd { server, pvs, postings: Postings::default(), report, usage }
    }

    /// Replies to a call.
    fn called(&mut self, now: Instant, call: u64, peer: Peer, channel: u32, argument: Option<&Value>) {
        let result = if channel == self.report {
            self.server.follow(peer, report::asks_for_stages(argument));
            Ok(report::reply(now, (self.usage)(), self.server.stages(peer)))
        } else {
            self.pvs.called(argument)
        };
        let result = result.map(|reply| Some(Box::new(reply)));
        self.server.handle(now, Input::Command(Command::Answer { call, result }));
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
                    self.called(now, call, peer, channel, argument.as_deref());
                }
                Output::Event(Event::Put { call, .. }) => {
                    let result = Err(Status::error("the channel is only called"));
                    self.server.handle(now, Input::Command(Command::Answer { call, result }));
                }
                Output::Idle(deadline) => {
                    if !self.postings.post(now, &mut self.server) {
                        return Output::Idle([deadline, self.postings.next(now)].into_iter().flatten().min());
                    }
                    // The subscribers work on these while the next are posted.
                    out.urge();
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
