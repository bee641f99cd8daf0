use crate::arrivals::Arrivals;
use crate::options::{Far, Target};
use crate::pages::Pages;
use crate::ports::Ports;
use crate::{ECHO, ONE_WAY, Pending, request, stamp};
use bytes::Bytes;
use hodo_io::{Endpoint, Sockets};
use hodo_machine::{Driver, Instant, Sampling, Stamp, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Outcome, TcpTimes};
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::client::{CannotSend, ClientEvent};
use hodo_spacewire::far_end::{COUNT, SOURCE};
use hodo_spacewire::rmap::Initiator;
use hodo_spacewire_host::session::or_too_long;
use hodo_tester::{FarEndProcess, TransportCounters, ended};
use std::time::Duration;

/// The reason that nothing was counted: the port of another bridge.
const NO_ANSWER: &str = "nothing counts packets behind this port. Start `hodo serve ssdtp2://` there, or say what is behind the \
                         port: far=echo, far=rmap, or back=PORT for a second port";

/// Time-codes that leave in one turn at most.
const TIME_CODES_AT_ONCE: u32 = 1024;
/// Bytes in front of a time-code that wait for the connection, at most.
const TIME_CODES_BEHIND: usize = 1 << 20;
/// Packets from here on are not copied, where they are all alike.
const SHARED: usize = 4096;

/// Ports of bridges, as the tester sees them.
pub(crate) struct RealLink {
    driver: Endpoint<Ports, Sockets>,
    far: Far,
    path: Vec<u8>,
    back_path: Vec<u8>,
    channels: Vec<Channel>,
    /// The bytes of all packets.
    payload: Bytes,
    /// Packets after which a count is asked for.
    count_every: u64,
    timeout: Duration,
    /// The far end's process, where it is one of this host.
    far_process: Option<FarEndProcess>,
    /// The pages of the bridge, if they are known.
    pages: Option<Pages>,
    /// The time between two time-codes, and when the next one is due.
    time_codes: Option<(Duration, Instant)>,
    time: u8,
    connected: usize,
    /// Whether operations are stamped.
    is_stamping: bool,
    scratch: Vec<u8>,
    failed: Option<LinkError>,
}

/// One channel: its operations in the order in which they will be done.
#[derive(Debug, Default)]
struct Channel {
    counted: Pending,
    echoed: Pending,
    made: Pending,
    sent: u64,
    /// The number of packets sent when a count was last asked for.
    asked: u64,
    /// Packets of one length that are to be asked for together.
    request: (u16, u32),
}

impl Channel {
    /// Returns whether packets were sent that no count was asked for, and no count is under way that will be followed by another.
    fn is_unasked(&self) -> bool {
        self.sent > self.asked && self.asked == self.sent - self.counted.tags.len() as u64
    }
}

/// The settings of a link.
pub(crate) struct RealSettings {
    pub(crate) far: Far,
    pub(crate) path: Vec<u8>,
    pub(crate) back_path: Vec<u8>,
    pub(crate) channels: u32,
    pub(crate) window: u32,
    pub(crate) size_max: u32,
    pub(crate) timeout: Duration,
    pub(crate) far_process: Option<FarEndProcess>,
    pub(crate) pages: Option<Pages>,
    pub(crate) time_codes_per_s: f64,
}

impl RealLink {
    /// Waits until all ports are connected.
    pub(crate) fn open(driver: Endpoint<Ports, Sockets>, settings: RealSettings) -> Result<RealLink, LinkError> {
        let RealSettings { far, path, back_path, channels, window, size_max, timeout, .. } = settings;
        let period =
            (settings.time_codes_per_s > 0.0).then(|| Duration::from_secs_f64(1.0 / settings.time_codes_per_s));
        let now = driver.now();
        let mut payload = vec![0; size_max.max(1) as usize];
        payload[0] = ONE_WAY;
        let mut link = RealLink {
            driver,
            far,
            path,
            back_path,
            channels: (0..channels).map(|_| Channel::default()).collect(),
            payload: payload.into(),
            count_every: u64::from(window / 4).clamp(1, 4096),
            timeout,
            far_process: settings.far_process,
            pages: settings.pages,
            time_codes: period.map(|period| (period, now)),
            time: 0,
            connected: 0,
            is_stamping: false,
            scratch: Vec::new(),
            failed: None,
        };
        let until = now + timeout;
        let mut done = Vec::new();
        while link.connected < link.driver.machine().clients.len() {
            if link.now() >= until {
                return Err(LinkError::Stalled { millis: timeout.as_millis() as u64 });
            }
            link.turn(Wait::Block, until, &mut done)?;
        }
        link.greet(until)?;
        Ok(link)
    }

