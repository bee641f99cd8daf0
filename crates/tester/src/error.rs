use hodo_machine::DriverError;
use hodo_measure::LinkError;

/// Why a URI did not become a link or a server. Each message names the culprit and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URI or an option is wrong: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// The link could not be opened, or the server not be started: exit status 1.
    #[error("{0}")]
    Failed(String),
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
