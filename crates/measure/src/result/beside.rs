use crate::{Measurement, Mode, Test};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Another row that was measured at the same time. The CPU time of each is that of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// The protocol's name in the catalog.
    pub protocol: String,
    /// The kind of test.
    pub test: Test,
    /// Which way the payload went.
    pub mode: Mode,
    /// Bytes of payload per operation; null where sizes were drawn.
    pub size_bytes: Option<u64>,
    /// The most payload bits per second requested of it; absent without a pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_asked: Option<f64>,
    /// The median of its payload bits per second.
    pub payload_bits_per_s: f64,
}

impl Beside {
    /// Returns a row as another one sees it.
    #[must_use]
    pub fn of(row: &Measurement) -> Beside {
        Beside {
            protocol: row.protocol.clone(),
            test: row.test,
            mode: row.mode,
            size_bytes: row.size_bytes,
            pace_asked: row.pace_asked,
            payload_bits_per_s: row.rate.payload_bits_per_s.median,
        }
    }

    /// Returns its plan in three words: `tcp rate send`.
    #[must_use]
    pub fn plan(&self) -> String {
        format!("{} {} {}", self.protocol, self.test, self.mode)
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "beside {} at {}", self.plan(), crate::limits::format_rate(self.payload_bits_per_s))
    }
}
