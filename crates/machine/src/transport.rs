/// The kind of connection that carries a protocol's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// An ordered stream of bytes, as TCP: nothing is lost while it lives.
    Stream,
    /// One message a datagram, as UDP: each may be lost, doubled, overtaken or damaged.
    Datagram,
}
