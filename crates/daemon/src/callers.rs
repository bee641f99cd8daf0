use hodo_machine::{Address, Ends};
use std::net::IpAddr;

/// The connections of one caller; with one more, the one that has waited longest is closed.
pub(crate) const EACH_MAX: usize = 8;
/// The connections of all callers together, apart from the operator's; with one more, the one that has waited longest is closed.
pub(crate) const ALL_MAX: usize = 64;

/// The client of a connection, as far as it can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// Over TCP, from this address.
    Host(IpAddr),
    /// Over the Unix socket, a process of this user on this host.
    User(u32),
    /// Neither is known.
    Unknown,
}

impl Caller {
    /// Returns the caller at the far end.
    pub(crate) fn at(ends: &Ends) -> Self {
        match (&ends.remote, ends.user) {
            (Address::Tcp(from), _) => Caller::Host(from.ip().to_canonical()),
            (_, Some(user)) => Caller::User(user),
            _ => Caller::Unknown,
        }
    }

    /// Returns whether it may steer a daemon of `owner`: the owner itself and root.
    #[must_use]
    pub fn is_operator(self, owner: u32) -> bool {
        matches!(self, Caller::User(user) if user == owner || user == 0)
    }
}

/// The names that a daemon's pages are asked for. A page in a browser that has its own name point here asks for another one
/// (DNS rebinding).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// Creates these names, beside every IP address and `localhost`.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Names(names.into_iter().collect())
    }

    /// Returns whether a request for this host and port is for this daemon.
    #[must_use]
    pub fn holds(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = |ours: &str| ours.eq_ignore_ascii_case(name);
        bare.parse::<IpAddr>().is_ok() || is_name("localhost") || self.0.iter().any(|ours| is_name(ours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_the_names_told_are_ours() {
        let names = Names::new(["farm7.example".to_owned()]);
        for host in [
            "127.0.0.1",
            "10.0.0.5:9205",
            "[::1]:9205",
            "[fe80::1]",
            "localhost",
            "LocalHost:9205",
            "farm7.example",
            "Farm7.Example.:80",
        ] {
            assert!(names.holds(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:9205", "localhost.evil.example", "127.0.0.1.evil.example", "farm7"]
        {
            assert!(!names.holds(host), "{host}");
        }
    }
}