    /// Has every far end of the tester's own count once, so that it is known to be there, and to serve this host.
    fn greet(&mut self, until: Instant) -> Result<(), LinkError> {
        if self.far != Far::Served {
            return Ok(());
        }
        let clients = 0..self.channels.len();
        clients.clone().for_each(|index| self.send_count(index));
        let is_silent = |link: &Self, index: usize| link.driver.machine().clients[index].receiver().counted.is_none();
        while let Some(channel) = clients.clone().find(|index| is_silent(self, *index)) {
            if self.now() >= until {
                return Err(LinkError::PeerMisbehaved { channel: channel as u32, what: NO_ANSWER.to_owned() });
            }
            self.drive(Wait::Block, until)?;
        }
        clients.for_each(|index| self.driver.machine_mut().clients[index].receiver_mut().counted = None);
        Ok(())
    }

    pub(crate) fn driver(&self) -> &Endpoint<Ports, Sockets> {
        &self.driver
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let driven = self.drive(wait, until);
        let before = done.len();
        self.collect(done);
        let at = self.driver.last_turn();
        if self.is_stamping {
            for completion in &done[before..] {
                self.driver.machine_mut().finish(completion.tag, at);
            }
        }
        driven
    }

    #[inline]
    fn drive(&mut self, wait: Wait, until: Instant) -> Result<(), LinkError> {
        let RealLink { driver, failed, connected, payload, .. } = self;
        let ports = driver.machine().clients.len();
        let outcome = driver.turn(wait, until, &mut |(client, event)| match event {
            ClientEvent::Connected(_) => *connected += 1,
            ClientEvent::Closed(why) => {
                let (channel, remedy) = (client as u32, or_too_long(payload.len()));
                failed.get_or_insert(if *connected < ports || remedy.is_empty() {
                    LinkError::Closed { channel, why }
                } else {
                    LinkError::PeerMisbehaved { channel, what: format!("{why}{remedy}") }
                });
            }
            ClientEvent::Malformed(why) => {
                let what = why.to_string();
                failed.get_or_insert(LinkError::PeerMisbehaved { channel: client as u32, what });
            }
            _ => {}
        });
        ended(outcome, self.failed.as_ref())
    }

    /// Turns what has arrived into completions.
    fn collect(&mut self, done: &mut Vec<Completion>) {
        let now = self.driver.last_turn();
        let is_rmap = matches!(self.far, Far::Rmap(_));
        // A look at the machine would have it polled again.
        for index in 0..self.driver.machine().clients.len() {
            let arrivals = self.driver.machine().clients[index].receiver();
            if is_rmap {
                let is_due = arrivals.initiator.as_ref().and_then(Initiator::deadline).is_some_and(|due| due <= now);
                if is_due || !arrivals.completed.is_empty() {
                    self.collect_completed(index, now, done);
                }
            } else if arrivals.has_any() {
                self.collect_packets(index, done);
            }
        }
    }

    fn collect_completed(&mut self, index: usize, now: Instant, done: &mut Vec<Completion>) {
        let arrivals = self.driver.machine_mut().clients[index].receiver_mut();
        arrivals.expire(now);
        done.append(&mut arrivals.completed);
        if let Some(why) = arrivals.refusal.take() {
            self.failed.get_or_insert(LinkError::PeerMisbehaved { channel: index as u32, what: why });
        }
    }

