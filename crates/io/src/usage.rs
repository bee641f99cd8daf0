//! CPU time and memory that this process, a thread and the whole machine have used.
#![allow(unsafe_code)]

use crate::polling;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// The CPU time and memory that a process or a thread has used since it started.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Usage {
    /// The seconds of CPU time in user mode.
    pub user_s: f64,
    /// The seconds of CPU time in the kernel.
    pub system_s: f64,
    /// The number of context switches because it waited.
    pub voluntary_switches: u64,
    /// The number of context switches because its time slice ended.
    pub involuntary_switches: u64,
    /// The largest resident set of the process, in bytes.
    pub max_rss_bytes: u64,
    /// The seconds of that CPU time spent [`polling`](mod@crate::polling) without finding; `None` if it is not known.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub polling_s: Option<f64>,
}

impl Usage {
    /// Returns the usage of all threads of the process with this number, as far as the system reports it; `None` if
    /// there is no such process.
    #[must_use]
    pub fn of(process: u32) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
        // A thread that ends meanwhile is left out.
        let statuses = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
        parse_process(&stat, &statuses.collect::<Vec<_>>(), ticks_per_s())
    }

    /// Returns the usage of all threads of this process.
    #[must_use]
    pub fn of_process() -> Usage {
        let usage = usage(libc::RUSAGE_SELF).polling(polling::of_process());
        Usage { max_rss_bytes: largest_resident_set(usage.max_rss_bytes), ..usage }
    }

    /// Returns the usage of the calling thread. The resident set is that of the process, or of the program that started it if that was larger.
    #[must_use]
    pub fn of_thread() -> Usage {
        usage(libc::RUSAGE_THREAD).polling(polling::of_thread())
    }

    /// Returns this usage with its polling, which is no more than the CPU time.
    fn polling(self, nanos: u64) -> Usage {
        Usage { polling_s: Some((nanos as f64 * 1e-9).min(self.cpu_s())), ..self }
    }

    /// Returns the time in which the calling thread was ready to run and waited for a processor; `None` if the kernel does not measure it.
    #[must_use]
    pub fn waited_for_processor() -> Option<Duration> {
        waited(Path::new("/proc/thread-self"))
    }

    /// Returns the time in which threads of a process were ready to run and waited for a processor, of the thread that waited longest; `None`
    /// if there is no such process or the kernel does not measure it.
    #[must_use]
    pub fn longest_wait_for_processor(process: u32) -> Option<Duration> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        threads.flatten().filter_map(|thread| waited(&thread.path())).max()
    }

    /// Returns the seconds of CPU time in both modes together.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Returns the seconds of CPU time without those of polling, as far as these are known.
    #[must_use]
    pub fn working_s(&self) -> f64 {
        (self.cpu_s() - self.polling_s.unwrap_or(0.0)).max(0.0)
    }

    /// Returns the usage of two processes together; the largest resident set is that of the larger one.
    #[must_use]
    pub fn and(self, other: Usage) -> Usage {
        Usage {
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            max_rss_bytes: self.max_rss_bytes.max(other.max_rss_bytes),
            polling_s: self.polling_s.zip(other.polling_s).map(|(one, other)| one + other),
        }
    }

    /// Returns the usage since an earlier reading; the largest resident set is that of the later one.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            system_s: (self.system_s - earlier.system_s).max(0.0),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            max_rss_bytes: self.max_rss_bytes,
            polling_s: self.polling_s.zip(earlier.polling_s).map(|(now, earlier)| (now - earlier).max(0.0)),
        }
    }
}

