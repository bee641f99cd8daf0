//! The payload of puts and calls.

use crate::call;
use hodo_measure::Mode;
use hodo_pva::{Array, Datum, Scalar, Value};

/// The bytes that are put and called with, shared by all operations.
#[derive(Debug)]
pub(super) struct Payload {
    bytes: Array,
    argument: Value,
}

impl Default for Payload {
    fn default() -> Self {
        Payload { bytes: Array::empty(Scalar::U8), argument: call::argument() }
    }
}

impl Payload {
    /// Returns so many bytes.
    pub(super) fn bytes(&mut self, size: u32) -> Array {
        let size = size as usize;
        if self.bytes.len() < size {
            self.bytes = vec![1_u8; size.next_power_of_two()].into();
        }
        self.bytes.first(size)
    }

    /// Returns the argument of a call.
    pub(super) fn argument(&mut self, mode: Mode, size: u32) -> Box<Value> {
        let (out, back) = match mode {
            Mode::Send => (size, 0),
            Mode::Receive => (0, size),
            Mode::Both => (size, size),
        };
        let out = self.bytes(out);
        let mut argument = Box::new(self.argument.clone());
        call::fill(&mut argument, out, back);
        argument
    }
}

/// Returns what is put into a field of this size.
pub(super) fn content(size: u32) -> Datum {
    match size {
        8 => Datum::Float(1.5),
        _ if size.is_multiple_of(8) => vec![1.5f64; size as usize / 8].into(),
        _ => vec![1u8; size as usize].into(),
    }
}
