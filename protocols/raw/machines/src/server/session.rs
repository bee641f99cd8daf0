use crate::session::Inbound;
use crate::stages::{Answered, FarStages};
use crate::subscription::Updates;
use crate::tracker::{Arrival, Tracker};
use crate::wire::{
    self, COUNTERS, Counters, DAMAGED, FLAG_BY_TIME, FLAG_CHECK, FLAG_DAMAGED, FLAG_FACTS, GREETING, GREETING_MAX,
    Header, Kind, PROOF, RANGE, RECEIVED,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Instant, Outbox, Peer, Transport};

/// A SEND is acknowledged that arrives this long after the last acknowledgement. On a fast line the client asks more often.
const WITHIN: Duration = Duration::from_millis(2);
/// SENDs that were not acknowledged are, after a silence of this length. A driver that waits for less than 40 ms needs more system
/// calls, and the end of almost every burst asks for its acknowledgement.
pub(super) const SILENCE: Duration = Duration::from_millis(50);
/// While a message arrives that takes long, there is an acknowledgement this often, which tells the client that it arrives.
const STILL_ARRIVES: Duration = Duration::from_secs(1);

/// One peer of a server: what came from it, and what it is owed.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) inbound: Inbound,
    /// The number that the peer repeats over UDP: who does receives what is sent to its address.
    pub(super) proof: u64,
    pub(super) greeted: bool,
    pub(super) blocked: bool,
    pub(super) queued: bool,
    pub(super) acknowledge: bool,
    /// Whether the client has asked for acknowledgements by time too.
    by_time: bool,
    /// The time of the last acknowledgement; before the first, of the greeting.
    acknowledged_at: Instant,
    /// Whether SENDs have arrived that wait for the next acknowledgement, at the latest after a silence.
    pub(super) is_waiting: bool,
    /// When the first SEND arrived that the acknowledgement is owed to; one that only a REPORT asks for is no operation's.
    pub(super) owed_since: Option<Instant>,
    pub(super) heard: Instant,
    pub(super) replies: VecDeque<Reply>,
    pub(super) report: Option<Counters>,
    pub(super) asked: u64,
    /// Payloads that are not as they were sent, where they are checked.
    pub(super) damaged: u64,
    pub(super) sends: Arrivals,
    pub(super) echoes: Arrivals,
    /// Requests for DATA, each by its first number.
    pub(super) receives: Arrivals,
    /// Where the client has asked for them.
    pub(super) stages: Option<Box<Answered>>,
    pub(super) updates: Updates,
}

/// The arrivals of one direction: a count on a stream, every number over UDP.
#[derive(Debug)]
pub(super) enum Arrivals {
    Stream(u64),
    Datagrams(Box<Tracker>),
}

/// Operations of one size that are to be sent back, numbered from `sequence`; or the answer to HELLO.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) kind: Kind,
    /// The size of each; for WELCOME the most bytes behind its header.
    pub(super) length: u32,
    pub(super) sequence: u64,
    pub(super) count: u32,
    /// When what asks for it arrived.
    pub(super) arrived: Instant,
}

impl Session {
    /// Creates the session of a peer that has not greeted.
    pub(super) fn new(now: Instant, transport: Transport, proof: u64) -> Session {
        let arrivals = || match transport {
            Transport::Stream => Arrivals::Stream(0),
            Transport::Datagram => Arrivals::Datagrams(Box::default()),
        };
        Session {
            inbound: Inbound::new(COUNTERS),
            proof,
            greeted: false,
            blocked: false,
            queued: false,
            acknowledge: false,
            by_time: false,
            acknowledged_at: now,
            is_waiting: false,
            owed_since: None,
            heard: now,
            replies: VecDeque::new(),
            report: None,
            asked: 0,
            damaged: 0,
            sends: arrivals(),
            echoes: arrivals(),
            receives: arrivals(),
            stages: None,
            updates: Updates::default(),
        }
    }

    /// Takes in a greeting.
    pub(super) fn greeted(&mut self, now: Instant, hello: &Header) {
        self.greeted = true;
        self.by_time = hello.flags & FLAG_BY_TIME != 0;
        self.inbound.check_payloads(hello.flags & FLAG_CHECK != 0);
        self.acknowledged_at = now;
    }

