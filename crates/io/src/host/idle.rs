//! Idle processors: the idle driver and its states, and the rules of frequency.

use super::{line_of, words_of};
use std::fs;
use std::time::Duration;

/// A state that an idle processor enters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// The name, as `C6`.
    pub name: String,
    /// The time that leaving it takes, as the driver declares it.
    pub exit_latency: Duration,
    /// Whether it is switched off.
    pub is_disabled: bool,
}

/// How the kernel treats idle processors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Idle {
    /// The idle driver, as `intel_idle` or `haltpoll`; `None` without one: the processor just halts.
    pub driver: Option<String>,
    /// The rule by which a state is chosen, as `menu`.
    pub governor: Option<String>,
    /// The rules that the kernel has.
    pub governors: Vec<String>,
    /// Whether the kernel has the idle driver for guests that polls before it halts, as a module to load.
    pub has_haltpoll_module: bool,
    /// The states of the first processor, the lightest first.
    pub states: Vec<IdleState>,
    /// The frequency governor of the first processor, as `powersave`; `None` where the frequency cannot be set.
    pub frequency_governor: Option<String>,
    /// The frequency governors that the driver has.
    pub frequency_governors: Vec<String>,
}

impl Idle {
    /// Reads the settings.
    #[must_use]
    pub fn read() -> Idle {
        let known = |path: &str| line_of(path).filter(|text| text != "none");
        Idle {
            driver: known("/sys/devices/system/cpu/cpuidle/current_driver"),
            governor: known("/sys/devices/system/cpu/cpuidle/current_governor_ro")
                .or_else(|| known("/sys/devices/system/cpu/cpuidle/current_governor")),
            governors: words_of("/sys/devices/system/cpu/cpuidle/available_governors"),
            has_haltpoll_module: has_module("cpuidle-haltpoll"),
            states: states("/sys/devices/system/cpu/cpu0/cpuidle"),
            frequency_governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            frequency_governors: words_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors"),
        }
    }

    /// Returns the deepest state that is switched on.
    #[must_use]
    pub fn deepest(&self) -> Option<&IdleState> {
        self.states.iter().filter(|state| !state.is_disabled).max_by_key(|state| state.exit_latency)
    }
}

/// Returns whether the running kernel has a module of this name.
fn has_module(name: &str) -> bool {
    let release = line_of("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default();
    modules.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&format!("/{name}.ko"))))
}

fn states(folder: &str) -> Vec<IdleState> {
    let count = fs::read_dir(folder).map_or(0, Iterator::count);
    let of = |number| {
        let read = |file: &str| line_of(&format!("{folder}/state{number}/{file}"));
        Some(IdleState {
            name: read("name")?,
            exit_latency: Duration::from_micros(read("latency")?.parse().ok()?),
            is_disabled: read("disable").is_some_and(|text| text != "0"),
        })
    };
    (0..count).map_while(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_state_is_the_one_that_takes_longest_to_leave() {
        let state = |name: &str, us, is_disabled| IdleState {
            name: name.into(),
            exit_latency: Duration::from_micros(us),
            is_disabled,
        };
        let idle = Idle {
            states: vec![state("POLL", 0, false), state("C1E", 10, false), state("C6", 133, true)],
            ..Idle::default()
        };
        assert_eq!(idle.deepest().map(|state| state.name.as_str()), Some("C1E"));
        assert_eq!(Idle::default().deepest(), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let idle = Idle::read();
        assert!(idle.driver.is_some() || idle.states.is_empty(), "{idle:?}");
    }
}
