//! The send queue of a queue pair: requests are carried out when they are posted, or as soon as the far end lets them.

use super::backlog::Waiting;
use super::far::Far;
use super::queue_pair::{QueuePair, Refusal, Resources, State};
use super::requester::{Fault, Reason, Setback, Work, is_answered, kind_of};
use crate::device::Reliability;
use hodo_machine::Instant;
use hodo_roce::{Completion, Operation, SendRequest, Status};
use std::time::Duration;

/// Retries when the receiver is not ready that stand for any number.
const ANY_NUMBER: u8 = 7;

impl QueuePair {
    /// Posts a send request, and carries it out if that is possible now.
    #[inline]
    pub(super) fn post_send(&mut self, request: &SendRequest<'_>, resources: &mut Resources) -> Result<(), Refusal> {
        let length = self.check(request)?;
        if self.state != State::Connected {
            if self.state == State::Init {
                return Err(Refusal::Malformed("the queue pair is not connected"));
            }
            self.sends_open += 1;
            resources.ready.push_back(self.completion(request.id, kind_of(&request.operation), Status::Flushed));
            return Ok(());
        }
        if request.is_inline && !resources.regions.resolve(request.entries, length, false, resources.scratch.near()) {
            return Err(Refusal::Malformed("an inline payload is outside of every region"));
        }
        if !self.backlog.is_empty() {
            self.put_off(request, length, resources);
            return Ok(());
        }
        let work = Work {
            operation: request.operation,
            length,
            entries: request.entries,
            inline: None,
            is_solicited: request.is_solicited,
        };
        match attempt(&mut self.far, &work, resources) {
            Ok(has_arrived) => {
                if has_arrived {
                    self.wake();
                }
                if request.is_signaled {
                    self.sends_open += 1;
                    let completed = self.done(request.id, &request.operation, length);
                    resources.ready.push_back(completed);
                }
            }
            Err(Setback::Wait(reason)) => {
                self.put_off(request, length, resources);
                self.wait(reason, resources);
            }
            Err(Setback::Fault(fault)) => {
                self.put_off(request, length, resources);
                self.fail_for(fault, resources);
            }
        }
        Ok(())
    }

    /// Checks a send request, and returns the length of its payload.
    #[inline]
    fn check(&self, request: &SendRequest<'_>) -> Result<u32, Refusal> {
        /// The longest message (9.7.7).
        const MESSAGE_MAX: u64 = 1 << 31;
        if self.sends_open >= self.limits.send_depth.max(1) {
            return Err(Refusal::Full);
        }
        if request.entries.len() > self.limits.send_entries as usize {
            return Err(Refusal::Malformed("more entries than the queue pair was created for"));
        }
        let length: u64 = request.entries.iter().map(|entry| u64::from(entry.length)).sum();
        if length > MESSAGE_MAX {
            return Err(Refusal::Malformed("longer than the longest message, 2^31 bytes"));
        }
        if request.is_inline && length > u64::from(self.limits.inline_bytes) {
            return Err(Refusal::Malformed("an inline payload longer than the queue pair was created for"));
        }
        if is_answered(&request.operation) {
            let is_atomic = !matches!(request.operation, Operation::Read(_));
            if is_atomic && length != 8 {
                return Err(Refusal::Malformed("an atomic operation needs eight bytes for its result"));
            }
            if request.is_inline {
                return Err(Refusal::Malformed("only sends and writes can be inline"));
            }
            if self.reliability.reads == 0 {
                return Err(Refusal::Malformed("the queue pair was connected for no reads and atomic operations"));
            }
        }
        Ok(length as u32)
    }

    #[inline]
    fn done(&self, id: u64, operation: &Operation, length: u32) -> Completion {
        let length = if is_answered(operation) { length } else { 0 };
        Completion { length, ..self.completion(id, kind_of(operation), Status::Success) }
    }

    /// Puts a request at the end of the backlog.
    #[cold]
    fn put_off(&mut self, request: &SendRequest<'_>, length: u32, resources: &mut Resources) {
        self.sends_open += 1;
        let Resources { regions, scratch, .. } = resources;
        let pieces = scratch.near();
        self.backlog.push(request, length, |room| {
            if regions.resolve(request.entries, length, false, pieces) {
                regions.copy_out(pieces, room);
            }
        });
    }

