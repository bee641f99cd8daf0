/// A seeded source of random numbers (`SplitMix64`): small, fast, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// Starts the sequence that this seed names.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The number at one place of the sequence of a seed, without drawing those before it.
    #[must_use]
    pub const fn at(seed: u64, place: u64) -> u64 {
        mixed(seed.wrapping_add(place.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normally distributed with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Spreads 64 random bits evenly over `min..=max`.
#[must_use]
pub const fn between(bits: u64, min: u32, max: u32) -> u32 {
    let span = max.saturating_sub(min) as u128 + 1;
    min + ((bits as u128 * span) >> 64) as u32
}

const fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_sequence() {
        // The reference implementation's first outputs for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(Random::at(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn spreads_over_both_ends() {
        assert_eq!(between(0, 60, 1020), 60);
        assert_eq!(between(u64::MAX, 60, 1020), 1020);
        assert_eq!(between(u64::MAX, 0, u32::MAX), u32::MAX);
        assert_eq!(between(12345, 7, 7), 7);
    }

    #[test]
    fn normal_has_unit_variance() {
        let mut random = Random::new(3);
        let drawn: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        assert!(crate::statistics::mean(&drawn).abs() < 0.03);
        assert!((crate::statistics::standard_deviation(&drawn) - 1.0).abs() < 0.03);
    }
}
