//! The options of a URI: the operation, the queue pairs, and the adapter at this end.

use hodo_measure::Mode;
use hodo_roce::Mtu;
use hodo_roce_host::Reliability;
use hodo_tester::{Error, TestGroup, Uri};
use std::net::IpAddr;
use std::str::FromStr;

use crate::suite;

/// The options of a link, and of a far end that is started for it.
const OF_LINK: &[&str] =
    &["operation", "mtu", "depth", "receive-depth", "inline", "entries", "send-entries", "receive-entries", "timeout"];
/// The options that describe the adapter of one end.
const OF_SOFT: &[&str] = &["address", "udp-port"];
const OF_VERBS: &[&str] = &["device", "port", "gid"];
/// The options of the adapter of a far end that is started here; without them it has those of the link.
const OF_FAR_VERBS: &[&str] = &["far-device", "far-port", "far-gid"];

/// Requests that a queue may hold at most.
pub(crate) const DEPTH_MAX: u32 = 1 << 16;
/// Entries of a request at most.
pub(crate) const ENTRIES_MAX: u32 = 32;
/// Bytes of an inline payload at most.
pub(crate) const INLINE_MAX: u32 = 1 << 16;
/// The acknowledgement timeout: 268 ms, of which all retries take 2 s. A link that waits for its turn on a busy host, as while bare
/// sockets are measured beside it, is not given up by its far end.
const TIMEOUT: u8 = 16;

/// The operation that carries the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// A message into the next receive buffer.
    #[default]
    Send,
    /// Into the memory of the far end.
    Write,
    /// From the memory of the far end.
    Read,
}

impl Kind {
    /// Returns the directions of a payload that it can carry, the most usual one first.
    pub(crate) const fn modes(self) -> &'static [Mode] {
        match self {
            Kind::Send | Kind::Write => suite::MODES,
            Kind::Read => &[Mode::Receive],
        }
    }

    /// Returns the measurements that are usual for it.
    pub(crate) const fn suite(self) -> &'static [TestGroup] {
        match self {
            Kind::Send => suite::SENDS,
            Kind::Write => suite::WRITES,
            Kind::Read => suite::READS,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::Write => "write",
            Kind::Read => "read",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Kind::Send, Kind::Write, Kind::Read];
        known.into_iter().find(|kind| kind.name() == text).ok_or_else(|| "it is send, write or read".to_owned())
    }
}

/// The options of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkOptions {
    pub(crate) kind: Kind,
    /// The path MTU.
    pub(crate) mtu: u32,
    /// Send requests outstanding on a queue pair; `None` for as many as the window.
    pub(crate) depth: Option<u32>,
    /// Receives posted ahead; `None` for enough that none is missing.
    pub(crate) receive_depth: Option<u32>,
    /// Payloads up to this many bytes are sent inline.
    pub(crate) inline: u32,
    /// The capacity of the queue pairs in entries of each request; never less than those in use.
    pub(crate) entries: u32,
    /// Entries that each message is gathered from.
    pub(crate) send_entries: u32,
    /// Entries that each message is scattered to.
    pub(crate) receive_entries: u32,
    /// The code of the acknowledgement timeout.
    pub(crate) timeout: u8,
    /// The adapter at this end.
    pub(crate) place: Place,
}

/// The adapter of one end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// The address of a software adapter; `None` is the one over which the ends met.
    pub(crate) address: Option<IpAddr>,
    /// The UDP port of a software adapter; `None` is 4791, or any free one if that is taken.
    pub(crate) udp_port: Option<u16>,
    /// The name of a device; `None` is the first one.
    pub(crate) device: Option<String>,
    /// The device's port, from 1; `None` is the first one.
    pub(crate) port: Option<u8>,
    /// The index of the port's global identifier; `None` is the one that suits best.
    pub(crate) gid: Option<u8>,
}

/// Returns the options that describe the adapter of one end.
fn of_place(uri: &Uri) -> &'static [&'static str] {
    match uri.scheme {
        suite::VERBS => OF_VERBS,
        suite::SHM => &[],
        _ => OF_SOFT,
    }
}

