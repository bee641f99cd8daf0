//! Changes of the values that are served.

use crate::data::{BitSet, Value};
use crate::server::{Channel, Shared};

impl Shared {
    pub(crate) fn channel(&self, number: u32) -> Option<&Channel> {
        self.channels.get(number)?.as_ref()
    }

    /// Takes over the changed fields of a value of the same type, and returns whether there are any; `changed` is then the set of them.
    pub(super) fn merge(&mut self, number: u32, value: &Value, changed: &mut BitSet) -> bool {
        let Some(Some(channel)) = self.channels.at(number) else { return false };
        changed.assign(value.changed());
        value.plan().expand(changed);
        channel.value.take(value, changed) && !changed.is_empty()
    }

    /// Takes over what a client has put, whose value gets what was there.
    pub(crate) fn put(&mut self, number: u32, value: &mut Value) {
        let Some(Some(channel)) = self.channels.at(number) else { return };
        self.posted_fields.assign(value.changed());
        value.plan().expand(&mut self.posted_fields);
        if channel.value.exchange(value, &self.posted_fields) && !self.posted_fields.is_empty() {
            self.posted = Some(number);
            if channel.is_made {
                let bytes = channel.value.retained() as u64;
                let before = core::mem::replace(&mut channel.put_bytes, bytes);
                self.made_bytes = self.made_bytes - before + bytes;
                self.has_made = bytes > before;
            }
        }
    }
}
