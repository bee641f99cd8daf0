//! Lines that several flows share: leaves behind a trunk.

use super::{Bound, Path, WireCost};
use crate::Binding;
use crate::units::text::formula_rate;

/// Several leaf lines of one kind that meet in a switch, and the one trunk behind it.
///
/// Twenty nodes at 100 Mbit/s behind a controller at 1 Gbit/s are a fan of 20 leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fan {
    /// The number of leaves.
    pub leaves: u32,
    /// The line of each leaf.
    pub leaf: Path,
    /// The line that all their traffic passes.
    pub trunk: Path,
}

impl Fan {
    /// Returns the bound of all leaves together: `min(leaves x leaf, trunk)`, with the cost of one operation on either
    /// line.
    ///
    /// Frames keep their size through a switch, so leaf and trunk have one MTU; behind a router each has its own.
    #[must_use]
    pub fn bound(&self, on_leaf: &WireCost, on_trunk: &WireCost) -> Bound {
        let leaf = Bound::line(&self.leaf, on_leaf);
        let trunk = Bound::line(&self.trunk, on_trunk);
        let all_leaves = f64::from(self.leaves) * leaf.operations_per_s;
        let leaves = format!("{} leaves x [{}] = {}", self.leaves, leaf.formula, formula_rate(all_leaves));
        let trunk_text = format!("trunk {}", trunk.formula);
        let (operations_per_s, formula) = if all_leaves < trunk.operations_per_s {
            (all_leaves, format!("{leaves} <= {trunk_text}"))
        } else {
            (trunk.operations_per_s, format!("{trunk_text} <= {leaves}"))
        };
        let assumes = format!("{}; a switch that loses nothing and queues enough", trunk.assumes);
        Bound { binds: Binding::Line, operations_per_s, formula, assumes }
    }

    /// Returns how many leaves fill the trunk: with more, it is the trunk that binds.
    #[must_use]
    pub fn leaves_to_fill_the_trunk(&self) -> f64 {
        self.trunk.payload_bits_per_s() / self.leaf.payload_bits_per_s()
    }
}
