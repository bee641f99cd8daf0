use super::{Channel, ChannelListener};
use crate::poller::Poller;
use std::io;
use std::time::Duration;

/// A set of channels and listeners, with which a thread waits for any of them. A channel that is dropped leaves the set.
pub struct ChannelSet {
    poller: Poller,
}

impl ChannelSet {
    /// Creates an empty set.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn new() -> io::Result<Self> {
        Ok(ChannelSet { poller: Poller::new()? })
    }

    /// Adds a channel; `token` stands for it in [`ChannelSet::next`].
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn add(&self, channel: &Channel, token: u64) -> io::Result<()> {
        self.poller.add(channel.as_fd(), token, false)
    }

    /// Takes a channel out of the set, with what was found ready of it.
    pub fn remove(&mut self, channel: &Channel, token: u64) {
        self.poller.remove(channel.as_fd(), token);
    }

    /// Adds a listener; `token` stands for it in [`ChannelSet::next`].
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn add_listener(&self, listener: &ChannelListener, token: u64) -> io::Result<()> {
        self.poller.add(listener.as_fd(), token, false)
    }

    /// Sleeps until a message, a connection or the end of a channel has come, at most for `span`, or without end for `None`.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn wait(&mut self, span: Option<Duration>) -> io::Result<()> {
        self.poller.wait(span).map(drop)
    }

    /// Returns the token of the next channel or listener that the last [`ChannelSet::wait`] found ready.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<u64> {
        self.poller.next().map(|ready| ready.token)
    }
}

impl std::fmt::Debug for ChannelSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelSet").finish_non_exhaustive()
    }
}
