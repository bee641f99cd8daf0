/// An estimate of whether a look before a sleep is worth its call, by how often it was lately.
///
/// On one processor, the receiver of a message often runs before the sender's call has returned, so that its reply is
/// there before the sender could sleep. Looking for it then spares the poller's call; on another processor, or another
/// host, it is never there, and a look costs half of what it could spare.
#[derive(Debug)]
pub(crate) struct Hunch {
    /// The share of looks that found something, in 256ths, the last ones counting most.
    found: u32,
    untried: u32,
    /// The number of sleeps after which a look is tried all the same.
    try_after: u32,
}

/// The share from which on looking is worth it, in 256ths.
const WORTH: u32 = 96;
/// The number of sleeps after which a look is tried all the same, at first and at most: if other threads need the
/// processor, a look that lets them run costs as long as they take. It is odd, and stays so when it doubles: where every second look
/// would find something, the tries meet both.
const TRY_AFTER: u32 = 63;
const TRY_AFTER_MOST: u32 = 4095;
/// The divisor by which one look moves the share.
const WEIGHT: u32 = 8;

impl Hunch {
    pub(crate) const fn new() -> Self {
        Hunch { found: 0, untried: 0, try_after: TRY_AFTER }
    }

    /// Returns whether to look now.
    #[inline]
    pub(crate) fn is_worth_a_look(&mut self) -> bool {
        self.untried += 1;
        self.found >= WORTH || self.untried >= self.try_after
    }

    /// Records whether a look found something.
    #[inline]
    pub(crate) fn looked(&mut self, found: bool) {
        self.untried = 0;
        self.try_after = if found { TRY_AFTER } else { (self.try_after * 2 + 1).min(TRY_AFTER_MOST) };
        self.found = self.found - self.found / WEIGHT + if found { 256 / WEIGHT } else { 0 };
    }

    /// Records whether a look found something, where a find shows that the next looks will find something too.
    #[inline]
    pub(crate) fn learned(&mut self, found: bool) {
        self.looked(found);
        if found {
            self.found = 256;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_while_it_is_worth_it_and_tries_again_now_and_then() {
        let mut hunch = Hunch::new();
        let mut looks = |rounds: usize, found: fn(usize) -> bool| {
            let mut count = 0;
            for round in 0..rounds {
                if hunch.is_worth_a_look() {
                    count += 1;
                    hunch.looked(found(round));
                }
            }
            count
        };
        assert_eq!(looks(640, |_| false), 3);
        assert!(looks(2000, |_| true) > 600);
        assert_eq!(looks(1000, |_| true), 1000);
        assert_eq!(looks(1000, |round| round % 2 == 0), 1000);
        assert!(looks(1000, |_| false) < 40);
    }

    #[test]
    fn one_find_is_enough_where_the_next_follow_from_it() {
        let mut hunch = Hunch::new();
        hunch.learned(true);
        assert!((0..8).all(|_| {
            let looks = hunch.is_worth_a_look();
            hunch.learned(false);
            looks
        }));
        assert!(!hunch.is_worth_a_look());
    }
}
