use crate::Transport;
use crate::connection::{Connections, End};
use crate::fabric::{Call, Fabric, Notice};
use crate::schedule::Happening;
use hodo_machine::{Instant, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The unsent bytes to one peer above which a machine is told to hold back, unless told otherwise.
const UNSENT_MAX: usize = 256 << 10;

/// A node as the network knows it: peers, inbox, one processor and a deadline.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) peers: BTreeMap<u32, End>,
    /// The datagram connections to single nodes that a peer opened to a group branches into, by group and node.
    pub(crate) branches: BTreeMap<(u32, u32), End>,
    /// The transport of what the machine opens.
    pub(crate) opens: Transport,
    pub(crate) listening: bool,
    pub(crate) power: Power,
    /// Whether the process is stopped: its system goes on, the machine is told nothing.
    pub(crate) stopped: bool,
    /// Until when the processor is busy with what has been handled and sent.
    pub(crate) busy: Instant,
    /// Processor time of each message sent or received.
    pub(crate) cost: Duration,
    /// A machine with more unsent bytes than this to one peer is told to hold back.
    pub(crate) backlog: usize,
    /// How often, and by how much at most, the machine is polled late.
    pub(crate) late: (f64, Duration),
    /// The writing ends whose bytes were not offered to the wire yet.
    pub(crate) dirty: Vec<End>,
    /// Datagrams sent since the machine was last idle.
    pub(crate) burst: u32,
    /// Bytes of datagrams in the inbox.
    pub(crate) inbox_bytes: u64,
    pub(crate) buffer_bytes: u64,
    inbox: VecDeque<Notice>,
    /// Counts the machines that ran here, so that what was scheduled for an earlier one is passed over.
    epoch: u32,
    working: bool,
    /// Whether the notice at hand has been taken and its consequences are still being carried out.
    taken: bool,
    /// Whether a late poll is scheduled.
    polled_later: bool,
    accepted: u32,
    free: Vec<u32>,
    /// Streams with bytes that the machine has no room for.
    pub(crate) unread: Vec<End>,
    deadline: Option<Instant>,
    /// When the schedule will next look at the deadline.
    armed: Option<Instant>,
    /// No deadline is told before this, so that one that stays in the past cannot stop time.
    elapsed_before: Instant,
}

/// Whether anything answers at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// A machine runs.
    Running,
    /// No machine runs; the system refuses what comes.
    Idle,
    /// Nothing answers.
    Off,
}

impl Host {
    pub(crate) fn new(cost: Duration, buffer_bytes: u64) -> Self {
        Host {
            peers: BTreeMap::new(),
            branches: BTreeMap::new(),
            opens: Transport::Stream,
            listening: true,
            power: Power::Idle,
            stopped: false,
            busy: Instant::ZERO,
            cost,
            backlog: UNSENT_MAX,
            late: (0.0, Duration::ZERO),
            dirty: Vec::new(),
            burst: 0,
            inbox_bytes: 0,
            buffer_bytes,
            inbox: VecDeque::new(),
            epoch: 0,
            working: false,
            taken: false,
            polled_later: false,
            accepted: 0,
            free: Vec::new(),
            unread: Vec::new(),
            deadline: None,
            armed: None,
            elapsed_before: Instant::ZERO,
        }
    }

    /// Forgets all that belonged to the machine; the network's settings stay. Returns the peers and the inbox.
    pub(crate) fn clear(&mut self) -> (BTreeMap<u32, End>, VecDeque<Notice>) {
        let (opens, listening, backlog, late) = (self.opens, self.listening, self.backlog, self.late);
        let epoch = self.epoch + 1;
        let fresh = Host { opens, listening, backlog, late, epoch, ..Host::new(self.cost, self.buffer_bytes) };
        let old = std::mem::replace(self, fresh);
        (old.peers, old.inbox)
    }

    /// Returns the number of a peer that comes by itself; numbers are used again, as on sockets.
    pub(crate) fn next_accepted(&mut self) -> Peer {
        let number = self.free.pop().unwrap_or_else(|| {
            self.accepted += 1;
            self.accepted - 1
        });
        Peer(Peer::FIRST_ACCEPTED + number)
    }

    /// Removes a peer and returns its end.
    pub(crate) fn remove(&mut self, peer: Peer) -> Option<End> {
        let end = self.peers.remove(&peer.0)?;
        if peer.is_accepted() {
            self.free.push(peer.0 - Peer::FIRST_ACCEPTED);
        }
        Some(end)
    }
}

impl Fabric {
    /// Puts a notice into a node's inbox.
    pub(crate) fn post(&mut self, node: u32, notice: Notice) {
        let host = &mut self.hosts[node as usize];
        if host.power != Power::Running {
            return;
        }
        host.inbox.push_back(notice);
        if !host.working {
            self.start_work(node);
        }
    }

    /// Takes the notice that a [`Call::Work`] is about.
    pub(crate) fn take_notice(&mut self, node: u32) -> Option<Notice> {
        let host = &mut self.hosts[node as usize];
        host.taken = true;
        host.inbox.pop_front()
    }

    /// Ends the work on the notice that was taken, if one was, and begins the next.
    pub(crate) fn notice_done(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if std::mem::take(&mut host.taken) {
            host.working = false;
            if !host.inbox.is_empty() {
                self.start_work(node);
            }
        }
    }

