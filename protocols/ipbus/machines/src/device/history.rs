use crate::wire::status::{EVENTS, Event, HEADERS, Traffic};

/// The traffic that a device remembers for its status: the last things that arrived, and control packets' headers.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) events: [Event; EVENTS],
    pub(crate) received: [u32; HEADERS],
    pub(crate) sent: [u32; HEADERS],
}

impl History {
    /// Forgets all but that there was a reset.
    pub(crate) fn reset(&mut self) {
        *self = History::default();
        self.note(Event::new(Traffic::Reset));
    }

    /// Notes something that has arrived.
    #[inline]
    pub(crate) fn note(&mut self, event: Event) {
        push(&mut self.events, event);
    }

    /// Notes a control packet that was received, and taken.
    #[inline]
    pub(crate) fn received(&mut self, header: u32) {
        push(&mut self.received, header);
    }

    /// Notes that the reply to a control packet was sent.
    #[inline]
    pub(crate) fn sent(&mut self, header: u32) {
        push(&mut self.sent, header);
    }
}

/// Puts one more at the end; the oldest, in front, gives way.
#[inline]
fn push<T: Copy, const N: usize>(all: &mut [T; N], one: T) {
    all.copy_within(1.., 0);
    all[N - 1] = one;
}
