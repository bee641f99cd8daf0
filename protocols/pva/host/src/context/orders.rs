use super::feed::Feed;
use super::monitor::{ConnectionState, MonitorEvent};
use super::pending::{Completer, Ticket};
use crate::client::{ClientError, Operation};
use crate::machines::client::Kind;
use crate::machines::{Request, Type, Value};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// An order for the connections' thread.
pub(super) enum Order {
    /// Execute an operation of a channel.
    Begin { target: Target, job: Job, within: Duration },
    /// Put the value of a draft with its operation.
    Put { operation: Operation, value: Box<Value>, completer: Completer<()>, within: Duration },
    /// Take the operation of a draft back.
    Release(Operation),
    /// Give up an execution whose outcome nobody waits for.
    Cancel(Ticket),
    /// Subscribe.
    Monitor { target: Target, request: Box<Request>, owner: Owner<MonitorEvent> },
    /// Fill a monitor's queue, which has room again.
    Refill(u32),
    /// End a monitor.
    EndMonitor(Arc<Feed<MonitorEvent>>),
    /// Tell the states of a connection from now on.
    Watch { target: Target, owner: Owner<ConnectionState> },
    /// Tell them no more.
    EndWatch(Arc<Feed<ConnectionState>>),
}

/// A channel by its name, with the address of its server if the name states one.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) channel: String,
    pub(super) server: Option<SocketAddr>,
}

/// An operation to be executed, and who waits for its outcome.
pub(super) enum Job {
    Get(Box<Request>, Completer<Value>),
    Call(Option<Box<Value>>, Completer<Option<Value>>),
    Info(String, Completer<Type>),
    /// A put's value as it is, or an empty one, and the operation that puts it.
    Draft {
        request: Box<Request>,
        reads_first: bool,
        completer: Completer<(Operation, Box<Value>)>,
    },
    Put(Completer<()>),
}

impl Job {
    /// Returns the kind and the request of the operation; `None` for one that is described once.
    pub(super) fn kind(&self) -> Option<(Kind, Option<&Request>)> {
        match self {
            Job::Get(request, _) => Some((Kind::Get, Some(request))),
            Job::Call(..) => Some((Kind::Call, None)),
            Job::Draft { request, .. } => Some((Kind::Put, Some(request))),
            Job::Info(..) | Job::Put(_) => None,
        }
    }

    pub(super) fn ticket(&self) -> &Ticket {
        match self {
            Job::Get(_, completer) => &completer.ticket,
            Job::Call(_, completer) => &completer.ticket,
            Job::Info(_, completer) => &completer.ticket,
            Job::Draft { completer, .. } => &completer.ticket,
            Job::Put(completer) => &completer.ticket,
        }
    }

    pub(super) fn fail(self, why: ClientError) {
        match self {
            Job::Get(_, completer) => completer.finish(Err(why)),
            Job::Call(_, completer) => completer.finish(Err(why)),
            Job::Info(_, completer) => completer.finish(Err(why)),
            Job::Draft { completer, .. } => completer.finish(Err(why)),
            Job::Put(completer) => completer.finish(Err(why)),
        }
    }
}

/// The source's hold on a feed: wherever it is dropped, the feed ends.
pub(super) struct Owner<E: Closing>(pub(super) Arc<Feed<E>>);

/// An event that says that the context is closed.
pub(super) trait Closing: Send + Sized + 'static {
    /// Returns it.
    fn closed() -> Self;
}

impl Closing for MonitorEvent {
    fn closed() -> Self {
        MonitorEvent::Ended(Err(ClientError::Closed))
    }
}

impl Closing for ConnectionState {
    fn closed() -> Self {
        ConnectionState::Closed
    }
}

impl<E: Closing> Drop for Owner<E> {
    fn drop(&mut self) {
        self.0.end(Some(E::closed()));
    }
}
