use super::allow::AllowList;
use super::board::{Boards, Death, Health, Socket, code_of};
use super::client::Client;
use super::packets::{Lanes, NONE, Packets, Stage};
use super::stages::{Stages, mark_sent};
use super::{Ended, HubConfig, HubCounters, HubEvent, index};
use crate::window::{Cause, Heard, Step};
use crate::wire::hub::Code;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Address, Instant, Outbox, Output, Peer, Peers, Random, Timers};

/// A timer of a hub, by the number of its board or client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    /// A board's link has something to do, or the board is to be probed.
    Board(u32),
    /// Nobody may have asked for a board for so long that it is forgotten.
    Unused(u32),
    /// A client has not sent its first chunk.
    FirstChunk(u32),
}

/// Takes packets from clients to boards and back: a hub without the streams that clients send.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) config: HubConfig,
    pub(super) allow: AllowList,
    pub(super) clients: Peers<Client>,
    pub(super) boards: Boards,
    pub(super) packets: Packets,
    pub(super) lanes: Lanes,
    /// Bytes of the chunks that wait for room.
    pub(super) backlog_bytes: usize,
    /// Clients whose next chunk waits for room among the packets of all boards, in turn.
    pub(super) waiting: VecDeque<u32>,
    /// Boards that have something to do.
    work: VecDeque<u32>,
    pub(super) timers: Timers<Timer>,
    /// Clients that can be answered.
    ready: VecDeque<u32>,
    /// Peers to be opened and closed.
    carry: VecDeque<Carry>,
    pub(super) events: VecDeque<HubEvent>,
    pub(super) draining: bool,
    pub(super) stages: Stages,
    /// With those that are gone or forgotten.
    pub(super) past: HubCounters,
    pub(super) random: Random,
}

/// A peer to be opened or closed.
#[derive(Debug)]
enum Carry {
    Open(u32),
    Close(Peer),
}

