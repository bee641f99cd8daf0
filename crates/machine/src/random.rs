/// A small, fast, seeded source of random numbers: xoshiro256++ by Blackman and Vigna, seeded by splitmix64.
///
/// Good for simulation and for spreading things out, useless for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        Random { state: core::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// The generator of this seed and purpose: two purposes of one seed draw independently.
    #[must_use]
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        let mut counter = seed;
        let base = split_mix(&mut counter);
        Random::new(base ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number from 0 to `bound` - 1, or 0 where `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is uniform but for a bias of bound / 2^64, which no simulation can see.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.bits() >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < probability
    }
}

fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*counter ^ (*counter >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The first outputs of the authors' reference code for the state 1, 2, 3, 4.
    #[test]
    fn gives_the_reference_sequence() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_evenly_and_as_often_as_asked() {
        let mut random = Random::new(7);
        let mut bins = [0u32; 10];
        for _ in 0..100_000 {
            bins[random.below(10) as usize] += 1;
        }
        assert!(bins.iter().all(|bin| (9_600..10_400).contains(bin)), "{bins:?}");
        let hits = (0..100_000).filter(|_| random.chance(0.3)).count();
        assert!((29_400..30_600).contains(&hits), "{hits}");
        assert!(!(0..1000).any(|_| random.chance(0.0)));
        assert!((0..1000).all(|_| random.chance(1.0)));
    }

    #[test]
    fn purposes_of_one_seed_differ() {
        assert_ne!(Random::for_purpose(3, 0).bits(), Random::for_purpose(3, 1).bits());
        assert_eq!(Random::for_purpose(3, 1).bits(), Random::for_purpose(3, 1).bits());
    }
}
