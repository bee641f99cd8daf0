//! Subscriptions and connection states of a context.

use super::feed::Feed;
use super::{Order, Running};
use crate::client::{ClientError, Trouble};
use crate::machines::{BitSet, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// An update of a monitor.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The whole value; its changed fields are those of this update.
    pub value: Value,
    /// The fields of which an earlier change was overwritten before it was taken.
    pub overrun: BitSet,
}

/// An event that a monitor's callback gets.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// A new value.
    Update(Update),
    /// The last event: the server has ended the monitor in order, has refused it, or the context is closed.
    Ended(Result<(), ClientError>),
}

/// The connection of a channel, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// It is open at this server.
    Connected(String),
    /// It is not open, for this reason if there is one yet.
    Disconnected(Option<Trouble>),
    /// The context is closed.
    Closed,
}

/// A subscription, which goes on over reconnections until it is dropped.
///
/// As an iterator it waits for each update; it ends when the monitor has ended, with an error if that was the reason.
#[must_use = "a monitor that is dropped ends"]
pub struct Monitor {
    feed: Arc<Feed<MonitorEvent>>,
    running: Arc<Running>,
    taken: VecDeque<MonitorEvent>,
    is_over: bool,
}

impl Monitor {
    pub(super) fn new(running: &Arc<Running>, feed: Arc<Feed<MonitorEvent>>) -> Self {
        Monitor { feed, running: Arc::clone(running), taken: VecDeque::new(), is_over: false }
    }

    /// Waits for the next update for some time. Returns `None` if there was none, or the monitor [is over](Monitor::is_over). One with a
    /// callback has none left to return.
    ///
    /// # Errors
    /// A [`ClientError`] once, if the server has refused the monitor or the context is closed.
    pub fn next_update(&mut self, timeout: Duration) -> Result<Option<Update>, ClientError> {
        if self.taken.is_empty() && !self.is_over && !self.feed.take(&mut self.taken, timeout) {
            self.is_over = true;
        }
        match self.taken.pop_front() {
            Some(MonitorEvent::Update(update)) => Ok(Some(update)),
            Some(MonitorEvent::Ended(why)) => {
                self.is_over = true;
                why.map(|()| None)
            }
            None => Ok(None),
        }
    }

    /// Returns whether no further updates come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Iterator for Monitor {
    type Item = Result<Update, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_update(Duration::from_secs(3600)) {
                Ok(Some(update)) => return Some(Ok(update)),
                Err(why) => return Some(Err(why)),
                Ok(None) if self.is_over => return None,
                Ok(None) => {}
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.feed.leave();
        self.running.core.push(Order::EndMonitor(Arc::clone(&self.feed)));
    }
}

/// A callback for the connection of a channel, which is called until this is dropped.
#[must_use = "a watch that is dropped ends"]
pub struct Watch {
    feed: Arc<Feed<ConnectionState>>,
    running: Arc<Running>,
}

impl Watch {
    pub(super) fn new(running: &Arc<Running>, feed: Arc<Feed<ConnectionState>>) -> Self {
        Watch { feed, running: Arc::clone(running) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.feed.leave();
        self.running.core.push(Order::EndWatch(Arc::clone(&self.feed)));
    }
}
