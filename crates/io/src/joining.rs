/// The number of successful calls between two that show how busy a socket is, at first.
const CALLS: u32 = 16;
/// The number of such calls at most, after joining was given up again and again: two that are waiting now and then do not pay for it.
const CALLS_MOST: u32 = 1 << 15;
/// The number of calls that have to bring one datagram each before joining is given up.
const CALLS_ALONE: u32 = 64;
/// The number of calls after joining was switched off in which joined datagrams may still come.
const CAREFUL: u32 = 4096;

/// The decision when the kernel is to join received datagrams.
///
/// Joining pays if many come at once; if they come one by one it costs a tenth of a round-trip, because each call then
/// has to take control messages as well. A call for two now and then shows whether more are waiting.
#[derive(Debug)]
pub(crate) struct Joining {
    on: bool,
    always: bool,
    careful: u32,
    /// The number of calls until the next one for two.
    probe_after: u32,
    calls: u32,
    datagrams: u32,
}

impl Default for Joining {
    fn default() -> Self {
        Joining { on: false, always: false, careful: 0, probe_after: CALLS, calls: 0, datagrams: 0 }
    }
}

impl Joining {
    /// Switches joining on for good.
    pub(crate) fn always(&mut self) {
        self.on = true;
        self.always = true;
    }

    /// Returns whether the next call has to be one that can separate joined datagrams.
    #[inline]
    pub(crate) fn is_needed(&mut self) -> bool {
        if self.on {
            return true;
        }
        self.careful = self.careful.saturating_sub(1);
        self.careful > 0
    }

    /// Returns whether the next call is to take a second datagram, if one is waiting.
    #[inline]
    pub(crate) fn is_to_probe(&self) -> bool {
        !self.on && self.calls >= self.probe_after
    }

    /// Records whether such a call brought more than one, and returns whether the kernel is to join from now on.
    #[inline]
    pub(crate) fn probed(&mut self, found: bool) -> bool {
        (self.calls, self.datagrams) = (0, 0);
        self.on = found;
        found
    }

    /// Records how many datagrams a call brought, and returns whether the kernel is to stop joining.
    #[inline]
    pub(crate) fn note(&mut self, datagrams: u32) -> bool {
        self.calls += 1;
        self.datagrams += datagrams;
        if !self.on || self.always || self.calls < CALLS_ALONE {
            return false;
        }
        let alone = self.datagrams <= self.calls;
        (self.calls, self.datagrams) = (0, 0);
        self.on = !alone;
        self.careful = if alone { CAREFUL } else { 0 };
        self.probe_after = if alone { (self.probe_after * 4).min(CALLS_MOST) } else { CALLS };
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_while_more_are_waiting() {
        let mut joining = Joining::default();
        for _ in 0..CALLS {
            assert!(!joining.is_to_probe() && !joining.is_needed());
            joining.note(1);
        }
        assert!(joining.is_to_probe() && !joining.probed(false));
        assert!(!joining.is_to_probe() && joining.probed(true) && joining.is_needed());
        assert_eq!((0..CALLS_ALONE).filter(|_| joining.note(3)).count(), 0);
        assert_eq!((0..CALLS_ALONE).filter(|_| joining.note(1)).count(), 1);
        assert!(joining.is_needed(), "joined ones may still be queued");
        for _ in 0..CAREFUL {
            joining.is_needed();
        }
        assert!(!joining.is_needed());
    }

    #[test]
    fn probes_ever_more_seldom_where_joining_never_pays() {
        let mut joining = Joining::default();
        let mut alone = |calls: u32| {
            let mut probes = 0;
            for _ in 0..calls {
                joining.note(1);
                if joining.is_to_probe() {
                    probes += 1;
                    joining.probed(true);
                }
            }
            probes
        };
        assert_eq!(alone(1000), 3);
        assert!(alone(1_000_000) < 40);
    }
}
