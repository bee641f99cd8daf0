use crate::connection::End;
use hodo_machine::{Outbox, Slab};

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// The end that it is for.
    pub(crate) to: End,
    /// The lane that carries it.
    pub(crate) lane: u32,
    /// Its place in the order of sending over its connection.
    pub(crate) number: u64,
    /// Whether the network made it as a second copy.
    pub(crate) copy: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The datagrams on their way, under keys; their buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    slab: Slab<Parcel>,
    bytes: usize,
}

impl Parcels {
    /// Keeps a datagram's bytes; answers its key.
    pub(crate) fn pack(&mut self, to: End, lane: u32, number: u64, copy: bool, outbox: &Outbox) -> u32 {
        self.bytes += outbox.len();
        let key = self.slab.take(|| Parcel { to, lane, number, copy, bytes: Vec::new() });
        let parcel = &mut self.slab[key];
        let mut buffer = std::mem::take(&mut parcel.bytes);
        buffer.clear();
        for piece in outbox.pieces() {
            buffer.extend_from_slice(outbox.bytes(piece));
        }
        *parcel = Parcel { to, lane, number, copy, bytes: buffer };
        key
    }

    pub(crate) fn at(&mut self, key: u32) -> &mut Parcel {
        &mut self.slab[key]
    }

    /// Forgets a datagram and keeps its buffer.
    pub(crate) fn discard(&mut self, key: u32) {
        self.bytes -= self.slab[key].bytes.len();
        self.slab.release(key);
    }

    /// Bytes on their way.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}
