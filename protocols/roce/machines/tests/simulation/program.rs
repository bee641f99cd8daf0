//! The program of one direction of a connection, and what has to come of it.

use super::draw;
use hodo_machine::{Instant, Random};
use hodo_roce::Mtu;
use std::ops::Range;
use std::time::Duration;

/// The bytes of a region, as they are at first and as they have to be in the end.
#[derive(Debug, Default)]
pub struct Image {
    pub initial: Vec<u8>,
    pub expected: Vec<u8>,
}

impl Image {
    /// Adds random bytes behind a gap, and returns where they are.
    pub fn add(&mut self, random: &mut Random, length: usize, alignment: usize) -> Range<usize> {
        let gap = random.below(8) as usize;
        let start = (self.initial.len() + gap).next_multiple_of(alignment);
        while self.initial.len() < start + length {
            self.initial.extend_from_slice(&random.bits().to_ne_bytes());
        }
        self.initial.truncate(start + length);
        self.expected.extend_from_slice(&self.initial[self.expected.len()..]);
        start..start + length
    }

    /// Adds bytes in one to four pieces.
    pub fn add_pieces(&mut self, random: &mut Random, length: usize) -> Vec<Range<usize>> {
        let mut rest = length;
        let count = 1 + random.below(4);
        let mut pieces = Vec::new();
        for number in 0..count {
            let size = if number + 1 == count { rest } else { random.below(rest as u64 + 1) as usize };
            pieces.push(self.add(random, size, 1));
            rest -= size;
        }
        pieces
    }

    pub fn gather(&self, pieces: &[Range<usize>]) -> Vec<u8> {
        pieces.iter().flat_map(|piece| self.expected[piece.clone()].iter().copied()).collect()
    }

    pub fn scatter(&mut self, pieces: &[Range<usize>], mut bytes: &[u8]) {
        for piece in pieces {
            let (front, rest) = bytes.split_at(bytes.len().min(piece.len()));
            self.expected[piece.start..piece.start + front.len()].copy_from_slice(front);
            bytes = rest;
        }
    }
}

/// The operation of a request; places are offsets in the far end's shared region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Send(Option<u32>),
    /// Invalidates the key of this one of the far end's small regions.
    SendInvalidate(usize),
    Write(usize, Option<u32>),
    Read(usize),
    CompareSwap {
        at: usize,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        at: usize,
        add: u64,
    },
    /// Sets this bit of the far node's counter, which is clear.
    Count(u32),
}

impl Deed {
    /// Returns whether a receive of the far end is completed.
    pub const fn takes_receive(self) -> bool {
        matches!(self, Deed::Send(_) | Deed::SendInvalidate(_) | Deed::Write(_, Some(_)))
    }

    /// Returns whether bytes go to the far end.
    pub const fn carries(self) -> bool {
        matches!(self, Deed::Send(_) | Deed::SendInvalidate(_) | Deed::Write(..))
    }
}

/// A request of the send queue.
#[derive(Debug)]
pub struct Request {
    pub deed: Deed,
    /// Where its bytes come from, or go to, in the local region.
    pub pieces: Vec<Range<usize>>,
    /// The bytes that go to the far end, or that have to come from it.
    pub bytes: Vec<u8>,
    pub is_signaled: bool,
    pub is_solicited: bool,
    pub has_fence: bool,
    pub is_inline: bool,
    /// When it is posted at the earliest.
    pub at: Instant,
}

/// A request of the receive queue.
#[derive(Debug)]
pub struct Receive {
    pub pieces: Vec<Range<usize>>,
    pub at: Instant,
    /// The far end's request that completes it.
    pub message: Option<usize>,
}

/// The regions and the requests of one end.
#[derive(Debug, Default)]
pub struct Sheet {
    pub local: Image,
    pub shared: Image,
    /// Small regions whose keys the far end invalidates.
    pub extras: usize,
    /// Places of words for atomic operations in the shared region.
    pub words: Vec<usize>,
    pub requests: Vec<Request>,
    pub receives: Vec<Receive>,
}

impl Sheet {
    /// Returns whether a byte of the shared region is one of a word, which has many values.
    pub fn is_word(&self, at: usize) -> bool {
        self.words.iter().any(|word| (*word..word + 8).contains(&at))
    }
}

/// The bounds of a program.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    pub begins: Instant,
    /// Requests and receives are posted within this time, unless their queue is full.
    pub span: Duration,
    pub requests: u64,
    pub mtu: Mtu,
    /// The probability of a message of up to 70 KB.
    pub large: f64,
    /// Whether places are written more than once.
    pub rewrites: bool,
    /// The probability that a receive is posted late.
    pub late: f64,
}

/// A program that is being written, and the places of the far end's shared region that it uses.
struct Writer<'a> {
    scope: Scope,
    near: &'a mut Sheet,
    far: &'a mut Sheet,
    /// Places that were written or read, and whether they were read.
    places: Vec<(Range<usize>, bool)>,
}

/// Writes the program of one direction, with the receives at the far end. `count` draws a bit of the far node's counter.
pub fn write(
    random: &mut Random,
    scope: Scope,
    near: &mut Sheet,
    far: &mut Sheet,
    count: &mut dyn FnMut() -> Option<u32>,
) {
    far.words = (0..2).map(|_| far.shared.add(random, 8, 8).start).collect();
    let mut writer = Writer { scope, near, far, places: Vec::new() };
    let requests = 1 + random.below(scope.requests);
    for number in 0..requests {
        let mut request = writer.request(random, count);
        request.is_signaled |= number + 1 == requests;
        writer.near.requests.push(request);
    }
    // A receive more than needed stays.
    if random.chance(0.3) {
        writer.receive(random, 10, None);
    }
}

