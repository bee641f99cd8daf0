use crate::server::operation::{Neighbours, Operation};
use crate::server::operations::Operations;
use crate::server::stages::{Followed, Stages};
use crate::server::{ClientStatistics, Ended, Event, Rights, Ruled, ServerConfig, Shared};
use crate::session::{Session, Step, claimed};
use crate::wire::connection::{ChannelCreated, CreateChannel, DestroyChannel, Note};
use crate::wire::discovery::{REPLY_REQUIRED, ResponseFront, Search};
use crate::wire::operation::{EndRequest, FieldReply, GetField, Operation as Front, Reply, Subcommand};
use crate::wire::{Command, Inbound, Incoming, LeftOver, Message, Severity, Side, Status};
use crate::{Error, Limits, Reader};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use hodo_machine::{Closed, Ends, Instant, Outbox, Peer, Slab, Stamp};

/// Bytes that are written for one client before the others have their turn.
const TURN_BYTES: usize = 64 << 10;
/// Messages of a turn that are as much work for the client as a send is for the server.
const MANY: usize = 4;

/// How a client's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing is left to write for now.
    Last,
    /// More is to be written; the turn was taken by few messages.
    Large,
    /// More is to be written; the turn's messages are many.
    Many,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    inbound: Inbound,
    pub(crate) talk: Talk,
    pub(crate) is_queued: bool,
    pub(crate) is_blocked: bool,
    pub(crate) is_over: bool,
    /// The mistake for which the client is closed.
    wrong: Option<Error>,
}

/// Everything of a client but the stream that it sends.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) peer: Peer,
    ends: Ends,
    /// The names of user and host that the client claims.
    claim: Option<(String, String)>,
    pub(crate) session: Session,
    /// The channels that are open, by the numbers that the client was given.
    opened: Slab<Option<Opened>>,
    pub(crate) operations: Operations,
    /// Replies that hold values, in the order in which they are owed.
    pub(crate) owed: VecDeque<(u32, Subcommand)>,
    /// Monitors that have something to send, in turn.
    pub(crate) running: VecDeque<u32>,
    /// Bytes of the updates that wait in all subscriptions.
    pub(crate) held: usize,
    /// The remains of the last message.
    left_over: LeftOver,
    /// The replies, if their stages are followed.
    pub(crate) followed: Option<Box<Followed>>,
}

/// A channel that a client has opened.
#[derive(Debug, Clone, Copy)]
struct Opened {
    cid: u32,
    number: u32,
    rights: Rights,
    /// The last operation on it that was set up.
    last: Option<u32>,
}

impl Client {
    pub(crate) fn new(peer: Peer, ends: &Ends, config: &ServerConfig, now: Instant) -> Self {
        let talk = Talk {
            peer,
            ends: ends.clone(),
            claim: None,
            session: Session::new(Side::Server, config.session.clone(), now),
            opened: Slab::default(),
            operations: Operations::default(),
            owed: VecDeque::new(),
            running: VecDeque::new(),
            held: 0,
            left_over: LeftOver::default(),
            followed: None,
        };
        Client {
            inbound: Inbound::new(Side::Client),
            talk,
            is_queued: false,
            is_blocked: false,
            is_over: false,
            wrong: None,
        }
    }

    /// Takes in messages up to one that tells the subscribers something; returns whether there was one.
    pub(crate) fn received(
        &mut self,
        now: Instant,
        rest: &mut &[u8],
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> bool {
        while !self.is_over && shared.posted.is_none() {
            let taken = match self.inbound.next(rest, &config.session.limits) {
                Ok(None) => return false,
                Ok(Some(incoming)) => self.talk.take(now, &incoming, shared, config),
                Err(why) => Err(why),
            };
            self.taken(taken);
        }
        shared.posted.is_some()
    }

    pub(crate) fn landed(&mut self, now: Instant, count: usize, shared: &mut Shared, config: &ServerConfig) {
        if let Some(incoming) = self.inbound.landed(count) {
            let taken = self.talk.take(now, &incoming, shared, config);
            self.taken(taken);
        }
    }

    fn taken(&mut self, taken: Result<(), Error>) {
        match taken {
            Ok(()) => self.inbound.recycle(&mut self.talk.left_over, self.talk.session.limits()),
            Err(why) => self.end_for(why),
        }
    }

    pub(crate) fn end_for(&mut self, why: Error) {
        self.is_over = true;
        self.wrong.get_or_insert(why);
    }

    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        if self.is_over { None } else { self.inbound.landing() }
    }

