use crate::data::{BitSet, Value};
use crate::server::operation::Operation;
use crate::server::{ServerConfig, Shared};
use crate::session::{Session, Step};
use crate::wire::connection::{ChannelCreated, CreateChannel, DestroyChannel};
use crate::wire::discovery::{REPLY_REQUIRED, ResponseFront, Search};
use crate::wire::operation::{EndRequest, FieldReply, GetField, Subcommand};
use crate::wire::{Command, Inbound, Incoming, Message, Side, Status};
use crate::{Error, Limits, Reader};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use hodo_machine::{Instant, Outbox, Peer, Slab};

/// Bytes that are written for one client before the others have their turn.
const TURN_BYTES: usize = 64 << 10;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    inbound: Inbound,
    talk: Talk,
    pub(crate) is_queued: bool,
    pub(crate) is_blocked: bool,
    pub(crate) is_over: bool,
}

/// Everything of a client but the stream that it sends.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) peer: Peer,
    pub(crate) session: Session,
    /// The channels that are open, by the numbers that the client was given.
    opened: Slab<Option<Opened>>,
    pub(crate) operations: BTreeMap<u32, Operation>,
    /// Replies that hold values, in the order in which they are owed.
    pub(crate) owed: VecDeque<(u32, Subcommand)>,
    /// Monitors that have something to send, in turn.
    pub(crate) running: VecDeque<u32>,
}

/// A channel that a client has opened.
#[derive(Debug, Clone, Copy)]
struct Opened {
    cid: u32,
    number: u32,
}

impl Client {
    pub(crate) fn new(peer: Peer, config: &ServerConfig, now: Instant) -> Self {
        let talk = Talk {
            peer,
            session: Session::new(Side::Server, config.session.clone(), now),
            opened: Slab::default(),
            operations: BTreeMap::new(),
            owed: VecDeque::new(),
            running: VecDeque::new(),
        };
        Client { inbound: Inbound::new(Side::Client), talk, is_queued: false, is_blocked: false, is_over: false }
    }

    pub(crate) fn received(&mut self, now: Instant, bytes: &[u8], shared: &mut Shared, config: &ServerConfig) {
        let mut rest = bytes;
        while !self.is_over {
            match self.inbound.next(&mut rest, &config.session.limits) {
                Ok(None) => return,
                Ok(Some(incoming)) => match self.talk.take(now, &incoming, shared, config) {
                    Ok(first_share) => self.inbound.align(first_share),
                    Err(_) => self.is_over = true,
                },
                Err(_) => self.is_over = true,
            }
        }
    }

    pub(crate) fn landed(&mut self, now: Instant, count: usize, shared: &mut Shared, config: &ServerConfig) {
        if let Some(incoming) = self.inbound.landed(count, &config.session.limits) {
            match self.talk.take(now, &incoming, shared, config) {
                Ok(first_share) => self.inbound.align(first_share),
                Err(_) => self.is_over = true,
            }
        }
    }

    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        if self.is_over { None } else { self.inbound.landing() }
    }

    pub(crate) fn elapsed(&mut self, now: Instant) {
        self.is_over |= self.talk.session.elapsed(now).is_err();
    }

    /// Returns when to look at the client's silence; `None` once it is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (!self.is_over).then(|| self.talk.session.deadline())
    }

    /// Writes replies and updates until it is the others' turn; returns whether there are more.
    pub(crate) fn write(&mut self, shared: &Shared) -> bool {
        while !self.is_blocked && !self.is_over && self.talk.session.writer.len() < TURN_BYTES {
            if !self.talk.write_next(shared) {
                return false;
            }
        }
        let has_more = !self.talk.owed.is_empty() || !self.talk.running.is_empty();
        has_more && !self.is_blocked && !self.is_over
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.talk.session.writer.is_empty()
    }

    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        self.talk.session.writer.flush(out);
    }

    /// Takes the application's answer to a put or a call.
    pub(crate) fn answered(&mut self, ioid: u32, result: Result<Option<Box<Value>>, Status>) {
        self.talk.answered(ioid, result);
    }

    /// Takes in what has changed of a channel; returns whether there is something to send, or `None` if nobody is subscribed.
    pub(crate) fn update(&mut self, ioid: u32, value: &Value, set: &BitSet) -> Option<bool> {
        self.talk.update(ioid, value, set)
    }

    /// Tells of a channel that is no longer served; returns whether the client had it open.
    pub(crate) fn removed(&mut self, number: u32, shared: &mut Shared) -> bool {
        let with =
            |(sid, opened): (u32, &Option<Opened>)| opened.filter(|one| one.number == number).map(|one| (sid, one.cid));
        let opened: Vec<(u32, u32)> = self.talk.opened.iter().filter_map(with).collect();
        for (sid, cid) in &opened {
            self.talk.close(*sid, shared);
            DestroyChannel { sid: *sid, cid: *cid }.encode(&mut self.talk.session.writer);
        }
        !opened.is_empty()
    }

    /// Ends all operations.
    pub(crate) fn end(&mut self, shared: &mut Shared) {
        while let Some((ioid, operation)) = self.talk.operations.pop_first() {
            operation.end(self.talk.peer, ioid, shared);
        }
    }
}

