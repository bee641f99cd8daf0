use crate::{Address, Instant};
use core::fmt;
use core::hash::{Hash, Hasher};

/// The shift from nanoseconds to the periods of the proofs, of 69 seconds each.
const PERIOD_BITS: u32 = 36;

/// The proofs that the sender of a datagram also receives at the address that it comes from.
///
/// Anybody can write another's address into a datagram. A machine that answers strangers therefore sends each a number that
/// only who receives there can repeat, in no more bytes than came (RFC 9000, 8.1), and keeps nothing until it is
/// repeated: [`Machine::admits`](crate::Machine::admits). The number is a keyed hash of the address and the time, so that
/// it is valid for 69 to 137 s and no table of strangers is needed.
#[derive(Clone, Copy)]
pub struct Proofs {
    secret: [u64; 2],
}

impl Proofs {
    /// Creates proofs that follow from `secret`: bits that nobody can guess, other ones for each server.
    #[must_use]
    pub const fn new(secret: [u64; 2]) -> Self {
        Proofs { secret }
    }

    /// Returns the proof of an address as it is to be repeated.
    #[must_use]
    pub fn proof(&self, now: Instant, address: &Address) -> u64 {
        self.of_period(now.as_nanos() >> PERIOD_BITS, address)
    }

    /// Returns whether this is a proof of the address that was told a while ago.
    #[must_use]
    pub fn holds(&self, now: Instant, address: &Address, proof: u64) -> bool {
        let period = now.as_nanos() >> PERIOD_BITS;
        [Some(period), period.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|period| proof == self.of_period(period, address))
    }

    #[expect(
        deprecated,
        reason = "it is SipHash-2-4 of the core library, with a key of ours; nothing replaces it there"
    )]
    fn of_period(&self, period: u64, address: &Address) -> u64 {
        let [high, low] = self.secret;
        let mut hasher = core::hash::SipHasher::new_with_keys(high, low);
        hasher.write_u64(period);
        address.hash(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Debug for Proofs {
    /// Writes no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Address = Address::Node(1);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_proof_is_of_one_address_one_server_and_two_minutes() {
        let proofs = Proofs::new([1, 2]);
        let proof = proofs.proof(at(0), &HERE);
        assert!(proofs.holds(at(0), &HERE, proof) && proofs.holds(at(137), &HERE, proof));
        assert!(!proofs.holds(at(138), &HERE, proof), "too old");
        assert!(!proofs.holds(at(0), &Address::Node(2), proof), "of another address");
        assert!(!Proofs::new([1, 3]).holds(at(0), &HERE, proof), "of another server");
        for guess in [0, 1, u64::MAX, proof ^ 1] {
            assert!(!proofs.holds(at(0), &HERE, guess));
        }
    }

    /// SipHash-2-4 with the reference's key: nobody guesses it who does not know the key.
    #[test]
    #[expect(deprecated, reason = "as above")]
    fn a_proof_is_a_keyed_hash() {
        let key = [0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908];
        let mut hasher = core::hash::SipHasher::new_with_keys(key[0], key[1]);
        hasher.write_u64(0);
        HERE.hash(&mut hasher);
        assert_eq!(Proofs::new(key).proof(at(0), &HERE), hasher.finish());
    }
}
