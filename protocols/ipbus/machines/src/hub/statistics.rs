use super::Ended;
use super::board::Health;
use super::router::Router;
use crate::window::WindowCounters;
use crate::wire::Version;
use crate::wire::hub::Code;
use core::net::SocketAddrV4;
use core::ops::AddAssign;
use core::time::Duration;
use hodo_machine::{Address, Instant, Peer};

/// The counters between the hub and clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounters {
    /// Chunks received.
    pub chunks: u64,
    /// Packets received.
    pub packets: u64,
    /// Chunks that broke the rules.
    pub malformed: u64,
    /// Packets that were answered with the device's reply.
    pub replies: u64,
    /// Packets that were answered with an error of the hub.
    pub errors: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

impl ClientCounters {
    pub(super) fn answered(&mut self, code: Code) {
        if code == Code::Done {
            self.replies += 1;
        } else {
            self.errors += 1;
        }
    }
}

impl AddAssign for ClientCounters {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.packets += other.packets;
        self.malformed += other.malformed;
        self.replies += other.replies;
        self.errors += other.errors;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// The counters between the hub and boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BoardCounters {
    /// Packets of clients for it.
    pub packets: u64,
    /// Those that it has answered.
    pub replies: u64,
    /// Those that were given up, or not tried.
    pub errors: u64,
    /// Datagrams received that are no packet of a device.
    pub malformed: u64,
    /// Times that it was found dead.
    pub deaths: u64,
    /// Losses on the way, and how they were recovered.
    pub link: WindowCounters,
}

impl AddAssign for BoardCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.replies += other.replies;
        self.errors += other.errors;
        self.malformed += other.malformed;
        self.deaths += other.deaths;
        self.link += other.link;
    }
}

/// All that a hub has done since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HubCounters {
    /// With clients, those that are gone included.
    pub clients: ClientCounters,
    /// With boards, those that are forgotten included.
    pub boards: BoardCounters,
    /// Clients that came.
    pub came: u64,
    /// Clients that are gone, by why: in the order of [`Ended::ALL`].
    pub ended: [u64; Ended::ALL.len()],
    /// Packets that were answered, by their code, 0 to 7.
    pub codes: [u64; 8],
}

/// One client of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientStatistics {
    /// Number of the client while it is connected.
    pub peer: Peer,
    /// Where it is.
    pub address: Address,
    /// When it came.
    pub since: Instant,
    /// Packets that it waits for.
    pub waiting: usize,
    /// Whether it does not read.
    pub blocked: bool,
    /// Counters between the client and the hub.
    pub counters: ClientCounters,
}

/// One board of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardStatistics {
    /// Where it is.
    pub target: SocketAddrV4,
    /// The version of the protocol that it is spoken to in.
    pub version: Version,
    /// State of the board: `None` if it is not known yet, 0 if it answers, else the code that everything for it is
    /// answered with.
    pub state: Option<Code>,
    /// Packets that wait for their turn.
    pub queued: usize,
    /// Packets in flight.
    pub in_flight: usize,
    /// The usual round-trip.
    pub round_trip: Option<Duration>,
    /// The shortest round-trip.
    pub round_trip_min: Option<Duration>,
    /// Counters between the board and the hub.
    pub counters: BoardCounters,
}

impl HubCounters {
    pub(super) fn count(&mut self, code: Code) {
        if let Some(count) = self.codes.get_mut(usize::from(code.code())) {
            *count += 1;
        }
    }
}

impl Router {
    pub(super) fn counters(&self) -> HubCounters {
        let mut all = self.past;
        self.clients.iter().for_each(|(_, client)| all.clients += client.counters);
        self.boards.all().for_each(|(_, board)| all.boards += board.counters());
        all
    }

    pub(super) fn client_statistics(&self) -> impl Iterator<Item = ClientStatistics> + '_ {
        self.clients.iter().map(|(_, client)| ClientStatistics {
            peer: client.peer,
            address: client.address.clone(),
            since: client.came,
            waiting: client.owed(),
            blocked: client.blocked,
            counters: client.counters,
        })
    }

    pub(super) fn board_statistics(&self) -> impl Iterator<Item = BoardStatistics> + '_ {
        self.boards.all().map(|(_, board)| BoardStatistics {
            target: board.target,
            version: board.version,
            state: match board.health {
                Health::Unknown => None,
                Health::Alive => Some(Code::Done),
                Health::Dead(death) => Some(death.code),
            },
            queued: board.queued as usize,
            in_flight: board.link.len(),
            round_trip: board.link.round_trip().smoothed(),
            round_trip_min: board.link.round_trip().least(),
            counters: board.counters(),
        })
    }
}