impl Talk {
    /// Takes in a message; returns where in it the first long array lay.
    fn take(
        &mut self,
        now: Instant,
        incoming: &Incoming<'_>,
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> Result<Option<usize>, Error> {
        match (self.session.take(now, incoming)?, incoming) {
            (Step::Claim(_), _) => self.session.decide(&Status::OK),
            (Step::Pass, Incoming::Message(message)) => return self.message(message, shared, config),
            _ => {}
        }
        Ok(None)
    }

    fn message(
        &mut self,
        message: &Message<'_>,
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> Result<Option<usize>, Error> {
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
            _ => {}
        }
        if self.owed.len() > 2 * config.operations_max {
            let (count, max) = (self.owed.len() as u64, 2 * config.operations_max as u64);
            return Err(Error::OverLimit { what: "replies that a client does not read", count, max });
        }
        Ok(reader.first_share())
    }

    fn create(&mut self, reader: &mut Reader<'_>, shared: &Shared, config: &ServerConfig) -> Result<(), Error> {
        let Talk { opened, session, .. } = self;
        CreateChannel::decode(reader, |asked| {
            let name = String::from_utf8_lossy(asked.name);
            let mut reply = ChannelCreated { cid: asked.cid, sid: 0, status: Status::OK };
            match shared.names.get(&*name) {
                None => reply.status = Status::error("this server has no channel of that name"),
                Some(_) if opened.len() >= config.channels_max => {
                    reply.status = Status::error("too many channels are open on this connection");
                }
                Some(number) => reply.sid = opened.insert(Some(Opened { cid: asked.cid, number: *number })),
            }
            reply.encode(&mut session.writer);
        })
    }

    /// Replies to a search that came over the connection, as from a client that uses this server as its name server.
    fn search(&mut self, reader: &mut Reader<'_>, shared: &Shared, config: &ServerConfig) -> Result<(), Error> {
        let search = Search::decode(reader)?;
        let is_here =
            |(_, name): &(u32, &[u8])| core::str::from_utf8(name).is_ok_and(|name| shared.names.contains_key(name));
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

    /// Closes a channel with all its operations.
    fn close(&mut self, sid: u32, shared: &mut Shared) {
        if self.opened.at(sid).and_then(Option::take).is_none() {
            return;
        }
        self.opened.release(sid);
        let of_it = |(ioid, operation): (&u32, &Operation)| (operation.sid == sid).then_some(*ioid);
        let ended: Vec<u32> = self.operations.iter().filter_map(of_it).collect();
        for ioid in ended {
            self.destroy(ioid, shared);
        }
    }
}
