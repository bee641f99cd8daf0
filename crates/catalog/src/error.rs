use std::fmt;

/// Why a URI did not become a link or a server. Each message names the culprit and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The URI or an option is wrong: exit status 2.
    Usage(String),
    /// The link could not be opened, or the server not be started: exit status 1.
    Failed(String),
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Usage(text) | Error::Failed(text)) = self;
        f.write_str(text)
    }
}
