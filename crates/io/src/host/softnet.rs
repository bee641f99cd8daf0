//! The packets that interfaces passed to the processors, and those that were lost there (`/proc/net/softnet_stat`).
//!
//! | column, hexadecimal | meaning |
//! |---|---|
//! | 1 | packets processed |
//! | 2 | packets dropped because the backlog was full (`net.core.netdev_max_backlog`) |
//! | 3 | rounds that ended with packets left, because their budget was used up |

use std::fs;

/// Counters of received packets since the machine started, summed over its processors and network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Softnet {
    /// The number of packets processed.
    pub processed: u64,
    /// The number of packets dropped because the backlog of a processor was full.
    pub dropped: u64,
    /// The number of rounds that ended with packets left.
    pub squeezed: u64,
}

impl Softnet {
    /// Reads the counters; `None` if the kernel does not report them. Each counter of a processor has 32 bits, and wraps.
    #[must_use]
    pub fn until_now() -> Option<Softnet> {
        parse(&fs::read_to_string("/proc/net/softnet_stat").ok()?)
    }

    /// Returns the counters since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Softnet) -> Softnet {
        Softnet {
            processed: self.processed.saturating_sub(earlier.processed),
            dropped: self.dropped.saturating_sub(earlier.dropped),
            squeezed: self.squeezed.saturating_sub(earlier.squeezed),
        }
    }
}

fn parse(text: &str) -> Option<Softnet> {
    let mut all = Softnet::default();
    for line in text.lines() {
        let mut columns = line.split_whitespace().map(|column| u64::from_str_radix(column, 16).ok());
        let mut next = || columns.next().flatten();
        all.processed += next()?;
        all.dropped += next()?;
        all.squeezed += next()?;
    }
    (!text.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.18.
    #[test]
    fn processors_are_added_up() {
        let text = "000b0285 00000001 00000002 00000000 00000000\n00079355 0000000f 00000000 00000000 00000001\n";
        let all = parse(text).expect("two processors");
        assert_eq!(all, Softnet { processed: 0xb_0285 + 0x7_9355, dropped: 16, squeezed: 2 });
        assert_eq!(all.since(&Softnet { dropped: 15, ..Softnet::default() }).dropped, 1);
        assert_eq!((parse(""), parse("00 zz 00\n"), parse("00 00\n")), (None, None, None));
    }

    #[test]
    fn this_machine_has_processors() {
        assert!(Softnet::until_now().is_some());
    }
}
