use crate::Error;
use crate::server::Server;
use crate::server::client::Client;
use alloc::string::String;
use hodo_machine::{Closed, Ends, Peer};

/// The work of a server so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Clients that were connected.
    pub clients: u64,
    /// Replies that hold a value: gets, and what is read back by puts.
    pub reads: u64,
    /// Puts, whatever became of them.
    pub puts: u64,
    /// Calls, whatever became of them.
    pub calls: u64,
    /// Updates that were sent to subscribers.
    pub updates: u64,
    /// Updates that became part of an earlier one, because a subscriber's queue was full.
    pub merged: u64,
    /// Requests that were refused with an error.
    pub refused: u64,
}

/// A client at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientStatistics {
    /// Both ends of the connection.
    pub ends: Ends,
    /// The names of user and host that the client claims, which nobody proves.
    pub claim: Option<(String, String)>,
    /// Channels that it has open.
    pub channels: usize,
    /// Operations that it has set up.
    pub operations: usize,
    /// Operations that are subscriptions.
    pub subscriptions: usize,
    /// Replies with values that it has not been sent yet.
    pub owed: usize,
    /// Whether it does not read what is sent.
    pub is_blocked: bool,
}

/// Why a client is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The connection was closed by the client, or is broken.
    #[error("{0}")]
    Closed(Closed),
    /// The client did what is not allowed.
    #[error("{0}")]
    Wrong(Error),
}

impl Server {
    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> ServerCounters {
        self.shared.counters
    }

    /// Returns a client that is connected.
    #[must_use]
    pub fn client(&self, peer: Peer) -> Option<ClientStatistics> {
        self.clients.get(peer).map(Client::statistics)
    }

    /// Iterates over the clients that are connected.
    pub fn clients(&self) -> impl Iterator<Item = ClientStatistics> + '_ {
        self.clients.iter().map(|(_, client)| client.statistics())
    }

    /// Returns the number of channels that are served.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.shared.names.len()
    }

    /// Returns whether every put and call is answered, and every reply is written.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.shared.calls.is_empty()
            && self.shared.events.is_empty()
            && self.clients.iter().all(|(_, one)| !one.is_owed())
    }
}
