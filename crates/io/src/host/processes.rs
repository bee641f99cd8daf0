//! Processes of this machine: the CPU time of each, and which of them listens at an address.

use crate::usage::Usage;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A process that ran between two readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    /// The number.
    pub process: u32,
    /// The name.
    pub name: String,
    /// The seconds of CPU time that it used.
    pub cpu_s: f64,
}

/// The CPU time of each process until now.
#[derive(Debug, Clone, Default)]
pub struct Processes(BTreeMap<u32, (String, f64)>);

impl Processes {
    /// Reads the CPU time of every process that is visible here. The time advances in steps of a clock tick, usually 10 ms.
    #[must_use]
    pub fn until_now() -> Processes {
        let used = |process: u32| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            Some((process, (name.trim().to_owned(), Usage::of(process)?.cpu_s())))
        };
        Processes(numbers().into_iter().filter_map(used).collect())
    }

    /// Returns the processes that ran since an earlier reading, the busiest first.
    #[must_use]
    pub fn since(&self, earlier: &Processes) -> Vec<Busy> {
        let mut found: Vec<Busy> = self
            .0
            .iter()
            .map(|(process, (name, cpu_s))| {
                let before = earlier.0.get(process).map_or(0.0, |(_, cpu_s)| *cpu_s);
                Busy { process: *process, name: name.clone(), cpu_s: (cpu_s - before).max(0.0) }
            })
            .filter(|busy| busy.cpu_s > 0.0)
            .collect();
        found.sort_by(|one, other| other.cpu_s.total_cmp(&one.cpu_s));
        found
    }
}

/// Returns a process of this machine that has a socket bound to this address, in whichever network namespace; `None` if there is
/// none, or this process may not look.
#[must_use]
pub fn bound_at(address: SocketAddr) -> Option<u32> {
    let mut spaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for process in numbers() {
        let Ok(space) = fs::read_link(format!("/proc/{process}/ns/net")) else { continue };
        let space = space.display().to_string();
        let sockets = spaces.entry(space).or_insert_with(|| sockets_at(process, address));
        if !sockets.is_empty() && has_socket(process, sockets) {
            return Some(process);
        }
    }
    None
}

/// Returns the links that lead to sockets bound to an address in the network namespace of a process, as `socket:[4711]`; none if
/// that namespace does not have the address.
fn sockets_at(process: u32, address: SocketAddr) -> Vec<String> {
    let text = |file: &str| fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
    if !address.ip().is_loopback() && !has_address(&text("fib_trie"), &text("if_inet6"), address.ip()) {
        return Vec::new();
    }
    ["tcp", "udp", "tcp6", "udp6"].map(text).iter().flat_map(|table| bound_sockets(table, address)).collect()
}

fn has_socket(process: u32, sockets: &[String]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.into_iter().any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

fn numbers() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns whether an address is among those of `/proc/net/fib_trie` or of `/proc/net/if_inet6`.
fn has_address(fib_trie: &str, if_inet6: &str, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            // A leaf, and its prefixes in lines of their own below it.
            let leaf = format!("|-- {v4}");
            let lines: Vec<&str> = fib_trie.lines().map(str::trim).collect();
            let prefixes = |at: usize| lines[at + 1..].iter().take_while(|line| line.starts_with('/'));
            let mut leaves = (0..lines.len()).filter(|at| lines[*at] == leaf);
            leaves.any(|at| prefixes(at).any(|line| line.starts_with("/32 host LOCAL")))
        }
        IpAddr::V6(v6) => {
            let digits: String = v6.octets().iter().map(|byte| format!("{byte:02x}")).collect();
            if_inet6.lines().any(|line| line.starts_with(&digits))
        }
    }
}

/// Returns the sockets in a table of `/proc/net` that are bound to an address or to all addresses, and connected to nobody.
fn bound_sockets(table: &str, address: SocketAddr) -> Vec<String> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, remote) = (parse_address(fields.get(1)?)?, parse_address(fields.get(2)?)?);
        let is_free = remote.port() == 0;
        let is_at = local.port() == address.port() && (local.ip().is_unspecified() || local.ip() == address.ip());
        (is_free && is_at).then(|| format!("socket:[{}]", fields.get(9).copied().unwrap_or_default()))
    };
    table.lines().filter_map(of_line).collect()
}

/// Parses `0100007F:1092`: words of the address in the host's byte order, and the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Vec<u32> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(8 * word..8 * word + 8)?, 16).ok())
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn this_process_is_found_at_its_sockets() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        assert_eq!(bound_at(listener.local_addr().expect("it is bound")), Some(std::process::id()));
        let socket = UdpSocket::bind("0.0.0.0:0").expect("any address");
        let port = socket.local_addr().expect("it is bound").port();
        assert_eq!(bound_at(SocketAddr::from(([127, 0, 0, 1], port))), Some(std::process::id()));
        assert_eq!(bound_at(SocketAddr::from(([192, 0, 2, 1], port))), None);
    }

    #[test]
    fn work_shows_in_the_process() {
        let before = Processes::until_now();
        let own = Usage::of_process();
        while Usage::of_process().since(&own).cpu_s() < 0.1 {
            std::hint::black_box((0..1_000_000_u64).fold(1, |sum, i| std::hint::black_box(sum ^ i)));
        }
        let busy = Processes::until_now().since(&before);
        assert!(busy.iter().any(|busy| busy.process == std::process::id() && busy.cpu_s > 0.05), "{busy:?}");
        assert!(busy.windows(2).all(|pair| pair[0].cpu_s >= pair[1].cpu_s));
    }

    /// Lines of Linux 6.18 on a little-endian processor.
    #[cfg(target_endian = "little")]
    #[test]
    fn addresses_are_read_from_the_tables() {
        assert_eq!(parse_address("0100007F:1092"), Some("127.0.0.1:4242".parse().unwrap()));
        assert_eq!(parse_address("0000000000000000FFFF00000100630A:1092"), Some("10.99.0.1:4242".parse().unwrap()));
        for wrong in ["", "0100007F", "0100:1", "zz00007F:1", "0100007F:zz"] {
            assert_eq!(parse_address(wrong), None, "{wrong}");
        }
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100630A:1092 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0
   1: 0100630A:1092 0200630A:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0
   2: 00000000:1092 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0
";
        assert_eq!(bound_sockets(table, "10.99.0.1:4242".parse().unwrap()), ["socket:[4711]", "socket:[4713]"]);
        assert_eq!(bound_sockets(table, "10.99.0.1:4243".parse().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn own_addresses_are_leaves_of_the_tree() {
        let tree = "Main:\n     +-- 10.99.0.0/24 2 0 2\n        |-- 10.99.0.0\n           /24 link UNICAST\n        |-- 10.99.0.1\n           /32 host LOCAL\n";
        assert!(has_address(tree, "", Ipv4Addr::new(10, 99, 0, 1).into()));
        for other in [[10, 99, 0, 0], [10, 99, 0, 2]] {
            assert!(!has_address(tree, "", Ipv4Addr::from(other).into()));
        }
        let six =
            "fd09000000000000000000000000 0001 02 40 00 80 eth0\nfd0900000000000000000000000000fe 02 40 00 80 eth0\n";
        assert!(has_address("", six, "fd09::fe".parse().unwrap()) && !has_address("", six, "fd09::1".parse().unwrap()));
    }
}
