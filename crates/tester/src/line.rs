use crate::Conditions;
use hodo_io::nic::NicFacts;

/// Ethernet's, where only the rate is told.
const MTU: u32 = 1500;

/// The rate in bits per second and the MTU of the line that a link uses: as told, else as the interface says. None where
/// there is no line, as on the loopback, or where its rate is not known.
pub fn line(conditions: &Conditions, nic: Option<&NicFacts>) -> Option<(f64, u32)> {
    let rate = conditions.line_rate.or_else(|| nic.and_then(NicFacts::line_rate_bits_per_s))?;
    // The loopback's MTU says nothing of the line that is told.
    let of_nic = nic.filter(|nic| !nic.is_loopback).and_then(|nic| nic.mtu);
    Some((rate, conditions.mtu.or(of_nic).unwrap_or(MTU)))
}
