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

/// An error of a library that ends a command.
trait Cause: std::fmt::Display {
    /// Returns whether the command line, or a file that it names, is wrong.
    fn is_usage(&self) -> bool {
        false
    }
}

impl<C: Cause> From<C> for Error {
    fn from(cause: C) -> Self {
        let text = cause.to_string();
        if cause.is_usage() { Error::Usage(text) } else { Error::Failed(text) }
    }
}

impl Cause for hodo_catalog::Error {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

impl Cause for hodo_daemon::Error {}

#[cfg(feature = "farm")]
impl Cause for hodo_store::Error {}

#[cfg(feature = "farm")]
impl Cause for hodo_farm_host::Error {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Settings(_))
    }
}

#[cfg(feature = "ipbus")]
impl Cause for hodo_ipbus_host::registers::Error {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

#[cfg(feature = "ipbus")]
impl Cause for hodo_ipbus_host::daemon::HubError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::AllowList { .. } | Self::Trace { .. })
    }
}

#[cfg(feature = "pva")]
impl Cause for hodo_pva_host::serve::ServeError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

#[cfg(feature = "spacewire")]
impl Cause for hodo_spacewire_host::network::PlanError {
    fn is_usage(&self) -> bool {
        true
    }
}

#[cfg(feature = "spacewire")]
impl Cause for hodo_spacewire_host::bridge::BridgeError {}

#[cfg(feature = "spacewire")]
impl Cause for hodo_spacewire_host::session::SessionError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Port(_))
    }
}

#[cfg(feature = "spacewire")]
impl Cause for hodo_spacewire_host::session::RmapError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Session(why) => why.is_usage(),
            other => matches!(other, Self::Request(_)),
        }
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