    pub(crate) fn elapsed(&mut self, now: Instant) {
        if let Err(why) = self.talk.session.elapsed(now) {
            self.end_for(why);
        }
    }

    /// Returns when to look at the client's silence; `None` once it is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (!self.is_over).then(|| self.talk.session.deadline())
    }

    /// Writes replies and updates until it is the others' turn.
    pub(crate) fn write(&mut self, now: Instant, shared: &mut Shared, out: &Outbox) -> Turn {
        let mut messages = 0;
        while !self.is_blocked && !self.is_over && self.talk.session.writer.len() < TURN_BYTES {
            if !self.talk.write_next(now, shared, out) {
                return Turn::Last;
            }
            messages += 1;
        }
        let has_more = !self.talk.owed.is_empty() || !self.talk.running.is_empty();
        match has_more && !self.is_blocked && !self.is_over {
            false => Turn::Last,
            true if messages < MANY => Turn::Large,
            true => Turn::Many,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.talk.session.writer.is_empty()
    }

    pub(crate) fn flush(&mut self, now: Instant, peer: Peer, out: &mut Outbox) {
        self.talk.session.writer.flush(out);
        if let Some(followed) = &mut self.talk.followed {
            followed.mark(now, peer, out);
        }
    }

    /// Follows the stages of replies from now on, or no longer.
    pub(crate) fn follow(&mut self, is_followed: bool) {
        let known = self.talk.followed.take();
        self.talk.followed = is_followed.then(|| known.unwrap_or_default());
    }

    /// Returns how long the replies took, if they are followed.
    pub(crate) fn stages(&self) -> Option<&Stages> {
        self.talk.followed.as_ref().map(|followed| &followed.stages)
    }

    /// Notes that the request to an operation is decoded.
    pub(crate) fn decoded(&mut self, ioid: u32, at: Instant) {
        if let Some(operation) = self.talk.operations.at(ioid)
            && let Some(progress) = &mut operation.progress
        {
            progress.decoded = Some(at);
        }
    }

    pub(crate) fn stamped(&mut self, stamp: Stamp) {
        if let Some(followed) = &mut self.talk.followed {
            followed.stamped(stamp);
        }
    }

    /// Returns how many updates a subscription takes at once, if it runs.
    pub(crate) fn room(&self, ioid: u32) -> Option<u32> {
        let room = self.talk.operations.get(ioid)?.room()?;
        Some(if self.is_blocked { 0 } else { room })
    }

    /// Returns since when a client has been silent that has nothing open.
    pub(crate) fn silent_since(&self) -> Option<Instant> {
        self.talk.opened.is_empty().then(|| self.talk.session.heard())
    }

    /// Sends a text for people about an operation.
    pub(crate) fn note(&mut self, ioid: u32, severity: Severity, text: String) {
        Note { ioid, severity, text }.encode(&mut self.talk.session.writer);
    }

    /// Returns whether replies wait that hold values.
    pub(crate) fn is_owed(&self) -> bool {
        !self.talk.owed.is_empty()
    }

    /// Returns who the client is and what it has.
    pub(crate) fn statistics(&self) -> ClientStatistics {
        self.talk.statistics(self.is_blocked)
    }

    /// Closes a channel that the client has open, and tells it so.
    pub(crate) fn removed(&mut self, sid: u32, shared: &mut Shared) {
        let Some(Some(Opened { cid, .. })) = self.talk.opened.get(sid).copied() else { return };
        self.talk.close(sid, shared);
        DestroyChannel { sid, cid }.encode(&mut self.talk.session.writer);
    }

    /// Goes by other rules; returns whether the client has lost a channel by them.
    pub(crate) fn judge(&mut self, shared: &mut Shared, rules: &Ruled) -> bool {
        let Talk { opened, ends, claim, .. } = &self.talk;
        let judged = |(sid, opened): (u32, &Option<Opened>)| {
            let Opened { number, rights: before, .. } = (*opened)?;
            let rights = rules.rights(ends, claim.as_ref(), &shared.channel(number)?.name);
            (rights != before).then_some((sid, rights, before.is_within(rights)))
        };
        let changed: Vec<(u32, Rights, bool)> = opened.iter().filter_map(judged).collect();
        for (sid, rights, keeps) in &changed {
            match self.talk.opened.at(*sid) {
                Some(Some(opened)) if *keeps => opened.rights = *rights,
                _ => self.removed(*sid, shared),
            }
        }
        changed.iter().any(|(.., keeps)| !keeps)
    }

    /// Ends all operations, and reports the end: `closed` if the other side or the driver has closed the connection.
    pub(crate) fn end(&mut self, closed: Option<Closed>, shared: &mut Shared) {
        let why = match (self.wrong.take(), closed) {
            (Some(wrong), _) => Ended::Wrong(wrong),
            (None, Some(closed)) => Ended::Closed(closed),
            (None, None) => Ended::Closed(Closed::Finished),
        };
        shared.events.push_back(Event::Disconnected(self.talk.peer, Box::new(self.statistics()), why));
        self.talk.operations.drain().for_each(|(_, operation)| operation.end(shared));
        for (sid, opened) in self.talk.opened.iter() {
            opened.iter().for_each(|opened| shared.closed(opened.number, self.talk.peer, sid));
        }
    }
}

