use super::{ARRIVALS, Streams};
use crate::attended::Accepting;
use crate::listener::Arrivals;

impl Accepting for Streams {
    fn stop_listening(&mut self) {
        // A mailbox goes on to count those who are there, and to wake whoever is woken by it.
        if self.wakeable {
            return;
        }
        if let Some(watched) = self.arrivals.watched() {
            self.poller.remove(watched, ARRIVALS);
        }
        if matches!(self.arrivals, Arrivals::Listener { .. }) {
            self.arrivals = Arrivals::Nowhere;
        }
    }

    fn backlog(&self) -> usize {
        self.opened.iter().chain(&self.accepted).flatten().map(|stream| stream.backlog.len()).sum()
    }
}
