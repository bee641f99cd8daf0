use crate::{LinkError, Plan, Size};
use hodo_machine::{Instant, Random, between};

/// The operations of one link that may be in flight: `window` slots for each channel, each reused as soon as it is
/// free.
///
/// An operation's tag says where it is kept, so that its completion is an array index away:
///
/// | bits | |
/// |---|---|
/// | 0..24 | slot |
/// | 24 | started in the counted time |
/// | 25..48 | how often the slot has been used |
/// | 48..64 | which run: distinguishes operations that an earlier plan left behind on the link |
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Free slots of channel c are the first `free_count[c]` of the `window` entries from `c * window` on.
    free: Vec<u32>,
    free_count: Vec<u32>,
    window: u32,
    size: Size,
    seed: u64,
    run: u64,
    in_flight: usize,
    counted: bool,
    counted_started: u64,
    started: u64,
}

/// The number of operations in flight on one link that is a mistake: it would cost half a gigabyte.
pub(super) const SLOTS_MAX: u32 = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 24;
const COUNTED: u64 = 1 << SLOT_BITS;
const USE: u64 = COUNTED << 1;
const RUN_SHIFT: u32 = 48;
const RUN: u64 = u64::MAX << RUN_SHIFT;

#[derive(Clone, Copy)]
struct Slot {
    tag: u64,
    started: Instant,
    channel: u32,
    size: u32,
    busy: bool,
}

/// An operation that has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub slot: u32,
    pub channel: u32,
    pub size: u32,
    pub started: Instant,
}

/// An operation to be handed to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begun {
    pub tag: u64,
    pub channel: u32,
    pub size: u32,
}

impl Slots {
    /// Creates the slots, all free. `now` tells this run's tags from those of an earlier one on the same link.
    pub fn new(plan: &Plan, channels: u32, seed: u64, now: Instant) -> Self {
        let all = channels.saturating_mul(plan.window);
        assert!(all < SLOTS_MAX, "the plan was checked before it was run");
        // A microsecond or so apart is enough: a run takes longer.
        let run = now.as_nanos() >> 10 << RUN_SHIFT;
        let idle = |i: u32| Slot {
            tag: run | u64::from(i),
            started: Instant::ZERO,
            channel: i / plan.window,
            size: 0,
            busy: false,
        };
        Slots {
            slots: (0..all).map(idle).collect(),
            // The last is taken first, so that slots are used in their order.
            free: (0..all).map(|i| i / plan.window * plan.window + (plan.window - 1 - i % plan.window)).collect(),
            free_count: vec![plan.window; channels as usize],
            window: plan.window,
            size: plan.size,
            seed,
            run,
            in_flight: 0,
            counted: false,
            counted_started: 0,
            started: 0,
        }
    }

    /// Marks the operations started from now on as those of the counted time.
    pub fn count_from_here(&mut self) {
        self.counted = true;
    }

    /// Takes a free slot of this channel; [`Slots::begin`] follows.
    pub fn take(&mut self, channel: u32) -> Option<u32> {
        let left = self.free_count[channel as usize].checked_sub(1)?;
        self.free_count[channel as usize] = left;
        Some(self.free[(channel * self.window + left) as usize])
    }

    /// Gives a slot back whose operation has ended and that is not to be used at once.
    pub fn release(&mut self, ended: Ended) {
        let count = &mut self.free_count[ended.channel as usize];
        self.free[(ended.channel * self.window + *count) as usize] = ended.slot;
        *count += 1;
    }

    /// Starts the next operation in a slot that was taken, or whose operation has ended. The operation's time counts
    /// from `at`.
    #[inline]
    pub fn begin(&mut self, slot: u32, at: Instant) -> Begun {
        let counted = u64::from(self.counted);
        let kept = &mut self.slots[slot as usize];
        let tag = self.run | (kept.tag.wrapping_add(USE) & !RUN & !COUNTED) | (counted << SLOT_BITS);
        let size = drawn(self.size, self.seed, tag);
        *kept = Slot { tag, started: at, size, busy: true, ..*kept };
        self.in_flight += 1;
        self.started += 1;
        self.counted_started += counted;
        Begun { tag, channel: kept.channel, size }
    }

    /// Ends the operation with this tag, and returns it; `None` if it is of an earlier run.
    #[inline]
    pub fn end(&mut self, tag: u64) -> Result<Option<Ended>, LinkError> {
        if !self.of_this_run(tag) {
            return Ok(None);
        }
        let slot = slot_of(tag);
        match self.slots.get_mut(slot) {
            Some(kept) if kept.busy && kept.tag == tag => {
                kept.busy = false;
                self.in_flight -= 1;
                let Slot { started, channel, size, .. } = *kept;
                Ok(Some(Ended { slot: slot as u32, channel, size, started }))
            }
            kept => {
                let channel = kept.map_or(0, |kept| kept.channel);
                let what = "an operation ended that was not in flight: this is a fault of the link's code".to_owned();
                Err(LinkError::PeerMisbehaved { channel, what })
            }
        }
    }

    /// Ends an operation that was never begun, as if it had not been started. Returns it as [`Slots::end`] does.
    pub fn withdraw(&mut self, tag: u64) -> Result<Option<Ended>, LinkError> {
        let ended = self.end(tag)?;
        if ended.is_some() {
            self.started -= 1;
            self.counted_started -= u64::from(counted(tag));
        }
        Ok(ended)
    }

    /// Returns whether this run gave this tag.
    pub fn of_this_run(&self, tag: u64) -> bool {
        tag & RUN == self.run
    }

    /// Returns the size of the operation with this tag, also after its slot has been used again.
    pub fn size_of(&self, tag: u64) -> u32 {
        drawn(self.size, self.seed, tag)
    }

    /// Iterates over the operations in flight: the slot of each, and the time at which it was started.
    pub fn busy(&self) -> impl Iterator<Item = (u32, Instant)> + '_ {
        (0..).zip(&self.slots).filter(|(_, slot)| slot.busy).map(|(number, slot)| (number, slot.started))
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn all_busy(&self) -> bool {
        self.in_flight == self.slots.len()
    }

    /// Returns the operations in flight that were started in the counted time.
    pub fn counted_in_flight(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.busy && counted(slot.tag)).count() as u64
    }

    /// Returns the number of operations started, and of those started in the counted time.
    pub fn started(&self) -> (u64, u64) {
        (self.started, self.counted_started)
    }
}

/// Returns the slot of the operation with this tag.
#[inline]
pub(super) const fn slot_of(tag: u64) -> usize {
    (tag & (SLOTS_MAX as u64 - 1)) as usize
}

/// Returns whether the operation with this tag was started in the counted time.
pub(super) const fn counted(tag: u64) -> bool {
    tag & COUNTED != 0
}

/// Returns the size of an operation, a function of seed and tag, so that it need not be stored for one that arrives
/// late.
#[inline]
fn drawn(size: Size, seed: u64, tag: u64) -> u32 {
    match size {
        Size::Fixed(size) => size,
        Size::Uniform { min, max } => between(Random::at(seed, tag & !RUN & !COUNTED), min, max),
    }
}
