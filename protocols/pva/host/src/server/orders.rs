use super::pv::Shared;
use crate::machines::Value;
use crate::machines::server::Ruled;
use crate::machines::wire::Status;
use std::sync::Arc;

/// An order for the serving thread. There are at most two for each PV, one for each put or call under way, and one for each change of the rules.
pub(crate) enum Order {
    /// Serve a PV with this value.
    Serve(Arc<Shared>, Box<Value>),
    /// Serve it no more.
    Remove(Arc<Shared>),
    /// Take the updates that wait in a PV.
    Post(Arc<Shared>),
    /// Go by other rules about who may do what.
    Rule(Ruled),
    /// Answer a put or a call.
    Answer { call: u64, result: Result<Option<Box<Value>>, Status> },
}
