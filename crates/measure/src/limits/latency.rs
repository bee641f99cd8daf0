//! The shortest time of one operation on a line: its bits one after the other, and the way they travel.

use super::{GAP_BYTES, Packing, Path, format_rate};
use crate::units::text::formula_time;
use crate::{Limit, LimitKind};

/// One kilometre of single-mode fibre, one way: a group index of 1.468, typical of ITU-T G.652 fibre, over the speed of
/// light.
pub const FIBRE_NS_PER_KM: f64 = 1.468 / 299_792.458 * 1e9;

impl Path {
    /// Returns the shortest time from the first bit out to the last bit back: `8 x (out + back) / rate + 2 x length`.
    ///
    /// `out` and `back` are byte times of segments of their own without the gap after the last one. Either may be 0:
    /// then only the other counts. Cut-through switches add nothing here; each store-and-forward switch adds at least
    /// one frame's time each way, which is left out.
    #[must_use]
    pub fn latency_ns(&self, out_bytes: u64, back_bytes: u64, length_km: f64) -> f64 {
        self.serialisation_ns(out_bytes) + self.serialisation_ns(back_bytes) + 2.0 * length_km * FIBRE_NS_PER_KM
    }

    /// Returns the shortest time as a limit, for operations one at a time.
    #[must_use]
    pub fn latency_limit(&self, payload_bytes: u64, out_bytes: u64, back_bytes: u64, length_km: f64) -> Limit {
        let latency = self.latency_ns(out_bytes, back_bytes, length_km);
        let formula = format!(
            "{} out + {} back at {} + 2 x {length_km} km = {}",
            formula_time(self.serialisation_ns(out_bytes)),
            formula_time(self.serialisation_ns(back_bytes)),
            format_rate(self.line().rate_bits_per_s),
            formula_time(latency),
        );
        let assumes = format!("{}; no switch, adapters and software take no time", self.describe());
        Limit::of_latency(LimitKind::Line, latency, payload_bytes as f64, formula, assumes)
    }

    fn serialisation_ns(&self, bytes: u64) -> f64 {
        let wire = self.wire_bytes(bytes, Packing::Own) - f64::from(GAP_BYTES);
        wire.max(0.0) * 8e9 / self.line().rate_bits_per_s
    }
}
