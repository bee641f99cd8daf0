//! The processor quota of a process's control groups, and how often it stopped them (cgroups(7)).
//!
//! | file | version 1 | version 2 |
//! |---|---|---|
//! | quota | `cpu.cfs_quota_us` (-1: none), `cpu.cfs_period_us` | `cpu.max`: `max 100000` or `15000 100000` |
//! | counters | `cpu.stat`: `nr_periods`, `nr_throttled`, `throttled_time` in ns | the same, with `throttled_usec` |

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The processor quota of a process: of its control group or of one above it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Throttling {
    /// The processors that the tightest quota allows, as 0.15; `None` without a quota.
    pub processors: Option<f64>,
    /// The period after which the tightest quota is renewed.
    pub period: Duration,
    /// The folder of the group that has the tightest quota.
    pub group: Option<PathBuf>,
    /// The number of periods in which a group with a quota ran something, summed over these groups.
    pub periods: u64,
    /// The number of those periods in which the group used up its quota and was stopped until the next one.
    pub throttled_periods: u64,
    /// The time for which the groups were stopped, summed over processors and groups.
    pub throttled: Duration,
}

/// The control groups of a process that have a quota, for readings that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaGroups {
    /// The files of their counters.
    stats: Vec<PathBuf>,
}

impl QuotaGroups {
    /// Finds the groups of the process with this number; `None` if its control groups cannot be found.
    #[must_use]
    pub fn of(process: u32) -> Option<QuotaGroups> {
        let (root, folders) = folders(process)?;
        let limited = folders.into_iter().filter(|folder| Quota::read(&root, folder).is_some());
        Some(QuotaGroups { stats: limited.map(|folder| seen_from(&root, &folder).join(STAT)).collect() })
    }

    /// Reads for how long they were stopped, summed over processors and groups; `None` if a group is gone.
    #[must_use]
    pub fn throttled(&self) -> Option<Duration> {
        self.stats.iter().map(|stat| Some(parse_stat(&fs::read_to_string(stat).ok()?).2)).sum()
    }
}

/// The counters of a group.
const STAT: &str = "cpu.stat";

/// Returns the folders of a process's groups, and the folder below which this process sees them.
fn folders(process: u32) -> Option<(PathBuf, Vec<PathBuf>)> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let (root, mounts) = mounts_in_reach()?;
    let folders = mounts.iter().filter_map(|mount| mount.folders(&groups)).flatten().collect();
    Some((root, folders))
}

/// Returns where this process finds a folder, as it sees them below `root`.
fn seen_from(root: &Path, folder: &Path) -> PathBuf {
    root.join(folder.strip_prefix("/").unwrap_or(folder))
}

impl Throttling {
    /// Reads the quota of this process; `None` if its control groups cannot be found.
    #[must_use]
    pub fn of_process() -> Option<Throttling> {
        Self::of(std::process::id())
    }

    /// Reads the quota of the process with this number; `None` if its control groups cannot be found.
    #[must_use]
    pub fn of(process: u32) -> Option<Throttling> {
        let (root, folders) = folders(process)?;
        Some(Self::together(folders.iter().filter_map(|folder| Quota::read(&root, folder)).collect()))
    }

    /// Returns the same quota with the counters since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Throttling) -> Throttling {
        Throttling {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            ..self.clone()
        }
    }

    fn together(quotas: Vec<Quota>) -> Throttling {
        let mut all = Throttling::default();
        for quota in quotas {
            all.periods += quota.periods;
            all.throttled_periods += quota.throttled_periods;
            all.throttled += quota.throttled;
            if all.processors.is_none_or(|tightest| quota.processors < tightest) {
                all.processors = Some(quota.processors);
                all.period = quota.period;
                all.group = Some(quota.group);
            }
        }
        all
    }
}

/// The quota of one group.
#[derive(Debug, PartialEq)]
struct Quota {
    processors: f64,
    period: Duration,
    group: PathBuf,
    periods: u64,
    throttled_periods: u64,
    throttled: Duration,
}