    /// Carries out what the backlog holds, as far as that is possible now.
    pub(super) fn progress(&mut self, resources: &mut Resources) {
        while let Some((pending, work)) = self.backlog.front() {
            match attempt(&mut self.far, &work, resources) {
                Ok(has_arrived) => {
                    self.backlog.pop();
                    if has_arrived {
                        self.wake();
                    }
                    if pending.is_signaled {
                        let completed = self.done(pending.id, &pending.operation, pending.length());
                        resources.ready.push_back(completed);
                    } else {
                        self.sends_open -= 1;
                    }
                }
                Err(Setback::Wait(reason)) => return self.wait(reason, resources),
                Err(Setback::Fault(fault)) => return self.fail_for(fault, resources),
            }
        }
    }

    /// Notes why the first request of the backlog waits, and fails it if it may not.
    fn wait(&mut self, reason: Reason, resources: &mut Resources) {
        resources.needs_channels |= reason == Reason::Silent;
        if self.backlog.waiting.is_none_or(|waiting| waiting.reason != reason) {
            let deadline = self.patience(reason).map(|span| resources.clock.now() + span);
            self.backlog.waiting = Some(Waiting { reason, deadline });
            if self.patience(reason) == Some(Duration::ZERO) {
                self.expire(Instant::MAX, resources);
            }
        }
    }

    /// Returns how long a request waits before it fails; `None` for ever.
    fn patience(&self, reason: Reason) -> Option<Duration> {
        let Reliability { timeout, retries, receiver_not_ready_retries, .. } = self.reliability;
        match reason {
            Reason::Silent => (timeout > 0).then(|| ack_timeout(timeout) * (u32::from(retries) + 1)),
            Reason::ReceiverNotReady => (receiver_not_ready_retries < ANY_NUMBER)
                .then(|| self.not_ready_span() * u32::from(receiver_not_ready_retries)),
        }
    }

    fn not_ready_span(&self) -> Duration {
        not_ready_span(self.far.as_ref().map_or(0, |far| far.not_ready_timer))
    }

    /// Fails the first request of the backlog if its time is over.
    pub(super) fn expire(&mut self, now: Instant, resources: &mut Resources) {
        if let Some(Waiting { reason, deadline: Some(deadline) }) = self.backlog.waiting
            && now >= deadline
        {
            let status = match reason {
                Reason::Silent => Status::RetryExceeded,
                Reason::ReceiverNotReady => Status::ReceiverNotReady,
            };
            self.fail(status, resources);
        }
    }

    /// Returns when the backlog is to be looked at again, though nothing tells of it.
    pub(super) fn look_again(&self, now: Instant) -> Instant {
        let Some(Waiting { reason, deadline }) = self.backlog.waiting else { return Instant::MAX };
        let retry = match reason {
            Reason::ReceiverNotReady => now + self.not_ready_span(),
            Reason::Silent => Instant::MAX,
        };
        retry.min(deadline.unwrap_or(Instant::MAX))
    }

    /// Fails because of a request that cannot be carried out, and tells the far end if it has a part in that.
    #[cold]
    fn fail_for(&mut self, fault: Fault, resources: &mut Resources) {
        if let (Some(arrival), Some(far)) = (fault.told, &mut self.far) {
            far.arrive(&arrival);
            self.wake();
        }
        self.fail(fault.status, resources);
    }
}

/// Carries out a request. Returns whether something arrived at the far end.
#[inline]
fn attempt(far: &mut Option<Far>, work: &Work<'_>, resources: &mut Resources) -> Result<bool, Setback> {
    let far = far.as_mut().ok_or(Setback::Wait(Reason::Silent))?;
    far.attempt(work, &resources.regions, &mut resources.scratch)
}

/// Returns the acknowledgement timeout of a code from 1 to 31: 4.096 us * 2^code (9.7.6.1.3).
const fn ack_timeout(code: u8) -> Duration {
    Duration::from_nanos(4096 << (code & 31))
}

/// Returns the time to wait of a code when the receiver is not ready (9.7.5.2.8, table 45).
fn not_ready_span(code: u8) -> Duration {
    const TENS_OF_US: [u32; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
        4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    Duration::from_micros(10) * TENS_OF_US[usize::from(code & 31)]
}
