//! | bytes | field | |
//! |---|---|---|
//! | 1 | kind | FF: OK, and nothing follows; 00 OK, 01 warning, 02 error, 03 fatal |
//! | text | message | |
//! | text | trace | where in the peer's program it happened |

use crate::{Error, Reader, Writer};
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

hodo_machine::codes! {
    /// How bad a [`Status`] is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Severity: u8 {
        /// Done.
        #[default]
        Ok = 0 => "ok",
        /// Done, with a remark.
        Warning = 1 => "warning",
        /// Not done.
        Error = 2 => "error",
        /// Not done, and nothing more will be.
        Fatal = 3 => "fatal",
    }
}

/// The outcome of a request. It takes memory only if there is something to say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status(Option<Box<Remark>>);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Remark {
    severity: Severity,
    message: String,
    trace: String,
}

impl Status {
    /// The outcome of a request that was done.
    pub const OK: Status = Status(None);

    /// Creates an outcome with a text for people, and where in the program it happened.
    #[must_use]
    pub fn new(severity: Severity, message: impl Into<String>, trace: impl Into<String>) -> Self {
        let remark = Remark { severity, message: message.into(), trace: trace.into() };
        Status((remark != Remark::default()).then(|| Box::new(remark)))
    }

    /// Creates the outcome of a request that was not done.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Status::new(Severity::Error, message, "")
    }

    /// Returns how bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.0.as_ref().map_or(Severity::Ok, |remark| remark.severity)
    }

    /// Returns the text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        self.0.as_ref().map_or("", |remark| &remark.message)
    }

    /// Returns where in the peer's program it happened.
    #[must_use]
    pub fn trace(&self) -> &str {
        self.0.as_ref().map_or("", |remark| &remark.trace)
    }

    /// Tells whether the request was done, perhaps with a warning.
    #[must_use]
    #[inline]
    pub fn is_success(&self) -> bool {
        matches!(self.severity(), Severity::Ok | Severity::Warning)
    }

    /// Decodes a status.
    ///
    /// # Errors
    /// [`Error::Truncated`], or [`Error::Code`] for a severity that is not assigned.
    #[inline]
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let code = reader.u8()?;
        if code == 0xFF {
            return Ok(Status::OK);
        }
        let severity = Severity::from_code(code).ok_or(Error::Code { what: "status", code })?;
        let message = String::from_utf8_lossy(reader.text()?).into_owned();
        let trace = String::from_utf8_lossy(reader.text()?).into_owned();
        Ok(Status::new(severity, message, trace))
    }

    /// Encodes the status.
    #[inline]
    pub fn encode(&self, writer: &mut Writer) {
        let Some(remark) = &self.0 else { return writer.u8(0xFF) };
        writer.u8(remark.severity.code());
        writer.text(remark.message.as_bytes());
        writer.text(remark.trace.as_bytes());
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.severity().name())?;
        if self.message().is_empty() { Ok(()) } else { write!(f, ": {}", self.message()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Side;
    use crate::{Limits, Order};

    #[test]
    fn literal_statuses_decode_and_encode() {
        let limits = Limits::default();
        let error = Status::new(Severity::Error, "no", "at");
        for (bytes, status) in [(&b"\xFF"[..], Status::OK), (&b"\x02\x02no\x02at"[..], error)] {
            assert_eq!(Status::decode(&mut Reader::new(bytes, Order::Little, &limits)), Ok(status.clone()));
            let mut writer = Writer::new(Side::Server, Order::Little);
            status.encode(&mut writer);
            assert_eq!(writer.to_vec(), bytes);
        }
        let unknown = Status::decode(&mut Reader::new(&[9, 0, 0], Order::Big, &limits));
        assert_eq!(unknown, Err(Error::Code { what: "status", code: 9 }));
    }
}