/// Returns the largest resident set of this process. What getrusage(2) reports is kept over execve(2), and with it the size of the program that
/// started this one; `VmHWM` is not. It is read only where it can be the smaller one.
fn largest_resident_set(reported: u64) -> u64 {
    static INHERITED: OnceLock<u64> = OnceLock::new();
    let own = || Some(field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM")? * 1024);
    let inherited = *INHERITED.get_or_init(|| if own().is_some_and(|own| own < reported) { reported } else { 0 });
    if reported > inherited { reported } else { own().unwrap_or(reported) }
}

/// Returns the number in a line `name: number` of `status` (proc_pid_status(5)).
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the time in which a thread waited for a processor: the second of the time on one, the time waiting for one, and the number of
/// slices (Documentation/scheduler/sched-stats.rst).
fn waited(thread: &Path) -> Option<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(Duration::from_nanos(text.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

fn usage(who: libc::c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, and the kernel writes no more than that; all-zero is a valid value of
    // it, so it may be read even if the call failed.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
        polling_s: None,
    }
}

/// Parses the CPU time of a process from `stat`, in steps of a clock tick, and the rest from the `status` of each of its threads
/// (proc_pid_stat(5), proc_pid_status(5)).
fn parse_process(stat: &str, statuses: &[String], ticks_per_s: f64) -> Option<Usage> {
    // The name in parentheses may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    let (user_s, system_s) = (ticks()? / ticks_per_s, ticks()? / ticks_per_s);
    let each = |name: &'static str| statuses.iter().filter_map(move |status| field(status, name));
    Some(Usage {
        user_s,
        system_s,
        voluntary_switches: each("voluntary_ctxt_switches").sum(),
        involuntary_switches: each("nonvoluntary_ctxt_switches").sum(),
        max_rss_bytes: each("VmHWM").max().unwrap_or(0) * 1024,
        polling_s: None,
    })
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// The CPU time of the whole machine since it started, summed over its processors.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MachineTime {
    /// The seconds in which processors ran something, interrupts included, or could not because the hypervisor ran
    /// another machine: time that was available for nothing else. It does not include waiting for a disk.
    pub busy_s: f64,
    /// The part of `busy_s` in which the hypervisor ran another machine.
    pub stolen_s: f64,
    /// The part of `busy_s` in which interrupts were served, those of the network included.
    pub interrupts_s: f64,
    /// The seconds in which processors had nothing to do.
    pub idle_s: f64,
}

impl MachineTime {
    /// Reads the time until now; `None` if `/proc/stat` cannot be read. The time advances in steps of a clock tick,
    /// usually 10 ms.
    #[must_use]
    pub fn until_now() -> Option<MachineTime> {
        parse_stat(&fs::read_to_string("/proc/stat").ok()?, ticks_per_s())
    }

    /// Reads the time of each processor, with its number; `None` if `/proc/stat` cannot be read.
    #[must_use]
    pub fn of_processors() -> Option<Vec<(usize, MachineTime)>> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Some(parse_processors(&stat, ticks_per_s()))
    }

    /// Returns the time since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &MachineTime) -> MachineTime {
        MachineTime {
            busy_s: (self.busy_s - earlier.busy_s).max(0.0),
            stolen_s: (self.stolen_s - earlier.stolen_s).max(0.0),
            interrupts_s: (self.interrupts_s - earlier.interrupts_s).max(0.0),
            idle_s: (self.idle_s - earlier.idle_s).max(0.0),
        }
    }

    /// Returns the busy share in percent, 100 if all processors were busy; `None` if no tick has passed.
    #[must_use]
    pub fn busy_percent(&self) -> Option<f64> {
        let total = self.busy_s + self.idle_s;
        (total > 0.0).then(|| 100.0 * self.busy_s / total)
    }
}

fn ticks_per_s() -> f64 {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    ticks_per_s.max(1) as f64
}

/// Parses the line `cpu user nice system idle iowait irq softirq steal guest guest_nice` (proc_stat(5)). Guest time is
/// already in user time; kernels before 2.6.11 end earlier.
fn parse_stat(stat: &str, ticks_per_s: f64) -> Option<MachineTime> {
    parse_times(stat.lines().next()?.strip_prefix("cpu ")?, ticks_per_s)
}

fn parse_processors(stat: &str, ticks_per_s: f64) -> Vec<(usize, MachineTime)> {
    let of_line = |line: &str| {
        let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((number.parse().ok()?, parse_times(fields, ticks_per_s)?))
    };
    stat.lines().filter_map(of_line).collect()
}

