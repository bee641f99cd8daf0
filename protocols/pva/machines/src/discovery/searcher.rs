use crate::discovery::{Finder, FinderConfig, Found};
use alloc::string::String;
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};

/// A machine that only finds servers: for programs that list them, or ask which of them has a name.
#[derive(Debug)]
pub struct Searcher {
    finder: Finder,
}

/// A command to a [`Searcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearcherCommand {
    /// Search for a name until one server has answered, or for all servers that have it.
    Search {
        /// The application's number of the name.
        number: u32,
        /// The name.
        name: String,
        /// Whether the search goes on after the first answer.
        all: bool,
    },
    /// Search for a name no more.
    Cancel {
        /// The application's number of the name.
        number: u32,
    },
    /// Ask all servers to answer, once.
    List,
}

impl Searcher {
    /// Creates a machine that looks for nothing yet, but reports beacons.
    #[must_use]
    pub fn new(config: FinderConfig) -> Self {
        Searcher { finder: Finder::new(config, Peer(0)) }
    }

    /// Returns the finder that does the work.
    #[must_use]
    pub const fn finder(&self) -> &Finder {
        &self.finder
    }
}

impl Machine for Searcher {
    type Command = SearcherCommand;
    type Event = Found;

    fn handle(&mut self, now: Instant, input: Input<'_, SearcherCommand>) {
        match input {
            Input::Command(SearcherCommand::Search { number, name, all: false }) => {
                self.finder.search(now, number, &name, false);
            }
            Input::Command(SearcherCommand::Search { number, name, all: true }) => {
                self.finder.search_all(now, number, &name);
            }
            Input::Command(SearcherCommand::Cancel { number }) => self.finder.cancel(number),
            Input::Command(SearcherCommand::List) => self.finder.list(),
            Input::Elapsed => self.finder.elapsed(now),
            // Datagrams come from strangers alone.
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<Found> {
        if let Some(event) = self.finder.event() {
            return Output::Event(event);
        }
        self.finder.poll(out).unwrap_or_else(|| Output::Idle(self.finder.deadline()))
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], _out: &mut Outbox) -> bool {
        self.finder.datagram(now, ends, datagram);
        false
    }
}
