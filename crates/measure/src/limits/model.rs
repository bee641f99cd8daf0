//! A simulated network as a limit sees it: plain figures for messages of the mean size.

/// One direction of a simulated network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelledWay {
    /// The shortest time from sending a mean message to its arrival, without processor time.
    pub transit_ns: f64,
    /// Processor time of sending or receiving one message.
    pub cost_ns: f64,
    /// The most bits per second in messages of the mean size that the wire takes; `None` without a rate.
    pub payload_bits_per_s: Option<f64>,
    /// The most bits per second that a stream's buffer allows over its delay; `None` for datagrams or without a delay.
    pub buffer_bits_per_s: Option<f64>,
    /// Processor time of a datagram at the end that sends this way; `None` for streams.
    pub datagram_cost_ns: Option<f64>,
    /// Processors at that end.
    pub processors: u32,
}

/// A simulated network, from its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// From here to the far end.
    pub out: ModelledWay,
    /// From the far end to here.
    pub back: ModelledWay,
    /// Far ends, each with a line of its own.
    pub far_ends: u32,
}
