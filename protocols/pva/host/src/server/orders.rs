use super::pv::Shared;
use crate::machines::Value;
use crate::machines::wire::Status;
use std::sync::Arc;

/// An order for the serving thread. There are at most two for each PV, and one for each put or call under way.
pub(crate) enum Order {
    /// Serve a PV with this value.
    Serve(Arc<Shared>, Box<Value>),
    /// Serve it no more.
    Remove(Arc<Shared>),
    /// Take the updates that wait in a PV.
    Post(Arc<Shared>),
    /// Answer a put or a call.
    Answer { call: u64, result: Result<Option<Box<Value>>, Status> },
}
