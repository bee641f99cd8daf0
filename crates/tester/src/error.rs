use hodo_machine::DriverError;
use hodo_measure::LinkError;
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

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Self {
        Error::Failed(error.to_string())
    }
}

/// Returns how a turn of a link ended: with the failure that the link noted, else with its driver's.
///
/// # Errors
/// The failure of the link or of its driver.
pub fn ended(outcome: Result<(), DriverError>, failed: Option<&LinkError>) -> Result<(), LinkError> {
    match (outcome, failed) {
        (_, Some(error)) => Err(error.clone()),
        (Ok(()), None) => Ok(()),
        (Err(DriverError::System(errno)), None) => Err(LinkError::System(errno)),
        (Err(DriverError::Closed(why)), None) => Err(LinkError::Closed { channel: 0, why }),
        (Err(_), None) => Err(LinkError::Stalled { millis: 0 }),
    }
}