impl Writer<'_> {
    fn request(&mut self, random: &mut Random, count: &mut dyn FnMut() -> Option<u32>) -> Request {
        let mut has_fence = random.chance(0.1);
        let (deed, bytes, pieces) = match random.below(12) {
            0..=3 => self.carrying(random, |writer, random, _| writer.send(random)),
            4..=6 => self.carrying(random, |writer, random, length| {
                let (place, was_read) = writer.place(random, length);
                // What was read may be read again as long as the read is not complete.
                has_fence |= was_read;
                Deed::Write(place, random.chance(0.3).then(|| random.bits() as u32))
            }),
            7..=9 => self.read(random),
            10 => self.atomic(random),
            _ => match count() {
                Some(bit) => (Deed::Count(bit), Vec::new(), self.near.local.add_pieces(random, 8)),
                None => self.atomic(random),
            },
        };
        let is_inline = deed.carries() && bytes.len() <= 256 && random.chance(0.3);
        let at = self.scope.begins + draw::time(random, self.scope.span).mul_f64(0.2);
        let [is_signaled, is_solicited] = [0.7, 0.2].map(|chance| random.chance(chance));
        Request { deed, pieces, bytes, is_signaled, is_solicited, has_fence, is_inline, at }
    }

    /// Draws a message, and writes where it arrives.
    fn carrying(
        &mut self,
        random: &mut Random,
        deed: impl FnOnce(&mut Self, &mut Random, usize) -> Deed,
    ) -> (Deed, Vec<u8>, Vec<Range<usize>>) {
        let length = draw::length(random, self.scope.mtu, self.scope.large);
        let pieces = self.near.local.add_pieces(random, length);
        let bytes = self.near.local.gather(&pieces);
        let deed = deed(self, random, length);
        if let Deed::Write(at, _) = deed {
            self.far.shared.expected[at..at + length].copy_from_slice(&bytes);
        }
        if deed.takes_receive() {
            let message = self.near.requests.len();
            let room = if matches!(deed, Deed::Write(..)) { 0 } else { length };
            let pieces = self.receive(random, room, Some(message));
            if room > 0 {
                self.far.local.scatter(&pieces, &bytes);
            }
        }
        (deed, bytes, pieces)
    }

    fn send(&mut self, random: &mut Random) -> Deed {
        match random.below(4) {
            0 => Deed::Send(Some(random.bits() as u32)),
            1 if self.far.extras < 4 => {
                self.far.extras += 1;
                Deed::SendInvalidate(self.far.extras - 1)
            }
            _ => Deed::Send(None),
        }
    }

    /// Adds a receive with room for this many bytes, and returns where they go.
    fn receive(&mut self, random: &mut Random, room: usize, message: Option<usize>) -> Vec<Range<usize>> {
        let more = if random.chance(0.5) { random.below(20) as usize } else { 0 };
        let pieces = self.far.local.add_pieces(random, room + more);
        let wait = if random.chance(self.scope.late) { draw::time(random, self.scope.span) } else { Duration::ZERO };
        self.far.receives.push(Receive { pieces: pieces.clone(), at: self.scope.begins + wait, message });
        pieces
    }

    /// Returns a place of this length, and whether it was read before.
    fn place(&mut self, random: &mut Random, length: usize) -> (usize, bool) {
        let again = self.scope.rewrites && random.chance(0.3);
        let fits = |(place, _): &&(Range<usize>, bool)| again && place.len() >= length && length > 0;
        if let Some((place, was_read)) = self.places.iter().find(fits) {
            return (place.start + random.below((place.len() - length) as u64 + 1) as usize, *was_read);
        }
        let place = self.far.shared.add(random, length, 1);
        self.places.push((place.clone(), false));
        (place.start, false)
    }

    fn read(&mut self, random: &mut Random) -> (Deed, Vec<u8>, Vec<Range<usize>>) {
        let place = if !self.places.is_empty() && random.chance(0.5) {
            let number = random.below(self.places.len() as u64) as usize;
            self.places[number].1 = true;
            self.places[number].0.clone()
        } else {
            let length = draw::length(random, self.scope.mtu, self.scope.large);
            let place = self.far.shared.add(random, length, 1);
            self.places.push((place.clone(), true));
            place
        };
        let bytes = self.far.shared.expected[place.clone()].to_vec();
        let pieces = self.near.local.add_pieces(random, bytes.len());
        self.near.local.scatter(&pieces, &bytes);
        (Deed::Read(place.start), bytes, pieces)
    }

    fn atomic(&mut self, random: &mut Random) -> (Deed, Vec<u8>, Vec<Range<usize>>) {
        let at = draw::one(random, &self.far.words);
        let mut word = [0; 8];
        word.copy_from_slice(&self.far.shared.expected[at..at + 8]);
        let original = u64::from_ne_bytes(word);
        let (deed, value) = if random.chance(0.5) {
            let add = random.bits();
            (Deed::FetchAdd { at, add }, original.wrapping_add(add))
        } else {
            let (compare, swap) = (original ^ u64::from(random.chance(0.5)), random.bits());
            (Deed::CompareSwap { at, compare, swap }, if compare == original { swap } else { original })
        };
        self.far.shared.expected[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        let pieces = self.near.local.add_pieces(random, 8);
        self.near.local.scatter(&pieces, &original.to_ne_bytes());
        (deed, original.to_ne_bytes().to_vec(), pieces)
    }
}
