use crate::data::{BitSet, Type, Value};
use crate::request::{Delivery, Request};
use crate::server::array::Slicing;
use crate::server::client::Talk;
use crate::server::stages::{Followed, Progress};
use crate::server::subscription::{Subscription, Taken};
use crate::server::{Access, Event, ServerConfig, Shared};
use crate::wire::operation::{Operation as Front, Reply, Subcommand};
use crate::wire::{Command, Status};
use crate::{Error, Reader};
use alloc::boxed::Box;
use hodo_machine::{Instant, Outbox};

/// The error of a client that may not do what it asks for.
pub(crate) const NOT_ALLOWED: &str = "this client may not do that with the channel";

/// An operation that a client has set up.
#[derive(Debug)]
pub(crate) struct Operation {
    kind: Command,
    pub(crate) sid: u32,
    pub(crate) channel: u32,
    pub(crate) neighbours: Neighbours,
    /// The leaves that the client asked for.
    mask: BitSet,
    subscription: Option<Subscription>,
    /// The place among the channel's subscribers.
    place: Option<u32>,
    /// Whether it waits among the monitors that have something to send.
    is_running: bool,
    /// The value of the last put to a mailbox, whose memory the next one takes.
    pub(crate) put: Option<Box<Value>>,
    /// The array of an operation on parts of one.
    pub(crate) slicing: Option<Slicing>,
    /// The event that the application has to answer.
    pub(crate) call: Option<u64>,
    /// The subcommand of the request that is being answered.
    subcommand: Subcommand,
    /// How far the answer to it has come, if its stages are followed.
    pub(crate) progress: Option<Progress>,
}

/// The operations beside one in the list of those of its channel.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbours {
    pub(crate) previous: Option<u32>,
    pub(crate) next: Option<u32>,
}

impl Operation {
    pub(crate) const fn is_subscription(&self) -> bool {
        self.subscription.is_some()
    }

    /// Returns how many updates its subscription takes at once, if that runs.
    pub(crate) fn room(&self) -> Option<u32> {
        self.subscription.as_ref()?.room()
    }

    /// Frees what others keep for it.
    pub(crate) fn end(self, shared: &mut Shared) {
        if let Some(call) = self.call {
            shared.calls.remove(&call);
        }
        if let Some(place) = self.place
            && let Some(Some(channel)) = shared.channels.at(self.channel)
        {
            channel.unsubscribe(place);
        }
    }

    #[cfg(test)]
    pub(crate) fn sample(sid: u32) -> Self {
        Operation {
            kind: Command::Get,
            sid,
            channel: 0,
            neighbours: Neighbours::default(),
            mask: BitSet::new(),
            subscription: None,
            place: None,
            is_running: false,
            slicing: None,
            put: None,
            call: None,
            subcommand: Subcommand::NONE,
            progress: None,
        }
    }
}

