//! The handlers of puts and calls.

use super::Core;
use super::orders::Order;
use super::pv::{Pv, Shared};
use crate::machines::data::SetError;
use crate::machines::server::ClientStatistics;
use crate::machines::wire::Status;
use crate::machines::{BitSet, Value};
use std::fmt;
use std::sync::Arc;

/// A function that accepts or refuses a put: of the PV's value, the value that is put, and who puts it.
pub trait Check: Fn(&Value, &mut Value, &ClientName) -> Result<(), String> + Send + Sync + 'static {}

impl<F: Fn(&Value, &mut Value, &ClientName) -> Result<(), String> + Send + Sync + 'static> Check for F {}

/// The handlers of a PV.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) check: Option<Box<dyn Check>>,
    pub(crate) put: Option<Box<dyn Fn(Put) + Send + Sync>>,
    pub(crate) call: Option<Box<dyn Fn(Call) + Send + Sync>>,
}

/// The name that a client claims, and the address that it is connected from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName {
    /// The address.
    pub address: String,
    /// The name of its user, which nobody proves; empty for an anonymous client.
    pub user: String,
    /// The name of its host, which nobody proves; empty for an anonymous client.
    pub host: String,
}

impl ClientName {
    /// Returns the name of a client.
    #[must_use]
    pub fn of(client: &ClientStatistics) -> Self {
        let (user, host) = client.claim.clone().unwrap_or_default();
        let remote = &client.ends.remote;
        ClientName { address: remote.ip().map_or_else(|| remote.to_string(), |ip| ip.to_string()), user, host }
    }
}

impl ClientName {
    /// Returns the name of a client that is gone already.
    pub(crate) fn unknown() -> Arc<Self> {
        Arc::new(ClientName { address: "a client that is gone".to_owned(), user: String::new(), host: String::new() })
    }
}

impl fmt::Display for ClientName {
    /// Writes `user@host (address)`, or the address of an anonymous client.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.user.is_empty() && self.host.is_empty() {
            return f.write_str(&self.address);
        }
        write!(f, "{}@{} ({})", self.user, self.host, self.address)
    }
}

/// A value that a client puts. It is answered by one of its functions, from any thread and at any time; one that is dropped is refused.
pub struct Put {
    /// The value; only its changed fields were put.
    pub value: Box<Value>,
    /// The client.
    pub client: Arc<ClientName>,
    /// The PV.
    pub pv: Pv,
    answer: Answer,
}

/// A call of a client. It is answered by one of its functions, from any thread and at any time; one that is dropped is refused.
pub struct Call {
    /// The argument, or nothing.
    pub argument: Option<Box<Value>>,
    /// The client.
    pub client: Arc<ClientName>,
    /// The PV.
    pub pv: Pv,
    answer: Answer,
}

/// The answer that a client waits for.
struct Answer {
    core: Arc<Core>,
    call: u64,
    is_given: bool,
}

impl Put {
    pub(crate) fn new(
        core: &Arc<Core>,
        of: &Arc<Shared>,
        call: u64,
        client: Arc<ClientName>,
        value: Box<Value>,
    ) -> Self {
        let pv = Pv::new(Arc::clone(core), Arc::clone(of));
        Put { value, client, pv, answer: Answer { core: Arc::clone(core), call, is_given: false } }
    }

    /// Makes what was put the PV's value, as [`Pv::post`] does, and tells the client that it is done.
    ///
    /// # Errors
    /// [`SetError::WrongType`] if the value was replaced by one of another type; the client is told so.
    pub fn accept(mut self) -> Result<(), SetError> {
        let posted = self.pv.update(|value| {
            let is_same = value.merge(&self.value, self.value.changed(), &mut BitSet::new());
            is_same.then_some(()).ok_or(SetError::WrongType)
        });
        self.answer.give(posted.map(|_| None).map_err(|why| Status::error(why.to_string())));
        posted.map(drop)
    }

    /// Tells the client that it is done. The PV's value is what the program posts.
    pub fn done(mut self) {
        self.answer.give(Ok(None));
    }

    /// Tells the client why it is not done.
    pub fn refuse(mut self, why: impl Into<String>) {
        self.answer.give(Err(Status::error(why)));
    }
}

impl Call {
    pub(crate) fn new(
        core: &Arc<Core>,
        of: &Arc<Shared>,
        call: u64,
        client: Arc<ClientName>,
        argument: Option<Box<Value>>,
    ) -> Self {
        let pv = Pv::new(Arc::clone(core), Arc::clone(of));
        Call { argument, client, pv, answer: Answer { core: Arc::clone(core), call, is_given: false } }
    }

    /// Returns a value to the client, or nothing.
    pub fn reply(mut self, value: Option<Value>) {
        self.answer.give(Ok(value.map(Box::new)));
    }

    /// Tells the client why it gets no reply.
    pub fn refuse(mut self, why: impl Into<String>) {
        self.answer.give(Err(Status::error(why)));
    }
}

impl Answer {
    fn give(&mut self, result: Result<Option<Box<Value>>, Status>) {
        if !std::mem::replace(&mut self.is_given, true) {
            self.core.orders.push(Order::Answer { call: self.call, result });
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.give(Err(Status::error("the server's handler has ended without an answer; its log may say why")));
    }
}