fn parse_times(fields: &str, ticks_per_s: f64) -> Option<MachineTime> {
    let ticks: Vec<f64> = fields.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let tick = |index: usize| ticks.get(index).copied().unwrap_or(0.0) / ticks_per_s;
    if ticks.len() < 4 {
        return None;
    }
    let (user, nice, system, idle, iowait) = (tick(0), tick(1), tick(2), tick(3), tick(4));
    let (irq, softirq, steal) = (tick(5), tick(6), tick(7));
    Some(MachineTime {
        busy_s: user + nice + system + irq + softirq + steal,
        stolen_s: steal,
        interrupts_s: irq + softirq,
        idle_s: idle + iowait,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> u64 {
        (0..20_000_000_u64).fold(1, |sum, i| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i)))
    }

    #[test]
    fn work_shows_in_the_thread_and_in_the_process() {
        let (process, thread) = (Usage::of_process(), Usage::of_thread());
        while Usage::of_thread().since(&thread).cpu_s() < 0.02 {
            std::hint::black_box(work());
        }
        let now = Usage::of_process();
        assert!(now.since(&process).cpu_s() >= 0.02);
        assert!(now.max_rss_bytes > 100_000);
    }

    #[test]
    fn another_process_is_seen_as_this_one_is() {
        let seen = Usage::of(std::process::id()).expect("this process is there");
        let own = Usage::of_process();
        assert!((seen.cpu_s() - own.cpu_s()).abs() < 0.5 && seen.max_rss_bytes > 100_000, "{seen:?} {own:?}");
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[test]
    fn polling_is_told_apart_and_never_more_than_the_cpu_time() {
        let all = Usage { user_s: 1.0, system_s: 1.0, ..Usage::default() };
        assert_eq!((all.polling_s, all.working_s()), (None, 2.0), "where it is not known");
        let polled = all.polling(500_000_000);
        assert_eq!((polled.polling_s, polled.working_s()), (Some(0.5), 1.5));
        assert_eq!(all.polling(3_000_000_000).working_s(), 0.0);
        assert_eq!((polled.and(polled).polling_s, polled.and(all).polling_s), (Some(1.0), None));
        assert_eq!((polled.since(&polled).polling_s, polled.since(&all).polling_s), (Some(0.0), None));
        assert!(Usage::of_process().polling_s.is_some() && Usage::of(std::process::id()).unwrap().polling_s.is_none());
    }

    /// Parses lines of Linux 6.18; a program may have any name.
    #[test]
    fn the_fields_of_a_process_stand_behind_its_name() {
        let stat = "7 (a) b 1) S 1 7 7 0 -1 4194560 1 2 3 4 123 45 6 7 20 0 1 0 9";
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nvoluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t3\n";
        let statuses = [status.to_owned(), status.replace("11", "31")];
        let used = parse_process(stat, &statuses, 100.0).expect("all is there");
        assert_eq!((used.user_s, used.system_s, used.max_rss_bytes), (1.23, 0.45, 2 << 20));
        assert_eq!((used.voluntary_switches, used.involuntary_switches), (42, 6), "of both threads");
        assert_eq!(parse_process("7 (x) S 1", &statuses, 100.0), None);
    }

    #[test]
    fn the_machine_has_run_for_some_time() {
        let time = MachineTime::until_now().expect("Linux has /proc/stat");
        assert!(time.busy_s > 0.0 && time.busy_s >= time.stolen_s);
        assert!((0.0..=100.0).contains(&time.busy_percent().expect("ticks have passed")));
    }

    /// Parses a line of Linux 6.18.
    #[test]
    fn stolen_time_is_busy_and_waiting_for_a_disk_is_idle() {
        let time = parse_stat("cpu  13203 17427 6094 587200 614 1 80 19 0 0\ncpu0 1 2", 100.0).unwrap();
        assert!((time.busy_s - 368.24).abs() < 1e-9);
        assert!((time.idle_s - 5878.14).abs() < 1e-9);
        assert!((time.stolen_s - 0.19).abs() < 1e-9);
        assert!((time.interrupts_s - 0.81).abs() < 1e-9);
        assert_eq!(time.since(&time).busy_percent(), None);
    }

    #[test]
    fn each_processor_has_its_time() {
        let each = parse_processors("cpu  3 0 0 7\ncpu0 1 0 0 1 0 0 4\ncpu12 2 0 0 6\nintr 5 6\n", 1.0);
        let busy: Vec<(usize, f64, f64)> =
            each.iter().map(|(number, time)| (*number, time.busy_s, time.idle_s)).collect();
        assert_eq!(busy, [(0, 5.0, 1.0), (12, 2.0, 6.0)]);
        assert!(!MachineTime::of_processors().expect("Linux has /proc/stat").is_empty());
    }

    #[test]
    fn what_is_not_stat_is_refused() {
        for text in ["", "cpu ", "cpu  1 2 3", "cpu  1 2 x 4", "intr 1 2 3 4"] {
            assert_eq!(parse_stat(text, 100.0), None, "{text}");
        }
    }
}