impl Quota {
    /// Reads the quota of the group in a folder, as this process sees it below `root`; `None` if the group has none.
    fn read(root: &Path, folder: &Path) -> Option<Quota> {
        let text = |file: &str| fs::read_to_string(seen_from(root, folder).join(file)).ok();
        let (quota_us, period_us) = match text("cpu.max") {
            Some(max) => parse_max(&max)?,
            None => (number(&text("cpu.cfs_quota_us")?)?, number(&text("cpu.cfs_period_us")?)?),
        };
        let (periods, throttled_periods, throttled) = parse_stat(&text(STAT)?);
        (period_us > 0.0).then(|| Quota {
            processors: quota_us / period_us,
            period: Duration::from_nanos((period_us * 1e3) as u64),
            group: folder.to_path_buf(),
            periods,
            throttled_periods,
            throttled,
        })
    }
}

/// A mounted hierarchy of groups that has the controller of processors.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The group that is mounted.
    root: String,
    /// The folder at which it is mounted.
    point: PathBuf,
    is_version_2: bool,
}

impl Mount {
    /// Returns the folders of a process's group and of all groups above it that are mounted here, given `/proc/PID/cgroup`.
    fn folders(&self, groups: &str) -> Option<Vec<PathBuf>> {
        let is_ours = |controllers: &str| match self.is_version_2 {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|each| each == "cpu"),
        };
        let group = groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            is_ours(controllers).then_some(path)
        })?;
        // A group outside of what is mounted has a path with `..`.
        let below = Path::new(group).strip_prefix(&self.root).ok().filter(|path| !path.starts_with(".."));
        let own: PathBuf = self.point.iter().chain(below.into_iter().flatten()).collect();
        Some(own.ancestors().take_while(|folder| folder.starts_with(&self.point)).map(Path::to_path_buf).collect())
    }
}

/// Returns the mounts of control groups, and the folder below which they are seen. A program that entered a network
/// namespace may have lost them with `/sys`; the process that started it still has them.
fn mounts_in_reach() -> Option<(PathBuf, Vec<Mount>)> {
    const GENERATIONS: usize = 8;
    let of = |process: u32| {
        let text = fs::read_to_string(format!("/proc/{process}/mountinfo")).ok()?;
        Some(parse_mounts(&text)).filter(|mounts| !mounts.is_empty())
    };
    let mut process = std::process::id();
    if let Some(mounts) = of(process) {
        return Some((PathBuf::from("/"), mounts));
    }
    for _ in 0..GENERATIONS {
        process = parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
        if let Some(mounts) = of(process) {
            let root = PathBuf::from(format!("/proc/{process}/root"));
            return root.join("proc").exists().then_some((root, mounts));
        }
    }
    None
}

/// Parses the parent's number from `/proc/PID/stat`; the name in parentheses may contain anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

/// Parses `/proc/PID/mountinfo` (proc_pid_mountinfo(5)): `31 24 0:28 /root /point options … - type source options`.
fn parse_mounts(mountinfo: &str) -> Vec<Mount> {
    let of_line = |line: &str| {
        let (fields, kind) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let is_version_2 = name == "cgroup2";
        let has_cpu = name == "cgroup" && options.split(',').any(|option| option == "cpu");
        (is_version_2 || has_cpu).then(|| Mount { root: root.to_owned(), point: PathBuf::from(point), is_version_2 })
    };
    mountinfo.lines().filter_map(of_line).collect()
}

/// Parses `cpu.max`: quota and period in microseconds; `None` if the quota is `max`.
fn parse_max(text: &str) -> Option<(f64, f64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some((number(quota)?, number(period)?))
}

/// Parses a number that is not negative.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number| *number >= 0.0)
}

