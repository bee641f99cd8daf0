//! A link between two nodes, in runs of bytes.
use super::{Network, Observer};

/// Memory that is used again from call to call.
#[derive(Debug, Default)]
pub(super) struct Scratch {}

impl<O: Observer> Network<O> {
    pub(super) fn run_batch(&mut self, _first: usize, _until: u64) {}
}
