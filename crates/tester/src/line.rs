use crate::Conditions;
use hodo_io::nic::Nic;

/// The MTU of Ethernet, if only the rate is given.
const MTU: u32 = 1500;

/// Returns the rate in bits per second and the MTU of the line that a link uses: as the options say, else as the
/// interface says. Returns `None` if there is no line, as on the loopback, or its rate is not known.
pub fn line(conditions: &Conditions, nic: Option<&Nic>) -> Option<(f64, u32)> {
    let rate = conditions.line_rate.or_else(|| nic.and_then(Nic::line_rate_bits_per_s))?;
    // The loopback's MTU says nothing of the line that is told.
    let of_nic = nic.filter(|nic| !nic.is_loopback).and_then(|nic| nic.mtu);
    Some((rate, conditions.mtu.or(of_nic).unwrap_or(MTU)))
}