/// Parses `cpu.stat`: periods, throttled periods, throttled time.
fn parse_stat(text: &str) -> (u64, u64, Duration) {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let throttled = value("throttled_usec").map(Duration::from_micros);
    let throttled = throttled.or_else(|| value("throttled_time").map(Duration::from_nanos)).unwrap_or_default();
    (value("nr_periods").unwrap_or(0), value("nr_throttled").unwrap_or(0), throttled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.18 with both versions mounted, and of a container whose own group is mounted.
    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
50 31 0:38 /docker/7f /sys/fs/cgroup/cpu,cpuacct ro master:3 - cgroup cgroup rw,cpu,cpuacct
";

    fn mount(root: &str, point: &str, is_version_2: bool) -> Mount {
        Mount { root: root.into(), point: point.into(), is_version_2 }
    }

    #[test]
    fn only_hierarchies_with_processors_are_found() {
        let expected = [
            mount("/", "/sys/fs/cgroup/cpu", false),
            mount("/", "/sys/fs/cgroup/unified", true),
            mount("/docker/7f", "/sys/fs/cgroup/cpu,cpuacct", false),
        ];
        assert_eq!(parse_mounts(MOUNTS), expected);
        assert_eq!(parse_mounts("nonsense\n1 2 - cgroup2\n"), []);
    }

    #[test]
    fn a_group_and_all_above_it_are_looked_up() {
        let groups = "9:name=systemd:/\n4:memory:/a\n1:cpu,cpuacct:/docker/7f/own\n0::/user/app\n";
        let paths = |mount: &Mount| -> Vec<String> {
            mount.folders(groups).into_iter().flatten().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(paths(&mount("/", "/v1", false)), ["/v1/docker/7f/own", "/v1/docker/7f", "/v1/docker", "/v1"]);
        assert_eq!(paths(&mount("/docker/7f", "/v1", false)), ["/v1/own", "/v1"]);
        assert_eq!(paths(&mount("/", "/v2", true)), ["/v2/user/app", "/v2/user", "/v2"]);
        // A group that is not below the one that is mounted.
        assert_eq!(paths(&mount("/elsewhere", "/v2", true)), ["/v2"]);
        assert_eq!(mount("/", "/v1", false).folders("4:memory:/a\n"), None);
    }

    #[test]
    fn quotas_of_both_versions_are_read() {
        assert_eq!(parse_max("15000 100000\n"), Some((15_000.0, 100_000.0)));
        assert_eq!(parse_max("max 100000\n"), None);
        assert_eq!((number("-1\n"), number("15000\n")), (None, Some(15_000.0)));
        let old = "nr_periods 10\nnr_throttled 4\nthrottled_time 3000000\nnr_bursts 0\n";
        let new = "usage_usec 5\nuser_usec 1\nsystem_usec 4\nnr_periods 10\nnr_throttled 4\nthrottled_usec 3000\n";
        assert_eq!(parse_stat(old), (10, 4, Duration::from_millis(3)));
        assert_eq!(parse_stat(new), parse_stat(old));
        assert_eq!(parse_stat("usage_usec 5\n"), (0, 0, Duration::ZERO));
    }

    #[test]
    fn the_tightest_quota_counts_and_all_that_stopped_the_process() {
        let quota = |processors, throttled_periods| Quota {
            processors,
            period: Duration::from_millis(100),
            group: format!("/{processors}").into(),
            periods: 10,
            throttled_periods,
            throttled: Duration::from_millis(5),
        };
        let all = Throttling::together(vec![quota(2.0, 1), quota(0.5, 3), quota(1.0, 0)]);
        assert_eq!((all.processors, all.group.clone()), (Some(0.5), Some("/0.5".into())));
        assert_eq!((all.periods, all.throttled_periods, all.throttled), (30, 4, Duration::from_millis(15)));
        assert_eq!(all.since(&all).throttled_periods, 0);
        assert_eq!(Throttling::together(Vec::new()), Throttling::default());
    }

    #[test]
    fn the_parent_stands_behind_the_name() {
        assert_eq!(parent("7 (a) b 1) S 42 7 7 0"), Some(42));
        assert_eq!((parent("1 (init) S 0 1"), parent("7 (x")), (None, None));
    }

    #[test]
    fn this_process_has_groups_or_none_are_mounted() {
        let own = Throttling::of_process();
        assert!(own.is_none_or(|own| own.throttled_periods <= own.periods));
        assert_eq!(Throttling::of(u32::MAX), None);
    }
}
