use alloc::string::String;
use core::fmt;

/// What is wrong with an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueProblem {
    /// There is no such attribute, in uHAL neither.
    Unknown {
        /// Its name.
        name: String,
        /// The ones that there are.
        known: &'static [&'static str],
    },
    /// The element means nothing without it.
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// It cannot stand beside another one.
    Forbidden {
        /// Its name.
        name: &'static str,
        /// The other one.
        beside: &'static str,
    },
    /// An id that cannot be part of a path.
    BadId {
        /// The id.
        id: String,
    },
    /// It is no number.
    NotANumber {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// It is a number over 32 bits.
    TooWide {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// It is none of a few words.
    NotAWord {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The words.
        known: &'static [&'static str],
    },
    /// Firmware information that is not `type;key=value`.
    BadFirmwareInfo {
        /// The value.
        value: String,
    },
}

impl fmt::Display for ValueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueProblem::Unknown { name, known } => {
                write!(f, "there is no attribute `{name}`; the known ones are {}", Words(known))
            }
            ValueProblem::Missing { name } => write!(f, "`{name}` is missing; add {name}=\"…\""),
            ValueProblem::Forbidden { name, beside } => {
                write!(f, "`{name}` does not go with `{beside}`; take one of them out")
            }
            ValueProblem::BadId { id } if id.is_empty() => f.write_str("id=\"\" is no name; write one"),
            ValueProblem::BadId { id } => {
                write!(f, "id=\"{id}\" cannot be part of a path; take out its dots and the spaces at its ends")
            }
            ValueProblem::NotANumber { name, value } => {
                write!(f, "{name}=\"{value}\" is no number; write decimal digits, or 0x and hexadecimal ones")
            }
            ValueProblem::TooWide { name, value } => {
                write!(f, "{name}=\"{value}\" is over 32 bits; write at most 0xFFFFFFFF, in at most 10 digits")
            }
            ValueProblem::NotAWord { name, value, known } => {
                write!(f, "{name}=\"{value}\" is unknown; write one of {}", Words(known))
            }
            ValueProblem::BadFirmwareInfo { value } => {
                write!(f, "fwinfo=\"{value}\" cannot be read; write it as `endpoint;width=4`")
            }
        }
    }
}

struct Words<'a>(&'a [&'static str]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            write!(f, "{}{word}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
