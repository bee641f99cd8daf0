//! How the two ends of a link meet over TCP, in the lines and addresses of [`exchange`](hodo_roce_host::exchange).
//!
//! | direction | content |
//! |---|---|
//! | client to server | the line [`Wish`]; the address of the control queue pair, and of each channel's |
//! | server to client | the line [`Welcome`], and as many addresses; or a line with an error |
//!
//! The connection stays open for as long as the link: an end that is gone is noticed by it.

use crate::options::{DEPTH_MAX, ENTRIES_MAX, INLINE_MAX, Kind};
use hodo_measure::FarEndFacts;
use hodo_roce::{Mtu, Remote};
use hodo_roce_host::exchange::{ADDRESS, LINE_MAX, MARK, Request};
use hodo_roce_host::{AddressOfQueuePair, Limits, Region};
use std::fmt;
use std::str::FromStr;

/// The version of the greeting.
const VERSION: u32 = 1;

/// The request of a client: the queue pairs that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Queue pairs beside the one for control.
    pub(crate) channels: u32,
    /// The largest operation in bytes.
    pub(crate) size: u32,
    /// Receives posted ahead.
    pub(crate) receive_depth: u32,
    /// The operation that answers.
    pub(crate) kind: Kind,
    /// The path MTU.
    pub(crate) mtu: u32,
    pub(crate) inline: u32,
    /// The capacity of the queue pairs in entries; never less than those in use.
    pub(crate) entries: u32,
    pub(crate) send_entries: u32,
    pub(crate) receive_entries: u32,
    /// The code of the acknowledgement timeout.
    pub(crate) timeout: u8,
    /// Reads in flight.
    pub(crate) reads: u8,
    /// The client's UDP port.
    pub(crate) udp_port: u16,
    /// The client's memory, into which answers are written.
    pub(crate) memory: Remote,
}

/// The reply of the far end to a [`Wish`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// The far end's UDP port.
    pub(crate) udp_port: u16,
    /// The far end's memory, which is written to and read from.
    pub(crate) memory: Remote,
    /// The facts of its side.
    pub(crate) facts: FarEndFacts,
}

/// Returns what the far end has to know of a region.
pub(crate) fn remote(region: Region) -> Remote {
    Remote { address: region.address, key: region.remote_key }
}

impl Wish {
    /// Returns the bounds of a queue pair that holds `send_depth` requests.
    pub(crate) fn limits(&self, send_depth: u32) -> Limits {
        Limits {
            send_depth,
            receive_depth: self.receive_depth,
            send_entries: self.entries.max(self.send_entries),
            receive_entries: self.entries.max(self.receive_entries),
            inline_bytes: self.inline,
        }
    }

    /// Returns the line of it.
    pub(crate) fn request(&self) -> Request {
        Request::default()
            .with("link", &VERSION)
            .with("channels", &self.channels)
            .with("size", &self.size)
            .with("receive_depth", &self.receive_depth)
            .with("operation", &self.kind.name())
            .with("mtu", &self.mtu)
            .with("inline", &self.inline)
            .with("entries", &self.entries)
            .with("send_entries", &self.send_entries)
            .with("receive_entries", &self.receive_entries)
            .with("timeout", &self.timeout)
            .with("reads", &self.reads)
            .with("udp", &self.udp_port)
            .with("address", &self.memory.address)
            .with("key", &self.memory.key)
    }

    /// Reads a line of a peer.
    ///
    /// # Errors
    /// The reason why it cannot be granted, in words.
    pub(crate) fn of(request: &Request) -> Result<Self, String> {
        let version: Option<u32> = request.get("link");
        if version != Some(VERSION) {
            return Err(match version {
                Some(theirs) => format!("version {theirs} of links is not known here; this is version {VERSION}"),
                None => {
                    "this is the far end of a link, for `hodo bench`; for `hodo pingpong` start another one".to_owned()
                }
            });
        }
        fn number<T: FromStr + PartialOrd + Copy + fmt::Display>(
            request: &Request,
            name: &str,
            least: T,
            most: T,
        ) -> Result<T, String> {
            let found = request.get::<T>(name).filter(|value| (&least..=&most).contains(&value));
            found.ok_or_else(|| format!("{name} is not in {least}..={most}"))
        }
        let mtu = number(request, "mtu", 256, 4096)?;
        if Mtu::new(mtu).is_none() {
            return Err(format!("path MTU {mtu} is not one of 256, 512, 1024, 2048, 4096"));
        }
        Ok(Wish {
            channels: number(request, "channels", 1, crate::suite::DESCRIPTION.channels_max)?,
            size: number(request, "size", 0, crate::suite::DESCRIPTION.size_max)?,
            receive_depth: number(request, "receive_depth", 1, DEPTH_MAX)?,
            kind: request.get::<String>("operation").unwrap_or_default().parse()?,
            mtu,
            inline: number(request, "inline", 0, INLINE_MAX)?,
            entries: request.get::<u32>("entries").unwrap_or(1).clamp(1, ENTRIES_MAX),
            send_entries: number(request, "send_entries", 1, ENTRIES_MAX)?,
            receive_entries: number(request, "receive_entries", 1, ENTRIES_MAX)?,
            timeout: number(request, "timeout", 1, 31)?,
            reads: number(request, "reads", 1, u8::MAX)?,
            udp_port: number(request, "udp", 1, u16::MAX)?,
            memory: memory(request)?,
        })
    }
}

