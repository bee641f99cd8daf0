use crate::{Error, Protocol};
use hodo_machine::Address;
use std::fmt;

/// A link's name: `[sim+]scheme://[host[:port]][/path][?key=value&…]`, or a protocol's bare name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Whether the link runs over the simulated network.
    pub simulated: bool,
    /// The protocol.
    pub protocol: &'static dyn Protocol,
    /// One of the protocol's schemes.
    pub scheme: &'static str,
    /// Host, or host and port; empty where the far end is to be started here.
    pub authority: String,
    /// The path, with its leading slash; for `unix` the socket's path.
    pub path: String,
    /// The options behind `?`, in order.
    pub options: Vec<(String, String)>,
}

impl Uri {
    /// Returns whether the URI names no far end, so that one has to be started here.
    #[must_use]
    pub fn wants_far_end(&self) -> bool {
        !self.simulated && self.authority.is_empty() && self.path.is_empty()
    }

    /// Parses a link's name, with a scheme of one of these protocols.
    pub(crate) fn parse(protocols: &[&'static dyn Protocol], text: &str) -> Result<Self, Error> {
        let bare = || text.split_at(text.find('?').unwrap_or(text.len()));
        let (name, rest) = text.split_once("://").filter(|(name, _)| !name.contains('?')).unwrap_or_else(bare);
        let (simulated, name) =
            name.strip_prefix("sim+").or_else(|| name.strip_suffix("+sim")).map_or((false, name), |name| (true, name));
        let all = || {
            protocols
                .iter()
                .flat_map(|protocol| protocol.description().schemes.iter().map(|scheme| (*protocol, *scheme)))
        };
        // The scheme of a URI has no case (RFC 3986, 3.1).
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let is_name = |protocol: &dyn Protocol| {
            is(protocol.name()) || protocol.description().known_as.iter().any(|name| is(name))
        };
        let named = || all().find(|(protocol, _)| is_name(*protocol));
        let (protocol, scheme) = all().find(|(_, scheme)| is(scheme)).or_else(named).ok_or_else(|| {
            let names = all().flat_map(|(protocol, scheme)| [scheme, protocol.name()]);
            Error::Usage(unknown(name, text, &names.collect::<Vec<_>>()))
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = place.find('/').unwrap_or(place.len());
        let (authority, path) = place.split_at(slash);
        let mut options = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Error::Usage(format!("option `{pair}` in `{text}` has no value; write {pair}=…")))?;
            options.push((key.to_owned(), value.to_owned()));
        }
        Ok(Uri { simulated, protocol, scheme, authority: authority.to_owned(), path: path.to_owned(), options })
    }

    /// Parses another URI of the same protocol.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is no URI of this protocol.
    pub fn sibling(&self, text: &str) -> Result<Uri, Error> {
        Uri::parse(&[self.protocol], text)
    }

    /// Returns the URI with its port, where it has one host and leaves the port to its protocol.
    #[must_use]
    pub fn with_port(&self) -> Uri {
        let is_one = !self.simulated && !self.authority.is_empty() && !self.authority.contains(',');
        match self.protocol.port(self).filter(|_| is_one) {
            Some(port) => Uri { authority: hodo_io::with_port(&self.authority, port), ..self.clone() },
            None => self.clone(),
        }
    }

    /// Returns the value of an option, the first one with this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the URI with only the options that `is_taken` accepts.
    #[must_use]
    pub fn with_options(&self, is_taken: impl Fn(&str) -> bool) -> Uri {
        let options = self.options.iter().filter(|(name, _)| is_taken(name)).cloned().collect();
        Uri { options, ..self.clone() }
    }

    /// Resolves the host and port of a URI that has no path and no options.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URI has a path or options, or its host cannot be resolved.
    pub fn socket_address(&self, host: &str, port: u16) -> Result<Address, Error> {
        self.without_options()?;
        if !self.path.is_empty() && self.path != "/" {
            return Err(Error::Usage(format!(
                "`{self}`: a {} link has no path; write {}://host:port",
                self.scheme, self.scheme
            )));
        }
        let authority = if self.authority.is_empty() { host } else { &self.authority };
        hodo_io::resolve(authority, port)
            .map(Address::Tcp)
            .map_err(|error| Error::Usage(format!("`{authority}` in `{self}` cannot be resolved: {error}")))
    }

    /// Checks that the URI of a simulated link names no host.
    ///
    /// # Errors
    /// [`Error::Usage`] with the URI to write.
    pub fn without_host(&self) -> Result<(), Error> {
        if self.authority.is_empty() && self.path.is_empty() {
            return Ok(());
        }
        let alone = Uri { authority: String::new(), path: String::new(), ..self.clone() };
        Err(Error::Usage(format!("`{self}` names a host, and a simulated link has none; write '{alone}'")))
    }

    /// Checks that the URI has no options.
    ///
    /// # Errors
    /// [`Error::Usage`] with the name of the first option.
    pub fn without_options(&self) -> Result<(), Error> {
        let Some((name, _)) = self.options.first() else { return Ok(()) };
        Err(Error::Usage(format!(
            "`{self}`: only simulated links have options; leave `{name}` out, or write sim+{}://?{name}=…",
            self.scheme
        )))
    }
}

/// Two names are alike, as of a slip of the fingers, from this on.
const ALIKE: f64 = 0.6;

/// Returns what to write instead of a link without a known scheme.
fn unknown(name: &str, text: &str, names: &[&str]) -> String {
    let first = names.first().unwrap_or(&"scheme");
    let similar = |known: &&str| strsim::normalized_damerau_levenshtein(&name.to_ascii_lowercase(), known);
    for (lacking, between) in [("a colon", "//"), ("a slash", ":/"), ("two slashes", ":")] {
        let Some((scheme, place)) = text.split_once(between).filter(|(scheme, _)| names.contains(scheme)) else {
            continue;
        };
        let place = match place.parse::<u16>() {
            Ok(port) => format!(":{port} for a server, {scheme}://HOST:{port} for a link"),
            // A path of the file system.
            Err(_) if scheme == "unix" => format!("/{}", place.trim_start_matches('/')),
            Err(_) => place.to_owned(),
        };
        return format!("`{text}` lacks {lacking}; write {scheme}://{place}");
    }
    if let Ok(port) = text.parse::<u16>() {
        return format!(
            "`{port}` is a port alone; write {first}://:{port} for a server, {first}://HOST:{port} for a link"
        );
    }
    let like = names.iter().max_by(|a, b| similar(a).total_cmp(&similar(b))).filter(|known| similar(known) >= ALIKE);
    if let Some(like) = like {
        return format!("unknown scheme `{name}` in `{text}`; did you mean {like}?");
    }
    let mut known: Vec<&str> = Vec::new();
    names.iter().for_each(|name| {
        if !known.contains(name) {
            known.push(name);
        }
    });
    let known = known.join(", ");
    if !text.contains("://") {
        let what =
            if name.contains([':', '.']) { "names a host and no protocol;" } else { "is no protocol; for a host," };
        return format!("`{text}` {what} write {first}://{text}, or another protocol in front of it: {known}");
    }
    format!("unknown scheme `{name}` in `{text}`; the known ones are {known}, each also as sim+…")
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}://{}{}", if self.simulated { "sim+" } else { "" }, self.scheme, self.authority, self.path)?;
        for (index, (key, value)) in self.options.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}
