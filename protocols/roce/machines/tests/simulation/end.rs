//! One end of a connection: what it has posted, and what was reported of it.

use super::program::{Deed, Image, Request, Sheet};
use hodo_machine::Instant;
use hodo_roce::{
    Access, Adapter, Capacity, Completed, Completion, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest,
    Status, VerbError,
};
use std::ops::Range;
use std::time::Duration;

/// A source of a message is filled with this once the message is complete, or inline.
const SCRIBBLE: u8 = 0xEE;

/// The outcomes of the first request that fails: the network, a receiver that was not ready, or an end that was stopped.
const FAILURES: [Status; 3] = [Status::RetryExceeded, Status::ReceiverNotReady, Status::Flushed];

/// A registered region.
#[derive(Debug, Clone, Copy, Default)]
pub struct Area {
    pub key: u32,
    pub address: u64,
}

impl Area {
    pub fn register(adapter: &mut Adapter, image: &Image, access: Access) -> Area {
        let (key, address) = adapter.register(image.initial.clone(), access, None).expect("there is room");
        Area { key, address }
    }

    const fn remote(self, offset: usize) -> Remote {
        Remote { address: self.address + offset as u64, key: self.key }
    }

    fn entries(self, pieces: &[Range<usize>]) -> Vec<ScatterEntry> {
        let entry = |piece: &Range<usize>| ScatterEntry {
            address: self.address + piece.start as u64,
            length: piece.len() as u32,
            key: self.key,
        };
        pieces.iter().map(entry).collect()
    }
}

/// The keys and the addresses of the far end's memory.
#[derive(Debug, Clone, Default)]
pub struct FarMemory {
    pub shared: Area,
    pub counter: Area,
    pub extras: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct End {
    /// The place among all ends, which is in the numbers of its requests.
    pub index: usize,
    pub node: usize,
    /// The far end's place.
    pub far: usize,
    pub number: u32,
    pub sheet: Sheet,
    pub local: Area,
    pub shared: Area,
    pub extras: Vec<u32>,
    pub far_memory: FarMemory,
    pub posted: usize,
    pub receives_posted: usize,
    /// When it posts next.
    pub posts_at: Option<Instant>,
    /// How often it has found a queue full since it posted something.
    pub found_full: u32,
    /// Requests that are complete, as far as it was reported, and those of them that succeeded.
    pub complete: usize,
    pub succeeded: usize,
    /// Receives that are complete, and those of them that succeeded.
    pub received: usize,
    pub messages: usize,
    /// The outcome of the first request that failed.
    pub failure: Option<Status>,
    pub is_flushed: bool,
    /// Whether it was destroyed, or is gone with its node.
    pub is_gone: bool,
    /// Whether it may fail.
    pub may_fail: bool,
    /// The bytes of both regions when it was destroyed.
    frozen: Option<[Vec<u8>; 2]>,
}

impl End {
    /// Creates a queue pair and the regions of a sheet.
    pub fn new(adapter: &mut Adapter, capacity: &Capacity, sheet: Sheet) -> End {
        let extra = |adapter: &mut Adapter| adapter.register(vec![7; 16], Access::ALL, None).expect("there is room").0;
        End {
            number: adapter.create(capacity).expect("there is room"),
            local: Area::register(adapter, &sheet.local, Access::LOCAL),
            shared: Area::register(adapter, &sheet.shared, Access::ALL),
            extras: (0..sheet.extras).map(|_| extra(adapter)).collect(),
            sheet,
            ..End::default()
        }
    }

    /// Notes what the far end has told of its memory.
    pub fn knows(&mut self, far: &End, counter: Area) {
        self.far_memory = FarMemory { shared: far.shared, counter, extras: far.extras.clone() };
    }

    /// Notes that it was destroyed, or has gone with its node. Returns the far end.
    pub fn goes(&mut self) -> usize {
        self.is_gone = true;
        self.frozen = None;
        self.far
    }

    /// Keeps the memory as it is now, which is to be the last.
    pub fn freeze(&mut self, adapter: &Adapter) {
        let bytes = |area: Area| adapter.region(area.key).expect("it is registered").to_vec();
        self.frozen = Some([bytes(self.local), bytes(self.shared)]);
    }

    /// Checks that nothing was written after the end.
    pub fn check_frozen(&self, adapter: &Adapter) {
        for (area, before) in [self.local, self.shared].iter().zip(self.frozen.iter().flatten()) {
            let is_same = adapter.region(area.key).is_none_or(|bytes| bytes == before);
            assert!(is_same, "end {} was written to after it was destroyed", self.index);
        }
    }

    /// Returns the number of a request: the place of the end is in it.
    const fn id(&self, request: usize) -> u64 {
        (self.index as u64) << 32 | request as u64
    }

