//! One client of a far end: its queue pairs, its memory, and what it is owed.

use crate::backend::Backend;
use crate::control::{MESSAGE, MESSAGES, Order, Report};
use crate::feed::{self, Feed};
use crate::greeting::{Wish, remote};
use crate::options::{ENTRIES_MAX, Kind};
use hodo_machine::Instant;
use hodo_roce::{Access, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest, Status};
use hodo_roce_host::{AddressOfQueuePair, DeviceError, Limits, Region, Reliability};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

/// The kinds of requests, in the upper bits of their numbers.
pub(crate) const RECEIVE: u64 = 0;
pub(crate) const SEND: u64 = 1 << 62;
pub(crate) const CONTROL: u64 = 1 << 63;

/// Why a client is let go.
pub(crate) type Why = String;

/// A client of a far end.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) stream: TcpStream,
    /// The rest of its welcome, and when it has to have taken that.
    welcome: Option<(Vec<u8>, Instant)>,
    wish: Wish,
    /// The bits of its requests' numbers that are its place among the clients.
    place: u64,
    payload: Region,
    messages: Region,
    control: AddressOfQueuePair,
    channels: Vec<Channel>,
    receive_entries: Vec<ScatterEntry>,
    /// Operations of one direction that have come.
    received: u64,
    /// Updates that were skipped by subscriptions which have ended.
    skipped: u64,
    /// Subscriptions that have not ended.
    feeds: u32,
    /// Reports that are on their way, of the slots of the messages.
    reports: u32,
}

/// A queue pair of a client.
#[derive(Debug)]
struct Channel {
    address: AddressOfQueuePair,
    outstanding: u32,
    /// Bytes of the answers that wait for room in the send queue. Each holds a receive, so that they are not more than those.
    owed: VecDeque<u32>,
    feed: Option<Feed>,
}

impl Served {
    /// Creates the queue pairs and the memory of a client, and connects them.
    ///
    /// # Errors
    /// [`DeviceError`] if the device cannot do what is wished.
    pub(crate) fn new<B: Backend>(
        device: &mut B,
        stream: TcpStream,
        wish: Wish,
        place: u32,
        far: &[AddressOfQueuePair],
    ) -> Result<Self, DeviceError> {
        let rights =
            if wish.kind == Kind::Send { Access::LOCAL } else { Access { remote_atomic: false, ..Access::ALL } };
        let payload = device.register(wish.size.max(1) as usize, rights)?;
        let messages = device.register((2 * MESSAGES * MESSAGE) as usize, Access::LOCAL);
        let messages = messages.inspect_err(|_| drop(device.deregister(payload)))?;
        let mut served = Served {
            stream,
            welcome: None,
            place: u64::from(place) << 32,
            payload,
            messages,
            control: AddressOfQueuePair { lid: 0, number: 0, psn: 0, gid: hodo_roce_host::Gid::default() },
            channels: Vec::with_capacity(wish.channels as usize),
            receive_entries: cut(
                payload,
                wish.size,
                wish.receive_entries,
                &mut [ScatterEntry::default(); ENTRIES_MAX as usize],
            )
            .to_vec(),
            received: 0,
            skipped: 0,
            feeds: 0,
            reports: 0,
            wish,
        };
        match served.connect(device, far) {
            Ok(()) => Ok(served),
            Err(error) => {
                served.leave(device);
                Err(error)
            }
        }
    }

    fn connect<B: Backend>(&mut self, device: &mut B, far: &[AddressOfQueuePair]) -> Result<(), DeviceError> {
        let wish = self.wish;
        let reliability =
            Reliability { mtu: wish.mtu, timeout: wish.timeout, reads: wish.reads, ..Reliability::default() };
        device.set_far_port(wish.udp_port)?;
        let (control, channels) = far.split_first().expect("a greeting has an address for control");
        self.control = device.create(&control_limits())?;
        for slot in 0..MESSAGES {
            self.listen(device, slot)?;
        }
        device.connect(&self.control, control, &reliability)?;
        // As many answers as receives, which each of them holds.
        let limits = wish.limits(wish.receive_depth);
        for (number, far) in channels.iter().enumerate() {
            let address = device.create(&limits)?;
            self.channels.push(Channel { address, outstanding: 0, owed: VecDeque::new(), feed: None });
            for _ in 0..wish.receive_depth {
                self.receive(device, number)?;
            }
            device.connect(&address, far, &reliability)?;
        }
        Ok(())
    }

    /// Sends the welcome as the client takes it, at the latest until this time. Nobody waits for that.
    pub(crate) fn welcome(&mut self, bytes: Vec<u8>, until: Instant) {
        self.welcome = Some((bytes, until));
    }

    /// Returns whether the client has not taken the whole of its welcome.
    pub(crate) fn is_being_welcomed(&self) -> bool {
        self.welcome.is_some()
    }

