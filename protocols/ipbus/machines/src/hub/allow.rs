use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};

/// The devices that clients may reach through a hub.
///
/// As text it has a line `a.b.c.d` or `a.b.c.d:port` for each; the first form stands for every port. What is behind a
/// `#`, and empty lines, say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// The devices of the list; `None` if every device may be reached.
    listed: Option<BTreeSet<(Ipv4Addr, Option<u16>)>>,
}

/// A line of an allow-list that is no device's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDevice {
    /// Number of the line, from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
}

impl AllowList {
    /// Every device.
    pub const ALL: AllowList = AllowList { listed: None };

    /// Reads a list.
    ///
    /// # Errors
    /// [`NoDevice`] with the first line that names no device.
    pub fn parse(text: &str) -> Result<AllowList, NoDevice> {
        let mut listed = BTreeSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            listed.insert(device(line).ok_or_else(|| NoDevice { line: number, text: line.into() })?);
        }
        Ok(AllowList { listed: Some(listed) })
    }

    /// Tells whether this device may be reached.
    #[must_use]
    pub fn allows(&self, device: SocketAddrV4) -> bool {
        let has = |port| move |listed: &BTreeSet<_>| listed.contains(&(*device.ip(), port));
        self.listed.as_ref().is_none_or(|listed| has(None)(listed) || has(Some(device.port()))(listed))
    }
}

fn device(line: &str) -> Option<(Ipv4Addr, Option<u16>)> {
    if let Ok(device) = line.parse::<SocketAddrV4>() {
        return Some((*device.ip(), Some(device.port())));
    }
    line.parse().ok().map(|address| (address, None))
}

impl core::error::Error for NoDevice {}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoDevice { line, text } = self;
        write!(f, "line {line}: `{text}` is not a device; write its address, or address:port, as 192.168.0.10:50001")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &AllowList, device: &str) -> bool {
        list.allows(device.parse().expect("an address and a port"))
    }

    #[test]
    fn a_line_without_a_port_stands_for_every_port() {
        let list = AllowList::parse("# the crate\n10.0.0.1\n\n  10.0.0.2:50001 # its first slot\r\n").expect("a list");
        assert!(allows(&list, "10.0.0.1:1") && allows(&list, "10.0.0.1:50001"));
        assert!(allows(&list, "10.0.0.2:50001") && !allows(&list, "10.0.0.2:50002"));
        assert!(!allows(&list, "10.0.0.3:50001"));
    }

    #[test]
    fn an_empty_list_allows_nothing_and_no_list_everything() {
        assert!(!allows(&AllowList::parse("").expect("a list"), "10.0.0.1:1"));
        assert!(allows(&AllowList::ALL, "10.0.0.1:1"));
    }

    #[test]
    fn what_is_no_device_is_named_with_its_line() {
        for text in ["board", "10.0.0", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1 50001", "::1"] {
            let error = AllowList::parse(&alloc::format!("10.0.0.1\n{text}")).expect_err(text);
            assert_eq!(error, NoDevice { line: 2, text: text.into() });
            assert!(alloc::format!("{error}").starts_with("line 2: "));
        }
    }
}
