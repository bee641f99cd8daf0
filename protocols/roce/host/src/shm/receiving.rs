//! The receive queue of a queue pair: receives are posted where the far end sees them, which completes them.

use super::layout::Arrival;
use super::queue_pair::{QueuePair, Refusal, Resources, State};
use hodo_roce::{Completed, Completion, ReceiveRequest, Status};
use std::collections::VecDeque;

/// A posted receive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Receive {
    id: u64,
    length: u64,
}

/// A slot of the ring of arrivals that was taken.
pub(super) enum Taken {
    /// A receive completed.
    Message(Completion),
    /// The queue pair fails, after this completion.
    End(Option<Completion>),
}

impl QueuePair {
    /// Posts a receive request.
    #[inline]
    pub(super) fn post_receive(
        &mut self,
        request: &ReceiveRequest<'_>,
        ready: &mut VecDeque<Completion>,
    ) -> Result<(), Refusal> {
        if self.receives_open >= self.limits.receive_depth.max(1) {
            return Err(Refusal::Full);
        }
        if request.entries.len() > self.limits.receive_entries as usize {
            return Err(Refusal::Malformed("more entries than the queue pair was created for"));
        }
        self.receives_open += 1;
        if self.state == State::Failed {
            ready.push_back(self.completion(request.id, Completed::Receive, Status::Flushed));
            return Ok(());
        }
        let length = request.entries.iter().map(|entry| u64::from(entry.length)).sum();
        self.receives[self.rings.shape().slot(self.posted)] = Receive { id: request.id, length };
        self.rings.post(self.posted, request.entries);
        self.posted = self.posted.wrapping_add(1);
        Ok(())
    }

    /// Appends the completions of the messages that have arrived, and carries out what waited for the far end.
    #[inline]
    pub(super) fn look(&mut self, completions: &mut Vec<Completion>, resources: &mut Resources) {
        if self.state != State::Connected {
            return;
        }
        while let Some(taken) = self.take_next() {
            match taken {
                Taken::Message(completion) => {
                    self.receives_open -= 1;
                    completions.push(completion);
                }
                Taken::End(completion) => {
                    resources.ready.extend(completion);
                    return self.fail(Status::Flushed, resources);
                }
            }
        }
        if !self.backlog.is_empty() {
            self.progress(resources);
        }
    }

    /// Completes a receive if something has arrived for it.
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<Taken> {
        self.rings.arrived(self.taken).map(|arrived| self.take(arrived.ok()))
    }

    /// Returns the receive that completes next, if one is posted.
    #[inline]
    pub(super) fn oldest_receive(&self) -> Option<Receive> {
        (self.taken != self.posted).then(|| self.receives[self.rings.shape().slot(self.taken)])
    }

    /// Completes a receive with what the far end wrote, `None` for garbage.
    #[inline]
    fn take(&mut self, arrival: Option<Arrival>) -> Taken {
        let receive = self.oldest_receive();
        let (message, receive) = match (arrival, receive) {
            (Some(Arrival::Message(message)), Some(receive)) => (message, receive),
            (Some(Arrival::Failed), _) => return Taken::End(None),
            (Some(Arrival::Refused(status)), Some(receive)) => return Taken::End(Some(self.refused(receive, status))),
            (_, receive) => return Taken::End(receive.map(|receive| self.refused(receive, Status::General))),
        };
        if message.kind == Completed::Receive && u64::from(message.length) > receive.length {
            return Taken::End(Some(self.refused(receive, Status::General)));
        }
        self.taken = self.taken.wrapping_add(1);
        Taken::Message(Completion {
            id: receive.id,
            queue_pair: self.local.number,
            status: Status::Success,
            kind: message.kind,
            length: message.length,
            immediate: message.immediate,
            invalidated: message.invalidated,
            is_solicited: message.is_solicited,
        })
    }

    /// Completes a receive with an error.
    pub(super) fn refused(&mut self, receive: Receive, status: Status) -> Completion {
        self.taken = self.taken.wrapping_add(1);
        self.completion(receive.id, Completed::Receive, status)
    }
}