    /// Returns whether a SEND that arrives now is acknowledged although it does not ask for that.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.by_time && self.acknowledged_at + WITHIN <= now
    }

    /// Notes that a SEND is not acknowledged yet. Returns whether it is the first of those, so that a silence is to be looked for.
    #[inline]
    pub(super) fn waits(&mut self) -> bool {
        self.by_time && !core::mem::replace(&mut self.is_waiting, true)
    }

    /// Has a message that takes long to arrive acknowledged, as far as it has. Returns whether there is an acknowledgement.
    #[inline]
    pub(super) fn still_arrives(&mut self, now: Instant) -> bool {
        let is_due = self.by_time && self.acknowledged_at + STILL_ARRIVES <= now && self.inbound.payload_left() > 0;
        self.acknowledge |= is_due;
        is_due
    }

    /// Writes an acknowledgement of all SENDs that have arrived.
    pub(super) fn acknowledge(&mut self, now: Instant, out: &mut Outbox) {
        (self.acknowledge, self.acknowledged_at) = (false, now);
        self.sends.acknowledge(self.by_time, out);
    }

    /// Switches the stamps of its answers on or off.
    pub(super) fn stamp(&mut self, on: bool) {
        if on != self.stages.is_some() {
            self.stages = on.then(Box::default);
        }
    }

    /// Marks an answer to what arrived then; its tag is the peer's number.
    #[inline]
    pub(super) fn mark(&mut self, arrived: Instant, peer: Peer, out: &mut Outbox) {
        if let Some(stages) = &mut self.stages {
            stages.mark(arrived, u64::from(peer.0), out);
        }
    }

    /// Writes COUNTERS, with the stages where they are asked for.
    pub(super) fn tell(&self, counters: &mut Counters, out: &mut Outbox) {
        self.fill(counters);
        let stages = self.stages.as_ref().map(|stages| &stages.spans);
        let is_checked = self.inbound.checks_payloads();
        let (flags, damaged) = if is_checked { (FLAG_DAMAGED, DAMAGED) } else { (0, 0) };
        let length = COUNTERS + damaged + stages.map_or(0, FarStages::encoded_len);
        out.copy(&Header { flags, ..Header::new(Kind::Counters, length as u32, self.asked) }.encode());
        out.copy(&counters.encode());
        out.copy(&self.damaged.to_le_bytes()[..damaged]);
        if let Some(stages) = stages {
            stages.encode(out);
        }
    }

    pub(super) fn fill(&self, counters: &mut Counters) {
        for arrivals in [&self.sends, &self.echoes, &self.receives] {
            if let Arrivals::Datagrams(tracker) = arrivals {
                counters.duplicated += tracker.duplicated;
                counters.reordered += tracker.reordered;
            }
        }
        counters.received = match &self.sends {
            Arrivals::Stream(count) => *count,
            Arrivals::Datagrams(tracker) => {
                // Nobody else can tell what these are, and no more may be received than was sent.
                counters.duplicated += tracker.long_ago;
                tracker.received
            }
        };
    }
}

impl Arrivals {
    #[inline]
    pub(super) fn note(&mut self, sequence: u64) -> Arrival {
        match self {
            Arrivals::Stream(count) => {
                *count += 1;
                Arrival::First
            }
            Arrivals::Datagrams(tracker) => tracker.arrived(sequence),
        }
    }

    /// Writes an acknowledgement; over UDP with the count of all that have arrived, if the client knows that.
    fn acknowledge(&self, with_received: bool, out: &mut Outbox) {
        match self {
            Arrivals::Stream(count) => out.copy(&Header::new(Kind::Ack, 0, *count).encode()),
            Arrivals::Datagrams(tracker) => {
                let ranges = tracker.recent();
                let received = &tracker.received.to_le_bytes()[..if with_received { RECEIVED } else { 0 }];
                let length = ranges.len() * RANGE + received.len();
                let mut header = Header::new(Kind::Ack, length as u32, tracker.next);
                header.count = ranges.len() as u16;
                out.copy(&header.encode());
                for (first, count) in ranges {
                    out.copy(&first.to_le_bytes());
                    out.copy(&count.to_le_bytes());
                }
                out.copy(received);
            }
        }
    }
}

/// Returns the bytes that may stand behind the header of the answer to a HELLO: over UDP no more than behind its own.
pub(super) fn room_for_welcome(hello: &Header, body: Option<&[u8]>) -> usize {
    if hello.flags & FLAG_FACTS == 0 { GREETING } else { body.map_or(GREETING_MAX, <[u8]>::len) }
}

/// Writes the answer to HELLO: the proof and the facts as far as the header's length has room for them.
pub(super) fn welcome(header: Header, size_max: u32, proof: u64, facts: &[u8], out: &mut Outbox) {
    let room = header.length as usize;
    let proof = if room >= GREETING + PROOF { &proof.to_le_bytes()[..] } else { &[] };
    let facts = if room >= GREETING + PROOF + facts.len() { facts } else { &[] };
    let length = (GREETING + proof.len() + facts.len()) as u32;
    out.copy(&Header { length, ..header }.encode());
    out.copy(&wire::encode_greeting(size_max));
    out.copy(proof);
    out.copy(facts);
}
