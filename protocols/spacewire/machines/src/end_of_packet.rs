/// The marker that ends a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EndOfPacket {
    /// The end of a whole packet.
    #[default]
    Eop,
    /// The end of a packet that an error cut short on its way.
    Eep,
}
