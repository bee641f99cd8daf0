use crate::client::command::{ArrayRequest, Event, Failure, Kind};
use crate::client::subscription::{Steer, Subscription};
use crate::client::tables::next_number;
use crate::data::{Plan, Type, Value, is_same};
use crate::wire::operation::{GetField, Operation as Front, Subcommand};
use crate::wire::{Command, Status};
use crate::{Error, Reader, TypeCache, Writer};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// An execution that was asked for.
#[derive(Debug)]
pub(crate) enum Job {
    Execute,
    Put(Box<Value>),
    ReadBack,
    Call(Option<Box<Value>>),
    Array(Box<ArrayRequest>),
}

/// The step that an operation has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// The number is free.
    #[default]
    Free,
    /// To be set up as soon as the channel is open.
    Unset,
    /// The server has been asked to set it up.
    SettingUp,
    /// The server did not set it up. It is asked again with the next execution, or when the channel is opened again.
    Refused,
    /// The server has ended it. It is set up again with the next execution.
    Ended,
    Ready,
    /// The server has been asked, and the reply will bring this.
    Executing(Brings),
}

/// The content of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    Nothing,
    /// The fields that an operation gets.
    Got,
    /// The fields that an operation puts.
    Put,
    Any,
    Elements,
    Length,
    Type,
}

/// The question that an operation puts to the server again and again.
#[derive(Debug)]
pub(crate) enum Ask {
    Operate(Kind, Box<Value>),
    /// The type of this field.
    Describe(Box<str>),
}

/// An operation of a client.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// Counts the uses of the number, so that no event of an operation is taken for one of its successor.
    pub(crate) epoch: u32,
    /// Number on the wire, another one each time that the operation is set up.
    pub(crate) ioid: u32,
    pub(crate) channel: u32,
    /// Place among the operations of its channel.
    pub(crate) place: u32,
    /// Whether it waits among those that have something to say.
    pub(crate) is_queued: bool,
    /// Whether the stages of its next execution are stamped.
    pub(crate) is_followed: bool,
    pub(crate) state: State,
    pub(crate) ask: Option<Ask>,
    pub(crate) job: Option<Job>,
    pub(crate) plan: Option<Arc<Plan>>,
    pub(crate) put_plan: Option<Arc<Plan>>,
    pub(crate) value: Option<Value>,
    pub(crate) length: u64,
    pub(crate) blank: Option<Box<Value>>,
    pub(crate) subscription: Option<Box<Subscription>>,
    /// The number on the wire that it had before, and the type: a late reply may define types that later ones refer to.
    pub(crate) former: Option<(u32, Arc<Plan>)>,
}

impl Operation {
    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    pub(crate) const fn kind(&self) -> Option<Kind> {
        match &self.ask {
            Some(Ask::Operate(kind, _)) => Some(*kind),
            _ => None,
        }
    }

    /// Returns the command of the replies that belong to it.
    pub(crate) const fn command(&self) -> Command {
        match self.kind() {
            Some(kind) => kind.command(),
            None => Command::GetField,
        }
    }

    /// Takes another number on the wire, so that no reply to the former one counts.
    pub(crate) fn renumber(&mut self, number: u32) {
        if let Some(plan) = &self.plan {
            self.former = Some((self.ioid, plan.clone()));
        }
        self.ioid = next_number(self.ioid, number);
    }

    /// Frees the number.
    pub(crate) fn free(&mut self, number: u32) {
        self.renumber(number);
        *self =
            Operation { epoch: self.epoch + 1, ioid: self.ioid, former: self.former.take(), ..Operation::default() };
    }

    /// Takes in an execution; returns why not.
    pub(crate) fn ask_for(&mut self, job: Job) -> Option<Failure> {
        const OTHER: Failure = Failure::Unsuitable("an operation of this kind is not executed like that");
        let suits = match (self.kind(), &job) {
            (_, Job::Execute) => !matches!(self.kind(), Some(Kind::Put | Kind::Call | Kind::Array)),
            (Some(kind), Job::Put(_) | Job::ReadBack) => matches!(kind, Kind::Put | Kind::PutGet),
            (Some(kind), Job::Call(_)) => kind == Kind::Call,
            (Some(kind), Job::Array(_)) => kind == Kind::Array,
            (None, _) => false,
        };
        if !suits {
            return Some(OTHER);
        }
        if let Some(subscription) = &mut self.subscription {
            subscription.run(true);
        } else if self.job.is_some() || matches!(self.state, State::Executing(_)) {
            return Some(Failure::Busy);
        } else {
            self.job = Some(job);
        }
        if matches!(self.state, State::Refused | State::Ended) {
            self.state = State::Unset;
        }
        None
    }