    /// Checks that all that was to be reported was.
    pub fn check_done(&self, far: &End) {
        let all = (self.sheet.requests.len(), self.sheet.receives.len());
        let about = format!("end {}: {:?}, {} of {all:?} posted", self.index, self.failure, self.posted);
        assert_eq!(self.complete, all.0, "{about}");
        if self.failure.is_some() {
            assert_eq!(self.received, all.1, "{about}");
        }
        let messages = |count: usize| far.sheet.requests[..count].iter().filter(|request| request.deed.takes_receive());
        if !far.is_gone {
            let (least, most) = (messages(far.succeeded).count(), messages(far.posted).count());
            assert!((least..=most).contains(&self.messages), "{} messages, {least} to {most}: {about}", self.messages);
        }
    }

    /// Posts what is due, as far as there is room. Returns when to try again.
    pub fn post(&mut self, adapter: &mut Adapter, now: Instant) -> Option<Instant> {
        let before = self.posted;
        let receives = self.post_receives(adapter, now);
        let sends = self.post_sends(adapter, now);
        self.found_full = if self.posted > before { 0 } else { self.found_full + 1 };
        [receives, sends].into_iter().flatten().min()
    }

    fn post_receives(&mut self, adapter: &mut Adapter, now: Instant) -> Option<Instant> {
        loop {
            let receive = self.sheet.receives.get(self.receives_posted)?;
            if receive.at > now {
                return Some(receive.at);
            }
            let entries = self.local.entries(&receive.pieces);
            let request = ReceiveRequest { id: self.id(self.receives_posted), entries: &entries };
            match adapter.post_receive(self.number, &request) {
                Ok(()) => self.receives_posted += 1,
                // A completion makes room.
                Err(VerbError::QueueFull(_)) => return None,
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn post_sends(&mut self, adapter: &mut Adapter, now: Instant) -> Option<Instant> {
        loop {
            let request = self.sheet.requests.get(self.posted)?;
            if request.at > now {
                return Some(request.at);
            }
            let entries = self.local.entries(&request.pieces);
            let send = SendRequest {
                id: self.id(self.posted),
                operation: self.operation(request),
                entries: &entries,
                is_signaled: request.is_signaled,
                is_solicited: request.is_solicited,
                has_fence: request.has_fence,
                is_inline: request.is_inline,
            };
            match adapter.post_send(self.number, &send) {
                Ok(()) => self.posted += 1,
                // What is not signaled makes room without a word.
                Err(VerbError::QueueFull(_)) => {
                    return Some(now + Duration::from_micros(1 << self.found_full.min(17)));
                }
                Err(other) => panic!("{other}"),
            }
            if self.sheet.requests[self.posted - 1].is_inline {
                self.scribble(adapter, self.posted - 1);
            }
        }
    }

    fn operation(&self, request: &Request) -> Operation {
        let FarMemory { shared, counter, extras } = &self.far_memory;
        match request.deed {
            Deed::Send(None) => Operation::Send,
            Deed::Send(Some(immediate)) => Operation::SendWithImmediate(immediate),
            Deed::SendInvalidate(extra) => Operation::SendWithInvalidate(extras[extra]),
            Deed::Write(at, None) => Operation::Write(shared.remote(at)),
            Deed::Write(at, Some(immediate)) => Operation::WriteWithImmediate(shared.remote(at), immediate),
            Deed::Read(at) => Operation::Read(shared.remote(at)),
            Deed::CompareSwap { at, compare, swap } => {
                Operation::CompareSwap { remote: shared.remote(at), compare, swap }
            }
            Deed::FetchAdd { at, add } => Operation::FetchAdd { remote: shared.remote(at), add },
            Deed::Count(bit) => Operation::FetchAdd { remote: counter.remote(0), add: 1 << bit },
        }
    }

    /// Overwrites the source of a message that is not needed any more.
    fn scribble(&mut self, adapter: &mut Adapter, request: usize) {
        let bytes = adapter.region_mut(self.local.key).expect("it is registered");
        for piece in &self.sheet.requests[request].pieces {
            bytes[piece.clone()].fill(SCRIBBLE);
            self.sheet.local.expected[piece.clone()].fill(SCRIBBLE);
        }
    }

    /// Takes the completion of a send request. Returns the bit of the counter that it found, for one that counts.
    pub fn sent(&mut self, adapter: &mut Adapter, completion: &Completion) -> Option<(u32, u64)> {
        let number = (completion.id & 0xFFFF_FFFF) as usize;
        assert_eq!(completion.id, self.id(number), "another end's: {completion:?}");
        if completion.status != Status::Success {
            self.send_failed(number, completion);
            return None;
        }
        assert!(self.failure.is_none(), "{completion:?} after {:?}", self.failure);
        self.pass_silent(number);
        let request = &self.sheet.requests[number];
        assert!(request.is_signaled && number < self.posted, "{completion:?} of {request:?}");
        (self.complete, self.succeeded) = (number + 1, number + 1);
        let (kind, length) = match request.deed {
            Deed::Send(_) | Deed::SendInvalidate(_) => (Completed::Send, 0),
            Deed::Write(..) => (Completed::Write, 0),
            Deed::Read(_) => (Completed::Read, request.bytes.len()),
            Deed::CompareSwap { .. } => (Completed::CompareSwap, 8),
            Deed::FetchAdd { .. } | Deed::Count(_) => (Completed::FetchAdd, 8),
        };
        assert_eq!((completion.kind, completion.length as usize), (kind, length));
        if request.deed.carries() {
            if !request.is_inline {
                self.scribble(adapter, number);
            }
            return None;
        }
        let found = gather(adapter, self.local, &request.pieces);
        if let Deed::Count(bit) = request.deed {
            return Some((bit, u64::from_ne_bytes(found.try_into().expect("eight bytes"))));
        }
        assert_eq!(found, request.bytes, "what {:?} found", request.deed);
        None
    }

    /// Takes the requests before `number` that are not signaled as complete.
    fn pass_silent(&mut self, number: usize) {
        let silent = &self.sheet.requests[self.complete..number];
        assert!(silent.iter().all(|request| !request.is_signaled), "request {number} overtook {:?}", self.complete);
        self.complete = number;
    }

    fn send_failed(&mut self, number: usize, completion: &Completion) {
        assert!(self.may_fail, "{completion:?}");
        if self.failure.is_none() {
            self.pass_silent(number);
            assert!(FAILURES.contains(&completion.status), "{completion:?}");
            self.failure = Some(completion.status);
        } else {
            assert_eq!((number, completion.status), (self.complete, Status::Flushed));
        }
        self.complete = number + 1;
    }

    /// Takes the completion of a receive request; `far` is the end that the message is from.
    pub fn received(&mut self, adapter: &Adapter, completion: &Completion, far: &Sheet) {
        assert_eq!(completion.id, self.id(self.received), "receives complete in order: {completion:?}");
        assert!(self.received < self.receives_posted);
        let receive = &self.sheet.receives[self.received];
        self.received += 1;
        if completion.status != Status::Success {
            assert!(self.may_fail && completion.status == Status::Flushed, "{completion:?}");
            self.is_flushed = true;
            return;
        }
        assert!(!self.is_flushed, "{completion:?} after others were flushed");
        self.messages += 1;
        let request = &far.requests[receive.message.expect("a message was sent for it")];
        let (kind, immediate, invalidated) = match request.deed {
            Deed::Send(immediate) => (Completed::Receive, immediate, None),
            Deed::SendInvalidate(extra) => (Completed::Receive, None, Some(self.extras[extra])),
            Deed::Write(_, immediate) => (Completed::ReceiveWrite, immediate, None),
            other => panic!("{other:?} completes no receive"),
        };
        assert_eq!((completion.kind, completion.immediate, completion.invalidated), (kind, immediate, invalidated));
        assert_eq!((completion.length as usize, completion.is_solicited), (request.bytes.len(), request.is_solicited));
        // A place that was written to may have the bytes of the next write already.
        if !matches!(request.deed, Deed::Write(..)) {
            let found = gather(adapter, self.local, &receive.pieces);
            assert_eq!(found[..request.bytes.len()], request.bytes, "message {completion:?}");
        }
    }

    /// Checks that the memory is as it has to be: exactly, or each byte as before or after.
    pub fn check_memory(&mut self, adapter: &Adapter, is_exact: bool) {
        // Counters are checked by themselves.
        for request in self.sheet.requests.iter().filter(|request| matches!(request.deed, Deed::Count(_))) {
            let found = gather(adapter, self.local, &request.pieces);
            self.sheet.local.scatter(&request.pieces, &found);
        }
        for (area, image, what) in
            [(self.local, &self.sheet.local, "local"), (self.shared, &self.sheet.shared, "shared")]
        {
            let found = adapter.region(area.key).expect("it is registered");
            if is_exact && found == image.expected {
                continue;
            }
            let is_wrong =
                |at: &usize| found[*at] != image.expected[*at] && (is_exact || found[*at] != image.initial[*at]);
            let is_word = |at: &usize| !is_exact && what == "shared" && self.sheet.is_word(*at);
            let wrong = (0..found.len()).filter(is_wrong).find(|at| !is_word(at));
            assert_eq!(wrong, None, "byte of the {what} region of end {}", self.index);
        }
    }
}

/// Returns the bytes at some places of a region.
fn gather(adapter: &Adapter, area: Area, pieces: &[Range<usize>]) -> Vec<u8> {
    let bytes = adapter.region(area.key).expect("it is registered");
    pieces.iter().flat_map(|piece| bytes[piece.clone()].iter().copied()).collect()
}
