use super::{BLOCK, BLOCKS, Block, Shared};
use hodo_machine::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// The time after which a packet is in the file, as long as the thread runs turns.
const SOON: Duration = Duration::from_millis(100);

/// The blocks that the serving thread fills and the writer empties.
pub(super) struct Blocks {
    shared: Arc<Shared>,
    full: SyncSender<Block>,
    empty: Receiver<Block>,
    count: usize,
    block: Block,
    /// The time when the block was begun.
    begun: Instant,
}

impl Blocks {
    pub(super) fn new(shared: Arc<Shared>, full: SyncSender<Block>, empty: Receiver<Block>) -> Self {
        let block = Block { bytes: Vec::with_capacity(BLOCK), packets: 0 };
        Blocks { shared, full, empty, count: 1, block, begun: Instant::ZERO }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Adds a packet of at most `room` bytes, which `fill` appends. Returns whether there was room for it; one without is counted.
    pub(super) fn add(&mut self, now: Instant, room: usize, fill: impl FnOnce(&Shared, &mut Vec<u8>)) -> bool {
        let has_room = self.make_room(now, room);
        if has_room {
            fill(&self.shared, &mut self.block.bytes);
            self.block.packets += 1;
        } else {
            self.shared.lost.fetch_add(1, Relaxed);
        }
        has_room
    }

    /// Makes room for `bytes`, and returns whether there is some: in this block, or in another after this one is passed
    /// on.
    fn make_room(&mut self, now: Instant, bytes: usize) -> bool {
        if self.block.bytes.len() + bytes > BLOCK {
            self.hand_over();
        }
        if self.block.packets == 0 {
            self.begun = now;
        }
        self.block.bytes.len() + bytes <= BLOCK && !self.shared.has_failed.load(Relaxed)
    }

    /// Passes the block to the writer if there is another one.
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().ok().or_else(|| {
            (self.count < BLOCKS).then(|| {
                self.count += 1;
                Block { bytes: Vec::with_capacity(BLOCK), packets: 0 }
            })
        });
        let Some(next) = next else { return };
        // There is room for every block, and the writer lives until this end is dropped.
        let _ = self.full.try_send(std::mem::replace(&mut self.block, next));
    }

    /// Passes the block to the writer if its first packet has waited long enough.
    pub(super) fn hand_over_old(&mut self, now: Instant) {
        if self.block.packets > 0 && now >= self.begun + SOON {
            self.hand_over();
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // As above.
        let _ = self.full.try_send(std::mem::take(&mut self.block));
    }
}
