use crate::SessionError;

/// Why registers that a person has named could not be found, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is wrong, and nothing was sent for it.
    #[error("{0}")]
    Usage(String),
    /// The device did not do it, or could not be reached.
    #[error("{0}")]
    Failed(String),
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Self {
        if error.is_usage() { Error::Usage(error.to_string()) } else { Error::Failed(error.to_string()) }
    }
}
