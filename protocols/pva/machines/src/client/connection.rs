use crate::client::command::{Event, Lost};
use crate::client::operation::State;
use crate::client::reply;
use crate::client::tables::{Step, Tables};
use crate::session::{self, Session, SessionConfig};
use crate::wire::connection::{ChannelCreated, CreateChannel, DestroyChannel, Note};
use crate::wire::discovery::SearchResponse;
use crate::wire::operation::EndRequest;
use crate::wire::{Command, Inbound, Incoming, LeftOver, Message, Side};
use crate::{Error, Limits};
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use hodo_machine::{Address, BackOff, Instant, Outbox};

/// Bytes that are written to one server before the others have their turn.
const TURN_BYTES: usize = 64 << 10;

/// Operations that are written before all events are told: the server works on them meanwhile.
const MUCH: usize = 64;

/// The step that a connection has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for its next try.
    Waiting,
    /// It waits for its turn to be opened.
    Queued,
    Opening,
    Open,
}

/// The connection to one server, for all channels there.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) address: Address,
    pub(crate) phase: Phase,
    pub(crate) link: Option<Box<Link>>,
    pub(crate) channels: Vec<u32>,
    /// Number of the name server that it is, if it is one.
    pub(crate) name_server: Option<usize>,
    pub(crate) back_off: BackOff,
    /// Whether it waits among those that may have something to send.
    pub(crate) is_queued: bool,
    /// Whether the server has accepted it.
    pub(crate) was_reached: bool,
    /// When to close it, if no channel needs it until then.
    pub(crate) idle_until: Option<Instant>,
    /// The reason of the last failure, until the server is reached again.
    pub(crate) trouble: Option<Lost>,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Link {
    inbound: Inbound,
    pub(crate) talk: Talk,
}

/// Everything of an open connection but the stream that it receives.
#[derive(Debug)]
pub(crate) struct Talk {
    number: u32,
    /// The name server at the other end, and its address.
    name_server: Option<(usize, Address)>,
    limits: Limits,
    pub(crate) session: Session,
    /// Channels to be opened.
    pub(crate) to_create: VecDeque<u32>,
    /// Operations that have something to say.
    jobs: VecDeque<u32>,
    /// Channels that were closed before the server had opened them.
    abandoned: BTreeSet<u32>,
    pub(crate) is_blocked: bool,
    /// The remains of the last message.
    left_over: LeftOver,
    /// Followed operations whose executions were written since they were last marked, and when each began to be encoded.
    pub(crate) written: Vec<(u32, Instant)>,
}

impl Link {
    pub(crate) fn new(number: u32, config: &SessionConfig, connection: &Connection, now: Instant) -> Self {
        let talk = Talk {
            number,
            name_server: connection.name_server.map(|number| (number, connection.address.clone())),
            limits: config.limits,
            session: Session::new(Side::Client, config.clone(), now),
            to_create: connection.channels.iter().copied().collect(),
            jobs: VecDeque::new(),
            abandoned: BTreeSet::new(),
            is_blocked: false,
            left_over: LeftOver::default(),
            written: Vec::new(),
        };
        Link { inbound: Inbound::new(Side::Server), talk }
    }

    /// Returns whether so many operations wait to be written that the server would have something to do by itself.
    #[inline]
    pub(crate) fn has_much(&self) -> bool {
        self.talk.jobs.len() >= MUCH && !self.talk.is_blocked
    }

    /// Takes in bytes of the server.
    ///
    /// # Errors
    /// The reason why the connection is to be closed.
    #[inline]
    pub(crate) fn received(&mut self, now: Instant, bytes: &[u8], tables: &mut Tables) -> Result<(), Lost> {
        let Link { inbound, talk } = self;
        let mut rest = bytes;
        while let Some(incoming) = inbound.next(&mut rest, &talk.limits)? {
            talk.take(now, &incoming, tables)?;
            inbound.recycle(&mut talk.left_over, &talk.limits);
        }
        Ok(())
    }

    pub(crate) fn landed(&mut self, now: Instant, count: usize, tables: &mut Tables) -> Result<(), Lost> {
        let Link { inbound, talk } = self;
        if let Some(incoming) = inbound.landed(count) {
            talk.take(now, &incoming, tables)?;
            inbound.recycle(&mut talk.left_over, &talk.limits);
        }
        Ok(())
    }

    pub(crate) fn landing(&mut self) -> Option<&mut [u8]> {
        self.inbound.landing()
    }
}

impl Talk {
    /// Takes in a message.
    #[inline]
    fn take(&mut self, now: Instant, incoming: &Incoming<'_>, tables: &mut Tables) -> Result<(), Lost> {
        match (self.session.take(now, incoming)?, incoming) {
            (session::Step::Refused(status), _) => Err(Lost::Denied(status)),
            (session::Step::Pass, Incoming::Message(message)) => Ok(self.message(message, tables)?),
            _ => Ok(()),
        }
    }

