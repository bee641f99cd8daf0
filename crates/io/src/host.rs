//! Facts of the host that a measurement depends on. A fact that cannot be known is `None`.
#![allow(unsafe_code)]

mod idle;
mod pressure;
mod processes;
mod sockets;
mod softnet;
mod tcp_events;
mod throttling;

pub use idle::{Idle, IdleState};
pub use pressure::Pressure;
pub use processes::{Busy, Processes, bound_at};
pub use sockets::{SocketLimits, tcp_probes_mtu};
pub use softnet::Softnet;
pub use tcp_events::TcpEvents;
pub use throttling::{QuotaGroups, Throttling};

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// The host, its kernel and its settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostFacts {
    /// Host name.
    pub host: Option<String>,
    /// Kernel release, as `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu: Option<String>,
    /// Processors online.
    pub cores: Option<u32>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// TCP congestion control of a new socket.
    pub congestion_control: Option<String>,
    /// Congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
    /// The kernel's clock source; anything but `tsc` (or the architecture's counter) makes a reading a system call.
    pub clock_source: Option<String>,
    /// The clock sources that the kernel can use, the best first.
    pub clock_sources: Vec<String>,
    /// The hypervisor, where there is one and it gives its name.
    pub hypervisor: Option<String>,
    /// The frequency governor of the first processor.
    pub governor: Option<String>,
}

impl HostFacts {
    /// Reads all facts, which takes about a millisecond.
    #[must_use]
    pub fn collect() -> HostFacts {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        HostFacts {
            host: name(),
            kernel: line_of("/proc/sys/kernel/osrelease"),
            cpu: cpu_model(&cpuinfo).or_else(|| line_of("/sys/firmware/devicetree/base/model")),
            cores: cores_online(),
            memory_bytes: memory("MemTotal:"),
            congestion_control: line_of("/proc/sys/net/ipv4/tcp_congestion_control"),
            congestion_controls: words_of("/proc/sys/net/ipv4/tcp_available_congestion_control"),
            clock_sources: words_of("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
            clock_source: line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hypervisor: hypervisor(&cpuinfo),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        }
    }
}

/// Returns the name of this host.
#[must_use]
pub fn name() -> Option<String> {
    line_of("/proc/sys/kernel/hostname")
}

/// Returns the number of this boot of the kernel, which no other host has: `f0a3c7d2-…`, 32 hexadecimal digits.
#[must_use]
pub fn boot_id() -> Option<String> {
    line_of("/proc/sys/kernel/random/boot_id")
}

/// Returns the cost of one reading of the monotonic clock, in nanoseconds: the median over batches, so that an
/// interrupt in one of them does not count.
#[must_use]
pub fn clock_cost_ns() -> f64 {
    const BATCHES: usize = 51;
    const READINGS: u32 = 256;
    let mut costs: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            let mut last = start;
            for _ in 0..READINGS {
                last = std::hint::black_box(Instant::now());
            }
            (last - start).as_nanos() as f64 / f64::from(READINGS)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[BATCHES / 2]
}

/// Returns the time now, UTC, to the second, after RFC 3339: `2026-11-21T07:45:00Z`.
#[must_use]
pub fn utc_now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format_utc(since_epoch.as_secs())
}

/// Returns the time now, UTC, to the microsecond, after RFC 3339: `2026-11-21T07:45:00.123456Z`.
#[must_use]
pub fn utc_now_us() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = format_utc(since_epoch.as_secs());
    format!("{}.{:06}Z", seconds.trim_end_matches('Z'), since_epoch.subsec_micros())
}

/// Formats seconds since 1970 after RFC 3339.
fn format_utc(unix_s: u64) -> String {
    let (hour, minute, second) = (unix_s / 3600 % 24, unix_s / 60 % 60, unix_s % 60);
    let (year, month, day) = civil_date(unix_s / 86_400);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last of its year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_0: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_0;
    let day_of_era = days % DAYS_IN_400_YEARS;
    let leap_days = day_of_era / 1460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * (days / DAYS_IN_400_YEARS) + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Returns the C library that this process runs with, as `glibc 2.36`.
#[must_use]
pub fn c_library() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it returns a string with a zero at its end, which is never freed.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        (if cfg!(target_env = "musl") { "musl" } else { "not known" }).to_owned()
    }
}

/// Raises the limit of open descriptors as far as this process may, and returns the new limit.
///
/// Each channel takes one; the usual default of 1,024 is too few for many.
///
/// # Errors
/// Returns the operating system's error if the limit cannot be read or raised.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a whole rlimit that outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: as above; the kernel only reads it.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

/// Returns the file's content without the white space and the zero byte at its end; `None` if nothing is left.
fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim_end_matches('\0').trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// Returns the words of a file; none if it cannot be read.
fn words_of(path: &str) -> Vec<String> {
    line_of(path).unwrap_or_default().split_whitespace().map(String::from).collect()
}

fn cores_online() -> Option<u32> {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(cores).ok().filter(|&cores| cores > 0)
}

/// Returns the first value of a key in `/proc/cpuinfo`.
fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)?;
    Some(value.trim()).filter(|value| !value.is_empty())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "Processor", "Hardware", "cpu"]
        .iter()
        .find_map(|key| cpuinfo_value(cpuinfo, key))
        .map(String::from)
}

/// Returns the memory that can be allocated now without taking it from other programs.
#[must_use]
pub fn memory_available() -> Option<u64> {
    memory("MemAvailable:")
}

fn memory(name: &str) -> Option<u64> {
    memory_bytes(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

fn memory_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Returns the hypervisor's name: from the processor first, then from the paravirtual interface, then from the board
/// that the firmware describes.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flagged =
        cpuinfo_value(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if flagged && let Some(name) = hypervisor_of_cpuid() {
        return Some(name);
    }
    line_of("/sys/hypervisor/type").or_else(|| {
        let vendor = line_of("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
        let product = line_of("/sys/class/dmi/id/product_name").unwrap_or_default();
        hypervisor_of_board(&vendor, &product).map(String::from)
    })
}

fn hypervisor_of_board(vendor: &str, product: &str) -> Option<&'static str> {
    let board = format!("{vendor} {product}");
    [
        ("KVM", "KVM"),
        ("QEMU", "QEMU"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("Microsoft Corporation Virtual", "Hyper-V"),
        ("Xen", "Xen"),
        ("Parallels", "Parallels"),
        ("BHYVE", "bhyve"),
        ("Google Compute Engine", "KVM"),
    ]
    .iter()
    .find(|(mark, _)| board.contains(mark))
    .map(|(_, name)| *name)
}

/// Returns the signature of leaf 0x40000000, which all hypervisors agree on.
#[cfg(target_arch = "x86_64")]
fn hypervisor_of_cpuid() -> Option<String> {
    // SAFETY: every x86-64 processor has the instruction, and it only fills registers. Newer compilers know so.
    #[allow(unused_unsafe)]
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let signature = String::from_utf8(bytes).ok()?;
    hypervisor_of_signature(signature.trim_matches(['\0', ' ']))
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_of_cpuid() -> Option<String> {
    None
}

#[cfg(any(target_arch = "x86_64", test))]
fn hypervisor_of_signature(signature: &str) -> Option<String> {
    let name = match signature {
        "" => return None,
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "VBoxVBoxVBox" => "VirtualBox",
        "TCGTCGTCGTCG" => "QEMU without KVM",
        "bhyve bhyve" => "bhyve",
        other if other.chars().all(|c| c.is_ascii_graphic() || c == ' ') => other,
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests;
