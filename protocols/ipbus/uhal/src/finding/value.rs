use alloc::string::String;
use thiserror::Error;

/// A problem with an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// There is no such attribute, in uHAL neither.
    #[error("there is no attribute `{name}`; the known ones are {}", known.join(", "))]
    Unknown {
        /// Name of the attribute.
        name: String,
        /// The ones that there are.
        known: &'static [&'static str],
    },
    /// The element means nothing without it.
    #[error("`{name}` is missing; add {name}=\"…\"")]
    Missing {
        /// Name of the attribute.
        name: &'static str,
    },
    /// It cannot stand beside another one.
    #[error("`{name}` cannot be combined with `{beside}`; remove one of them")]
    Forbidden {
        /// Name of the attribute.
        name: &'static str,
        /// The other one.
        beside: &'static str,
    },
    /// An id that cannot be part of a path.
    #[error("id=\"{id}\" {}", if id.is_empty() { "is not a name; write one" } else { "cannot be part of a path; remove its dots and the spaces at its ends" })]
    BadId {
        /// The id.
        id: String,
    },
    /// It is no number.
    #[error("{name}=\"{value}\" is not a number; write decimal digits, or 0x and hexadecimal digits")]
    NotANumber {
        /// Name of the attribute.
        name: &'static str,
        /// Value of the attribute.
        value: String,
    },
    /// It is a number over 32 bits.
    #[error("{name}=\"{value}\" is over 32 bits; write at most 0xFFFFFFFF, in at most 10 digits")]
    TooWide {
        /// Name of the attribute.
        name: &'static str,
        /// Value of the attribute.
        value: String,
    },
    /// It is none of a few words.
    #[error("{name}=\"{value}\" is unknown; write one of {}", known.join(", "))]
    NotAWord {
        /// Name of the attribute.
        name: &'static str,
        /// Value of the attribute.
        value: String,
        /// The words.
        known: &'static [&'static str],
    },
    /// Firmware information that is not `type;key=value`.
    #[error("fwinfo=\"{value}\" cannot be read; write it as `endpoint;width=4`")]
    BadFirmwareInfo {
        /// The value.
        value: String,
    },
}
