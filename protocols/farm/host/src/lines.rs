//! Lines that a process of a farm logs.

/// Lines between two looks; what goes beyond is counted. A terminal that is slow must not hold up the farm.
const LINES_MAX: u32 = 20;

/// What a process of the farm says of its peers.
pub struct Lines {
    part: &'static str,
    said: u32,
}

impl Lines {
    /// Prepares to log for this part of a farm.
    pub fn of(part: &'static str) -> Self {
        Lines { part, said: 0 }
    }

    /// Says one line, where there were not too many already.
    pub fn say(&mut self, line: &str) {
        self.said += 1;
        if self.said <= LINES_MAX {
            eprintln!("hodo farm {}: {line}", self.part);
        }
    }

    /// From time to time: what was held back is counted.
    pub fn look_in(&mut self) {
        if let Some(more @ 1..) = self.said.checked_sub(LINES_MAX) {
            eprintln!("hodo farm {}: and {more} lines more", self.part);
        }
        self.said = 0;
    }
}
