//! Daemons of this host: what each has where nobody asks for anything, and how a command names one that runs.

use crate::Error;
use clap::Args;
use hodo_daemon::{Choice, Target, Which};
use hodo_measure::units;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// The name of a kind of daemon, and the address of its pages, unless told otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Usual {
    /// The name.
    pub name: &'static str,
    /// The address.
    pub pages: SocketAddr,
}

/// The usual name and the usual port on loopback of each kind: ports that differ by ten are for further ones of a kind.
pub const HUB: Usual = usual("hub", 9203);
pub const CONTROLLER: Usual = usual("controller", 9205);
pub const BUILDER: Usual = usual("builder", 9206);
pub const BRIDGE: Usual = usual("bridge", 9209);
pub const WATCH: Usual = usual("watch", 9210);

const fn usual(name: &'static str, port: u16) -> Usual {
    Usual { name, pages: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) }
}

impl Usual {
    /// Returns the address of the pages.
    pub fn pages(self, asked: Option<SocketAddr>) -> Choice<SocketAddr> {
        Choice::of(asked, self.pages)
    }

    /// Returns the name.
    pub fn name(self, asked: Option<&String>) -> Choice<String> {
        Choice::of(asked.cloned(), self.name)
    }

    /// Returns the daemon of this kind that is named.
    pub fn target(self, which: Option<&Which>, user: &DaemonUser) -> Result<Target, Error> {
        let which = which.cloned().unwrap_or_else(|| Which::Name(self.name.to_owned()));
        Ok(Target::of(which, (self.name, self.pages), user.id()?))
    }
}

/// Parses a daemon's name, or the address of its pages.
pub fn which(text: &str) -> Result<Which, String> {
    Which::parse(text, units::pages)
}

/// The user whose daemon is meant.
#[derive(Debug, Clone, Args)]
pub struct DaemonUser {
    /// User whose daemon it is, by name or number [default: yourself; for root also any service].
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
}

impl DaemonUser {
    fn id(&self) -> Result<Option<u32>, Error> {
        let Some(name) = &self.user else { return Ok(None) };
        let unknown =
            || Error::Usage(format!("--user {}: there is no such user; write its number", name.escape_debug()));
        hodo_io::process::user_named(name).ok_or_else(unknown).map(Some)
    }
}
