use crate::metered::Metered;
use hodo_machine::{Address, Closed, Cursor, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_roce::icrc::Flow;
use hodo_roce::wire::{BASE_LENGTH, BaseHeader, Extended, HEADERS_MAX, ICRC_LENGTH, Opcode, Packet, padding_of};
use hodo_roce::{
    Access, AckTimeout, Adapter, AdapterCommand, AdapterConfig, Capacity, Completion, Connection, Mtu, Operation, Psn,
    ReceiveRequest, Remote, ScatterEntry, SendRequest, State,
};
use hodo_sim::cost::Allowance;
use std::net::SocketAddr;
use std::time::Duration;

/// Outputs in a row after which an adapter that is not idle is stuck.
const OUTPUTS_MAX: usize = 100_000;
/// Bytes of each region.
const REGION: usize = 4096;
/// The host that the bytes come from, and one that keeps the rules.
const HOSTS: [Peer; 2] = [Peer(0), Peer(1)];
/// The first sequence number of either side, shortly before they wrap.
const FIRST: Psn = Psn::new(0xFF_FFFC);
const CAPACITY: Capacity =
    Capacity { send_depth: 8, receive_depth: 8, send_entries: 2, receive_entries: 2, inline_bytes: 16 };

/// Checks that a decoded packet is encoded to the bytes that it came from, but for those that are reserved, and that a flow takes any
/// bytes.
pub fn wire(input: &[u8]) {
    for choice in 0..3 {
        let mut flow = Flow::new(&address(choice, 1), &address(choice, 0));
        assert_eq!(flow.verify(input), flow.verify(input));
    }
    let Ok(packet) = Packet::decode(input) else { return };
    let mut room = [0; HEADERS_MAX];
    let length = Packet::encode_headers(&packet.base, &packet.extended, packet.payload.len(), &mut room);
    let is_same = |at: usize| [1, 4, 8].contains(&at) || room[at] == input[at];
    assert!((0..length).all(is_same) && input[length..].starts_with(packet.payload));
    let again = sealed(Flow::new(&address(0, 1), &address(0, 0)), &packet);
    assert_eq!(Packet::decode(&again), Ok(packet));
}

/// Drives an adapter with two hosts. The first byte chooses the kind of addresses; the rest says what comes from the first host, and
/// what its application asks for. Nothing is written where the host has no right, no request completes twice, and the second
/// host is served whatever the first one does.
pub fn adapter(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let mut floor = Floor::new(*choice);
    let mut rest = script;
    while let Some((head, behind)) = rest.split_first_chunk::<2>() {
        let (kind, value) = (head[0] % 16, head[1]);
        let takes = if kind < 8 { usize::from(value).min(behind.len()) } else { 0 };
        let (bytes, behind) = behind.split_at(takes);
        rest = behind;
        floor.step(kind, value, bytes);
        floor.settle();
    }
    floor.serve_other();
}

/// Returns the address of a host.
fn address(choice: u8, host: u8) -> Address {
    match choice % 3 {
        0 => Address::Node(u32::from(host)),
        1 => Address::Udp(SocketAddr::from(([10, 0, 0, host], 4791))),
        _ => Address::Udp(SocketAddr::from(([0x2001, 0xDB8, 0, 0, 0, 0, 0, u16::from(host)], 4791))),
    }
}

/// Returns a packet with its CRC.
fn sealed(mut flow: Flow, packet: &Packet<'_>) -> Vec<u8> {
    let mut room = [0; HEADERS_MAX];
    let length = Packet::encode_headers(&packet.base, &packet.extended, packet.payload.len(), &mut room);
    let mut bytes = room[..length].to_vec();
    bytes.extend_from_slice(packet.payload);
    bytes.resize(bytes.len() + padding_of(packet.payload.len()), 0);
    let mut checksum = flow.start(bytes.len() + ICRC_LENGTH, &bytes[..length]);
    checksum.update(&bytes[length..]);
    bytes.extend(checksum.finish().to_le_bytes());
    bytes
}

struct Floor {
    adapter: Metered<Adapter>,
    now: Instant,
    out: Outbox,
    choice: u8,
    /// The queue pairs that are connected to the first host, and to the second.
    numbers: [u32; 2],
    /// A region with every right, one that may only be read, and one that nobody knows of.
    regions: [(u32, u64); 3],
    is_open: bool,
    is_blocked: bool,
    posted: u64,
    completed: u64,
    /// Packets for the second host.
    answers: u64,
}

impl Floor {
    fn new(choice: u8) -> Floor {
        let mut adapter =
            Adapter::new(AdapterConfig { window_bytes: 4096, sources_max: 4, ..AdapterConfig::default() });
        let read_only = Access { local_write: false, remote_write: false, remote_read: true, remote_atomic: false };
        let regions = [Access::ALL, read_only, Access::default()]
            .map(|access| adapter.register(vec![7; REGION], access, None).expect("there is room"));
        let mut floor = Floor {
            // Requests are no inputs, and are sent again when time passes.
            adapter: Metered::within(Allowance { outputs: 1024, ..Allowance::default() }, adapter),
            now: Instant::from_nanos(1_000_000),
            out: Outbox::new(),
            choice,
            numbers: [0; 2],
            regions,
            is_open: false,
            is_blocked: false,
            posted: 0,
            completed: 0,
            answers: 0,
        };
        (0..2).for_each(|host| floor.connect(host));
        floor.settle();
        floor
    }

    /// Connects a new queue pair to a host.
    fn connect(&mut self, host: usize) {
        let connection = Connection {
            address: address(self.choice, host as u8 + 1),
            queue_pair: 0x77,
            receive_psn: FIRST,
            send_psn: FIRST,
            mtu: Mtu::ALL[0],
            timeout: AckTimeout::Fixed(Duration::from_millis(1)),
            retries: 2,
            receiver_not_ready_retries: 2,
            receiver_not_ready_timer: 12,
            reads: 2,
            reads_served: 2,
        };
        let adapter = self.adapter.machine();
        let number = adapter.create(&CAPACITY).expect("there is room");
        adapter.connect(number, &connection).expect("it is new");
        self.numbers[host] = number;
    }

    fn step(&mut self, kind: u8, value: u8, bytes: &[u8]) {
        match kind {
            0 => self.receive(HOSTS[0], bytes),
            1 => self.hear_source(bytes),
            2..=7 => {
                if let Some(packet) = self.packet(bytes, 0) {
                    self.receive(HOSTS[0], &packet);
                }
            }
            8 | 9 => self.post_receive(usize::from(value)),
            10 | 11 => self.post_send(value),
            12 | 13 => {
                self.now = self.now + Duration::from_micros(1 << (value % 20));
                self.tell(Input::Elapsed);
            }
            14 => self.change_host(value),
            _ if value & 1 == 0 => self.tell(Input::Command(AdapterCommand::Fail(self.numbers[0]))),
            _ => {
                self.adapter.machine().destroy(self.numbers[0]);
                (self.posted, self.completed) = (0, 0);
                self.connect(0);
            }
        }
    }

    fn tell(&mut self, input: Input<'_, AdapterCommand>) {
        self.adapter.handle(self.now, input);
    }

    fn receive(&mut self, peer: Peer, bytes: &[u8]) {
        if self.is_open || peer != HOSTS[0] {
            self.tell(Input::Received(peer, bytes));
        }
    }

    /// Passes a datagram from another port of the first host, or of a stranger.
    fn hear_source(&mut self, bytes: &[u8]) {
        let (mut reply, far) = (Outbox::new(), 1 + bytes.first().map_or(0, |byte| byte & 2));
        let ends = Ends::new(address(self.choice, 0), address(self.choice, far));
        let bytes = self.packet(bytes, 0).unwrap_or_default();
        let is_admitted = self.adapter.admits(self.now, &ends, &bytes, &mut reply);
        assert!(reply.is_empty() && (!is_admitted || far == 1));
    }

    /// Returns a packet of the first host that these bytes describe, for one of the queue pairs.
    fn packet(&self, bytes: &[u8], host: usize) -> Option<Vec<u8>> {
        let mut cursor = Cursor::new(bytes);
        let opcode = Opcode::from_code(cursor.u8().ok()? % 0x18)?;
        let (flags, behind) = (cursor.u8().ok()?, cursor.u8().ok()?);
        let psn = Psn::new(FIRST.value().wrapping_add((behind as i8) as u32));
        let to = self.numbers[usize::from(flags & 0x30 == 0x30)];
        let mut base = BaseHeader::new(opcode, to, psn);
        (base.asks_ack, base.is_solicited) = (flags & 1 != 0, flags & 2 != 0);
        let (key, address) = self.regions[usize::from(flags >> 2 & 3) % 3];
        let rest = cursor.rest();
        // Bytes for the extended headers, and the key and the address among them.
        let (headers, payload) = rest.split_at_checked(Extended::length_of(opcode))?;
        let mut whole = [&base.encode(0)[..], headers, &[0; ICRC_LENGTH]].concat();
        if matches!(
            Packet::decode(&whole).ok()?.extended,
            Extended::Rdma(_) | Extended::RdmaImmediate(..) | Extended::Atomic(_)
        ) {
            let offset = u64::from(headers[6] & 31) << 8 | u64::from(headers[7]);
            whole[BASE_LENGTH..][..8].copy_from_slice(&(address + offset).to_be_bytes());
            whole[BASE_LENGTH + 8..][..4].copy_from_slice(&key.to_be_bytes());
        }
        let extended = Packet::decode(&whole).ok()?.extended;
        let repeated = payload.repeat(1 + usize::from(flags >> 6) * 3);
        let flow = Flow::new(&self::address(self.choice, host as u8 + 1), &self::address(self.choice, 0));
        Some(sealed(flow, &Packet { base, extended, payload: &repeated }))
    }

    fn post_receive(&mut self, length: usize) {
        let (key, address) = self.regions[0];
        let entries = [ScatterEntry { address: address + 1024, length: 4 * length as u32, key }];
        let request = ReceiveRequest { id: 1 << 32 | self.posted, entries: &entries };
        if self.adapter.machine().post_receive(self.numbers[0], &request).is_ok() {
            self.posted += 1;
        }
    }

    fn post_send(&mut self, value: u8) {
        let (key, address) = self.regions[0];
        let remote = Remote { address: 0x1000, key: 0x77 };
        let (operation, length) = match value % 8 {
            0 => (Operation::Send, 1000),
            1 => (Operation::SendWithImmediate(5), 3),
            2 => (Operation::SendWithInvalidate(5), 300),
            3 => (Operation::Write(remote), 600),
            4 => (Operation::WriteWithImmediate(remote, 5), 0),
            5 => (Operation::Read(remote), 600),
            6 => (Operation::CompareSwap { remote, compare: 1, swap: 2 }, 8),
            _ => (Operation::FetchAdd { remote, add: 1 }, 8),
        };
        // An address behind the end now and then.
        let entries = [ScatterEntry { address: address + (u64::from(value >> 3) << 8), length, key }];
        let request =
            SendRequest { has_fence: value & 0x40 != 0, ..SendRequest::new(self.posted, operation, &entries) };
        if self.adapter.machine().post_send(self.numbers[0], &request).is_ok() {
            self.posted += 1;
        }
    }

    fn change_host(&mut self, value: u8) {
        if !self.is_open {
            return;
        }
        if value & 1 == 0 {
            self.is_open = false;
            self.tell(Input::Closed(HOSTS[0], Closed::Refused));
        } else {
            self.is_blocked = !self.is_blocked;
            self.tell(if self.is_blocked { Input::Blocked(HOSTS[0]) } else { Input::Drained(HOSTS[0]) });
        }
    }

    /// Carries out what the adapter wants until it is idle, and checks the memory.
    fn settle(&mut self) {
        for _ in 0..OUTPUTS_MAX {
            match self.adapter.poll(self.now, &mut self.out) {
                Output::Send(peer) => self.take_packet(peer),
                Output::Event(completion) => self.take(&completion),
                Output::Open(peer, address) => {
                    self.is_open |= peer == HOSTS[0];
                    self.is_blocked &= peer != HOSTS[0];
                    self.tell(Input::Opened(peer, &Ends::new(self::address(self.choice, 0), address)));
                }
                Output::Close(peer) => self.is_open &= peer != HOSTS[0],
                Output::Idle(_) => {
                    for (key, _) in &self.regions[1..] {
                        let bytes = self.adapter.machine().region(*key).expect("it is registered");
                        assert!(bytes.iter().all(|byte| *byte == 7), "bytes that nobody may write to");
                    }
                    return;
                }
            }
        }
        panic!("the adapter does not become idle");
    }

    fn take_packet(&mut self, peer: Peer) {
        assert!(peer == HOSTS[1] || (self.is_open && !self.is_blocked), "a packet for a host that is held back from");
        self.answers += u64::from(peer == HOSTS[1]);
        let bytes: Vec<u8> = self.out.pieces().iter().flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
        self.out.clear();
        let host = if peer == HOSTS[1] { 2 } else { 1 };
        assert!(Flow::new(&address(self.choice, 0), &address(self.choice, host)).verify(&bytes));
        assert!(Packet::decode(&bytes).is_ok_and(|packet| packet.base.queue_pair == 0x77));
    }

    fn take(&mut self, completion: &Completion) {
        if completion.queue_pair == self.numbers[0] {
            self.completed += 1;
            assert!(self.completed <= self.posted, "more completions than requests: {completion:?}");
        }
    }

    /// Has the second host send a message, which is received and acknowledged.
    fn serve_other(&mut self) {
        let (key, address) = self.regions[0];
        let entries = [ScatterEntry { address, length: 4, key }];
        let request = ReceiveRequest { id: 0, entries: &entries };
        let adapter = self.adapter.machine();
        assert_eq!(adapter.state(self.numbers[1]), Ok(State::ReadyToSend));
        adapter.post_receive(self.numbers[1], &request).expect("there is room");
        let base = BaseHeader { asks_ack: true, ..BaseHeader::new(Opcode::SendOnly, self.numbers[1], FIRST) };
        let flow = Flow::new(&self::address(self.choice, 2), &self::address(self.choice, 0));
        let packet = sealed(flow, &Packet { base, extended: Extended::None, payload: b"abcd" });
        self.receive(HOSTS[1], &packet);
        self.settle();
        assert_eq!(self.answers, 1, "the second host is not answered");
        assert!(self.adapter.machine().region(key).is_some_and(|bytes| bytes.starts_with(b"abcd")));
    }
}
