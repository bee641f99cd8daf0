/// Bounds on what a peer may send. All are checked before anything is allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message with all its segments.
    pub message_bytes: usize,
    /// Levels of structures in a type.
    pub nesting: usize,
    /// Fields of one type, with those of its members, of unions and of elements; and of all types of a message together, but for one
    /// more for each of its bytes.
    pub fields: usize,
    /// Fields of all types that a peer may have this side remember by number.
    pub cached_fields: usize,
    /// Bytes of memory that the values of one message may take beside its own bytes: elements of structure arrays, and what
    /// unions and any-fields hold.
    pub value_bytes: usize,
    /// Bytes of spent buffers that a connection keeps for the next large message.
    pub recycled_bytes: usize,
}

impl Limits {
    /// The bounds where nothing else is configured.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 256 << 20,
        nesting: 20,
        fields: 1 << 16,
        cached_fields: 1 << 18,
        value_bytes: 64 << 20,
        recycled_bytes: 16 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}