impl Router {
    pub(super) fn new(config: HubConfig, allow: AllowList) -> Self {
        Router {
            allow,
            clients: Peers::default(),
            boards: Boards::default(),
            packets: Packets::new(config.packets),
            lanes: Lanes::default(),
            backlog_bytes: 0,
            waiting: VecDeque::new(),
            work: VecDeque::new(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            carry: VecDeque::new(),
            events: VecDeque::new(),
            draining: false,
            stages: Stages::default(),
            past: HubCounters::default(),
            random: Random::new(config.seed),
            config,
        }
    }

    #[inline]
    pub(super) fn client(&mut self, number: u32) -> Option<&mut Client> {
        self.clients.at(Peer::accepted(number))
    }

    /// Adds a client, and returns whether there is a place for it.
    pub(super) fn came(&mut self, now: Instant, peer: Peer, address: &Address) -> bool {
        self.past.came += 1;
        if !self.draining && self.clients.len() >= self.config.clients {
            self.make_room(now);
        }
        if self.draining || self.clients.len() >= self.config.clients {
            self.past.ended[if self.draining { Ended::Drained } else { Ended::TooManyClients } as usize] += 1;
            self.carry.push_back(Carry::Close(peer));
            return false;
        }
        self.clients.insert(peer, Client::new(peer, address.clone(), now));
        self.timers.arm(Timer::FirstChunk(index(peer)), now + self.config.first_chunk);
        self.events.push_back(HubEvent::Came(address.clone()));
        true
    }

    /// Ends the client that has been idle longest, if it was so for long enough: those that never asked come first.
    fn make_room(&mut self, now: Instant) {
        let is_idle = |client: &Client| client.owed() == 0 && now - client.heard >= self.config.idle;
        let idle = self.clients.iter().filter(|(_, client)| is_idle(client));
        let longest = idle.min_by_key(|(_, client)| (client.counters.chunks > 0, client.heard));
        if let Some(number) = longest.map(|(peer, _)| index(peer)) {
            self.end(now, number, Ended::Idle);
        }
    }

    /// Ends a client.
    pub(super) fn end(&mut self, now: Instant, number: u32, why: Ended) {
        if let Some(peer) = self.client(number).map(|client| client.peer) {
            self.carry.push_back(Carry::Close(peer));
            self.gone(now, number, why);
        }
    }

    /// Removes a client that is gone. What was received of it is done, and answered to nobody.
    pub(super) fn gone(&mut self, now: Instant, number: u32, why: Ended) {
        // A chunk that would end the client changes nothing: it is gone.
        let _ = self.empty_backlog(now, number);
        let Some(mut client) = self.clients.remove(Peer::accepted(number)) else { return };
        self.timers.cancel(Timer::FirstChunk(number));
        for (_, lane) in client.lanes.drain(..) {
            self.lanes.orphan(lane);
        }
        for packet in client.forget() {
            match self.packets[packet].stage {
                Stage::Queued | Stage::InFlight => self.packets[packet].client = NONE,
                Stage::Answered => self.packets.release(packet),
            }
        }
        self.past.clients += client.counters;
        self.past.ended[why as usize] += 1;
        self.events.push_back(HubEvent::Ended(client.address, why));
    }

    /// Notes whether the driver holds too much for a peer.
    pub(super) fn block(&mut self, peer: Peer, blocked: bool) {
        if peer.is_accepted() {
            if let Some(client) = self.client(index(peer)) {
                client.blocked = blocked;
                self.note_ready(index(peer));
            }
        } else if let Some(board) = self.boards.at(peer.0)
            && matches!(board.socket, Socket::Open | Socket::Blocked)
        {
            board.socket = if blocked { Socket::Blocked } else { Socket::Open };
            self.set_to_work(peer.0);
        }
    }

    /// Puts a client into the queue of those that can be answered, where it can.
    pub(super) fn note_ready(&mut self, number: u32) {
        if let Some(client) = self.client(number)
            && client.can_write()
            && !core::mem::replace(&mut client.ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Puts a board into the queue of those that have something to do.
    pub(super) fn set_to_work(&mut self, number: u32) {
        if let Some(board) = self.boards.at(number)
            && !core::mem::replace(&mut board.at_work, true)
        {
            self.work.push_back(number);
        }
    }

    pub(super) fn open_board(&mut self, number: u32) {
        if let Some(board) = self.boards.at(number) {
            board.socket = Socket::Opening;
            self.carry.push_back(Carry::Open(number));
        }
    }

    /// Notes that a board can be sent to.
    pub(super) fn board_opened(&mut self, now: Instant, number: u32) {
        if let Some(board) = self.boards.at(number).filter(|board| board.socket == Socket::Opening) {
            board.socket = Socket::Open;
            match board.health {
                Health::Dead(_) => board.probe(now, self.config.probe_last),
                Health::Unknown | Health::Alive => board.link.open(now),
            }
            self.set_to_work(number);
        }
    }

    /// Notes that a board cannot be reached at all. For one that is dead it is the answer to a probe, which is repeated as late as
    /// any other.
    pub(super) fn board_closed(&mut self, now: Instant, number: u32) {
        let last = self.config.probe_last;
        if let Some(board) = self.boards.at(number) {
            if core::mem::replace(&mut board.socket, Socket::Closed) == Socket::Opening {
                board.probed(now, last);
            }
            board.link.give_up();
            self.set_to_work(number);
        }
    }

    /// Takes a datagram from a board.
    pub(super) fn heard(&mut self, now: Instant, number: u32, bytes: &[u8]) {
        let Some(board) = self.boards.at(number) else { return };
        let mut answered = None;
        let heard = board.link.received(now, bytes, |answer| {
            let packet = &mut self.packets[answer.key as u32];
            packet.bytes.clear();
            if answer.packet.len() <= self.config.packet_bytes {
                answer.append_to(&mut packet.bytes);
                packet.code = Code::Done;
            } else {
                packet.code = Code::HubTimeout;
            }
            packet.times.replied(now);
            answered = Some(answer.key as u32);
            true
        });
        board.counters.malformed += u64::from(matches!(heard, Heard::Malformed(_)));
        if board.link.room() > 0 {
            board.retried = false;
            if board.health != Health::Alive {
                board.health = Health::Alive;
                self.events.push_back(HubEvent::Alive(board.target, board.version));
            }
        }
        if let Some(packet) = answered {
            let done = self.packets[packet].code == Code::Done;
            board.counters.replies += u64::from(done);
            board.counters.errors += u64::from(!done);
            self.settle(packet);
        }
        self.set_to_work(number);
    }

    /// Marks a packet as answered: its client is told once the whole chunk is.
    fn settle(&mut self, number: u32) {
        let packet = &mut self.packets[number];
        packet.stage = Stage::Answered;
        self.past.count(packet.code);
        let (client, chunk, length) = (packet.client, packet.chunk, packet.bytes.len());
        if client == NONE {
            return self.packets.release(number);
        }
        if let Some(client) = self.client(client) {
            client.settle(chunk, length);
        }
        self.note_ready(client);
    }

    /// Fails a packet that gets no reply of its board, with a code.
    fn fail(&mut self, number: u32, code: Code) {
        let packet = &mut self.packets[number];
        packet.bytes.clear();
        packet.code = code;
        self.settle(number);
    }

    #[inline]
    pub(super) fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Output::Event(event);
            }
            if let Some(output) = self.next_carried() {
                return output;
            }
            while let Some(timer) = self.timers.pop_due(now) {
                self.elapsed(now, timer);
            }
            while let Some(&number) = self.work.front() {
                if self.work_for(now, number, out) {
                    return Output::Send(Peer(number));
                }
                self.work.pop_front();
            }
            while let Some(number) = self.ready.pop_front() {
                if let Some(peer) = self.answer(now, number, out) {
                    return Output::Send(peer);
                }
            }
            self.admit_to_hub(now);
            if self.events.is_empty() && self.carry.is_empty() && self.work.is_empty() && self.ready.is_empty() {
                return Output::Idle(self.timers.next());
            }
        }
    }

