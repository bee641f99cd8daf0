//! Channels that are opened one after the other, and closed once they are open.

/// The operations in flight whose channel is being opened.
#[derive(Debug, Default)]
pub(super) struct Connects {
    /// The tag of the operation that opens a channel, by the client's number of that.
    tags: Vec<Option<u64>>,
    /// Numbers of the client that are free, of each channel of the link.
    free: Vec<Vec<u32>>,
    /// Channels that are open now, and to be closed.
    pub(super) opened: Vec<u32>,
}

impl Connects {
    /// Returns the client's number of a channel that this operation opens. `fresh` makes one.
    pub(super) fn begin(&mut self, channel: u32, tag: u64, fresh: impl FnOnce() -> u32) -> u32 {
        let number = self.free.get_mut(channel as usize).and_then(Vec::pop).unwrap_or_else(fresh);
        if self.tags.len() <= number as usize {
            self.tags.resize(number as usize + 1, None);
        }
        self.tags[number as usize] = Some(tag);
        number
    }

    /// Returns the tag of the operation that opens this channel, which has ended; `None` if there is none.
    #[inline]
    pub(super) fn end(&mut self, number: u32) -> Option<u64> {
        let tag = self.tags.get_mut(number as usize)?.take()?;
        self.opened.push(number);
        Some(tag)
    }

    /// Makes the number of a closed channel available again.
    pub(super) fn release(&mut self, channel: u32, number: u32) {
        if self.free.len() <= channel as usize {
            self.free.resize_with(channel as usize + 1, Vec::new);
        }
        self.free[channel as usize].push(number);
    }
}