    /// Writes the next thing that the operation has to say; returns why an execution cannot be asked for.
    pub(crate) fn write(&mut self, sid: u32, writer: &mut Writer) -> Option<Failure> {
        match (&self.ask, self.state) {
            (Some(Ask::Operate(kind, request)), State::Unset) => {
                let pipeline = self.subscription.as_ref().map(|one| one.delivery()).filter(|one| one.pipeline);
                let subcommand = match pipeline {
                    Some(_) => Subcommand::INIT.with(Subcommand::PIPELINE),
                    None => Subcommand::INIT,
                };
                Front { sid, ioid: self.ioid, subcommand }.begin(kind.command(), writer);
                Value::encode_any(Some(request), writer);
                if let Some(delivery) = pipeline {
                    writer.u32(delivery.queue);
                }
                writer.end();
                self.state = State::SettingUp;
            }
            (Some(Ask::Describe(field)), State::Ready) if self.job.take().is_some() => {
                GetField { sid, ioid: self.ioid, field: field.as_bytes() }.encode(writer);
                self.state = State::Executing(Brings::Type);
            }
            (Some(Ask::Operate(kind, _)), State::Ready) => {
                let kind = *kind;
                if let Some(subscription) = &mut self.subscription {
                    while let Some(steer) = subscription.steer() {
                        write_steer(&steer, Front { sid, ioid: self.ioid, subcommand: Subcommand::NONE }, writer);
                    }
                } else if let Some(job) = self.job.take() {
                    return self.write_job(kind, job, sid, writer).err();
                }
            }
            _ => {}
        }
        None
    }

    fn write_job(&mut self, kind: Kind, job: Job, sid: u32, writer: &mut Writer) -> Result<(), Failure> {
        let (subcommand, brings) = match (kind, &job) {
            (Kind::Process, Job::Execute) => (Subcommand::NONE, Brings::Nothing),
            (Kind::PutGet, Job::Execute) => (Subcommand::GET, Brings::Got),
            (Kind::PutGet, Job::Put(_)) | (_, Job::Execute) => (Subcommand::NONE, Brings::Got),
            (_, Job::Put(_)) => (Subcommand::NONE, Brings::Nothing),
            (Kind::PutGet, Job::ReadBack) => (Subcommand::GET_PUT, Brings::Put),
            (_, Job::ReadBack) => (Subcommand::GET, Brings::Put),
            (_, Job::Call(_)) => (Subcommand::NONE, Brings::Any),
            (_, Job::Array(request)) => request.step(),
        };
        if let Job::Put(value) = &job
            && !self.put_plan.as_ref().is_some_and(|plan| is_same(plan, value.plan()))
        {
            return Err(Failure::Unsuitable("the value is not of the type that the server states for this operation"));
        }
        if let Job::Array(request) = &job
            && let ArrayRequest::Write(_, elements) = &**request
            && self.plan.as_ref().map(|plan| plan.of()) != Some(&Type::array(elements.scalar()))
        {
            return Err(Failure::Unsuitable("the elements are not of the type that the server states for the array"));
        }
        Front { sid, ioid: self.ioid, subcommand }.begin(kind.command(), writer);
        match job {
            Job::Execute | Job::ReadBack => {}
            Job::Put(value) => {
                value.encode_changed(writer);
                self.blank = Some(value);
            }
            Job::Call(argument) => Value::encode_any(argument.as_deref(), writer),
            Job::Array(request) => request.encode(writer),
        }
        writer.end();
        self.state = State::Executing(brings);
        Ok(())
    }

    /// Takes in the reply to the set-up.
    pub(crate) fn set_up(
        &mut self,
        number: u32,
        status: Status,
        reader: &mut Reader<'_>,
        types: &mut TypeCache,
    ) -> Result<Event, Error> {
        if !status.is_success() {
            self.state = State::Refused;
            self.job = None;
            return Ok(Event::Failed { operation: number, why: Failure::Refused(status) });
        }
        let mut plan = || types.decode(reader)?.ok_or(Error::Null { what: "the type of an operation" });
        match self.kind() {
            Some(Kind::Process | Kind::Call) | None => {}
            Some(Kind::PutGet) => {
                keep(&mut self.put_plan, plan()?);
                keep(&mut self.plan, plan()?);
            }
            Some(Kind::Array) => {
                let Some(Type::Scalar(scalar)) = plan()?.of().element() else {
                    self.state = State::Refused;
                    self.job = None;
                    let why = Failure::Unsuitable("the field that was asked for is no array of scalars");
                    return Ok(Event::Failed { operation: number, why });
                };
                keep(&mut self.plan, Plan::new(Type::array(scalar)));
            }
            Some(Kind::Put) => {
                keep(&mut self.put_plan, plan()?);
                self.plan = self.put_plan.clone();
            }
            Some(Kind::Get | Kind::Monitor) => keep(&mut self.plan, plan()?),
        }
        self.state = State::Ready;
        Ok(Event::Ready { operation: number })
    }