    fn elapsed(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Board(number) => self.set_to_work(number),
            Timer::FirstChunk(number) => self.end(now, number, Ended::Silent),
            Timer::Unused(number) => {
                let Some(board) = self.boards.at(number) else { return };
                let forget = if board.is_idle() { board.used } else { now } + self.config.forget;
                if forget <= now {
                    return self.forget_board(number);
                }
                self.timers.arm(timer, forget);
            }
        }
    }

    fn next_carried(&mut self) -> Option<Output<HubEvent>> {
        match self.carry.pop_front()? {
            Carry::Close(peer) => Some(Output::Close(peer)),
            Carry::Open(number) => {
                let target = self.boards.at(number)?.target;
                Some(Output::Open(Peer(number), Address::Udp(target.into())))
            }
        }
    }

    /// Does what is to be done for a board. Answers whether a datagram is to be sent; if not, all is done.
    fn work_for(&mut self, now: Instant, number: u32, out: &mut Outbox) -> bool {
        if let Some(board) = self.boards.at(number)
            && board.socket == Socket::Blocked
        {
            board.at_work = false;
            return false;
        }
        let HubConfig { probe_last, window, .. } = self.config;
        self.dispatch(now, number, out);
        while let Some(board) = self.boards.at(number) {
            if board.probe_at().is_some_and(|at| now >= at) {
                if board.socket == Socket::Open {
                    board.probe(now, probe_last);
                } else {
                    self.open_board(number);
                    continue;
                }
            }
            match board.link.poll(now) {
                Step::Send(datagram) => {
                    out.copy(datagram);
                    return true;
                }
                Step::Failed { key, cause } => {
                    board.counters.errors += 1;
                    let client = self.packets[key as u32].client;
                    self.fail(key as u32, code_of(cause));
                    if cause == Cause::Restarted {
                        self.fail_rest(now, number, client, code_of(cause));
                    }
                }
                Step::Down(cause) => self.board_down(now, number, cause),
                Step::Idle(deadline) => {
                    let refuse_at = board.refuse_at(window.late_max());
                    if let Some((_, code)) = refuse_at.filter(|(at, _)| now >= *at) {
                        self.refuse_queued(number, code);
                        continue;
                    }
                    if board.admits(self.config.board_packets) {
                        self.admit_waiting(now, number);
                        self.dispatch(now, number, out);
                        continue;
                    }
                    board.at_work = false;
                    let at = deadline.into_iter().chain(board.probe_at()).chain(refuse_at.map(|(at, _)| at)).min();
                    self.note_restarts(number);
                    self.timers.set(Timer::Board(number), at);
                    return false;
                }
            }
        }
        false
    }

    /// Puts packets into flight, one of each client in turn.
    fn dispatch(&mut self, now: Instant, number: u32, out: &mut Outbox) {
        while let Some(board) = self.boards.at(number)
            && board.link.room() > 0
            && let Some(lane) = board.turns.pop_front()
        {
            let packet = self.lanes.pop(lane, &self.packets);
            if self.lanes.is_empty(lane) {
                give_lane_back(&mut self.lanes, &mut self.clients, lane);
            } else {
                board.turns.push_back(lane);
            }
            if let Some(packet) = packet {
                board.queued -= 1;
                if !board.link.takes(self.packets[packet].bytes.len()) {
                    // The board would drop it, and with it what follows.
                    board.counters.errors += 1;
                    self.fail(packet, Code::HubTimeout);
                    continue;
                }
                self.packets[packet].stage = Stage::InFlight;
                mark_sent(packet, &self.packets[packet], out);
                board.link.push(now, packet, &mut self.packets);
            }
        }
    }

    /// Handles a link that was given up: retries the board, or declares it dead and fails what is queued.
    fn board_down(&mut self, now: Instant, number: u32, cause: Cause) {
        let probe_first = self.config.probe_first;
        let Some(board) = self.boards.at(number) else { return };
        let answers = !matches!(cause, Cause::Silent | Cause::Malformed(_));
        if answers && board.health == Health::Alive && !board.retried {
            // It tells its status, so what waits is not lost yet.
            board.retried = true;
            return board.link.open(now);
        }
        let code = code_of(cause);
        if let Health::Dead(death) = &mut board.health {
            death.code = code;
        } else {
            board.counters.deaths += 1;
            self.events.push_back(HubEvent::Dead(board.target, board.version, code));
            board.health = Health::Dead(Death {
                code,
                asked: now,
                probed: now,
                probe_at: now + probe_first,
                wait: probe_first * 2,
            });
        }
        self.refuse_queued(number, code);
    }

    /// Fails all that is queued for a board.
    fn refuse_queued(&mut self, number: u32, code: Code) {
        while let Some(board) = self.boards.at(number)
            && let Some(lane) = board.turns.pop_front()
        {
            while let Some(packet) = self.lanes.pop(lane, &self.packets) {
                if let Some(board) = self.boards.at(number) {
                    board.queued -= 1;
                    board.counters.errors += 1;
                }
                self.fail(packet, code);
            }
            give_lane_back(&mut self.lanes, &mut self.clients, lane);
        }
    }

    /// Fails what a client has sent for a board that has restarted: it belongs behind what failed, and would be done on a
    /// board without its configuration.
    fn fail_rest(&mut self, now: Instant, number: u32, client: u32, code: Code) {
        if let Err(ended) = self.empty_backlog(now, client) {
            self.end(now, client, ended);
        }
        let Some(lane) = self.client(client).and_then(|client| client.lane(number)) else { return };
        while let Some(packet) = self.lanes.pop(lane, &self.packets) {
            if let Some(board) = self.boards.at(number) {
                board.queued -= 1;
                board.counters.errors += 1;
            }
            self.fail(packet, code);
        }
    }

    fn note_restarts(&mut self, number: u32) {
        let Some(board) = self.boards.at(number) else { return };
        let restarts = board.link.counters().restarts;
        if core::mem::replace(&mut board.restarts, restarts) != restarts {
            self.events.push_back(HubEvent::Restarted(board.target));
        }
    }

    /// Writes what a client can be answered.
    fn answer(&mut self, now: Instant, number: u32, out: &mut Outbox) -> Option<Peer> {
        let client = self.clients.at(Peer::accepted(number))?;
        client.ready = false;
        if !client.can_write() {
            return None;
        }
        client.write(&mut self.packets, out);
        let peer = client.peer;
        self.note_ready(number);
        if self.draining {
            self.end_if_done(now, number);
        }
        Some(peer)
    }

    /// Takes in nothing new from now on.
    pub(super) fn drain(&mut self, now: Instant) {
        self.draining = true;
        let clients: Vec<u32> = self.clients.iter().map(|(peer, _)| index(peer)).collect();
        clients.into_iter().for_each(|number| self.end_if_done(now, number));
    }

    fn end_if_done(&mut self, now: Instant, number: u32) {
        if self.client(number).is_some_and(|client| client.owed() == 0) {
            self.end(now, number, Ended::Drained);
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.packets.held() == 0 && self.clients.is_empty() && self.carry.is_empty()
    }

    pub(super) fn forget_board(&mut self, number: u32) {
        let Some(board) = self.boards.remove(number) else { return };
        self.past.boards += board.counters();
        self.timers.cancel(Timer::Board(number));
        self.timers.cancel(Timer::Unused(number));
        if board.socket != Socket::Closed {
            self.carry.push_back(Carry::Close(Peer(number)));
        }
    }
}

/// Gives back an empty lane: its client, if it is there, does without it.
fn give_lane_back(lanes: &mut Lanes, clients: &mut Peers<Client>, lane: u32) {
    if let Some(client) = clients.at(Peer::accepted(lanes.client(lane))) {
        client.lanes.retain(|(_, of)| *of != lane);
    }
    lanes.release(lane);
}
