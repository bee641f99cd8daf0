//! The options of links.

use hodo_measure::units;
use hodo_spacewire::character::Code;
use hodo_spacewire::formula::CABLE_S_PER_M;
use hodo_spacewire::network;
use hodo_spacewire::rmap::packet::DEFAULT_LOGICAL_ADDRESS;
use hodo_spacewire::rmap::{Destination, ReplyAddress};
use hodo_tester::{Error, Uri};
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// The far end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Far {
    /// The tester's own.
    Served,
    /// Everything comes back: an echo, or a plug that joins the port with itself.
    Echo,
    /// A second port with the scheme of the first.
    Back(Second),
    /// A memory behind RMAP.
    Rmap(Box<Target>),
}

/// The place of a second port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Second {
    /// A port on the host of the first.
    Port(NonZeroU16),
    /// A host, with or without a port.
    Place(String),
}

impl Second {
    fn parse(text: &str) -> Result<Second, String> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let port = |text: &str| {
            text.parse().map_err(|_| {
                format!("back={text}: a port is 1 to 65535; write back=10031, or back=HOST:PORT for another host")
            })
        };
        match text.rsplit_once(':') {
            None if is_number(text) => port(text).map(Second::Port),
            Some((_, number)) if is_number(number) => port(number).map(|_| Second::Place(text.to_owned())),
            _ => Ok(Second::Place(text.to_owned())),
        }
    }

    /// Returns the host and the port, where `first` is the address of the first port.
    pub(crate) fn authority(&self, first: SocketAddr) -> String {
        match self {
            Second::Port(port) => SocketAddr::new(first.ip(), port.get()).to_string(),
            Second::Place(place) => place.clone(),
        }
    }
}

/// The memory that is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) to: Destination,
    pub(crate) initiator: u8,
    pub(crate) address: u64,
}

/// The line behind a port, or the one that is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineOptions {
    pub(crate) rate_bps: f64,
    pub(crate) routers: u8,
    pub(crate) cable_m: f64,
    pub(crate) time_codes_per_s: f64,
}

/// The options of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) far: Far,
    pub(crate) path: Vec<u8>,
    pub(crate) back_path: Vec<u8>,
    /// The pages of the bridge, which say how far its network fell behind.
    pub(crate) pages: Option<String>,
    /// The line, where it is known.
    pub(crate) line: Option<LineOptions>,
    /// The probability that a bit is altered, in a simulated link.
    pub(crate) bit_errors: f64,
}

/// The options of URIs, for messages.
pub(crate) const KNOWN: &str = "far=echo or rmap, back=HOST:PORT, path=2,4, back-path=1, rate=200M, routers=1, cable=2, \
                                time-codes=1000; target, initiator, key and address of far=rmap; errors=1e-9 of spw+sim; link and \
                                status of gresb; pages=HOST:PORT of a bridge in real time";
/// The default rate of a simulated line.
const RATE: f64 = 200e6;
/// The least rate, at which a bit is shorter than the silence that means a disconnection.
const RATE_MIN: f64 = 2e6;
/// The highest rate, 25 times that of the fastest links: a simulated bit lasts whole picoseconds, and 100 of them here.
const RATE_MAX: f64 = 10e9;
/// The longest cable of a link, in metres: beyond it a simulated link does not start. Those of the standard have 10.
const CABLE_MAX_M: f64 = network::CABLE_MAX.as_nanos() as f64 * 1e-9 / CABLE_S_PER_M;
/// Bits of a time-code.
const TIME_CODE_BITS: f64 = Code::TimeCode(0).bits() as f64;
/// The share of a line that time-codes take at most: they leave before everything else, FCTs included.
const TIME_CODES_SHARE: f64 = 0.5;
/// The fewest time-codes per second: one in a quarter of an hour.
const TIME_CODES_MIN: f64 = 1e-3;
/// Routers of a simulated network at most: a path has no more bytes in a reply address.
const ROUTERS_MAX: u8 = 12;

impl Options {
    /// Parses the options of a URI.
    pub(crate) fn of(uri: &Uri) -> Result<Options, Error> {
        let wrong = |why: String| Error::Usage(format!("`{uri}`: {why}"));
        let mut seen = OptionsBuilder::default();
        for (at, (name, value)) in uri.options.iter().enumerate() {
            if uri.options[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(wrong(format!("the option `{name}` is there twice; leave one of them out")));
            }
            seen.take(name, value, uri).map_err(&wrong)?;
        }
        seen.options(uri).map_err(wrong)
    }
}

/// Options as they are found.
#[derive(Default)]
struct OptionsBuilder {
    far: Option<String>,
    back: Option<String>,
    pages: Option<String>,
    path: Vec<u8>,
    back_path: Vec<u8>,
    rate: Option<f64>,
    routers: u8,
    cable: f64,
    time_codes: f64,
    errors: f64,
    target: Option<u8>,
    initiator: Option<u8>,
    key: Option<u8>,
    address: Option<u64>,
}