    /// Sends more of the welcome.
    ///
    /// # Errors
    /// The operating system's error, or `TimedOut` if the client does not take it.
    pub(crate) fn go_on_welcoming(&mut self, now: Instant) -> io::Result<()> {
        while let Some((bytes, until)) = &mut self.welcome {
            match (&self.stream).write(bytes) {
                Ok(count) => drop(bytes.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock && now < *until => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if bytes.is_empty() {
                self.welcome = None;
            }
        }
        Ok(())
    }

    /// Returns the addresses for the client: that of the control queue pair first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &AddressOfQueuePair> {
        std::iter::once(&self.control).chain(self.channels.iter().map(|channel| &channel.address))
    }

    /// Returns the memory that the client may write to and read from.
    pub(crate) fn memory(&self) -> Remote {
        remote(self.payload)
    }

    /// Returns how many channels it has.
    pub(crate) fn channel_count(&self) -> usize {
        self.channels.len()
    }

    /// Returns the bytes that it has had registered.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.payload.length + self.messages.length) as u64
    }

    /// Returns how many receives are posted for it.
    pub(crate) fn receives(&self) -> u64 {
        self.channels.len() as u64 * u64::from(self.wish.receive_depth)
    }

    /// Destroys its queue pairs, and gives its memory back.
    pub(crate) fn leave<B: Backend>(&self, device: &mut B) {
        self.addresses().for_each(|address| device.destroy(address.number));
        // Its queue pairs are gone: nothing uses it.
        let _ = device.deregister(self.payload);
        let _ = device.deregister(self.messages);
    }

    /// Takes the completion of one of its requests.
    ///
    /// # Errors
    /// The reason why it cannot be served any more.
    #[inline]
    pub(crate) fn completed<B: Backend>(&mut self, device: &mut B, completion: &Completion) -> Result<(), Why> {
        let index = (completion.id & 0xFFFF_FFFF) as usize;
        if completion.id & CONTROL != 0 {
            return self.control_completed(device, completion, index as u32);
        }
        if self.channels.get(index).is_none_or(|channel| channel.address.number != completion.queue_pair) {
            // It was for the client that had this place before.
            return Ok(());
        }
        if completion.status != Status::Success {
            return Err(format!("channel {index}: {}", completion.status));
        }
        if completion.id & SEND != 0 {
            self.channels[index].outstanding -= 1;
            return self.settle(device, index);
        }
        match completion.immediate {
            Some(bytes) if bytes > self.wish.size => {
                Err(format!("{bytes} bytes are asked for, and {} were agreed", self.wish.size))
            }
            Some(bytes) => {
                self.channels[index].owed.push_back(bytes);
                self.settle(device, index)
            }
            None => {
                self.received += 1;
                self.receive(device, index).map_err(|error| error.to_string())
            }
        }
    }

    /// Sends what is owed, as far as there is room.
    #[inline]
    fn settle<B: Backend>(&mut self, device: &mut B, index: usize) -> Result<(), Why> {
        while self.channels[index].outstanding < self.wish.receive_depth {
            let Some(bytes) = self.channels[index].owed.pop_front() else { break };
            // Before the answer, which lets the client send again.
            self.receive(device, index).map_err(|error| error.to_string())?;
            let operation = match self.wish.kind {
                Kind::Write => Operation::WriteWithImmediate(self.wish.memory, bytes),
                Kind::Send | Kind::Read => Operation::Send,
            };
            self.send(device, index, operation, bytes)?;
        }
        Ok(())
    }

    #[inline]
    fn send<B: Backend>(&mut self, device: &mut B, index: usize, operation: Operation, bytes: u32) -> Result<(), Why> {
        let mut at = [ScatterEntry::default(); ENTRIES_MAX as usize];
        let used = cut(self.payload, bytes, self.wish.send_entries, &mut at);
        let mut request = SendRequest::new(SEND | self.place | index as u64, operation, used);
        request.is_inline = bytes <= self.wish.inline;
        let channel = &mut self.channels[index];
        channel.outstanding += 1;
        device.post_send(channel.address.number, &request).map_err(|error| error.to_string())
    }

    #[inline]
    fn receive<B: Backend>(&self, device: &mut B, index: usize) -> Result<(), DeviceError> {
        let request = ReceiveRequest { id: RECEIVE | self.place | index as u64, entries: &self.receive_entries };
        device.post_receive(self.channels[index].address.number, &request)
    }
}