    fn collect_packets(&mut self, index: usize, done: &mut Vec<Completion>) {
        let RealLink { driver, channels, far, scratch, payload, back_path, .. } = self;
        let client = &mut driver.machine_mut().clients[index];
        let is_back = index > 0 && matches!(far, Far::Back(_));
        let channel = &mut channels[if is_back { 0 } else { index }];
        let gone = |tag: u64, done: &mut Vec<Completion>| done.push(Completion { tag, outcome: Outcome::Lost });
        let arrivals = client.receiver_mut();
        // What a second port receives one way was sent; what the first one receives was asked for.
        let one_way = if is_back { &mut channel.counted } else { &mut channel.made };
        for number in arrivals.one_way.drain(..) {
            let tag = one_way.take(number, |tag| gone(tag, done));
            done.extend(tag.map(|tag| Completion { tag, outcome: Outcome::Done }));
        }
        for number in arrivals.echoed.drain(..) {
            let tag = channel.echoed.take(number, |tag| gone(tag, done));
            done.extend(tag.map(|tag| Completion { tag, outcome: Outcome::Done }));
        }
        for _ in 0..std::mem::take(&mut arrivals.made) {
            done.extend(channel.made.pop().map(|tag| Completion { tag, outcome: Outcome::Done }));
        }
        if let Some(counted) = arrivals.counted.take() {
            let before = channel.sent - channel.counted.tags.len() as u64;
            for _ in before..counted.min(channel.sent) {
                done.extend(channel.counted.pop().map(|tag| Completion { tag, outcome: Outcome::Done }));
            }
        }
        let to_bounce = std::mem::take(&mut arrivals.to_bounce);
        for (number, length) in &to_bounce {
            scratch.clear();
            scratch.extend_from_slice(back_path);
            scratch.extend_from_slice(&payload[..*length]);
            stamp(&mut scratch[back_path.len()..], ECHO, number.unwrap_or(0));
            // Only a connection that is lost does not take it, which its own event tells.
            let _ = client.send(scratch, EndOfPacket::Eop);
        }
        client.receiver_mut().to_bounce = to_bounce;
        client.receiver_mut().to_bounce.clear();
    }

    fn send(&mut self, client: usize, path_back: bool, address: u8, number: u32, size: usize) {
        let RealLink { driver, scratch, payload, path, back_path, .. } = self;
        let path = if path_back { back_path } else { path };
        let client = &mut driver.machine_mut().clients[client];
        let sent = if address == ONE_WAY && matches!(self.far, Far::Served) && size >= SHARED && path.is_empty() {
            client.send_shared(payload.slice(..size), EndOfPacket::Eop)
        } else {
            scratch.clear();
            scratch.extend_from_slice(path);
            scratch.extend_from_slice(&payload[..size]);
            stamp(&mut scratch[path.len()..], address, number);
            client.send(scratch, EndOfPacket::Eop)
        };
        self.sent(sent);
    }

    fn sent(&mut self, sent: Result<(), CannotSend>) {
        match sent {
            Ok(()) | Err(CannotSend::NotConnected) => {}
            Err(why) => {
                self.failed.get_or_insert(LinkError::Unsupported(why.to_string()));
            }
        }
    }

    fn start_rmap(&mut self, operation: Operation) {
        let Operation { tag, channel, size, mode } = operation;
        let Far::Rmap(target) = &self.far else { return };
        let Target { to, address, .. } = &**target;
        let request = request(mode, *address, &self.payload[..size as usize]);
        // Fresh enough: deadlines are much longer than a turn.
        let deadline = self.driver.last_turn() + self.timeout;
        self.scratch.clear();
        let client = &mut self.driver.machine_mut().clients[channel as usize];
        client.receiver_mut().make_room();
        let initiator = client.receiver_mut().initiator.as_mut().expect("a link to a memory has an initiator");
        let sent = match initiator.send(&request, to, tag, deadline, &mut self.scratch) {
            Ok(_) => client.send(&self.scratch, EndOfPacket::Eop),
            Err(why) => {
                self.failed.get_or_insert(LinkError::Unsupported(why.to_string()));
                return;
            }
        };
        self.sent(sent);
    }