impl OptionsBuilder {
    fn take(&mut self, name: &str, value: &str, uri: &Uri) -> Result<(), String> {
        let about = |why: String| format!("{name}={value}: {why}");
        let number = |why: &str| {
            value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(|| about(why.into()))
        };
        let byte = || {
            units::word(value)
                .ok()
                .and_then(|word| u8::try_from(word).ok())
                .ok_or_else(|| about("write 0 to 255".into()))
        };
        match name {
            "far" => self.far = Some(value.to_owned()),
            "back" => self.back = Some(value.to_owned()),
            "pages" if !uri.simulated => self.pages = Some(value.to_owned()),
            "path" => self.path = path(value).map_err(about)?,
            "back-path" => self.back_path = path(value).map_err(about)?,
            "rate" => self.rate = Some(units::line_rate(value).map_err(about)?),
            "routers" => {
                let routers = value.parse().ok().filter(|routers| *routers <= ROUTERS_MAX);
                self.routers = routers.ok_or_else(|| about(format!("write 0 to {ROUTERS_MAX}")))?;
            }
            "cable" => {
                let why = || format!("write the length of a cable in metres, 0 to {CABLE_MAX_M:.0}");
                self.cable = number(&why())?;
                if self.cable > CABLE_MAX_M {
                    return Err(about(why()));
                }
            }
            "time-codes" => self.time_codes = number("write the number per second")?,
            "errors" if uri.simulated => {
                self.errors = number("write the probability of a bit, as 1e-9")?;
                if self.errors >= 0.1 {
                    return Err(about("with so many errors no link starts; write less than 0.1".into()));
                }
            }
            "target" => self.target = Some(byte()?),
            "initiator" => self.initiator = Some(byte()?),
            "key" => self.key = Some(byte()?),
            "address" => self.address = Some(u64::from(units::word(value).map_err(about)?)),
            "link" | "status" if uri.scheme == "gresb" => {}
            _ => return Err(format!("`{name}` is no option of this link; the options are {KNOWN}")),
        }
        Ok(())
    }

    fn options(self, uri: &Uri) -> Result<Options, String> {
        let is_elsewhere = self.far.as_deref().is_some_and(|far| far != "rmap") || self.back.is_some();
        if uri.simulated && (is_elsewhere || !self.path.is_empty() || !self.back_path.is_empty()) {
            return Err(
                "a simulated link has both of its ends here; leave back, path and back-path out, and far unless it \
                        is far=rmap"
                    .to_owned(),
            );
        }
        let reply_address = ReplyAddress::from_path(&self.back_path);
        let memory = self.target.is_some() || self.initiator.is_some() || self.key.is_some() || self.address.is_some();
        let far = match (self.far.as_deref(), self.back) {
            (None, None) => Far::Served,
            (None, Some(back)) => Far::Back(Second::parse(&back)?),
            (Some("echo"), None) => Far::Echo,
            (Some("rmap"), None) => Far::Rmap(Box::new(Target {
                to: Destination {
                    path: self.path.clone(),
                    reply_address: reply_address.ok_or("back-path: a reply takes at most 12 ports")?,
                    logical_address: self.target.unwrap_or(DEFAULT_LOGICAL_ADDRESS),
                    key: self.key.unwrap_or(0),
                    ..Destination::default()
                },
                initiator: self.initiator.unwrap_or(DEFAULT_LOGICAL_ADDRESS),
                address: self.address.unwrap_or(0),
            })),
            (Some(_), Some(_)) => return Err("far and back exclude each other: back is a second port".to_owned()),
            (Some(other), None) => return Err(format!("far={other}: write far=echo or far=rmap")),
        };
        if memory && !matches!(far, Far::Rmap(_)) {
            return Err("target, initiator, key and address are those of far=rmap".to_owned());
        }
        let rate = self.rate.or(uri.simulated.then_some(RATE));
        if rate.is_none() && (self.routers > 0 || self.cable > 0.0) {
            return Err(
                "routers and cable are for the limit, which needs the rate of the line: add rate=200M".to_owned()
            );
        }
        if uri.simulated && rate.is_some_and(|rate| rate < RATE_MIN) {
            return Err("rate: below 2 Mbit/s a link is taken for disconnected; write at least rate=2M".to_owned());
        }
        if rate.is_some_and(|rate| rate > RATE_MAX) {
            return Err("rate: a line of SpaceWire is not as fast; write at most rate=10G".to_owned());
        }
        check_time_codes(self.time_codes, rate)?;
        let line = rate.map(|rate_bps| LineOptions {
            rate_bps,
            routers: self.routers,
            cable_m: self.cable,
            time_codes_per_s: self.time_codes,
        });
        let OptionsBuilder { path, back_path, pages, errors, .. } = self;
        Ok(Options { far, path, back_path, pages, line, bit_errors: errors })
    }
}

/// Checks that a line of `rate` carries so many time-codes per second and something beside them.
fn check_time_codes(per_s: f64, rate: Option<f64>) -> Result<(), String> {
    if per_s == 0.0 {
        return Ok(());
    }
    let rate = rate.ok_or("time-codes: the limit beside them needs the rate of the line: add rate=200M")?;
    let most = (rate / TIME_CODE_BITS * TIME_CODES_SHARE).floor();
    if (TIME_CODES_MIN..=most).contains(&per_s) {
        return Ok(());
    }
    Err(format!(
        "time-codes={per_s}: one takes {TIME_CODE_BITS} bit, and they may take half of the line at most; write \
         {TIME_CODES_MIN} to {most} per second"
    ))
}

fn path(text: &str) -> Result<Vec<u8>, String> {
    let port =
        |part: &str| part.parse().ok().filter(|port| *port < 32).ok_or("write ports, 0 to 31, as 2,4".to_owned());
    text.split(',').filter(|part| !part.is_empty()).map(port).collect()
}