impl Talk {
    /// Takes in a message about an operation.
    pub(crate) fn operation(
        &mut self,
        command: Command,
        reader: &mut Reader<'_>,
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> Result<(), Error> {
        let front = Front::decode(reader)?;
        let Front { ioid, subcommand, .. } = front;
        let outcome = if subcommand.has(Subcommand::INIT) {
            self.set_up(command, &front, reader, shared, config)?
        } else {
            match self.operations.get(ioid) {
                Some(operation) if operation.kind == command => self.execute(&front, reader, shared)?,
                _ => Err(Status::error("there is no such operation: set it up first")),
            }
        };
        if let Err(status) = outcome {
            shared.counters.refused += 1;
            // An update of a monitor has no status, but for the last.
            let is_update = command == Command::Monitor && !subcommand.has(Subcommand::INIT);
            let subcommand = if is_update { Subcommand::DESTROY } else { subcommand };
            Reply { ioid, subcommand, status }.encode(command, &mut self.session.writer);
            if is_update || subcommand.has(Subcommand::DESTROY) {
                self.destroy(ioid, shared);
            }
        }
        Ok(())
    }

    fn set_up(
        &mut self,
        kind: Command,
        front: &Front,
        reader: &mut Reader<'_>,
        shared: &mut Shared,
        config: &ServerConfig,
    ) -> Result<Result<(), Status>, Error> {
        let request = Value::decode_any(reader, &mut self.session.types)?;
        let request = request.as_ref().map(Request::from_value).unwrap_or_default();
        let pipelined = kind == Command::Monitor && front.subcommand.has(Subcommand::PIPELINE);
        let allowed = if pipelined { reader.u32()? } else { 0 };
        let refuse = |why| Ok(Err(Status::error(why)));
        if self.operations.get(front.ioid).is_some() {
            return refuse("an operation of that number is set up already");
        }
        if self.operations.len() >= config.operations_max {
            return refuse("too many operations are set up on this connection");
        }
        let number = self.number(front.sid);
        let Some((number, channel)) = number.and_then(|number| Some((number, shared.channel(number)?))) else {
            return refuse("there is no such channel");
        };
        if !self.rights(front.sid).allows(kind) {
            return refuse(NOT_ALLOWED);
        }
        let plan = channel.value.plan().clone();
        let Ok(mask) = request.get_field.as_ref().unwrap_or(&request.field).mask(&plan) else {
            return refuse("none of the requested fields exists");
        };
        let slicing = if kind == Command::Array { Slicing::of(&plan, &mask) } else { None };
        if kind == Command::Array && slicing.is_none() {
            return refuse("none of the requested fields is an array of numbers, bools or texts");
        }
        let mut delivery = Delivery::of(&request, config.queue_max);
        delivery.pipeline = pipelined;
        let subscription = (kind == Command::Monitor)
            .then(|| Subscription::new(delivery, allowed, &channel.value, &mask, &mut self.held));
        let place = match shared.channels.at(number) {
            Some(Some(channel)) if subscription.is_some() => {
                Some(channel.subscribers.insert(Some((self.peer, front.ioid))))
            }
            _ => None,
        };
        let operation = Operation {
            kind,
            sid: front.sid,
            channel: number,
            neighbours: Neighbours::default(),
            mask,
            subscription,
            place,
            is_running: false,
            put: None,
            slicing,
            call: None,
            subcommand: Subcommand::NONE,
            progress: None,
        };
        self.link(front.ioid, operation);
        let of = slicing.and_then(|slicing| plan.field(slicing.field)).unwrap_or_else(|| plan.of());
        self.tell_type(kind, front, of);
        Ok(Ok(()))
    }

    fn tell_type(&mut self, kind: Command, front: &Front, of: &Type) {
        let writer = &mut self.session.writer;
        Reply { ioid: front.ioid, subcommand: front.subcommand, status: Status::OK }.begin(kind, writer);
        let times = match kind {
            Command::Process | Command::Rpc => 0,
            Command::PutGet => 2,
            _ => 1,
        };
        for _ in 0..times {
            of.encode(writer);
        }
        writer.end();
    }

    fn execute(
        &mut self,
        front: &Front,
        reader: &mut Reader<'_>,
        shared: &mut Shared,
    ) -> Result<Result<(), Status>, Error> {
        let (ioid, at) = (front.ioid, front.subcommand);
        let may_read = self.operations.get(ioid).is_some_and(|operation| self.rights(operation.sid).read);
        let Some(operation) = self.operations.at(ioid) else { return Ok(Ok(())) };
        let number = operation.channel;
        let Some(channel) = shared.channel(number) else { return Ok(Err(Status::error("there is no such channel"))) };
        let (access, plan) = (channel.access, channel.value.plan().clone());
        if operation.kind == Command::Monitor {
            return self.steer(front, reader, shared).map(Ok);
        }
        if operation.call.is_some() {
            return Ok(Err(Status::error("the operation is not over yet")));
        }
        operation.subcommand = at;
        if self.followed.is_some() {
            operation.progress = Some(Progress { arrived: self.session.heard(), decoded: None, encoding: None });
            shared.arrived.push((self.peer, ioid));
        }
        let reads = operation.kind == Command::Get || (operation.kind == Command::Array && at.reads_array());
        if shared.is_draining && !reads {
            return Ok(Err(Status::error("the server is about to stop: try again in a moment")));
        }
        if operation.kind == Command::Array {
            return self.slice(front, reader, shared);
        }
        let puts = matches!(operation.kind, Command::Put | Command::PutGet);
        if puts && at.0 & 0xC0 != 0 && !may_read {
            return Ok(Err(Status::error(NOT_ALLOWED)));
        }
        if operation.kind == Command::Get || (puts && at.0 & 0xC0 != 0) {
            self.owed.push_back((ioid, at));
        } else if puts {
            let mut value = operation.put.take().unwrap_or_else(|| Box::new(Value::new(&plan)));
            value.decode_changed(reader, &mut self.session.types)?;
            plan.expand(&mut value.changed);
            value.changed.intersect(&operation.mask);
            return Ok(self.put(ioid, number, value, shared));
        } else if operation.kind == Command::Rpc {
            let argument = Value::decode_any(reader, &mut self.session.types)?.map(Box::new);
            shared.counters.calls += 1;
            if access != Access::Handled {
                return Ok(Err(Status::error("the channel cannot be called")));
            }
            let call = shared.call(self.peer, ioid);
            operation.call = Some(call);
            shared.events.push_back(Event::Call { call, peer: self.peer, channel: number, argument });
        } else {
            // To process a channel that has no record behind it is to do nothing.
            self.answered(ioid, Ok(None));
        }
        Ok(Ok(()))
    }

    /// Starts and stops a monitor, and allows further updates.
    fn steer(&mut self, front: &Front, reader: &mut Reader<'_>, shared: &mut Shared) -> Result<(), Error> {
        let at = front.subcommand;
        let Some(operation) = self.operations.at(front.ioid) else { return Ok(()) };
        if let Some(subscription) = &mut operation.subscription {
            if at.has(Subcommand::PIPELINE) {
                subscription.allow(reader.u32()?);
            }
            if at.has(Subcommand::PROCESS) {
                subscription.run(at.has(Subcommand::START));
            }
        }
        self.queue(front.ioid);
        if at.has(Subcommand::DESTROY) {
            self.destroy(front.ioid, shared);
        }
        Ok(())
    }

    /// Puts a monitor among those that have something to send, if it has.
    fn queue(&mut self, ioid: u32) -> bool {
        let Some(operation) = self.operations.at(ioid) else { return false };
        let has_next = operation.subscription.as_ref().is_some_and(Subscription::has_next);
        if has_next && !core::mem::replace(&mut operation.is_running, true) {
            self.running.push_back(ioid);
        }
        has_next
    }

    /// Takes in what has changed of a channel, or returns `None` if nobody is subscribed. `selected` is overwritten.
    pub(crate) fn update(
        &mut self,
        ioid: u32,
        value: &Value,
        set: &BitSet,
        overrun: &BitSet,
        selected: &mut BitSet,
        held_max: usize,
    ) -> Option<Taken> {
        let operation = self.operations.at(ioid)?;
        let subscription = operation.subscription.as_mut()?;
        selected.assign(set);
        selected.intersect(&operation.mask);
        if selected.is_empty() {
            return Some(Taken { has_news: false, is_merged: false });
        }
        let is_merged = subscription.push(value, selected, overrun, &mut self.held, held_max);
        Some(Taken { has_news: self.queue(ioid), is_merged })
    }

    /// Replies to a put, a call or a request to process.
    pub(crate) fn answered(&mut self, ioid: u32, result: Result<Option<Box<Value>>, Status>) {
        let Some(operation) = self.operations.at(ioid) else { return };
        operation.call = None;
        let (kind, subcommand) = (operation.kind, operation.subcommand);
        if kind == Command::PutGet && result.is_ok() {
            return self.owed.push_back((ioid, subcommand));
        }
        let (status, value) = match result {
            Ok(value) => (Status::OK, value),
            Err(status) => (status, None),
        };
        let is_success = status.is_success();
        replied(operation, &mut self.followed);
        let writer = &mut self.session.writer;
        Reply { ioid, subcommand, status }.begin(kind, writer);
        if kind == Command::Rpc && is_success {
            Value::encode_any(value.as_deref(), writer);
        }
        writer.end();
        if subcommand.has(Subcommand::DESTROY) {
            self.unlink(ioid);
        }
    }

    /// Writes the next reply or update that holds a value; returns whether there was one.
    pub(crate) fn write_next(&mut self, now: Instant, shared: &mut Shared, out: &Outbox) -> bool {
        if let Some((ioid, subcommand)) = self.owed.pop_front() {
            self.write_owed(now, ioid, subcommand, shared, out);
            return true;
        }
        let Some(ioid) = self.running.pop_front() else { return false };
        let Some(operation) = self.operations.at(ioid) else { return true };
        operation.is_running = false;
        let Some(subscription) = &mut operation.subscription else { return true };
        if subscription.write_next(ioid, &mut self.session.writer, &mut self.held) {
            shared.counters.updates += 1;
        }
        self.queue(ioid);
        true
    }

    fn write_owed(&mut self, now: Instant, ioid: u32, subcommand: Subcommand, shared: &mut Shared, out: &Outbox) {
        shared.counters.reads += 1;
        let Some(operation) = self.operations.at(ioid) else { return };
        if let Some(progress) = &mut operation.progress {
            progress.encoding = Some(out.now(now));
        }
        replied(operation, &mut self.followed);
        let writer = &mut self.session.writer;
        let channel = shared.channel(operation.channel);
        let status = if channel.is_some() { Status::OK } else { Status::error("the channel is served no more") };
        Reply { ioid, subcommand, status }.begin(operation.kind, writer);
        match (channel, &operation.slicing) {
            (None, _) => {}
            (Some(channel), None) => channel.value.encode_set(&operation.mask, writer),
            (Some(channel), Some(slicing)) if subcommand.has(Subcommand::GET) => {
                slicing.read(&channel.value).encode_counted(writer);
            }
            (Some(channel), Some(slicing)) => writer.size(slicing.array(&channel.value).len() as u64),
        }
        writer.end();
        if subcommand.has(Subcommand::DESTROY) {
            self.unlink(ioid);
        }
    }

    /// Ends an operation; nothing more is said about it.
    pub(crate) fn destroy(&mut self, ioid: u32, shared: &mut Shared) {
        if let Some(operation) = self.unlink(ioid) {
            self.held -= operation.subscription.as_ref().map_or(0, Subscription::bytes);
            operation.end(shared);
        }
    }

    /// Stops an operation, which may be executed again.
    pub(crate) fn cancel(&mut self, ioid: u32, shared: &mut Shared) {
        let Some(operation) = self.operations.at(ioid) else { return };
        if let Some(call) = operation.call.take() {
            shared.calls.remove(&call);
        }
        if let Some(subscription) = &mut operation.subscription {
            subscription.run(false);
        }
    }
}

/// Notes that the next write holds the reply to an operation, if its stages are followed.
#[inline]
fn replied(operation: &mut Operation, followed: &mut Option<Box<Followed>>) {
    if let (Some(followed), Some(progress)) = (followed, operation.progress.take()) {
        followed.replied(progress);
    }
}
