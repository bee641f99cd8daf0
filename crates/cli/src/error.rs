use hodo_catalog as catalog;
#[cfg(feature = "ipbus")]
use hodo_ipbus_host::daemon::HubError;
#[cfg(feature = "pva")]
use hodo_pva_host::serve::ServeError;
use std::process::ExitCode;

/// The reason why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The command line is wrong: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// The world is: exit status 1.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Returns the exit status of the error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Usage(_) => ExitCode::from(2),
            Error::Failed(_) => ExitCode::from(1),
        }
    }
}

impl From<catalog::Error> for Error {
    fn from(error: catalog::Error) -> Self {
        match error {
            catalog::Error::Usage(text) => Error::Usage(text),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<hodo_daemon::Error> for Error {
    fn from(error: hodo_daemon::Error) -> Self {
        Error::Failed(error.to_string())
    }
}

#[cfg(feature = "farm")]
impl From<hodo_farm_host::Error> for Error {
    fn from(error: hodo_farm_host::Error) -> Self {
        match error {
            hodo_farm_host::Error::Settings(why) => Error::Usage(why),
            other => Error::Failed(other.to_string()),
        }
    }
}

#[cfg(feature = "ipbus")]
impl From<hodo_ipbus_host::registers::Error> for Error {
    fn from(error: hodo_ipbus_host::registers::Error) -> Self {
        match error {
            hodo_ipbus_host::registers::Error::Usage(text) => Error::Usage(text),
            hodo_ipbus_host::registers::Error::Failed(text) => Error::Failed(text),
        }
    }
}

#[cfg(feature = "ipbus")]
impl From<HubError> for Error {
    fn from(error: HubError) -> Self {
        match error {
            HubError::AllowList { .. } | HubError::Trace { .. } => Error::Usage(error.to_string()),
            other => Error::Failed(other.to_string()),
        }
    }
}

#[cfg(feature = "pva")]
impl From<ServeError> for Error {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::File(why) => Error::Usage(why),
            other => Error::Failed(other.to_string()),
        }
    }
}

#[cfg(feature = "spacewire")]
impl From<hodo_spacewire_host::network::PlanError> for Error {
    fn from(error: hodo_spacewire_host::network::PlanError) -> Self {
        Error::Usage(error.to_string())
    }
}

#[cfg(feature = "spacewire")]
impl From<hodo_spacewire_host::bridge::BridgeError> for Error {
    fn from(error: hodo_spacewire_host::bridge::BridgeError) -> Self {
        Error::Failed(error.to_string())
    }
}

#[cfg(feature = "spacewire")]
impl From<hodo_spacewire_host::session::SessionError> for Error {
    fn from(error: hodo_spacewire_host::session::SessionError) -> Self {
        match error {
            hodo_spacewire_host::session::SessionError::Port(why) => Error::Usage(why.to_string()),
            other => Error::Failed(other.to_string()),
        }
    }
}

#[cfg(feature = "spacewire")]
impl From<hodo_spacewire_host::session::RmapError> for Error {
    fn from(error: hodo_spacewire_host::session::RmapError) -> Self {
        match error {
            hodo_spacewire_host::session::RmapError::Session(why) => why.into(),
            hodo_spacewire_host::session::RmapError::Request(why) => Error::Usage(why.to_string()),
            other => Error::Failed(other.to_string()),
        }
    }
}

#[cfg(feature = "farm")]
impl From<hodo_store::Error> for Error {
    fn from(error: hodo_store::Error) -> Self {
        Error::Failed(error.to_string())
    }
}

/// How a command that ran to its end came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: exit status 0.
    Done,
    /// A measurement or a check failed, or the run was interrupted: exit status 1.
    Failed,
    /// A check cannot tell: exit status 3.
    CannotTell,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Failed => ExitCode::from(1),
            Outcome::CannotTell => ExitCode::from(3),
        }
    }
}
