use crate::seat::{Running, running};
use crate::{Error, name};
use hodo_io::{is_local, listening_user, network_number, process};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The daemon that a command is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name or the address.
    pub which: Which,
    /// The id of the user whose it is; `None` for this user's and root's, and for root any service's.
    pub user: Option<u32>,
    /// The address where its pages are read over TCP if none of its name runs as one of those users. Nothing is steered there.
    pub usual: Option<SocketAddr>,
}

/// The way in which a daemon is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The name on this host.
    Name(String),
    /// The address of its pages.
    Pages(SocketAddr),
}

/// The way to a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// A Unix socket, where a process of this user or of root has to answer.
    Socket { path: PathBuf, owner: u32, name: String },
    /// TCP.
    Tcp(SocketAddr),
}

impl fmt::Display for Target {
    /// Writes the name of its daemon and the address of its pages, as far as they are known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.found(), &self.which) {
            ((Some(name), Some(pages)), _) => write!(f, "{name}: pages on http://{pages}"),
            ((None, Some(pages)), _) => write!(f, "pages on http://{pages}"),
            (_, Which::Name(name)) => f.write_str(name),
            (_, Which::Pages(pages)) => write!(f, "pages on http://{pages}"),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(pages: SocketAddr) -> Self {
        Target { which: Which::Pages(pages), user: None, usual: None }
    }
}

impl Target {
    /// Creates the target of a usual name, or of another name or address if one is written.
    #[must_use]
    pub fn of(which: Which, usual: (&str, SocketAddr), user: Option<u32>) -> Self {
        let is_usual = matches!(&which, Which::Name(name) if name == usual.0);
        Target { which, user, usual: is_usual.then_some(usual.1) }
    }

    /// Returns the daemon as one that is found on this host by its name, or over TCP by its address, and nowhere else.
    #[must_use]
    pub fn strictly(&self) -> Self {
        Target { usual: None, ..self.clone() }
    }

    /// Returns name and address of the pages of the one daemon on this host that it is for, or the usual ones if none is found.
    #[must_use]
    pub fn found(&self) -> (Option<String>, Option<SocketAddr>) {
        let (all, _) = running(self.user);
        let mut named = all.into_iter().filter(|daemon| self.is_for(daemon));
        match (named.next(), &self.which) {
            (Some(one), _) => (Some(one.name), Some(one.pages)),
            (None, Which::Pages(pages)) => (None, Some(*pages)),
            (None, Which::Name(_)) => (None, self.usual),
        }
    }

    /// Returns the way to it; `acts` if something is to be done there.
    pub(crate) fn way(&self, acts: bool) -> Result<Way, Error> {
        let (all, refused) = running(self.user);
        let named: Vec<&Running> = all.iter().filter(|daemon| self.is_for(daemon)).collect();
        match (&named[..], &self.which) {
            ([one], _) => {
                let Running { socket, owner, name, .. } = *one;
                Ok(Way::Socket { path: socket.clone(), owner: *owner, name: name.clone() })
            }
            ([], Which::Pages(pages)) => self.over_tcp(*pages, acts),
            ([], Which::Name(name)) => match self.usual.filter(|_| !acts) {
                Some(usual) => Ok(Way::Tcp(usual)),
                None => {
                    let names: Vec<&str> = all.iter().map(|daemon| daemon.name.as_str()).collect();
                    let there =
                        if names.is_empty() { String::new() } else { format!(" (there are: {})", names.join(", ")) };
                    Err(Error::NoDaemon { name: name.clone(), of: self.whose(), there, refused })
                }
            },
            (several, which) => {
                let which_is = match which {
                    Which::Name(name) => name.clone(),
                    Which::Pages(pages) => pages.to_string(),
                };
                let each = |daemon: &&Running| format!("{} of user {}", daemon.socket.display(), daemon.owner);
                Err(Error::Several { name: which_is, which: several.iter().map(each).collect() })
            }
        }
    }

    /// Returns the way to pages of which no daemon that may be meant says that they are its own: of this host, nothing is asked to be done of
    /// another user's process.
    fn over_tcp(&self, pages: SocketAddr, acts: bool) -> Result<Way, Error> {
        if acts && is_local(pages.ip()) {
            // Nobody there is told by the connection.
            if let Some(user) = listening_user(pages)
                && !self.may_be(user)
            {
                let place = pages.to_string();
                return Err(Error::Stranger { place, user: Some(user), expected: format!("one of {}", self.whose()) });
            }
        }
        Ok(Way::Tcp(pages))
    }

    fn is_for(&self, daemon: &Running) -> bool {
        match &self.which {
            Which::Name(name) => daemon.name == *name,
            Which::Pages(asked) => {
                let (ip, of) = (asked.ip().to_canonical(), daemon.pages.ip().to_canonical());
                daemon.network == network_number()
                    && daemon.pages.port() == asked.port()
                    && (of == ip || (of.is_unspecified() && is_local(asked.ip())))
            }
        }
    }

    fn may_be(&self, user: u32) -> bool {
        match self.user {
            Some(whose) => user == whose,
            None => user == process::user() || user == 0,
        }
    }

    fn whose(&self) -> String {
        match self.user {
            Some(user) => format!("user {user}"),
            None if process::user() == 0 => "root or a service".to_owned(),
            None => "this user".to_owned(),
        }
    }
}

impl Which {
    /// Parses a name, or an address as `address` does.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    pub fn parse(text: &str, address: impl Fn(&str) -> Result<SocketAddr, String>) -> Result<Self, String> {
        if let Ok(name) = name(text) {
            return Ok(Which::Name(name));
        }
        address(text).map(Which::Pages).map_err(|why| format!("{why}; or the daemon's name, as hub-2"))
    }
}
