use crate::Error;
use alloc::collections::BTreeMap;
use hodo_machine::{Address, Random};

/// Connections from one host that may be without a greeting at once.
pub(crate) const GREETING_MAX: u32 = 256;

/// How many connections from each host have not greeted yet.
#[derive(Debug, Default)]
pub(crate) struct Greetings {
    pub(crate) hosts: BTreeMap<u64, u32>,
}

impl Greetings {
    /// One more; an error where that is one too many. It counts until [`Greetings::over`] all the same.
    pub(crate) fn begin(&mut self, host: u64) -> Result<(), Error> {
        let count = self.hosts.entry(host).or_default();
        *count += 1;
        if *count > GREETING_MAX { Err(Error::Full { max: GREETING_MAX }) } else { Ok(()) }
    }

    /// One has greeted, or is gone.
    pub(crate) fn over(&mut self, host: u64) {
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }
}

/// One number for all connections from a host.
pub(crate) fn host(address: &Address) -> u64 {
    match address {
        Address::Socket(address) => match address.ip() {
            core::net::IpAddr::V4(ip) => u64::from(u32::from(ip)),
            core::net::IpAddr::V6(ip) => Random::new((u128::from(ip) >> 64) as u64).bits() | 1 << 63,
        },
        _ => 0,
    }
}
