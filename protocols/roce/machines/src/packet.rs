//! Packets in an outbox.

use crate::icrc::Flow;
use crate::wire::{BaseHeader, Extended, HEADERS_MAX, ICRC_LENGTH, Packet, padding_of};
use hodo_machine::Outbox;

/// Puts packets of one flow together in an outbox.
pub(crate) struct Writer<'a> {
    pub(crate) flow: &'a mut Flow,
    pub(crate) out: &'a mut Outbox,
}

impl Writer<'_> {
    /// Appends a packet with `length` bytes of payload, which `payload` hands out run by run. Returns the length of the
    /// packet.
    #[inline]
    pub(crate) fn write(
        &mut self,
        base: &BaseHeader,
        extended: &Extended,
        length: usize,
        payload: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> usize {
        let mut room = [0; HEADERS_MAX];
        let headers = Packet::encode_headers(base, extended, length, &mut room);
        let padding = padding_of(length);
        let whole = headers + length + padding + ICRC_LENGTH;
        let mut checksum = self.flow.start(whole, &room[..headers]);
        self.out.copy(&room[..headers]);
        if length > 0 {
            let out = &mut *self.out;
            payload(&mut |bytes| {
                checksum.update(bytes);
                out.copy(bytes);
            });
        }
        let mut tail = [0; 3 + ICRC_LENGTH];
        checksum.update(&tail[..padding]);
        tail[padding..padding + ICRC_LENGTH].copy_from_slice(&checksum.finish().to_le_bytes());
        self.out.copy(&tail[..padding + ICRC_LENGTH]);
        whole
    }
}
