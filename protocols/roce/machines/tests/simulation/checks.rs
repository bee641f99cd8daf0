//! The checks once nothing is left to happen.

use super::{BITS, Scene};

impl Scene {
    pub(super) fn check(&mut self) {
        for end in &self.ends {
            if !end.is_gone {
                end.check_done(&self.ends[end.far]);
            }
        }
        self.check_memory();
        for node in &mut self.nodes {
            let adapter = self.world.machine(node.site).expect("it runs");
            let bytes = adapter.region(node.counter.key).expect("it is registered");
            let value = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            // Each addition finds the sum of those before it, which is at least what the last one left.
            node.counted.sort_by_key(|(_, found)| *found);
            let mut sum = 0;
            for (bit, found) in &node.counted {
                assert!(*found >= sum && found >> bit & 1 == 0, "bit {bit} found {found:#x} after {sum:#x}");
                sum = found + (1 << bit);
            }
            assert!(value >= sum && value >> node.bits.min(BITS) == 0, "{value:#x} after {sum:#x}");
            for (bit, _) in &node.counted {
                assert_eq!(value >> bit & 1, 1, "bit {bit} was added twice, or not at all: {value:#x}");
            }
        }
    }

    fn check_memory(&mut self) {
        for index in 0..self.ends.len() {
            let far = &self.ends[self.ends[index].far];
            let is_far_well = far.failure.is_none() && !far.is_gone;
            let end = &mut self.ends[index];
            let Some(adapter) = self.world.machine(self.nodes[end.node].site) else { continue };
            if end.is_gone {
                end.check_frozen(adapter);
            } else {
                end.check_memory(adapter, is_far_well && end.failure.is_none());
            }
        }
    }
}