    /// Requests the packets that have been gathered.
    fn ask(&mut self, index: usize) {
        let (count, length) = std::mem::take(&mut self.channels[index].request);
        if count == 0 {
            return;
        }
        let ([n0, n1], [l0, l1, l2, l3]) = (count.to_be_bytes(), length.to_be_bytes());
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.path);
        self.scratch.extend_from_slice(&[SOURCE, n0, n1, l0, l1, l2, l3]);
        let sent = self.driver.machine_mut().clients[index].send(&self.scratch, EndOfPacket::Eop);
        self.sent(sent);
    }

    /// Requests the number of packets that have arrived.
    fn ask_count(&mut self, index: usize) {
        let channel = &mut self.channels[index];
        if channel.asked == channel.sent {
            return;
        }
        channel.asked = channel.sent;
        self.send_count(index);
    }

    fn send_count(&mut self, index: usize) {
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.path);
        self.scratch.push(COUNT);
        let sent = self.driver.machine_mut().clients[index].send(&self.scratch, EndOfPacket::Eop);
        self.sent(sent);
    }

    fn tick(&mut self, now: Instant) {
        let Some((period, due)) = &mut self.time_codes else { return };
        let client = &mut self.driver.machine_mut().clients[0];
        for _ in 0..TIME_CODES_AT_ONCE {
            if *due > now || client.queued() > TIME_CODES_BEHIND {
                break;
            }
            *due = *due + *period;
            self.time = (self.time + 1) & 63;
            // Only a connection that is lost does not take it, which its own event tells.
            let _ = client.send_time_code(self.time);
        }
        if *due <= now {
            // Those that this host is too slow for are left out.
            *due = now + *period;
        }
    }
}

impl Arrivals {
    fn has_any(&self) -> bool {
        self.made > 0
            || self.counted.is_some()
            || !self.echoed.is_empty()
            || !self.one_way.is_empty()
            || !self.to_bounce.is_empty()
    }
}

impl Link for RealLink {
    #[inline]
    fn start(&mut self, operation: Operation) {
        let Operation { tag, channel, size, mode } = operation;
        let index = channel as usize;
        let served = matches!(self.far, Far::Served);
        if self.is_stamping {
            let is_back = mode == Mode::Receive && matches!(self.far, Far::Back(_));
            self.driver.machine_mut().begin(if is_back { 1 } else { index }, tag);
        }
        if let Far::Rmap(_) = self.far {
            return self.start_rmap(operation);
        }
        // A packet without its address would go nowhere.
        let size = size.max(1);
        let length = size as usize;
        match mode {
            Mode::Send => {
                let number = self.channels[index].counted.push(tag);
                self.channels[index].sent += 1;
                self.send(index, false, ONE_WAY, number, length);
                let channel = &self.channels[index];
                if served && channel.sent - channel.asked >= self.count_every {
                    self.ask_count(index);
                }
            }
            Mode::Both => {
                let number = self.channels[index].echoed.push(tag);
                self.send(index, false, ECHO, number, length);
            }
            Mode::Receive if served => {
                self.channels[index].made.push(tag);
                let (count, of) = self.channels[index].request;
                if count > 0 && of != size || count == u16::MAX {
                    self.ask(index);
                }
                let (count, _) = self.channels[index].request;
                self.channels[index].request = (count + 1, size);
            }
            Mode::Receive => {
                let number = self.channels[index].made.push(tag);
                self.send(1, true, ONE_WAY, number, length);
            }
        }
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let served = matches!(self.far, Far::Served);
        for index in 0..self.channels.len() {
            if self.channels[index].request.0 > 0 {
                self.ask(index);
            }
            if served && self.channels[index].is_unasked() {
                self.ask_count(index);
            }
        }
        let mut until = until;
        if self.time_codes.is_some() {
            let now = self.now();
            self.tick(now);
            until = self.time_codes.map_or(until, |(_, due)| until.min(due));
        }
        if let Far::Rmap(_) = self.far {
            let clients = &self.driver.machine().clients;
            let due = clients.iter().filter_map(|client| client.receiver().initiator.as_ref()?.deadline()).min();
            until = due.map_or(until, |due| until.min(due));
        }
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn flush(&mut self) {
        if matches!(self.far, Far::Served) {
            (0..self.channels.len()).for_each(|index| self.ask_count(index));
        }
    }

    fn far_end(&mut self, _until: Instant, _done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        let usage = self.far_process.as_ref().and_then(FarEndProcess::usage);
        let shortfall_s = self.pages.and_then(Pages::shortfall_s);
        let is_known = usage.is_some() || shortfall_s.is_some();
        Ok(is_known.then(|| FarEnd { usage, shortfall_s, ..FarEnd::default() }))
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.driver.tcp()
    }

    fn losses(&self) -> Loss {
        self.driver.transport_losses()
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.is_stamping = taken.is_on();
        self.driver.machine_mut().stamps.sampling = taken;
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        self.driver.machine_mut().stamps.hand_over(stamps);
    }
}
