/// The number of successful calls between two that show whether more than one datagram is waiting.
const CALLS: u32 = 16;
/// The number of such calls one after the other that have to find more: two that are waiting now and then do not pay.
const FOUND: u32 = 8;

/// The decision when the kernel is to join received datagrams.
///
/// Joining pays if many come at once; if they come one by one it costs a twentieth of a round-trip, because each call then
/// has to take control messages as well. A call for two now and then shows whether more are waiting.
///
/// It stays on. Of what a socket has joined before it is switched off, the kernel does not tell any more how long each one was:
/// several datagrams would come as one.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    on: bool,
    calls: u32,
    found: u32,
}

impl Joining {
    /// Switches joining on without waiting for many datagrams.
    pub(crate) fn switch_on(&mut self) {
        self.on = true;
    }

    /// Returns whether each call has to be one that can separate joined datagrams.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Returns whether the next call is to take a second datagram, if one is waiting.
    #[inline]
    pub(crate) fn is_to_probe(&self) -> bool {
        !self.on && self.calls >= CALLS
    }

    /// Records whether such a call brought more than one, and returns whether the kernel is to join from now on.
    #[inline]
    pub(crate) fn probed(&mut self, found: bool) -> bool {
        self.calls = 0;
        self.found = if found { self.found + 1 } else { 0 };
        self.on = self.found == FOUND;
        self.on
    }

    /// Counts a call that was no probe.
    #[inline]
    pub(crate) fn called(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes calls up to a probe, which finds more or not; returns whether joining is on from then on.
    fn probed(joining: &mut Joining, found: bool) -> bool {
        for _ in 0..CALLS {
            assert!(!joining.is_to_probe() && !joining.is_on());
            joining.called();
        }
        assert!(joining.is_to_probe());
        joining.probed(found)
    }

    #[test]
    fn joins_once_more_are_waiting_at_each_look_and_for_good() {
        let mut joining = Joining::default();
        for _ in 0..1000 {
            assert!(!probed(&mut joining, false));
            assert!((1..FOUND).all(|_| !probed(&mut joining, true)));
        }
        assert!(!probed(&mut joining, false));
        assert!((1..FOUND).all(|_| !probed(&mut joining, true)));
        assert!(probed(&mut joining, true) && joining.is_on() && !joining.is_to_probe());
    }
}
