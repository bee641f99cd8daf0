//! The rules about who may do what: `[[access]]`.

use super::ServeError;
use super::place::Place;
use crate::machines::discovery::Subnet;
use crate::machines::server::{AccessList, AccessRule, Rights, Ruled};
use serde::Deserialize;
use std::net::IpAddr;

/// `[[access]]`: a rule. The first one that fits decides.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessTable {
    /// Users, as clients claim them.
    #[serde(default)]
    pub users: Vec<String>,
    /// Hosts, as clients claim them.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Addresses and subnets that clients connect from.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Names of PVs.
    #[serde(default)]
    pub pvs: Vec<String>,
    /// The rights.
    pub rights: Vec<Right>,
}

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// To read and subscribe.
    Read,
    /// To put and process.
    Put,
    /// To call.
    Call,
}

/// Returns the rules of a file; without any, everybody may do everything.
///
/// # Errors
/// [`ServeError::File`] for an entry that is no address.
pub fn rules(tables: &[AccessTable], place: &Place) -> Result<Ruled, ServeError> {
    let rule = |(index, table): (usize, &AccessTable)| {
        let subnets = table.addresses.iter().map(|entry| subnet(entry)).collect::<Result<Vec<Subnet>, String>>();
        let has = |right| table.rights.contains(&right);
        Ok(AccessRule {
            users: table.users.clone(),
            hosts: table.hosts.clone(),
            subnets: subnets.map_err(|why| place.wrong_in("access", index, why))?,
            channels: table.pvs.clone(),
            rights: Rights { read: has(Right::Read), put: has(Right::Put), call: has(Right::Call) },
        })
    };
    let rules = tables.iter().enumerate().map(rule).collect::<Result<Vec<_>, ServeError>>()?;
    Ok(if rules.is_empty() { Ruled::default() } else { AccessList(rules).into() })
}

/// Reads `10.1.2.3`, `10.1.0.0/16` or an address of IPv6.
fn subnet(entry: &str) -> Result<Subnet, String> {
    let wrong = || format!("addresses: `{entry}` is no address; write 10.1.2.3, 10.1.0.0/16 or fd00::/8");
    let (address, prefix) = entry.split_once('/').map_or((entry, None), |(front, behind)| (front, Some(behind)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.map_or(Ok(bits), |prefix| prefix.parse().map_err(|_| wrong()))?;
    if prefix > bits { Err(wrong()) } else { Ok(Subnet::new(address, prefix)) }
}
