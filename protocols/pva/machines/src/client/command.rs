use crate::discovery::Found;
use crate::wire::operation::{ArrayPlace, ArraySlice};
use crate::wire::{Severity, Status};
use crate::{Array, BitSet, Error, Request, Value, wire};
use alloc::boxed::Box;
use alloc::string::String;
use hodo_machine::{Address, Closed};
use thiserror::Error;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads fields.
    Get,
    /// Writes fields, and reads back their present values.
    Put,
    /// Writes fields, processes the channel, and reads fields.
    PutGet,
    /// Subscribes to changes.
    Monitor,
    /// Reads and writes parts of an array.
    Array,
    /// Processes the channel.
    Process,
    /// Calls the channel.
    Call,
}

impl Kind {
    pub(crate) const fn command(self) -> wire::Command {
        match self {
            Kind::Get => wire::Command::Get,
            Kind::Put => wire::Command::Put,
            Kind::PutGet => wire::Command::PutGet,
            Kind::Monitor => wire::Command::Monitor,
            Kind::Array => wire::Command::Array,
            Kind::Process => wire::Command::Process,
            Kind::Call => wire::Command::Rpc,
        }
    }
}

/// A command of the application to a client.
///
/// Channels and operations have numbers that the application chooses: small ones, since they are places in tables.
#[derive(Debug)]
pub enum Command {
    /// Open a channel, and keep it open: it is opened again whenever it was lost.
    Open {
        /// A number that no open channel has.
        channel: u32,
        /// Name of the channel.
        name: String,
        /// The server that has it. Without one it is searched for, again and again until one answers, and when that is lost.
        server: Option<Address>,
    },
    /// Close a channel with all its operations. Nothing more is told of it and of them, and their numbers are free.
    Close {
        /// The channel.
        channel: u32,
    },
    /// Set an operation up, now and whenever the channel is opened again. It may be executed at once: the execution waits.
    Prepare {
        /// A number that no operation has.
        operation: u32,
        /// The channel.
        channel: u32,
        /// Kind of the operation.
        kind: Kind,
        /// The fields, and the options.
        request: Box<Request>,
    },
    /// Ask for the type of a channel, or of one of its fields. Answered by [`Event::Done`], or [`Event::Failed`]; asked again by
    /// [`Command::Execute`].
    Describe {
        /// A number that no operation has.
        operation: u32,
        /// The channel.
        channel: u32,
        /// Path of the field; empty for the whole.
        field: String,
    },
    /// Execute an operation: get, process, read what a put-get would read, start a monitor, describe again.
    Execute {
        /// The operation.
        operation: u32,
    },
    /// Put the changed fields of a value of the operation's type, and get if the operation is a put-get.
    Put {
        /// The operation.
        operation: u32,
        /// The value. [`Client::blank`](super::Client::blank) gives one.
        value: Box<Value>,
    },
    /// Read the present value of the fields that an operation puts.
    ReadBack {
        /// The operation.
        operation: u32,
    },
    /// Call a channel.
    Call {
        /// The operation.
        operation: u32,
        /// The argument, of any type, or nothing.
        argument: Option<Box<Value>>,
    },
    /// Read or write a part of an array, or its length.
    Array {
        /// The operation.
        operation: u32,
        /// The request.
        request: Box<ArrayRequest>,
    },
    /// Send no more updates until the monitor is executed again. Those that have come can still be taken.
    Stop {
        /// The operation.
        operation: u32,
    },
    /// Give up the execution: it fails as [`Failure::Cancelled`]. The operation is set up again.
    Cancel {
        /// The operation.
        operation: u32,
    },
    /// End an operation. Nothing more is told of it, and its number is free.
    Finish {
        /// The operation.
        operation: u32,
    },
    /// Ask all servers to answer, once: each is an [`Event::Found`].
    List,
}

