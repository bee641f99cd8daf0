use std::io;
use thiserror::Error;

/// Why a verb could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The library cannot be loaded.
    #[error(
        "no RDMA library ({name}) on this host: install it and its drivers \
         (Debian: libibverbs1 ibverbs-providers; Fedora: libibverbs); {reason}"
    )]
    NoLibrary {
        /// The library.
        name: String,
        /// The loader's words.
        reason: String,
    },
    /// The library lacks a function.
    #[error("{library} has no function {name}: install rdma-core 16 or newer")]
    NoFunction {
        /// The library.
        library: String,
        /// The function.
        name: &'static str,
    },
    /// No device has this name.
    #[error("no RDMA device is called {0}")]
    NoDevice(String),
    /// The device's driver does not offer a verb.
    #[error("the device's driver has no {0}")]
    Unsupported(&'static str),
    /// A verb failed.
    #[error("{verb}: {}", io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// The verb, by the name of its function.
        verb: &'static str,
        /// The error number.
        errno: i32,
    },
    /// Bytes that are not all inside of a region.
    #[error("{length} bytes from {offset} on are outside of a region of {available} bytes")]
    OutOfBounds {
        /// The first byte.
        offset: usize,
        /// Bytes.
        length: usize,
        /// The region's bytes.
        available: usize,
    },
}

impl Error {
    /// Returns the error of a verb that has just set `errno`.
    pub(super) fn last(verb: &'static str) -> Self {
        Error::Refused { verb, errno: io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// Returns the outcome of a verb that returns 0 or an error number; some drivers negate it.
#[inline]
pub(super) fn check(verb: &'static str, answer: i32) -> Result<(), Error> {
    match answer {
        0 => Ok(()),
        // The functions that predate the convention return -1 and set `errno`; EPERM, which is 1, they return as itself.
        -1 => Err(Error::last(verb)),
        errno => Err(Error::Refused { verb, errno: errno.abs() }),
    }
}