    #[inline]
    fn message(&mut self, message: &Message<'_>, tables: &mut Tables) -> Result<(), Error> {
        let limits = self.limits;
        let mut reader = message.reader(&limits);
        let command = Command::from_code(message.command);
        match command {
            Command::Get
            | Command::Put
            | Command::PutGet
            | Command::Monitor
            | Command::Array
            | Command::Process
            | Command::Rpc
            | Command::GetField => {
                let types = &mut self.session.types;
                let number = reply::take(self.number, command, &mut reader, types, tables)?;
                if let Some(number) = number {
                    self.queue(number, tables);
                }
            }
            Command::CreateChannel => self.created(ChannelCreated::decode(&mut reader)?, tables),
            Command::DestroyChannel => {
                let DestroyChannel { sid, cid } = DestroyChannel::decode(&mut reader)?;
                // The server also confirms so what the application has closed, whose number is another one by then.
                if let Some((number, channel)) = tables.channel_of(cid, self.number)
                    && channel.step == Step::Open(sid)
                {
                    // As a client of pvxs does.
                    DestroyChannel { sid, cid }.encode(&mut self.session.writer);
                    tables.lost(number, Step::Refused, &Lost::Removed);
                    tables.again.push(number);
                }
            }
            Command::Message => {
                let Note { ioid, severity, text } = Note::decode(&mut reader)?;
                if let Some(operation) = reply::operation_of(ioid, self.number, tables) {
                    tables.tell(Event::Message { operation, severity, text: text.into() });
                }
            }
            Command::SearchResponse => {
                if let Some((_, address)) = &self.name_server {
                    tables.finder.response(&SearchResponse::decode(&mut reader)?, address);
                }
            }
            // Commands that are not known, or of no use to a client.
            _ => {}
        }
        reader.leave(&mut self.left_over);
        Ok(())
    }

    fn created(&mut self, created: ChannelCreated, tables: &mut Tables) {
        let ChannelCreated { cid, sid, status } = created;
        if self.abandoned.remove(&cid) {
            if status.is_success() {
                DestroyChannel { sid, cid }.encode(&mut self.session.writer);
            }
            return;
        }
        let Some((number, channel)) = tables.channel_of(cid, self.number) else { return };
        if channel.step != Step::Creating {
            return;
        }
        if !status.is_success() {
            channel.step = Step::Refused;
            tables.again.push(number);
            return tables.tell(Event::Refused { channel: number, status });
        }
        channel.step = Step::Open(sid);
        channel.back_off = None;
        tables.tell(Event::Connected { channel: number });
        tables.awakened(number, |operation| self.jobs.push_back(operation));
    }

    /// Puts an operation among those that have something to say.
    #[inline]
    pub(crate) fn queue(&mut self, number: u32, tables: &mut Tables) {
        let Some(operation) = tables.operation_at(number) else { return };
        if !core::mem::replace(&mut operation.is_queued, true) {
            self.jobs.push_back(number);
        }
    }

    /// Writes what there is to say until it is the others' turn; returns whether there is more.
    #[inline]
    pub(crate) fn write(&mut self, now: Instant, tables: &mut Tables, out: &Outbox) -> bool {
        if !self.session.is_ready() {
            return false;
        }
        while !self.is_blocked {
            if self.session.writer.len() >= TURN_BYTES {
                return true;
            }
            if let Some(number) = self.to_create.pop_front() {
                self.create(number, tables);
            } else if let Some(number) = self.jobs.pop_front() {
                self.write_operation(now, number, tables, out);
            } else if !self.search(tables) {
                break;
            }
        }
        false
    }

    /// Writes the next search for a name server; returns whether there was one.
    fn search(&mut self, tables: &mut Tables) -> bool {
        let Some((number, _)) = self.name_server else { return false };
        tables.finder.write_searches(number, &mut self.session.writer)
    }

    fn create(&mut self, number: u32, tables: &mut Tables) {
        let Some(channel) = tables.channel_at(number) else { return };
        if channel.step == Step::Waiting && channel.connection == Some(self.number) {
            channel.step = Step::Creating;
            CreateChannel { cid: channel.cid, name: channel.name.as_bytes() }.encode(&mut self.session.writer);
        }
    }

    #[inline]
    fn write_operation(&mut self, now: Instant, number: u32, tables: &mut Tables, out: &Outbox) {
        let Some((connection, sid)) = tables.route(number) else { return };
        let Some(operation) = tables.operation_at(number) else { return };
        // It may have been ended, and its number used again, since it was put here.
        if connection != self.number || !core::mem::take(&mut operation.is_queued) {
            return;
        }
        let begun = operation.is_followed.then(|| out.now(now));
        let failed = operation.write(sid, &mut self.session.writer);
        if let Some(begun) = begun
            && matches!(operation.state, State::Executing(_))
        {
            self.written.push((number, begun));
        }
        if let Some(why) = failed {
            tables.tell(Event::Failed { operation: number, why });
        }
    }

    /// Tells the server that an operation has ended, after its execution was stopped if there is one.
    pub(crate) fn end(&mut self, sid: u32, ioid: u32, is_executing: bool) {
        let end = EndRequest { sid, ioid };
        if is_executing {
            end.encode(Command::CancelRequest, &mut self.session.writer);
        }
        end.encode(Command::DestroyRequest, &mut self.session.writer);
    }

    /// Tells the server that a channel is closed.
    pub(crate) fn close(&mut self, step: Step, cid: u32) {
        match step {
            Step::Open(sid) => DestroyChannel { sid, cid }.encode(&mut self.session.writer),
            Step::Creating => _ = self.abandoned.insert(cid),
            _ => {}
        }
    }
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Lost::Misbehaved(Box::new(error))
    }
}
