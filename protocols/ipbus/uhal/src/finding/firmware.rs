use crate::table::Occupant;
use alloc::string::String;
use core::fmt;

/// A problem of the address decoder that the `fwinfo` of a table describes. uHAL takes the table all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirmwareProblem {
    /// The width of an endpoint is no number of address bits.
    BadWidth {
        /// The endpoint.
        endpoint: Occupant,
        /// Value of the width.
        value: String,
    },
    /// An endpoint has no width, and contains no endpoints that would say how wide it is.
    NoWidth {
        /// The endpoint.
        endpoint: Occupant,
        /// The least width that covers its registers.
        needed: u8,
    },
    /// The address of an endpoint is no multiple of the number of its words.
    Misaligned {
        /// The endpoint.
        endpoint: Occupant,
    },
    /// A register, or an endpoint, ends beyond the endpoint around it.
    Beyond {
        /// The endpoint.
        endpoint: Occupant,
        /// The node that ends beyond it; the endpoint itself if that is a block.
        inner: Occupant,
        /// The least width that covers the node.
        needed: u8,
    },
    /// Two endpoints have addresses in common.
    Shared {
        /// The one that begins first.
        first: Occupant,
        /// The other one.
        second: Occupant,
    },
}

impl FirmwareProblem {
    /// Tells whether a decoder can follow the `fwinfo` nevertheless.
    pub(super) fn is_remark(&self) -> bool {
        matches!(self, FirmwareProblem::NoWidth { needed: 0, .. })
    }

    /// Returns the nodes of the problem, the one at its place first.
    #[must_use]
    pub fn nodes(&self) -> [Option<&Occupant>; 2] {
        match self {
            FirmwareProblem::BadWidth { endpoint, .. }
            | FirmwareProblem::NoWidth { endpoint, .. }
            | FirmwareProblem::Misaligned { endpoint } => [Some(endpoint), None],
            FirmwareProblem::Beyond { endpoint, inner, .. } => [Some(inner), Some(endpoint)],
            FirmwareProblem::Shared { first, second } => [Some(first), Some(second)],
        }
    }
}

impl fmt::Display for FirmwareProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FirmwareProblem::BadWidth { endpoint, value } => {
                write!(f, "width={value} of {} is not a number of address bits; ", Named(endpoint))?;
                f.write_str("write decimal digits, width=0 to width=32")
            }
            FirmwareProblem::NoWidth { endpoint, needed } => {
                let endpoint = Named(endpoint);
                match needed {
                    0 => write!(f, "{endpoint} has no width, and is taken for one word; ")?,
                    _ => write!(f, "{endpoint} has no width, and its registers need {needed}; ")?,
                }
                write!(f, "write fwinfo=\"endpoint;width={needed}\"")
            }
            FirmwareProblem::Misaligned { endpoint } => {
                let words = 1_u64 << endpoint.width.unwrap_or(0);
                let below = u64::from(endpoint.address) / words * words;
                write!(f, "{} does not begin at a multiple of its 0x{words:X} words; ", Named(endpoint))?;
                match u32::try_from(below + words) {
                    Ok(above) => write!(f, "move it to 0x{below:08X} or 0x{above:08X}, or lower its width"),
                    Err(_) => write!(f, "move it to 0x{below:08X}, or lower its width"),
                }
            }
            FirmwareProblem::Beyond { endpoint, inner, needed } if endpoint.path == inner.path => {
                write!(f, "{} has more words than its ", Named(inner))?;
                let width = endpoint.width.unwrap_or(0);
                write!(f, "width={width} covers; write width={needed}, or a smaller size")
            }
            FirmwareProblem::Beyond { endpoint, inner, needed } => {
                let place = &endpoint.place;
                write!(f, "{inner} ends beyond {} of {place}; ", Named(endpoint))?;
                write!(f, "write width={needed} there, or move the node")
            }
            FirmwareProblem::Shared { first, second } => {
                let place = &second.place;
                write!(f, "endpoints {first} and {second} of {place} have addresses in common; ")?;
                f.write_str("move one of them, or lower its width")
            }
        }
    }
}

/// An endpoint, by the word for it; the outermost node has one of its own.
struct Named<'a>(&'a Occupant);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.path.is_empty() { "" } else { "endpoint " })?;
        self.0.fmt(f)
    }
}
