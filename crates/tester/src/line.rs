use crate::Conditions;
use hodo_io::nic::Nic;

/// The MTU of Ethernet, if only the rate is given.
const MTU: u32 = 1500;

/// The line that a link uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Bits per second; `None` if they are not known, or there is no line.
    pub rate: Option<f64>,
    /// Bytes of the largest IP packet.
    pub mtu: u32,
}

/// Returns the line that a link uses: as the options say, else as the interface says.
pub(crate) fn line(conditions: &Conditions, nic: Option<&Nic>) -> Line {
    let rate = conditions.line_rate.or_else(|| nic.and_then(Nic::line_rate_bits_per_s));
    // The loopback's MTU says nothing of the line that is told.
    let of_nic = nic.filter(|nic| !nic.is_loopback).and_then(|nic| nic.mtu);
    Line { rate, mtu: conditions.mtu.or(of_nic).unwrap_or(MTU) }
}
