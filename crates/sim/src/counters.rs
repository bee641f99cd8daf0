/// Counts of the packets of one direction: the truth that a tester's figures are checked against.
///
/// A packet is a datagram, or a segment of a stream (connecting and finishing take a segment each). For datagrams, once
/// nothing is in flight: `sent + duplicated = delivered + lost + queue_dropped + too_big + overrun + unclaimed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets that a machine's bytes were sent in, without copies and retransmissions.
    pub sent: u64,
    /// Payload bytes of those.
    pub sent_bytes: u64,
    /// Packets that were handed to the far machine; copies too.
    pub delivered: u64,
    /// Payload bytes of those.
    pub delivered_bytes: u64,
    /// Packets that the network lost, or that met a partition.
    pub lost: u64,
    /// Second copies that the network made.
    pub duplicated: u64,
    /// Datagrams that were handed over after one that was sent later over the same connection; copies do not count.
    pub reordered: u64,
    /// Packets in which a bit was flipped. Datagrams arrive so; a segment is sent again.
    pub corrupted: u64,
    /// Datagrams that met a full queue.
    pub queue_dropped: u64,
    /// Datagrams that were larger than the MTU allows.
    pub too_big: u64,
    /// Datagrams that met a full receive buffer, because the far node was too slow.
    pub overrun: u64,
    /// Datagrams that nobody was there to receive.
    pub unclaimed: u64,
    /// Segments sent again.
    pub retransmitted: u64,
}
