use crate::limit::tcp_times;
use hodo_io::{Endpoint, Sockets};
use hodo_machine::{Driver, Machine};
use hodo_measure::{Loss, TcpTimes};
use hodo_sim::Sim;

/// A driver of a link's machine, with the counters of the transport beneath it.
pub trait TransportCounters: Driver {
    /// Returns the segments that this side's TCP has sent again, and the datagrams that its kernel refused.
    fn transport_losses(&self) -> Loss;

    /// Returns the report of this side's TCP on its connections; `None` if there is no TCP, or it is simulated.
    fn tcp(&self) -> Option<TcpTimes>;
}

impl<M: Machine> TransportCounters for Endpoint<M, Sockets> {
    fn transport_losses(&self) -> Loss {
        let sockets = self.transport();
        Loss { retransmitted: sockets.retransmitted(), refused: sockets.unsent(), ..Loss::default() }
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.transport().tcp().map(tcp_times)
    }
}

impl<C, S> TransportCounters for Sim<C, S>
where
    C: Machine + Send + 'static,
    C::Event: Send,
    S: Machine + Send + 'static,
    S::Event: Send,
{
    fn transport_losses(&self) -> Loss {
        Loss { retransmitted: self.retransmitted(), ..Loss::default() }
    }

    fn tcp(&self) -> Option<TcpTimes> {
        None
    }
}
