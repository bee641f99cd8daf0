//! Placement of threads: on processors, with descriptor tables of their own, and woken on time.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::c_uint;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::{fs, io};

/// Pins the calling thread to one processor.
///
/// # Errors
/// Returns `InvalidInput`, with the processors that there are, if this one is none of them or the thread may not use it.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    allow_cpus(&[cpu]).map_err(|_| {
        let allowed = allowed_cpus().unwrap_or_default();
        let why = format!("processor {cpu} cannot be used; this process may run on {allowed:?}");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })
}

/// Lets the calling thread run on these processors.
///
/// # Errors
/// Returns the operating system's error if the thread may use none of them.
pub fn allow_cpus(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is a valid empty set, each processor is below CPU_SETSIZE, and pointer and size are
    // those of a live cpu_set_t.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the calling thread woken when its timers are due, and not up to 50 us later so that wake-ups fall together.
///
/// # Errors
/// Returns the operating system's error.
pub fn wake_on_time() -> io::Result<()> {
    const SLACK_NS: libc::c_ulong = 1;
    // SAFETY: the call takes a number and touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs `act` on the calling thread, and restores the thread's processors afterwards.
pub fn keep<T>(act: impl FnOnce() -> T) -> T {
    let home = allowed_cpus();
    let done = act();
    if let Ok(home) = home {
        // If that is no longer allowed, the thread stays where it is allowed to be.
        let _ = allow_cpus(&home);
    }
    done
}

/// Returns the processors that the calling thread may use, in order.
///
/// # Errors
/// Returns the operating system's error if it cannot be read.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: an all-zero cpu_set_t is valid, and the kernel writes at most the size that is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect())
    }
}

/// Returns the processors that are switched on, in order; none if the kernel does not report them.
#[must_use]
pub fn online_cpus() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_list(text.trim()).unwrap_or_default()
}

/// Returns the processors that another process may use: those of its threads that were placed, else those of the first thread; `None`
/// if there is no such process.
#[must_use]
pub fn cpus_of(process: u32) -> Option<Vec<usize>> {
    let allowed = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        parse_list(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim())
    };
    let folder = Path::new("/proc").join(process.to_string());
    let first = allowed(&folder)?;
    let threads = fs::read_dir(folder.join("task")).ok()?.flatten();
    let placed = threads.filter_map(|thread| allowed(&thread.path())).filter(|cpus| *cpus != first);
    let placed: BTreeSet<usize> = placed.flatten().collect();
    Some(if placed.is_empty() { first } else { placed.into_iter().collect() })
}

/// Parses `0-2,5` into the numbers.
pub(crate) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        found.extend(first..=last.min(first + 4095));
    }
    Some(found)
}

/// Gives the calling thread a descriptor table of its own, with `kept` and the three standard descriptors. The thread
/// must not use any other descriptor that was opened before.
///
/// Threads that share a table pay for it with each system call on a socket, 1 % of a round-trip on loopback. The
/// descriptor's owner drops it in the common table after the thread has ended.
pub(crate) fn leave_other_descriptors(kept: BorrowedFd<'_>) {
    let (first, kept) = (libc::STDERR_FILENO as c_uint + 1, kept.as_raw_fd() as c_uint);
    close_from(first, kept.saturating_sub(1));
    close_from((kept + 1).max(first), c_uint::MAX);
}

/// Closes descriptors in a table that only the calling thread has.
fn close_from(first: c_uint, last: c_uint) {
    if first <= last {
        // SAFETY: takes no pointers, and closes nothing for another thread, nor anything that this one has been
        // promised. Before Linux 5.9 it fails and changes nothing.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_tells() {
        std::thread::spawn(|| {
            let first = allowed_cpus().unwrap()[0];
            pin_thread(first).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [first]);
            let why = pin_thread(1 << 20).unwrap_err().to_string();
            assert_eq!(why, format!("processor 1048576 cannot be used; this process may run on [{first}]"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!((parse_list(""), parse_list("x")), (Some(vec![]), None));
    }

    #[test]
    fn this_process_may_use_processors_that_are_on() {
        let (own, online) = (cpus_of(std::process::id()).expect("it is there"), online_cpus());
        assert!(!own.is_empty() && own.iter().all(|cpu| online.contains(cpu)), "{own:?} {online:?}");
        assert_eq!(cpus_of(u32::MAX), None);
    }

    #[test]
    fn threads_that_were_placed_count() {
        let (placed, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let one = allowed_cpus().expect("Linux")[0];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin_thread(one).expect("it may be used");
                placed.wait();
                done.wait();
            });
            placed.wait();
            let found = cpus_of(std::process::id()).expect("it is there");
            done.wait();
            assert!(found.contains(&one), "{found:?}");
        });
    }
}