    fn start_work(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if host.stopped {
            return;
        }
        let costs = matches!(host.inbox.front(), Some(Notice::Datagram(_) | Notice::Readable(_)));
        host.busy = host.busy.max(self.now) + if costs { host.cost } else { Duration::ZERO };
        host.working = true;
        if host.busy <= self.now {
            self.due.push_back(node);
        } else {
            self.schedule.at(host.busy, Happening::Work(node, host.epoch));
        }
    }

    /// Returns the work on the notice on top of a node's inbox, unless the node is stopped.
    pub(crate) fn work(&mut self, node: u32) -> Option<Call> {
        let host = &mut self.hosts[node as usize];
        if host.stopped {
            host.working = false;
            return None;
        }
        Some(Call::Work(node))
    }

    /// Returns whether work that was scheduled is still the machine's that runs.
    pub(crate) fn is_current(&self, node: u32, epoch: u32) -> bool {
        self.hosts[node as usize].epoch == epoch
    }

    /// Stops a process: its machine is told nothing until [`Fabric::resume`].
    pub(crate) fn stop(&mut self, node: u32) {
        self.hosts[node as usize].stopped = true;
    }

    /// Lets a stopped process go on with what it has missed.
    pub(crate) fn resume(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        if !std::mem::take(&mut host.stopped) {
            return;
        }
        let (deadline, polled_later) = (host.deadline, std::mem::take(&mut host.polled_later));
        if !host.working && !host.inbox.is_empty() {
            self.start_work(node);
        }
        self.set_deadline(node, deadline);
        if polled_later {
            self.poll_at(node, self.now);
        }
    }

    /// Returns whether the machine at a node is polled later, together with what comes until then.
    pub(crate) fn is_polled_later(&mut self, node: u32) -> bool {
        let host = &self.hosts[node as usize];
        let (chance, most) = host.late;
        if host.polled_later {
            return true;
        }
        let late = self.random.chance(chance);
        if late {
            let at = self.now + Duration::from_nanos(self.random.below(most.as_nanos() as u64 + 1));
            self.poll_at(node, at);
        }
        late
    }

    fn poll_at(&mut self, node: u32, at: Instant) {
        let host = &mut self.hosts[node as usize];
        host.polled_later = true;
        self.schedule.at(at, Happening::Poll(node, host.epoch));
    }

    /// Returns the late poll that is due, unless the node is stopped.
    pub(crate) fn poll(&mut self, node: u32, epoch: u32) -> Option<Call> {
        let host = &mut self.hosts[node as usize];
        if host.epoch != epoch || host.stopped || !std::mem::take(&mut host.polled_later) {
            return None;
        }
        Some(Call::Poll(node))
    }

    /// Charges a node's processor for a message that it sends; returns when it is done.
    pub(crate) fn charge(&mut self, node: u32) -> Instant {
        let free_at = self.free_at(node);
        let host = &mut self.hosts[node as usize];
        host.busy = free_at + host.cost;
        host.busy
    }

    /// Returns when a node's processor is done with its work so far.
    pub(crate) fn free_at(&self, node: u32) -> Instant {
        self.hosts[node as usize].busy.max(self.now)
    }

    /// Notes when a machine wants to be told that time has passed.
    pub(crate) fn set_deadline(&mut self, node: u32, deadline: Option<Instant>) {
        let host = &mut self.hosts[node as usize];
        host.deadline = deadline.filter(|deadline| *deadline < Instant::MAX);
        if let Some(deadline) = host.deadline {
            let at = deadline.max(host.elapsed_before);
            if host.armed.is_none_or(|armed| at < armed) {
                host.armed = Some(at);
                self.schedule.at(at, Happening::Timer(node));
            }
        }
    }

    /// Takes a deadline that has passed, so that its machine is told once.
    pub(crate) fn take_overdue(&mut self, node: u32) -> bool {
        let host = &mut self.hosts[node as usize];
        let is_overdue = host.deadline.is_some_and(|deadline| deadline.max(host.elapsed_before) <= self.now);
        if is_overdue {
            host.deadline = None;
            host.elapsed_before = self.now + Duration::from_nanos(1);
        }
        is_overdue
    }

    pub(crate) fn timer(&mut self, node: u32, at: Instant) -> Option<Call> {
        let host = &mut self.hosts[node as usize];
        if host.armed != Some(at) {
            return None;
        }
        host.armed = None;
        let deadline = host.deadline.filter(|_| !host.stopped)?;
        let earliest = deadline.max(host.busy);
        if earliest > self.now {
            host.armed = Some(earliest);
            self.schedule.at(earliest, Happening::Timer(node));
            return None;
        }
        host.deadline = None;
        host.elapsed_before = self.now + Duration::from_nanos(1);
        Some(Call::Elapsed(node))
    }

    /// Returns whether datagrams that come by themselves are taken at this end's node.
    pub(crate) fn takes_datagrams(connections: &Connections, host: &Host, end: End) -> bool {
        let is_branch = connections.of(end).is_some_and(|connection| connection.branch.is_some());
        if end.side == 1 { host.listening } else { is_branch }
    }
}