    /// Takes in the reply to an execution.
    pub(crate) fn executed(
        &mut self,
        number: u32,
        brings: Brings,
        status: Status,
        reader: &mut Reader<'_>,
        types: &mut TypeCache,
    ) -> Result<Event, Error> {
        self.state = State::Ready;
        if !status.is_success() {
            return Ok(Event::Failed { operation: number, why: Failure::Refused(status) });
        }
        let (got, put) = (&self.plan, &self.put_plan);
        match brings {
            Brings::Nothing => {}
            Brings::Got => read_into(&mut self.value, got)?.decode_changed(reader, types)?,
            Brings::Put => read_into(&mut self.value, put)?.decode_changed(reader, types)?,
            Brings::Elements => read_into(&mut self.value, got)?.decode(reader, types)?,
            Brings::Any => self.value = Value::decode_any(reader, types)?,
            Brings::Length => self.length = crate::wire::operation::decode_length(reader)?,
            Brings::Type => self.plan = types.decode(reader)?,
        }
        Ok(Event::Done { operation: number })
    }

    /// Takes in an update of a monitor, or its end, or both. Returns whether it is the only update that waits.
    pub(crate) fn updated(
        &mut self,
        is_last: bool,
        reader: &mut Reader<'_>,
        types: &mut TypeCache,
    ) -> Result<bool, Error> {
        let (Some(subscription), Some(plan)) = (&mut self.subscription, &self.plan) else { return Ok(false) };
        let has_value = !is_last || !reader.rest().is_empty();
        let is_first = has_value && subscription.push(plan, reader, types)?;
        if is_last {
            subscription.run(false);
            subscription.reset();
            self.state = State::Ended;
        }
        Ok(is_first)
    }

    /// Tells whether there is something to say to the server.
    pub(crate) fn has_more(&self) -> bool {
        match &self.subscription {
            Some(subscription) => subscription.has_more(),
            None => self.job.is_some(),
        }
    }

    /// Notes that the channel is lost; returns why the execution has failed, if there was one.
    pub(crate) fn lost(&mut self) -> Option<Failure> {
        let was = self.state;
        if let Some(subscription) = &mut self.subscription {
            subscription.reset();
        }
        if !matches!(was, State::Free | State::Ended) {
            self.state = if self.kind().is_some() { State::Unset } else { State::Ready };
        }
        matches!(was, State::Executing(_)).then_some(Failure::Disconnected)
    }

    /// Gives the execution up; returns whether there was one.
    pub(crate) fn cancel(&mut self) -> bool {
        let was_waiting = self.job.take().is_some();
        was_waiting || matches!(self.state, State::Executing(_))
    }

    /// Tells whether the server knows the number.
    pub(crate) const fn is_at_server(&self) -> bool {
        matches!(self.state, State::SettingUp | State::Ready | State::Executing(_)) && self.kind().is_some()
    }
}

impl ArrayRequest {
    /// Returns the subcommand of the request, and the content of its reply.
    const fn step(&self) -> (Subcommand, Brings) {
        match self {
            ArrayRequest::Read(_) => (Subcommand::GET, Brings::Elements),
            ArrayRequest::Write(..) => (Subcommand::NONE, Brings::Nothing),
            ArrayRequest::Length => (Subcommand::PROCESS, Brings::Length),
            ArrayRequest::SetLength(_) => (Subcommand::GET_PUT, Brings::Nothing),
        }
    }

    /// Writes what stands behind the front of the request.
    fn encode(&self, writer: &mut Writer) {
        match self {
            ArrayRequest::Length => {}
            ArrayRequest::Read(slice) => slice.encode(writer),
            ArrayRequest::Write(place, elements) => {
                place.encode(writer);
                elements.encode_counted(writer);
            }
            ArrayRequest::SetLength(length) => writer.size(*length),
        }
    }
}

fn write_steer(steer: &Steer, front: Front, writer: &mut Writer) {
    let subcommand = match steer {
        Steer::Start => Subcommand::START,
        Steer::Stop => Subcommand::STOP,
        Steer::Acknowledge(_) => Subcommand::PIPELINE,
    };
    Front { subcommand, ..front }.begin(Command::Monitor, writer);
    if let Steer::Acknowledge(updates) = steer {
        writer.u32(*updates);
    }
    writer.end();
}

/// Keeps a plan if the new one is of the same type, so that values of it stay what they are.
fn keep(known: &mut Option<Arc<Plan>>, plan: Arc<Plan>) {
    if !known.as_ref().is_some_and(|known| known.of() == plan.of()) {
        *known = Some(plan);
    }
}

/// Returns the value to read into: the one that is there if it has this plan, or a new one.
fn read_into<'v>(value: &'v mut Option<Value>, plan: &Option<Arc<Plan>>) -> Result<&'v mut Value, Error> {
    let plan = plan.as_ref().ok_or(Error::Null { what: "the type of an operation" })?;
    if value.as_ref().is_some_and(|known| !Arc::ptr_eq(known.plan(), plan)) {
        *value = None;
    }
    Ok(value.get_or_insert_with(|| Value::new(plan)))
}
