use crate::data::Value;
use crate::server::{Access, Channel, ServerConfig, Shared};
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use hodo_machine::Peer;

/// Channels that are made when a client opens them, and dropped when the last one has closed them.
///
/// Both functions are called while a message is taken in, so that they have to be quick.
pub trait Source: Send + Sync {
    /// Tells whether there is a channel of this name. Anyone who searches is answered by this.
    fn has(&self, name: &str) -> bool;

    /// Makes a channel: its value, and who decides about what is put. `None` if there is none of this name.
    fn make(&self, name: &str) -> Option<(Value, Access)>;
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn has(&self, name: &str) -> bool {
        (**self).has(name)
    }

    fn make(&self, name: &str) -> Option<(Value, Access)> {
        (**self).make(name)
    }
}

/// A [`Source`] in the settings of a server; none at first.
#[derive(Clone, Default)]
pub struct Sourced(Option<Arc<dyn Source>>);

impl<S: Source + 'static> From<S> for Sourced {
    fn from(source: S) -> Self {
        Sourced(Some(Arc::new(source)))
    }
}

impl fmt::Debug for Sourced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a source" } else { "none" })
    }
}

impl Shared {
    /// Tells whether a channel of this name is served, or can be made, and may be searched for.
    pub(crate) fn has(&self, name: &str, config: &ServerConfig) -> bool {
        name != config.own_channel
            && (self.names.contains_key(name) || config.source.0.as_ref().is_some_and(|source| source.has(name)))
    }

    /// Returns the number of a channel for a client that opens it, and is to say so by [`Shared::opened`]. It is made if it can be.
    pub(crate) fn find(&mut self, name: &str, config: &ServerConfig) -> Option<u32> {
        Some(match self.names.get(name) {
            Some(number) => *number,
            None => {
                let (value, access) = config.source.0.as_ref()?.make(name)?;
                let name = name.to_string();
                let number = self.channels.insert(Some(Channel::new(name.clone(), value, access, true)));
                self.names.insert(name, number);
                number
            }
        })
    }

    /// Notes that a client has opened a channel, and its number for it.
    pub(crate) fn opened(&mut self, number: u32, peer: Peer, sid: u32) {
        if let Some(Some(channel)) = self.channels.at(number) {
            channel.opened_by.insert((peer, sid));
        }
    }

    /// Notes that a client has closed a channel, and drops it if it was made for those who have closed it.
    pub(crate) fn closed(&mut self, number: u32, peer: Peer, sid: u32) {
        let Some(Some(channel)) = self.channels.at(number) else { return };
        channel.opened_by.remove(&(peer, sid));
        if channel.is_made && channel.opened_by.is_empty() {
            if self.names.get(&channel.name) == Some(&number) {
                self.names.remove(&channel.name);
            }
            self.channels[number] = None;
            self.channels.release(number);
        }
    }
}
