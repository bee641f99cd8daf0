use crate::Error;
use hodo_machine::{Cursor, codes};

codes! {
    /// The state of a controller.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum State {
        /// Nothing was begun: connections are taken, and no event is given to a node.
        Configured => "configured",
        /// Events are given to nodes.
        #[default]
        Running => "running",
        /// None is given; tokens are still taken.
        Paused => "paused",
        /// None is taken in; what is in hand is brought to its end.
        Draining => "draining",
        /// None is taken in, and none is in hand.
        Drained => "drained",
    }
}

/// The counters of a controller beside the balance of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes of events that came in.
    pub bytes_in: u64,
    /// Events given to nodes, each time counted.
    pub given: u64,
    /// Bytes of them.
    pub given_bytes: u64,
    /// Tokens that came.
    pub tokens: u64,
    /// Bytes of data behind them.
    pub token_bytes: u64,
    /// Times that an event had to be given to another node.
    pub redispatched: u64,
    /// Events that found no token.
    pub waited_for_token: u64,
    /// Nanoseconds during which an event waited and could not be given.
    pub dead_time_ns: u64,
    /// Events made here that could not be taken in: of a run that is over, or with the numbers of events that others gave.
    pub not_taken: u64,
    /// Events that were quarantined because no node takes so many bytes.
    pub too_large: u64,
    /// Events with a verdict other than `incomplete` that lacked fragments.
    pub partial: u64,
    /// Tokens for events that their sender had not.
    pub unasked: u64,
    /// Connections refused before they had greeted.
    pub refused: u64,
    /// Connections ended because the peer broke the rules.
    pub misbehaved: u64,
    /// Connections that ended, by the code of why: see [`Error::REASONS`].
    pub ended: [u64; Error::REASONS.len()],
    /// Nodes that were lost.
    pub nodes_lost: u64,
    /// Events that wait now.
    pub events_waiting: u64,
    /// Tokens that wait now.
    pub tokens_waiting: u64,
    /// Verdicts told and not committed.
    pub uncommitted: u64,
    /// Bytes of what is to be stored of them.
    pub uncommitted_bytes: u64,
    /// Nodes that are there.
    pub nodes: u64,
    /// Sources and builders that are there.
    pub sources: u64,
    /// Threads that have counted.
    pub threads: u64,
    /// The state of the controller.
    pub state: State,
    /// The run of the events that are made here.
    pub run: u32,
}

impl Counters {
    /// Adds the counters of another thread.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            bytes_in: self.bytes_in + other.bytes_in,
            given: self.given + other.given,
            given_bytes: self.given_bytes + other.given_bytes,
            tokens: self.tokens + other.tokens,
            token_bytes: self.token_bytes + other.token_bytes,
            redispatched: self.redispatched + other.redispatched,
            waited_for_token: self.waited_for_token + other.waited_for_token,
            dead_time_ns: self.dead_time_ns + other.dead_time_ns,
            too_large: self.too_large + other.too_large,
            partial: self.partial + other.partial,
            unasked: self.unasked + other.unasked,
            refused: self.refused + other.refused,
            misbehaved: self.misbehaved + other.misbehaved,
            ended: core::array::from_fn(|code| self.ended[code] + other.ended[code]),
            nodes_lost: self.nodes_lost + other.nodes_lost,
            events_waiting: self.events_waiting + other.events_waiting,
            tokens_waiting: self.tokens_waiting + other.tokens_waiting,
            uncommitted: self.uncommitted + other.uncommitted,
            uncommitted_bytes: self.uncommitted_bytes + other.uncommitted_bytes,
            nodes: self.nodes + other.nodes,
            sources: self.sources + other.sources,
            not_taken: self.not_taken + other.not_taken,
            threads: self.threads + other.threads,
            // One that is not done yet says so for all.
            state: if other.state == State::Draining { other.state } else { self.state },
            run: self.run,
        }
    }
}

/// The counters that a node reports of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FarCounters {
    /// Events that it has taken on this connection.
    pub events: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Tokens that it has sent.
    pub tokens: u64,
    /// Which process it is: several nodes may be one.
    pub process: u64,
    /// CPU time of the node's process in user mode, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Voluntary context switches of the node's process.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
    /// The most memory that its process had, in bytes.
    pub max_rss_bytes: u64,
    /// Nanoseconds of CPU time that its process spent polling; `None` of an older node, whose counters end before.
    pub polling_ns: Option<u64>,
}

impl FarCounters {
    /// Bytes on the wire.
    pub const LENGTH: usize = 80;

    /// Reads the body of COUNTERS.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the body is shorter than the counters.
    pub fn decode(body: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(body);
        let mut next = || cursor.u64_le().map_err(|_| Error::Truncated);
        Ok(FarCounters {
            events: next()?,
            bytes: next()?,
            tokens: next()?,
            process: next()?,
            user_ns: next()?,
            system_ns: next()?,
            voluntary: next()?,
            involuntary: next()?,
            max_rss_bytes: next()?,
            polling_ns: next().ok().filter(|nanos| *nanos != u64::MAX),
        })
    }

    /// Encodes the body of COUNTERS.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let fields = [
            self.events,
            self.bytes,
            self.tokens,
            self.process,
            self.user_ns,
            self.system_ns,
            self.voluntary,
            self.involuntary,
            self.max_rss_bytes,
            self.polling_ns.unwrap_or(u64::MAX),
        ];
        let mut bytes = [0; Self::LENGTH];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_an_older_node_end_before_its_polling() {
        for polling_ns in [None, Some(0), Some(7)] {
            let counters = FarCounters { events: 1, max_rss_bytes: 9, polling_ns, ..FarCounters::default() };
            let bytes = counters.encode();
            assert_eq!(FarCounters::decode(&bytes), Ok(counters));
            assert_eq!(FarCounters::decode(&bytes[..72]), Ok(FarCounters { polling_ns: None, ..counters }));
            assert_eq!(FarCounters::decode(&bytes[..71]), Err(Error::Truncated));
        }
    }
}
