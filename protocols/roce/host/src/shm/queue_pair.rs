//! A queue pair: the requests that are outstanding, and how they complete.

use super::backlog::Backlog;
use super::far::{Far, Heard, Inbox};
use super::layout::{OwnerState, Rings};
use super::messages::{Announced, BELL, Hello, announce};
use super::receiving::{Receive, Taken};
use super::regions::{Regions, SlotSet};
use super::requester::{Reason, Scratch, kind_of};
use crate::device::{AddressOfQueuePair, Limits, Reliability};
use hodo_io::Clock;
use hodo_io::shared_memory::{Channel, FILES_MAX};
use hodo_roce::{Completed, Completion, Status};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

/// The state of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Receives may be posted.
    Init,
    /// Connected to its far end.
    Connected,
    /// Failed: everything that is posted is flushed.
    Failed,
}

/// The resources that the queue pairs of a device share.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) clock: Clock,
    pub(super) regions: Regions,
    /// Completions that the application has not polled.
    pub(super) ready: VecDeque<Completion>,
    pub(super) scratch: Scratch,
    pub(super) inbox: Inbox,
    /// Whether a request waits for what comes on a channel.
    pub(super) needs_channels: bool,
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct QueuePair {
    pub(super) local: AddressOfQueuePair,
    /// The far end, once it is known.
    pub(super) remote: Option<AddressOfQueuePair>,
    pub(super) state: State,
    pub(super) rings: Rings,
    pub(super) far: Option<Far>,
    /// On which this end sends.
    pub(super) outgoing: Option<Channel>,
    /// Regions whose coming or going the far end has not been told.
    unannounced: SlotSet,
    pub(super) receives: Box<[Receive]>,
    /// The numbers of the next receive that is posted, and of the next that completes.
    pub(super) posted: u32,
    pub(super) taken: u32,
    pub(super) backlog: Backlog,
    pub(super) reliability: Reliability,
    pub(super) limits: Limits,
    /// Requests whose completions the application has not polled.
    pub(super) sends_open: u32,
    pub(super) receives_open: u32,
}

/// Why a request is not accepted, with the words of verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The queue is full.
    Full,
    /// The request is malformed. The text says how.
    Malformed(&'static str),
}

impl QueuePair {
    pub(super) fn new(local: AddressOfQueuePair, limits: &Limits, rings: Rings) -> Self {
        QueuePair {
            local,
            remote: None,
            state: State::Init,
            receives: vec![Receive::default(); rings.shape().depth() as usize].into_boxed_slice(),
            rings,
            far: None,
            outgoing: None,
            unannounced: SlotSet::default(),
            posted: 0,
            taken: 0,
            backlog: Backlog::new(limits.send_depth, limits.send_entries, limits.inline_bytes),
            reliability: Reliability::default(),
            limits: *limits,
            sends_open: 0,
            receives_open: 0,
        }
    }