impl Welcome {
    /// Returns the line of it.
    pub(crate) fn request(&self) -> Request {
        let FarEndFacts { wait, placement, scheduling, kernel, line_bits_per_s, .. } = &self.facts;
        let line = line_bits_per_s.map(|bits| bits.to_string());
        let facts =
            [("wait", wait), ("placement", placement), ("scheduling", scheduling), ("kernel", kernel), ("line", &line)];
        let request = Request::default()
            .with("link", &VERSION)
            .with("udp", &self.udp_port)
            .with("address", &self.memory.address)
            .with("key", &self.memory.key);
        let known = facts.into_iter().filter_map(|(name, fact)| Some((name, fact.as_ref()?)));
        known.fold(request, |request, (name, fact)| request.with(name, &joined(fact)))
    }

    /// Reads a line of a peer.
    ///
    /// # Errors
    /// The reason of its refusal, or what is wrong with the line.
    pub(crate) fn of(request: &Request) -> Result<Self, String> {
        if let Some(why) = refusal(request) {
            return Err(why);
        }
        if request.get::<u32>("link") != Some(VERSION) {
            return Err(format!("it answers with another version of links than {VERSION}"));
        }
        let fact = |name| request.get::<String>(name).map(|fact| printed(&fact));
        let facts = FarEndFacts {
            wait: fact("wait"),
            placement: fact("placement"),
            scheduling: fact("scheduling"),
            kernel: fact("kernel"),
            congestion_control: None,
            line_bits_per_s: request.get("line"),
        };
        let udp_port = request.get("udp").ok_or("it tells no UDP port")?;
        Ok(Welcome { udp_port, memory: memory(request)?, facts })
    }
}

fn memory(request: &Request) -> Result<Remote, String> {
    let both = request.get("address").zip(request.get("key"));
    both.map(|(address, key)| Remote { address, key }).ok_or_else(|| "it tells no memory".to_owned())
}

/// Returns the line of a refusal.
pub(crate) fn refused(why: &str) -> Request {
    Request::default().with("error", &joined(why))
}

/// Returns the reason of a refusal, if a line is one.
pub(crate) fn refusal(request: &Request) -> Option<String> {
    request.get::<String>("error").map(|why| printed(&why))
}

/// Returns words as one value of a line.
fn joined(words: &str) -> String {
    words.replace([' ', '\n'], "_")
}

/// Returns a value of a peer as words, without what a terminal would not print.
fn printed(value: &str) -> String {
    value.replace('_', " ").chars().filter(|character| !character.is_control()).collect()
}

/// Returns a line as it is sent.
pub(crate) fn line(request: &Request) -> String {
    format!("{MARK}{request}\n")
}

/// A line and addresses of a peer, as they come.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    bytes: Vec<u8>,
}