impl LinkOptions {
    /// Reads the options of a link.
    ///
    /// # Errors
    /// [`Error::Usage`] with the option that is not known, or whose value is not possible.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Error> {
        let of_far_end = if uri.scheme == suite::VERBS { OF_FAR_VERBS } else { &[] };
        check_names(uri, &[OF_LINK, of_place(uri), of_far_end].concat())?;
        let mtu = value::<u32>(uri, "mtu", "it is 256, 512, 1024, 2048 or 4096", |mtu| Mtu::new(*mtu).is_some())?;
        let count = |name, most: u32| {
            value::<u32>(uri, name, &format!("it is a number in 1..={most}"), |count| (1..=most).contains(count))
        };
        let inline =
            value::<u32>(uri, "inline", &format!("it is at most {INLINE_MAX} bytes"), |bytes| *bytes <= INLINE_MAX)?;
        let code = value::<u8>(uri, "timeout", "it is a code of verbs in 1..=31: 4.096 us * 2^code", |code| {
            (1..=31).contains(code)
        })?;
        Ok(LinkOptions {
            kind: value(uri, "operation", "it is send, write or read", |_| true)?.unwrap_or_default(),
            mtu: mtu.unwrap_or(Reliability::default().mtu),
            depth: count("depth", DEPTH_MAX)?,
            receive_depth: count("receive-depth", DEPTH_MAX)?,
            inline: inline.unwrap_or(0),
            entries: count("entries", ENTRIES_MAX)?.unwrap_or(1),
            send_entries: count("send-entries", ENTRIES_MAX)?.unwrap_or(1),
            receive_entries: count("receive-entries", ENTRIES_MAX)?.unwrap_or(1),
            timeout: code.unwrap_or(TIMEOUT),
            place: Place::read(uri)?,
        })
    }
}

impl Place {
    /// Reads the options of a far end.
    ///
    /// # Errors
    /// [`Error::Usage`] with the option that is not known, or whose value is not possible.
    pub(crate) fn of_far_end(uri: &Uri) -> Result<Self, Error> {
        if let Some((name, _)) = uri.options.iter().find(|(name, _)| OF_LINK.contains(&name.as_str())) {
            return Err(Error::Usage(format!(
                "`{uri}`: the link says what its `{name}` is, and the far end follows; leave `{name}` out here"
            )));
        }
        check_names(uri, of_place(uri))?;
        Place::read(uri)
    }

    fn read(uri: &Uri) -> Result<Self, Error> {
        let any_number = "it is a number below 256";
        Ok(Place {
            address: value(uri, "address", "it is an IP address of this host", |_| true)?,
            udp_port: value(uri, "udp-port", "it is a port in 1..=65535", |port| *port != 0)?,
            device: uri.option("device").map(str::to_owned),
            port: value(uri, "port", "it is a number in 1..=255", |port| *port != 0)?,
            gid: value(uri, "gid", any_number, |_| true)?,
        })
    }
}

/// Returns the URI of the far end to start for a link: only with the options that describe its adapter.
pub(crate) fn of_far_end(link: &Uri) -> Uri {
    let mut far = link.with_options(|_| false);
    if link.scheme == suite::VERBS {
        let each = OF_VERBS.iter().zip(OF_FAR_VERBS);
        let told = each.filter_map(|(name, far)| Some((*name, link.option(far).or_else(|| link.option(name))?)));
        far.options.extend(told.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    far
}

/// Refuses options that are not there.
fn check_names(uri: &Uri, known: &[&str]) -> Result<(), Error> {
    let unknown = uri.options.iter().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| {
        let known = known.join(", ");
        Err(Error::Usage(format!("`{uri}`: there is no option `{name}` here; the known ones are {known}")))
    })
}

/// Returns the value of an option.
fn value<T: FromStr>(uri: &Uri, name: &str, rule: &str, is_possible: impl Fn(&T) -> bool) -> Result<Option<T>, Error> {
    let Some(text) = uri.option(name) else { return Ok(None) };
    let read = text.parse().ok().filter(is_possible);
    read.map(Some).ok_or_else(|| Error::Usage(format!("`{uri}`: {name}={text} is not possible; {rule}")))
}
