use crate::{Closed, Instant, Machine};
use core::fmt;
use core::time::Duration;
use thiserror::Error;

/// The way in which a driver waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Look once and return.
    Never,
    /// Sleep in the kernel at once, as a plain blocking program does: no look but the blocking call itself.
    Block,
    /// Poll briefly before a sleep where that has paid lately, and sleep at once where it has not.
    #[default]
    Adaptive,
    /// Poll without sleeping: the lowest latency for one whole processor.
    Spin,
    /// Poll for this long, then sleep.
    SpinThenBlock(Duration),
}

impl Wait {
    /// Returns whether an idle thread sleeps, apart from short looks: a deadline then costs a timer of the kernel.
    #[must_use]
    pub const fn sleeps(self) -> bool {
        matches!(self, Wait::Block | Wait::Adaptive)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Never => f.write_str("never"),
            Wait::Block => f.write_str("block"),
            Wait::Adaptive => f.write_str("adaptive"),
            Wait::Spin => f.write_str("spin"),
            Wait::SpinThenBlock(span) => write!(f, "spin:{}us", span.as_micros()),
        }
    }
}

/// Whoever runs a machine: an endpoint on real sockets, or the simulated network.
pub trait Driver {
    /// The machine that is run.
    type Machine: Machine;

    /// Returns the machine, to be asked.
    fn machine(&self) -> &Self::Machine;

    /// Returns the machine, to be set up. It is polled in the next [`Driver::turn`], because it may have something to send then.
    fn machine_mut(&mut self) -> &mut Self::Machine;

    /// Hands a command to the machine. Its outputs are carried out by the next [`Driver::turn`].
    fn command(&mut self, command: <Self::Machine as Machine>::Command);

    /// Carries out what the machine wants, then waits for input, at most to `until`, and handles it.
    ///
    /// Returns after the first input that was there, or at `until`; events are handed to `told` as they come.
    ///
    /// # Errors
    /// [`DriverError::System`] if the operating system refuses what is needed, [`DriverError::Closed`] if the transport is closed,
    /// [`DriverError::NothingLeft`] if nothing is left to happen in a simulation.
    fn turn(
        &mut self,
        wait: Wait,
        until: Instant,
        told: &mut dyn FnMut(<Self::Machine as Machine>::Event),
    ) -> Result<(), DriverError>;

    /// Returns the time now, on this driver's clock.
    fn now(&self) -> Instant;
}

/// Why a driver cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The operating system refused something that is needed, with this `errno`.
    #[error("the operating system refused (errno {0})")]
    System(i32),
    /// The transport was closed for this reason.
    #[error("{0}")]
    Closed(Closed),
    /// Simulated time ran on without anything left to happen before `until`.
    #[error("nothing is left to happen in the simulated network")]
    NothingLeft,
}
