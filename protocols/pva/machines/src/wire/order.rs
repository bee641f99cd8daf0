/// The order of the bytes of a number. Every message says its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// Both orders.
    pub const BOTH: [Order; 2] = [Order::Little, Order::Big];
    /// The order of this computer.
    pub const NATIVE: Order = if cfg!(target_endian = "big") { Order::Big } else { Order::Little };

    /// Reads two bytes.
    #[must_use]
    #[inline]
    pub const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Reads four bytes.
    #[must_use]
    #[inline]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads eight bytes.
    #[must_use]
    #[inline]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Returns the two bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_16(self, value: u16) -> [u8; 2] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    /// Returns the four bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_32(self, value: u32) -> [u8; 4] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    /// Returns the eight bytes of a number.
    #[must_use]
    #[inline]
    pub const fn bytes_64(self, value: u64) -> [u8; 8] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }
}