/// A request to an array.
#[derive(Debug, Clone)]
pub enum ArrayRequest {
    /// Read elements.
    Read(ArraySlice),
    /// Write elements.
    Write(ArrayPlace, Array),
    /// Read how many elements there are.
    Length,
    /// Set how many elements there are.
    SetLength(u64),
}

/// An event that a client reports to the application. What was read is asked of the client itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A channel is open. Its operations are set up next.
    Connected {
        /// The channel.
        channel: u32,
    },
    /// A channel is open no more, and will be opened again. Its executions have failed, and its monitors will be started again.
    Disconnected {
        /// The channel.
        channel: u32,
        /// The reason.
        why: Lost,
    },
    /// The server did not open the channel. It will be asked again.
    Refused {
        /// The channel.
        channel: u32,
        /// The reason.
        status: Status,
    },
    /// An operation is set up: [`Client::plan`](super::Client::plan) has its type. Told again when the channel was opened again.
    Ready {
        /// The operation.
        operation: u32,
    },
    /// An execution was done: [`Client::value`](super::Client::value) has what was read.
    Done {
        /// The operation.
        operation: u32,
    },
    /// An execution, or the set-up, was not done.
    Failed {
        /// The operation.
        operation: u32,
        /// The reason.
        why: Failure,
    },
    /// Updates have come where there were none: [`Client::next_update`](super::Client::next_update) has them.
    Updates {
        /// The operation.
        operation: u32,
    },
    /// The server has ended a monitor, which may be executed again. Updates that came before can still be taken.
    Ended {
        /// The operation.
        operation: u32,
        /// Whether it ended in order.
        status: Status,
    },
    /// A text for people.
    Message {
        /// The operation that it is about.
        operation: u32,
        /// How bad it is.
        severity: Severity,
        /// The text.
        text: Box<str>,
    },
    /// A server has answered [`Command::List`], sent a beacon or none for long, or has a name that another one has, too.
    Found(Box<Found>),
}

/// The channel or the operation of an event.
pub(crate) enum Subject {
    Channel(u32),
    Operation(u32),
    None,
}

impl Event {
    pub(crate) const fn subject(&self) -> Subject {
        match *self {
            Event::Connected { channel } | Event::Disconnected { channel, .. } | Event::Refused { channel, .. } => {
                Subject::Channel(channel)
            }
            Event::Ready { operation }
            | Event::Done { operation }
            | Event::Failed { operation, .. }
            | Event::Updates { operation }
            | Event::Ended { operation, .. }
            | Event::Message { operation, .. } => Subject::Operation(operation),
            Event::Found(_) => Subject::None,
        }
    }
}

/// Why a channel is not open, or a connection was lost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Lost {
    /// The connection was closed, or could not be made.
    #[error("{0}")]
    Closed(Closed),
    /// The server broke the rules, or was silent.
    #[error("{0}")]
    Misbehaved(Box<Error>),
    /// The server did not accept the claim of user and host.
    #[error("the server does not accept this client: {0}")]
    Denied(Status),
    /// The server closed the channel.
    #[error("the server has closed the channel")]
    Removed,
}

/// Why an execution was not done, or an operation could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server refused.
    #[error("{0}")]
    Refused(Status),
    /// The channel was lost before the reply. Whether the server has done it is not known.
    #[error("the connection was lost before the reply")]
    Disconnected,
    /// The application gave it up.
    #[error("cancelled")]
    Cancelled,
    /// The operation's last execution is not over.
    #[error("the operation is not over yet: wait for its reply, or cancel it")]
    Busy,
    /// There is no such operation, or no such channel, or the number is taken or over the bound.
    #[error("{0}")]
    Number(&'static str),
    /// The operation is of another kind, or the value is not of the operation's type.
    #[error("{0}")]
    Unsuitable(&'static str),
}

/// One update of a monitor.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The whole value; [`Value::changed`] are the fields that this update brought.
    pub value: &'a Value,
    /// The fields of which earlier contents were overwritten before anyone took them.
    pub overrun: &'a BitSet,
}