    /// Moves on to "connected", and introduces itself and all regions to the far end. Returns `false` if the channel has no room.
    ///
    /// # Errors
    /// Returns the operating system's error if the far end has closed the channel.
    pub(super) fn connect(
        &mut self,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
        outgoing: Channel,
        (regions, table): (&Regions, BorrowedFd<'_>),
    ) -> io::Result<bool> {
        let hello = Hello {
            from: self.local,
            to_number: remote.number,
            to_psn: remote.psn,
            shape: self.rings.shape(),
            not_ready_timer: reliability.receiver_not_ready_timer,
        };
        let rings = self.rings.memory().file().expect("created here");
        self.rings.set_state(OwnerState::Ready);
        if !outgoing.send(&hello.encode(), &[rings, table])? {
            return Ok(false);
        }
        self.remote = Some(*remote);
        self.reliability = *reliability;
        self.outgoing = Some(outgoing);
        self.state = State::Connected;
        regions.taken().filter(|slot| is_shared(*slot, regions)).for_each(|slot| self.unannounced.insert(slot));
        self.announce(regions);
        Ok(true)
    }

    /// Wakes the far end if it sleeps; something has arrived there.
    #[inline]
    pub(super) fn wake(&self) {
        if let (Some(far), Some(outgoing)) = (&self.far, &self.outgoing)
            && far.table.is_to_be_woken()
        {
            // A channel that has no room holds messages that wake its reader as well, and one that has ended has no reader.
            let _ = outgoing.send(&BELL, &[]);
        }
    }

    /// Fails: messages that have arrived complete, the first send request of the backlog fails with this status, and everything
    /// else is flushed.
    #[cold]
    pub(super) fn fail(&mut self, mut status: Status, resources: &mut Resources) {
        if self.state == State::Failed {
            return;
        }
        while let Some(taken) = self.take_next() {
            match taken {
                Taken::Message(completion) => resources.ready.push_back(completion),
                Taken::End(completion) => {
                    resources.ready.extend(completion);
                    break;
                }
            }
        }
        self.state = State::Failed;
        self.rings.set_state(OwnerState::Failed);
        while let Some(pending) = self.backlog.pop() {
            resources.ready.push_back(self.completion(pending.id, kind_of(&pending.operation), status));
            status = Status::Flushed;
        }
        while let Some(receive) = self.oldest_receive() {
            let flushed = self.refused(receive, Status::Flushed);
            resources.ready.push_back(flushed);
        }
    }

    /// Notes that the application has polled a completion that was made ready.
    #[inline]
    pub(super) fn polled(&mut self, completion: &Completion) {
        if completion.kind.is_receive() {
            self.receives_open -= 1;
        } else {
            self.sends_open -= 1;
        }
    }

    /// Notes that a region has come or gone.
    pub(super) fn note_change(&mut self, slot: usize, regions: &Regions) {
        if self.state == State::Connected {
            self.unannounced.insert(slot);
            self.announce(regions);
        }
    }

    /// Returns whether the far end has to be told of regions.
    pub(super) fn has_news(&self) -> bool {
        !self.unannounced.is_empty()
    }

    /// Tells the far end of regions that have come or gone, as far as the channel has room.
    pub(super) fn announce(&mut self, regions: &Regions) {
        let Some(outgoing) = &self.outgoing else { return };
        while !self.unannounced.is_empty() {
            let slots: Vec<usize> = self.unannounced.iter().take(FILES_MAX).collect();
            let (mut news, mut files) = (Vec::new(), Vec::new());
            for &slot in &slots {
                news.push(announced(slot, regions));
                let region = regions.in_slot(slot).filter(|_| is_shared(slot, regions));
                files.extend(region.and_then(|region| region.memory.file()));
            }
            match outgoing.send(&announce(&news), &files) {
                Ok(false) => return,
                // If the channel has ended, its other end is found out when this one is read.
                Ok(true) | Err(_) => slots.iter().for_each(|slot| self.unannounced.remove(*slot)),
            }
        }
    }

    /// Reads what the far end has sent. Fails if it has gone, or sends what it must not.
    pub(super) fn hear(&mut self, resources: &mut Resources) {
        let Some(far) = &mut self.far else { return };
        match far.hear(&mut resources.inbox) {
            Ok(Heard::There) => {}
            Ok(Heard::Gone) => self.lose(resources),
            Err(_) => self.hang_up(Status::General, resources),
        }
    }

    /// Closes the channels, because the far end has. If its owner destroyed it, this end learns of that when it sends, as it would
    /// on a wire, and keeps its receives. Otherwise its process has ended half-way, and this end fails at once.
    pub(super) fn lose(&mut self, resources: &mut Resources) {
        match &mut self.far {
            Some(far) if far.rings.is_in(OwnerState::Left) => {
                far.channel = None;
                self.outgoing = None;
            }
            _ => self.hang_up(Status::RetryExceeded, resources),
        }
    }

    /// Fails, and closes the channels.
    pub(super) fn hang_up(&mut self, status: Status, resources: &mut Resources) {
        self.fail(status, resources);
        (self.far, self.outgoing) = (None, None);
    }

    /// Returns whether the far end is yet to connect, or a region of it is yet to be mapped.
    pub(super) fn waits_for_channel(&self) -> bool {
        let is_silent = self.backlog.waiting.is_some_and(|waiting| waiting.reason == Reason::Silent);
        self.state == State::Connected && (self.far.is_none() || is_silent)
    }

    #[inline]
    pub(super) fn completion(&self, id: u64, kind: Completed, status: Status) -> Completion {
        Completion {
            id,
            queue_pair: self.local.number,
            status,
            kind,
            length: 0,
            immediate: None,
            invalidated: None,
            is_solicited: false,
        }
    }
}

impl Drop for QueuePair {
    /// Tells the far end that this is an orderly end.
    fn drop(&mut self) {
        self.rings.set_state(OwnerState::Left);
    }
}

/// Returns whether far ends map the region: receives may be posted there, or they have a right to it.
fn is_shared(slot: usize, regions: &Regions) -> bool {
    regions.in_slot(slot).is_some_and(|region| region.access.local_write || region.access.remote_read)
}

fn announced(slot: usize, regions: &Regions) -> Announced {
    match regions.in_slot(slot).filter(|_| is_shared(slot, regions)) {
        None => Announced::gone(slot as u8),
        Some(region) => Announced {
            slot: slot as u8,
            key: region.key,
            address: region.address,
            length: region.memory.len() as u64,
            access: region.access,
        },
    }
}
