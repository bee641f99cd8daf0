use hodo_machine::Instant;

/// Calls between two looks at how busy a socket is.
const CALLS: u32 = 16;
/// A socket is busy where its calls are closer together than this.
const BUSY_NS: u64 = 4_000;
/// Calls after the kernel was told to stop joining in which joined datagrams may still come.
const CAREFUL: u32 = 4096;

/// Decides when the kernel is to join received datagrams.
///
/// Joining pays where many come at once; where they come one by one it costs a tenth of a round-trip, because each call
/// then has to take control messages as well.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    on: bool,
    always: bool,
    careful: u32,
    calls: u32,
    datagrams: u32,
    since: Instant,
}

impl Joining {
    /// Joins from now on, whatever comes.
    pub(crate) fn always(&mut self) {
        self.on = true;
        self.always = true;
    }

    /// Whether the next call has to be one that tells joined datagrams apart.
    #[inline]
    pub(crate) fn is_needed(&mut self) -> bool {
        if self.on {
            return true;
        }
        self.careful = self.careful.saturating_sub(1);
        self.careful > 0
    }

    /// Notes what a call brought; answers what the kernel is to be told, where that changes.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, datagrams: u32) -> Option<bool> {
        self.calls += 1;
        self.datagrams += datagrams;
        if self.calls < CALLS || self.always {
            return None;
        }
        let busy = now.nanos_since(self.since) < u64::from(CALLS) * BUSY_NS || self.datagrams > 2 * CALLS;
        (self.calls, self.datagrams, self.since) = (0, 0, now);
        if busy == self.on {
            return None;
        }
        self.on = busy;
        self.careful = if busy { 0 } else { CAREFUL };
        Some(busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(joining: &mut Joining, calls: u64, apart_ns: u64) -> Option<bool> {
        let start = joining.since.as_nanos();
        (1..=calls).filter_map(|call| joining.note(Instant::from_nanos(start + call * apart_ns), 1)).last()
    }

    #[test]
    fn joins_while_datagrams_come_quickly() {
        let mut joining = Joining::default();
        assert_eq!(after(&mut joining, 64, 8_000), None);
        assert!(!joining.is_needed());
        assert_eq!(after(&mut joining, 64, 500), Some(true));
        assert!(joining.is_needed());
        assert_eq!(after(&mut joining, 64, 8_000), Some(false));
        assert!(joining.is_needed(), "joined ones may still be queued");
        for _ in 0..CAREFUL {
            joining.is_needed();
        }
        assert!(!joining.is_needed());
    }
}