impl Greeting {
    /// Takes more bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the line, once it is there, and where it ends.
    ///
    /// # Errors
    /// The beginning of what came instead of a line.
    pub(crate) fn line(&self) -> Result<Option<(Request, usize)>, String> {
        let start = &self.bytes[..self.bytes.len().min(MARK.len())];
        let instead = || printed(&String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(60)]));
        if !MARK.as_bytes().starts_with(start) {
            return Err(instead());
        }
        match self.bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let text = std::str::from_utf8(&self.bytes[MARK.len()..end]).ok();
                text.and_then(|text| text.parse().ok()).map(|line| Some((line, end + 1))).ok_or_else(instead)
            }
            None if self.bytes.len() as u64 > LINE_MAX => Err(instead()),
            None => Ok(None),
        }
    }

    /// Returns the addresses that begin here, once all of them are there.
    ///
    /// # Errors
    /// What came instead of an address.
    pub(crate) fn addresses(&self, from: usize, count: usize) -> Result<Option<Vec<AddressOfQueuePair>>, String> {
        let Some(bytes) = self.bytes.get(from..from + count * ADDRESS) else { return Ok(None) };
        let read = |bytes: &[u8]| {
            let text = std::str::from_utf8(&bytes[..ADDRESS - 1]).ok();
            text.and_then(|text| text.parse().ok()).ok_or_else(|| printed(&String::from_utf8_lossy(bytes)))
        };
        bytes.chunks(ADDRESS).map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// Returns the bytes that follow the line: an address and a zero for each.
pub(crate) fn addresses<'a>(addresses: impl IntoIterator<Item = &'a AddressOfQueuePair>) -> String {
    addresses.into_iter().map(|address| format!("{address}\0")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_roce_host::Gid;

    fn wish() -> Wish {
        Wish {
            channels: 2,
            size: 4096,
            receive_depth: 500,
            kind: Kind::Write,
            mtu: 1024,
            inline: 64,
            entries: 1,
            send_entries: 1,
            receive_entries: 2,
            timeout: 16,
            reads: 1,
            udp_port: 4791,
            memory: Remote { address: 0x7f00_0000_1000, key: 0x1234 },
        }
    }

    #[test]
    fn a_wish_and_a_welcome_come_back_from_their_lines() {
        let text = wish().request().to_string();
        assert_eq!(Wish::of(&text.parse().unwrap()), Ok(wish()));
        let facts =
            FarEndFacts { wait: Some("spin:50us".into()), placement: Some("cpu 0,1".into()), ..FarEndFacts::default() };
        let welcome = Welcome { udp_port: 40_000, memory: wish().memory, facts };
        let line = welcome.request();
        assert_eq!(Welcome::of(&line.to_string().parse().unwrap()), Ok(welcome));
        assert!(line_of(&text).len() < LINE_MAX as usize);
    }

    fn line_of(text: &str) -> String {
        line(&text.parse().unwrap())
    }

    #[test]
    fn a_wish_that_cannot_be_granted_names_the_value() {
        let changed = |name: &str, value: &str| {
            let text = wish().request().to_string();
            let word = text.split(' ').find(|word| word.starts_with(&format!("{name}="))).unwrap().to_owned();
            Wish::of(&text.replace(&word, &format!("{name}={value}")).parse().unwrap()).unwrap_err()
        };
        for (name, value, says) in [
            ("link", "99", "version 99"),
            ("channels", "0", "channels"),
            ("channels", "70000", "1..=4096"),
            ("receive_depth", "x", "receive_depth"),
            ("mtu", "1000", "path MTU 1000"),
            ("operation", "sing", "send, write or read"),
            ("udp", "0", "udp"),
            ("size", "4294967295", "size"),
        ] {
            assert!(changed(name, value).contains(says), "{name}={value}: {}", changed(name, value));
        }
        assert!(Wish::of(&"size=64".parse().unwrap()).unwrap_err().contains("hodo pingpong"));
    }

    #[test]
    fn a_greeting_is_read_as_it_comes() {
        let address = AddressOfQueuePair { lid: 0, number: 0x11, psn: 0xF9_46CF, gid: Gid([7; 16]) };
        let bytes = format!("{}{}", line(&wish().request()), addresses(&[address; 3]));
        let mut greeting = Greeting::default();
        for (index, byte) in bytes.bytes().enumerate() {
            let whole = greeting.line().unwrap().and_then(|(_, end)| greeting.addresses(end, 3).unwrap());
            assert!(whole.is_none(), "{index} of {}", bytes.len());
            greeting.take(&[byte]);
        }
        let (read, end) = greeting.line().unwrap().expect("the line is there");
        assert_eq!((Wish::of(&read), greeting.addresses(end, 3)), (Ok(wish()), Ok(Some(vec![address; 3]))));
    }

    #[test]
    fn something_else_is_named() {
        let said = |bytes: &[u8]| {
            let mut greeting = Greeting::default();
            greeting.take(bytes);
            greeting.line()
        };
        assert_eq!(said(b"hod"), Ok(None));
        assert!(said(b"HTTP/1.1 400 Bad\x1b[2J Request\r\n").unwrap_err().starts_with("HTTP/1.1 400 Bad[2J"));
        assert!(said(&[0xA3; 64]).is_err());
        assert!(said(&[b"hodo ".as_slice(), &[b'x'; 2000]].concat()).is_err());
        assert_eq!(refusal(&"error=no_room_for_3".parse().unwrap()).as_deref(), Some("no room for 3"));
    }
}
