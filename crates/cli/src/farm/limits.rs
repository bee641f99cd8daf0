//! The events of a farm, for `hodo limits`.

use clap::Args;
use hodo_farm_link::on_the_stream;
use hodo_measure::units;

/// The events of a farm, and the tokens that come back.
#[derive(Debug, Args)]
pub struct FarmEvents {
    /// The events of a farm with this many nodes: each has a header on top, and a token comes back.
    #[arg(long, value_name = "NODES", group = "several", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub farm: Option<u32>,
    /// Bytes behind a farm's tokens, averaged over all of them: 64K with every 200th token is 328.
    #[arg(long, value_name = "SIZE", requires = "farm", default_value = "0", value_parser = units::bytes)]
    pub token_data: u64,
}

impl FarmEvents {
    /// Returns the number of nodes, and the bytes of an event's header and of a token; `None` without a farm.
    pub fn messages(&self) -> Option<(u32, (u64, u64))> {
        Some((self.farm?, on_the_stream(0, self.token_data)))
    }
}
