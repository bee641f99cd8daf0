//! Rules of the application about who may do what, asked when a channel is opened.

use crate::discovery::Subnet;
use crate::wire::Command;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use hodo_machine::Ends;

/// The rights of a client to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Whether it may read and subscribe.
    pub read: bool,
    /// Whether it may put and process.
    pub put: bool,
    /// Whether it may call.
    pub call: bool,
}

impl Rights {
    /// All rights.
    pub const ALL: Rights = Rights { read: true, put: true, call: true };
    /// No right.
    pub const NONE: Rights = Rights { read: false, put: false, call: false };
    /// The right to read alone.
    pub const READ: Rights = Rights { read: true, ..Rights::NONE };

    /// Returns whether these are no more than others.
    pub(crate) const fn is_within(self, others: Rights) -> bool {
        (others.read || !self.read) && (others.put || !self.put) && (others.call || !self.call)
    }

    /// Returns whether an operation of this kind may be set up.
    pub(crate) const fn allows(self, kind: Command) -> bool {
        match kind {
            Command::Put | Command::Process => self.put,
            Command::PutGet => self.put && self.read,
            Command::Rpc => self.call,
            _ => self.read,
        }
    }
}

/// A client, as rules know it.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    /// Both ends of its connection. Only the address is more than a claim.
    pub ends: &'a Ends,
    /// The name of the user that it claims, which nobody proves; empty for an anonymous one.
    pub user: &'a str,
    /// The name of the host that it claims, which nobody proves; empty for an anonymous one.
    pub host: &'a str,
}

/// The rules about who may do what. They are asked while a message is taken in, so that they have to be quick.
pub trait Rules: Send + Sync {
    /// Returns the rights of a client to the channel of this name.
    fn rights(&self, client: &Claimant<'_>, channel: &str) -> Rights;
}

/// [`Rules`] in the settings of a server; all may do everything at first.
#[derive(Clone, Default)]
pub struct Ruled(Option<Arc<dyn Rules>>);

impl<R: Rules + 'static> From<R> for Ruled {
    fn from(rules: R) -> Self {
        Ruled(Some(Arc::new(rules)))
    }
}

impl fmt::Debug for Ruled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "rules" } else { "no rules" })
    }
}

impl Ruled {
    /// Returns the rights of a client to the channel of this name.
    pub(crate) fn rights(&self, ends: &Ends, claim: Option<&(String, String)>, channel: &str) -> Rights {
        let (user, host) = claim.map_or(("", ""), |(user, host)| (user, host));
        self.of(&Claimant { ends, user, host }, channel)
    }

    /// Returns the rights of a client to the channel of this name: all, if there are no rules.
    #[must_use]
    pub fn of(&self, client: &Claimant<'_>, channel: &str) -> Rights {
        self.0.as_ref().map_or(Rights::ALL, |rules| rules.rights(client, channel))
    }
}

/// One rule of an [`AccessList`], which fits if all its lists do. In names `*` stands for any characters; an empty list fits all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// Users, as clients claim them.
    pub users: Vec<String>,
    /// Hosts, as clients claim them.
    pub hosts: Vec<String>,
    /// Subnets that connections come from, which is no claim.
    pub subnets: Vec<Subnet>,
    /// Names of channels.
    pub channels: Vec<String>,
    /// The rights of those who fit.
    pub rights: Rights,
}

/// Rules of which the first that fits decides. Whom none fits has no rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessList(pub Vec<AccessRule>);

impl Rules for AccessList {
    fn rights(&self, client: &Claimant<'_>, channel: &str) -> Rights {
        let address = client.ends.remote.ip().map(|remote| remote.ip());
        let fits = |patterns: &[String], text: &str| patterns.iter().any(|pattern| is_match(pattern, text));
        let is_it = |rule: &&AccessRule| {
            let AccessRule { users, hosts, subnets, channels, .. } = rule;
            let is_in = |address| subnets.iter().any(|subnet| subnet.contains(address));
            (users.is_empty() || fits(users, client.user))
                && (hosts.is_empty() || fits(hosts, client.host))
                && (subnets.is_empty() || address.is_some_and(is_in))
                && (channels.is_empty() || fits(channels, channel))
        };
        self.0.iter().find(is_it).map_or(Rights::NONE, |rule| rule.rights)
    }
}

/// Returns whether a text is what a pattern says, in which `*` stands for any characters.
fn is_match(pattern: &str, text: &str) -> bool {
    let Some((front, mut rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(front) else { return false };
    while let Some((piece, behind)) = rest.split_once('*') {
        // The first place is as good as any later one.
        let Some(at) = text.find(piece) else { return false };
        (text, rest) = (&text[at + piece.len()..], behind);
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_with_any_characters_for_a_star() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abbc", true),
            ("a*b*c", "axbxbxc", true),
            ("a*bc*c", "abc", false),
            ("*:SET", "PS1:SET", true),
            ("*:SET", "PS1:SET2", false),
            ("a*a", "a", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(is_match(pattern, text), fits, "{pattern} {text}");
        }
    }
}
