//! How long threads waited for a processor: the kernel's pressure stall information (`/proc/pressure/cpu`).

use std::fs;
use std::time::Duration;

/// The time in which some thread of the machine was ready to run and had to wait for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// The share of the last ten seconds, in percent.
    pub some_percent: f64,
    /// The time since the machine started.
    pub total: Duration,
}

impl Pressure {
    /// Reads the pressure on processors; `None` if the kernel does not measure it (before 4.20, or switched off).
    #[must_use]
    pub fn of_processors() -> Option<Pressure> {
        parse(&fs::read_to_string("/proc/pressure/cpu").ok()?)
    }

    /// Returns the time since an earlier reading in which some thread waited.
    #[must_use]
    pub fn since(&self, earlier: &Pressure) -> Duration {
        self.total.saturating_sub(earlier.total)
    }
}

/// Parses `some avg10=0.12 avg60=0.05 avg300=0.01 total=131557860`, the total in microseconds.
fn parse(text: &str) -> Option<Pressure> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let value = |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    Some(Pressure {
        some_percent: value("avg10")?.parse().ok()?,
        total: Duration::from_micros(value("total")?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.18.
    #[test]
    fn the_line_of_some_threads_is_read() {
        let text = "some avg10=62.58 avg60=28.03 avg300=19.82 total=131557860\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let pressure = parse(text).expect("all is there");
        assert_eq!((pressure.some_percent, pressure.total), (62.58, Duration::from_micros(131_557_860)));
        assert_eq!(pressure.since(&pressure), Duration::ZERO);
        for wrong in ["", "full avg10=0.00 total=0\n", "some avg10=x total=1\n", "some avg10=1.0\n"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn waiting_only_grows() {
        let Some(before) = Pressure::of_processors() else { return };
        assert!(Pressure::of_processors().expect("it was there").total >= before.total);
    }
}
