use super::open::searching;
use super::{ClientError, ClientOptions};
use crate::machines::discovery::{FinderConfig, Found, Searcher, SearcherCommand};
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::{Driver, Wait};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// A search for servers without channels: who is there, who has a name, whose beacons are heard.
pub struct Lookout {
    endpoint: Endpoint<Searcher, Sockets>,
    found: VecDeque<Found>,
}

impl Lookout {
    /// Binds the ports that the options ask for.
    ///
    /// # Errors
    /// A [`ClientError`] if a socket cannot be made.
    pub fn open(options: &ClientOptions) -> Result<Self, ClientError> {
        let failed = |why: io::Error| ClientError::Sockets(why.to_string());
        let mut sockets = Sockets::new(SocketSettings::default()).map_err(failed)?;
        let search = searching(&options.network, options.hears_beacons, &mut sockets).map_err(failed)?;
        let machine = Searcher::new(FinderConfig { seed: options.protocol.seed, ..search });
        Ok(Lookout { endpoint: Endpoint::new(machine, sockets, Clock::start()), found: VecDeque::new() })
    }

    /// Queries all servers: each is a [`Found::Server`], perhaps several times.
    pub fn list(&mut self) {
        self.endpoint.command(SearcherCommand::List);
    }

    /// Searches for all servers that have a name: each is a [`Found::Name`] with this number.
    pub fn search(&mut self, number: u32, name: &str) {
        self.endpoint.command(SearcherCommand::Search { number, name: name.into(), all: true });
    }

    /// Waits for the next answer or beacon, at most this long.
    ///
    /// # Errors
    /// A [`ClientError`] if the operating system refuses what is needed.
    pub fn next(&mut self, within: Duration) -> Result<Option<Found>, ClientError> {
        let until = self.endpoint.now() + within;
        while self.found.is_empty() && self.endpoint.now() < until {
            let found = &mut self.found;
            self.endpoint.turn(Wait::Block, until, &mut |one| found.push_back(one)).map_err(ClientError::System)?;
        }
        Ok(self.found.pop_front())
    }
}

impl std::fmt::Debug for Lookout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lookout").finish_non_exhaustive()
    }
}