/// Control.
impl Served {
    fn control_completed<B: Backend>(&mut self, device: &mut B, completion: &Completion, slot: u32) -> Result<(), Why> {
        if completion.queue_pair != self.control.number {
            return Ok(());
        }
        if completion.status != Status::Success {
            return Err(format!("control: {}", completion.status));
        }
        if completion.id & SEND != 0 {
            self.reports -= 1;
            return Ok(());
        }
        let mut bytes = [0; MESSAGE as usize];
        let bytes = &mut bytes[..completion.length.min(MESSAGE) as usize];
        device.read(self.messages, (slot * MESSAGE) as usize, bytes).map_err(|error| error.to_string())?;
        self.listen(device, slot).map_err(|error| error.to_string())?;
        let order = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        match order.and_then(|request| Order::of(&request)).ok_or("a control message is none of a link")? {
            Order::Report => self.report(device, slot),
            Order::Subscribe(subscription) => {
                let now = device.now();
                let most = self.wish.size;
                let channel = self.channels.get_mut(subscription.channel as usize);
                let channel = channel.filter(|channel| channel.feed.is_none() && subscription.size <= most);
                channel.ok_or("a subscription is not possible")?.feed = Some(Feed::new(&subscription, now));
                self.feeds += 1;
                Ok(())
            }
            Order::Unsubscribe => {
                self.channels
                    .iter_mut()
                    .filter_map(|channel| channel.feed.as_mut())
                    .for_each(|feed| feed.is_over = true);
                Ok(())
            }
        }
    }

    /// Posts a receive for a control message.
    fn listen<B: Backend>(&self, device: &mut B, slot: u32) -> Result<(), DeviceError> {
        let id = CONTROL | RECEIVE | self.place | u64::from(slot);
        let entries = [message_at(self.messages, slot, MESSAGE)];
        device.post_receive(self.control.number, &ReceiveRequest { id, entries: &entries })
    }

    fn report<B: Backend>(&mut self, device: &mut B, slot: u32) -> Result<(), Why> {
        if self.reports == MESSAGES {
            return Err("more reports are asked for than are taken".to_owned());
        }
        self.reports += 1;
        let live: u64 = self.channels.iter().filter_map(|channel| channel.feed.as_ref()).map(|feed| feed.skipped).sum();
        let report = Report::new(device.now().as_nanos(), self.received, self.skipped + live, &device.counters());
        let text = report.request().to_string();
        let id = CONTROL | SEND | self.place | u64::from(slot);
        say(device, self.control.number, self.messages, MESSAGES + slot, id, &text).map_err(|error| error.to_string())
    }
}

/// Updates.
impl Served {
    /// Sends the updates that are due, and returns when the next one is; `None` while it has no subscription with a schedule.
    ///
    /// # Errors
    /// The reason why it cannot be served any more.
    #[inline]
    pub(crate) fn feed<B: Backend>(&mut self, device: &mut B, now: Instant) -> Result<Option<Instant>, Why> {
        if self.feeds == 0 {
            return Ok(None);
        }
        let mut next: Option<Instant> = None;
        for index in 0..self.channels.len() {
            let room = self.wish.receive_depth / 2;
            while self.channels[index].outstanding < room {
                let Some(feed) = &mut self.channels[index].feed else { break };
                if feed.is_over {
                    self.skipped += feed.skipped;
                    self.feeds -= 1;
                    self.channels[index].feed = None;
                    self.send(device, index, Operation::Send, 0)?;
                    break;
                }
                feed.skip(now);
                let size = feed.size;
                let Some(due) = feed.take(now) else { break };
                self.send(device, index, Operation::SendWithImmediate(feed::stamp(due)), size)?;
            }
            let due = self.channels[index].feed.as_ref().and_then(Feed::due);
            next = next.into_iter().chain(due).min();
        }
        Ok(next)
    }
}

/// Returns the sizes of a control queue pair.
pub(crate) const fn control_limits() -> Limits {
    Limits { send_depth: MESSAGES, receive_depth: MESSAGES, send_entries: 1, receive_entries: 1, inline_bytes: 0 }
}

/// Returns the place of a message.
pub(crate) fn message_at(region: Region, slot: u32, length: u32) -> ScatterEntry {
    ScatterEntry { address: region.address + u64::from(slot * MESSAGE), length, key: region.local_key }
}

/// Sends a control message.
///
/// # Errors
/// [`DeviceError`] if the queue is full, or the message is too long.
pub(crate) fn say<B: Backend>(
    device: &mut B,
    queue_pair: u32,
    messages: Region,
    slot: u32,
    id: u64,
    text: &str,
) -> Result<(), DeviceError> {
    let length = text.len().min(MESSAGE as usize);
    device.write(messages, (slot * MESSAGE) as usize, &text.as_bytes()[..length])?;
    let entries = [message_at(messages, slot, length as u32)];
    device.post_send(queue_pair, &SendRequest::new(id, Operation::Send, &entries))
}

/// Cuts a payload at the start of a region into entries of about equal length.
#[inline]
pub(crate) fn cut(region: Region, size: u32, count: u32, into: &mut [ScatterEntry]) -> &[ScatterEntry] {
    if size == 0 {
        return &[];
    }
    if count <= 1 {
        into[0] = ScatterEntry { address: region.address, length: size, key: region.local_key };
        return &into[..1];
    }
    let edge = |index: u32| u64::from(size) * u64::from(index) / u64::from(count);
    for (index, entry) in (0..count).zip(&mut *into) {
        let length = (edge(index + 1) - edge(index)) as u32;
        *entry = ScatterEntry { address: region.address + edge(index), length, key: region.local_key };
    }
    &into[..count as usize]
}
