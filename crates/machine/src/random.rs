/// A small, fast, seeded source of random numbers: xoshiro256++ by Blackman and Vigna, seeded by splitmix64.
///
/// Good for simulation and for spreading things out, useless for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Returns the generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        Random { state: core::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// Returns the generator of this seed and purpose: two purposes of one seed draw independently.
    #[must_use]
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        let mut counter = seed;
        let base = split_mix(&mut counter);
        Random::new(base ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// Returns the bits at one place of the splitmix64 sequence of a seed, without drawing those before it.
    #[must_use]
    pub const fn at(seed: u64, place: u64) -> u64 {
        mixed(seed.wrapping_add(place.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Draws the next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Draws a number from 0 to `bound` - 1, or 0 for a `bound` of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is uniform but for a bias of bound / 2^64, which no simulation can see.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws a number of `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws `true` with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }
}

/// Spreads 64 random bits evenly over `min..=max`.
#[must_use]
pub const fn between(bits: u64, min: u32, max: u32) -> u32 {
    let span = max.saturating_sub(min) as u128 + 1;
    min + ((bits as u128 * span) >> 64) as u32
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(GOLDEN);
    mixed(*counter)
}

const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Compares with the first outputs of the authors' reference code for the state 1, 2, 3, 4.
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

    /// Compares with the first outputs of the reference implementation of splitmix64 for the seed 1234567.
    #[test]
    fn places_are_those_of_the_published_sequence() {
        assert_eq!(
            [0, 1].map(|place| Random::at(1_234_567, place)),
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn bits_are_spread_over_both_ends() {
        assert_eq!(between(0, 60, 1020), 60);
        assert_eq!(between(u64::MAX, 60, 1020), 1020);
        assert_eq!(between(u64::MAX, 0, u32::MAX), u32::MAX);
        assert_eq!(between(12345, 7, 7), 7);
    }

    #[test]
    fn purposes_of_one_seed_differ() {
        assert_ne!(Random::for_purpose(3, 0).bits(), Random::for_purpose(3, 1).bits());
        assert_eq!(Random::for_purpose(3, 1).bits(), Random::for_purpose(3, 1).bits());
    }
}