impl Talk {
    fn statistics(&self, is_blocked: bool) -> ClientStatistics {
        let Talk { ends, claim, opened, operations, owed, .. } = self;
        let subscriptions = operations.iter().filter(|(_, operation)| operation.is_subscription()).count();
        ClientStatistics {
            ends: ends.clone(),
            claim: claim.clone(),
            channels: opened.len(),
            operations: operations.len(),
            subscriptions,
            owed: owed.len(),
            is_blocked,
        }
    }

    /// Takes in a message.
    fn take(
        &mut self,
        now: Instant,
        incoming: &Incoming<'_>,
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> Result<(), Error> {
        match (self.session.take(now, incoming)?, incoming) {
            (Step::Claim(credentials), _) => {
                self.claim = claimed(&credentials);
                self.session.decide(&Status::OK);
                shared.counters.clients += 1;
                shared.events.push_back(Event::Connected(self.peer, Box::new(self.statistics(false))));
                return Ok(());
            }
            (Step::Pass, Incoming::Message(message)) => return self.message(message, shared, config),
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, message: &Message<'_>, shared: &mut Shared, config: &ServerConfig) -> Result<(), Error> {
        let limits: Limits = config.session.limits;
        let mut reader = message.reader(&limits);
        let command = Command::from_code(message.command);
        match command {
            Command::CreateChannel => self.create(&mut reader, shared, config)?,
            Command::DestroyChannel => {
                let asked = DestroyChannel::decode(&mut reader)?;
                self.close(asked.sid, shared);
                asked.encode(&mut self.session.writer);
            }
            Command::Search => self.search(&mut reader, shared, config)?,
            Command::GetField => self.field(&mut reader, shared)?,
            Command::DestroyRequest => {
                let EndRequest { ioid, .. } = EndRequest::decode(&mut reader)?;
                self.destroy(ioid, shared);
            }
            Command::CancelRequest => {
                let EndRequest { ioid, .. } = EndRequest::decode(&mut reader)?;
                self.cancel(ioid, shared);
            }
            Command::Get
            | Command::Put
            | Command::PutGet
            | Command::Monitor
            | Command::Array
            | Command::Process
            | Command::Rpc => self.operation(command, &mut reader, shared, config)?,
            Command::MultipleData | Command::Other(_) => self.unknown(command, &mut reader, shared),
            _ => {}
        }
        if self.owed.len() > 2 * config.operations_max {
            let (count, max) = (self.owed.len() as u64, 2 * config.operations_max as u64);
            return Err(Error::OverLimit { what: "replies that a client does not read", count, max });
        }
        reader.leave(&mut self.left_over);
        Ok(())
    }

    /// Replies to a request of an unknown kind about an open channel, so that nobody waits for an answer. Any other is passed over.
    fn unknown(&mut self, command: Command, reader: &mut Reader<'_>, shared: &mut Shared) {
        let Ok(front) = Front::decode(reader) else { return };
        if self.number(front.sid).is_some() {
            shared.counters.refused += 1;
            let status = Status::error("this server does not know that request");
            Reply { ioid: front.ioid, subcommand: front.subcommand, status }.encode(command, &mut self.session.writer);
        }
    }

    fn create(&mut self, reader: &mut Reader<'_>, shared: &mut Shared, config: &ServerConfig) -> Result<(), Error> {
        let Talk { peer, opened, session, ends, claim, .. } = self;
        CreateChannel::decode(reader, |asked| {
            let name = String::from_utf8_lossy(asked.name);
            let mut reply = ChannelCreated { cid: asked.cid, sid: 0, status: Status::OK };
            let rights = config.rules.rights(ends, claim.as_ref(), &name);
            if opened.len() >= config.channels_max {
                reply.status = Status::error("too many channels are open on this connection");
            } else if rights == Rights::NONE {
                reply.status = Status::error("this client may not use the channel");
            } else if let Some(number) = shared.find(&name, config) {
                reply.sid = opened.insert(Some(Opened { cid: asked.cid, number, rights, last: None }));
                shared.opened(number, *peer, reply.sid);
            } else {
                reply.status = Status::error("this server has no channel of that name");
            }
            reply.encode(&mut session.writer);
        })
    }

    /// Replies to a search that came over the connection, as from a client that uses this server as its name server.
    fn search(&mut self, reader: &mut Reader<'_>, shared: &Shared, config: &ServerConfig) -> Result<(), Error> {
        let search = Search::decode(reader)?;
        let is_here = |(_, name): &(u32, &[u8])| core::str::from_utf8(name).is_ok_and(|name| shared.has(name, config));
        let found: Vec<u32> = search.channels().filter(is_here).map(|(cid, _)| cid).collect();
        if found.is_empty() && search.flags & REPLY_REQUIRED == 0 {
            return Ok(());
        }
        let front = ResponseFront {
            guid: config.guid,
            sequence: search.sequence,
            address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port: 0,
            protocol: "tcp",
            found: !found.is_empty(),
        };
        front.encode(found.into_iter(), &mut self.session.writer);
        Ok(())
    }

    fn field(&mut self, reader: &mut Reader<'_>, shared: &Shared) -> Result<(), Error> {
        let asked = GetField::decode(reader)?;
        let channel = self.number(asked.sid).and_then(|number| shared.channel(number));
        let path = core::str::from_utf8(asked.field).unwrap_or(".");
        let found = channel.and_then(|channel| {
            let plan = channel.value.plan();
            plan.field(plan.number(path)?)
        });
        let status = if found.is_some() { Status::OK } else { Status::error("there is no such field") };
        FieldReply { ioid: asked.ioid, status }.begin(&mut self.session.writer);
        if let Some(of) = found {
            of.encode(&mut self.session.writer);
        }
        self.session.writer.end();
        Ok(())
    }

    /// Returns the number of the channel that a client has open.
    pub(crate) fn number(&self, sid: u32) -> Option<u32> {
        (*self.opened.get(sid)?).map(|opened| opened.number)
    }

    /// Returns the rights of the client to a channel that it has open.
    pub(crate) fn rights(&self, sid: u32) -> Rights {
        self.opened.get(sid).copied().flatten().map_or(Rights::NONE, |opened| opened.rights)
    }

    /// Closes a channel with all its operations.
    fn close(&mut self, sid: u32, shared: &mut Shared) {
        while let Some(Some(Opened { last: Some(ioid), .. })) = self.opened.get(sid).copied() {
            self.destroy(ioid, shared);
        }
        let Some(Opened { number, .. }) = self.opened.at(sid).and_then(Option::take) else { return };
        self.opened.release(sid);
        shared.closed(number, self.peer, sid);
    }

    /// Adds an operation to those of its channel.
    pub(crate) fn link(&mut self, ioid: u32, mut operation: Operation) {
        if let Some(Some(opened)) = self.opened.at(operation.sid) {
            let next = opened.last.replace(ioid);
            operation.neighbours = Neighbours { previous: None, next };
            if let Some(next) = next.and_then(|next| self.operations.at(next)) {
                next.neighbours.previous = Some(ioid);
            }
        }
        self.operations.insert(ioid, operation);
    }

    /// Takes an operation from those of its channel.
    pub(crate) fn unlink(&mut self, ioid: u32) -> Option<Operation> {
        let operation = self.operations.remove(ioid)?;
        let Neighbours { previous, next } = operation.neighbours;
        if let Some(next) = next.and_then(|next| self.operations.at(next)) {
            next.neighbours.previous = previous;
        }
        if let Some(previous) = previous.and_then(|previous| self.operations.at(previous)) {
            previous.neighbours.next = next;
        } else if let Some(Some(opened)) = self.opened.at(operation.sid) {
            opened.last = next;
        }
        Some(operation)
    }
}
