use std::hash::{BuildHasher, RandomState};

/// Returns bits that nobody can guess: the standard library draws a key from the system for its hash tables.
#[must_use]
pub fn random_bits() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use super::random_bits;

    #[test]
    fn no_two_are_the_same() {
        let all: std::collections::BTreeSet<u64> = (0..1000).map(|_| random_bits()).collect();
        assert_eq!(all.len(), 1000);
    }
}
