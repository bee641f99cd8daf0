//! Operation codes of the reliable connection (9.2.1, table 38).

hodo_machine::codes! {
    /// The kind of a packet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Opcode: u8 {
        /// The first packet of a send.
        SendFirst = 0x00 => "SEND_FIRST",
        /// A packet within a send.
        SendMiddle = 0x01 => "SEND_MIDDLE",
        /// The last packet of a send.
        SendLast = 0x02 => "SEND_LAST",
        /// The last packet of a send with immediate data.
        SendLastImmediate = 0x03 => "SEND_LAST_WITH_IMMEDIATE",
        /// A send of one packet.
        SendOnly = 0x04 => "SEND_ONLY",
        /// A send of one packet with immediate data.
        SendOnlyImmediate = 0x05 => "SEND_ONLY_WITH_IMMEDIATE",
        /// The first packet of a write.
        WriteFirst = 0x06 => "RDMA_WRITE_FIRST",
        /// A packet within a write.
        WriteMiddle = 0x07 => "RDMA_WRITE_MIDDLE",
        /// The last packet of a write.
        WriteLast = 0x08 => "RDMA_WRITE_LAST",
        /// The last packet of a write with immediate data.
        WriteLastImmediate = 0x09 => "RDMA_WRITE_LAST_WITH_IMMEDIATE",
        /// A write of one packet.
        WriteOnly = 0x0A => "RDMA_WRITE_ONLY",
        /// A write of one packet with immediate data.
        WriteOnlyImmediate = 0x0B => "RDMA_WRITE_ONLY_WITH_IMMEDIATE",
        /// A request to read.
        ReadRequest = 0x0C => "RDMA_READ_REQUEST",
        /// The first packet of what was read.
        ReadResponseFirst = 0x0D => "RDMA_READ_RESPONSE_FIRST",
        /// A packet within what was read.
        ReadResponseMiddle = 0x0E => "RDMA_READ_RESPONSE_MIDDLE",
        /// The last packet of what was read.
        ReadResponseLast = 0x0F => "RDMA_READ_RESPONSE_LAST",
        /// All that was read, in one packet.
        ReadResponseOnly = 0x10 => "RDMA_READ_RESPONSE_ONLY",
        /// A positive or negative acknowledgement.
        Acknowledge = 0x11 => "ACKNOWLEDGE",
        /// The acknowledgement of an atomic operation, with its result.
        AtomicAcknowledge = 0x12 => "ATOMIC_ACKNOWLEDGE",
        /// A compare-and-swap.
        CompareSwap = 0x13 => "CMP_SWAP",
        /// A fetch-and-add.
        FetchAdd = 0x14 => "FETCH_ADD",
        /// The last packet of a send that invalidates a key.
        SendLastInvalidate = 0x16 => "SEND_LAST_WITH_INVALIDATE",
        /// A send of one packet that invalidates a key.
        SendOnlyInvalidate = 0x17 => "SEND_ONLY_WITH_INVALIDATE",
        /// A congestion notification (A17.9.3), which belongs to no sequence.
        CongestionNotification = 0x81 => "CNP",
    }
}

/// Where a packet stands in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

impl Position {
    /// Returns where packet `index` of `count` stands.
    #[must_use]
    #[inline]
    pub const fn of(index: u32, count: u32) -> Position {
        match (index == 0, index + 1 >= count) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, false) => Position::Middle,
            (false, true) => Position::Last,
        }
    }

    /// Returns whether a message begins here.
    #[must_use]
    #[inline]
    pub const fn begins(self) -> bool {
        matches!(self, Position::First | Position::Only)
    }

    /// Returns whether a message ends here.
    #[must_use]
    #[inline]
    pub const fn ends(self) -> bool {
        matches!(self, Position::Last | Position::Only)
    }
}

impl Opcode {
    /// Returns where a packet of this kind stands in its message.
    #[must_use]
    #[inline]
    pub const fn position(self) -> Position {
        match self {
            Opcode::SendFirst | Opcode::WriteFirst | Opcode::ReadResponseFirst => Position::First,
            Opcode::SendMiddle | Opcode::WriteMiddle | Opcode::ReadResponseMiddle => Position::Middle,
            Opcode::SendLast
            | Opcode::SendLastImmediate
            | Opcode::SendLastInvalidate
            | Opcode::WriteLast
            | Opcode::WriteLastImmediate
            | Opcode::ReadResponseLast => Position::Last,
            _ => Position::Only,
        }
    }

    /// Returns whether a responder sends it.
    #[must_use]
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Opcode::ReadResponseFirst
                | Opcode::ReadResponseMiddle
                | Opcode::ReadResponseLast
                | Opcode::ReadResponseOnly
                | Opcode::Acknowledge
                | Opcode::AtomicAcknowledge
        )
    }

    /// Returns whether it belongs to a send.
    #[must_use]
    #[inline]
    pub const fn is_send(self) -> bool {
        self.code() <= Opcode::SendOnlyImmediate.code()
            || matches!(self, Opcode::SendLastInvalidate | Opcode::SendOnlyInvalidate)
    }

    /// Returns whether it belongs to a write.
    #[must_use]
    #[inline]
    pub const fn is_write(self) -> bool {
        self.code() >= Opcode::WriteFirst.code() && self.code() <= Opcode::WriteOnlyImmediate.code()
    }
}
