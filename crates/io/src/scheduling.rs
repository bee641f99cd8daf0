//! The scheduling class of threads: who runs first where several are ready.
#![allow(unsafe_code)]

use std::io;

/// The priority of threads in real time: above everything in the usual class, below what the kernel and other programs of 11 to 99 run.
pub const PRIORITY: i32 = 10;

/// Puts the calling thread into the class SCHED_FIFO, and the threads and programs that it starts from now on: they run before every
/// thread of the usual class, until they sleep.
///
/// # Errors
/// Returns `PermissionDenied` without the capability `CAP_SYS_NICE` and a limit on real-time priority of at least [`PRIORITY`], and
/// otherwise the operating system's error.
pub fn set_realtime() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the pointer is to a live sched_param; 0 is the calling thread.
    let answer = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread run before those of [`set_realtime`], if it is one of them: they may poll without a sleep, and this one has little to do.
pub fn set_before_realtime() {
    if is_realtime() {
        let priority = libc::sched_param { sched_priority: PRIORITY + 1 };
        // Whoever was allowed the one priority is seldom refused the next; the thread then waits for a sleep of the others.
        // SAFETY: the pointer is to a live sched_param; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    }
}

/// Returns whether the calling thread keeps its processor until it sleeps.
#[must_use]
pub fn is_realtime() -> bool {
    // SAFETY: takes no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// Returns the highest real-time priority that this process may use without a capability; `None` if there is no limit.
#[must_use]
pub fn priority_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live rlimit, which is all that the call writes.
    unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Returns the class of the calling thread as `SCHED_OTHER`, `SCHED_OTHER, nice 5` or `SCHED_FIFO 10`; `None` if it cannot be read.
#[must_use]
pub fn class() -> Option<String> {
    let mut priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: takes no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    // SAFETY: the pointer is to a live sched_param, which is all that the call writes.
    let known = unsafe { libc::sched_getparam(0, &raw mut priority) } == 0;
    // SAFETY: takes no pointers, and cannot fail for the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let name = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "SCHED_OTHER",
        libc::SCHED_FIFO => "SCHED_FIFO",
        libc::SCHED_RR => "SCHED_RR",
        libc::SCHED_BATCH => "SCHED_BATCH",
        libc::SCHED_IDLE => "SCHED_IDLE",
        libc::SCHED_DEADLINE => "SCHED_DEADLINE",
        _ => return None,
    };
    known.then(|| match (priority.sched_priority, nice) {
        (1.., _) => format!("{name} {}", priority.sched_priority),
        (_, 0) => name.to_owned(),
        _ => format!("{name}, nice {nice}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_the_class_that_it_was_put_in() {
        let (before, after) = std::thread::spawn(|| {
            let before = class();
            (before, set_realtime().map(|()| class()))
        })
        .join()
        .expect("it does not panic");
        assert!(before.is_some_and(|class| class.starts_with("SCHED_")));
        match after {
            Ok(class) => assert_eq!(class.as_deref(), Some("SCHED_FIFO 10")),
            Err(why) => {
                assert_eq!(why.kind(), io::ErrorKind::PermissionDenied);
                assert!(priority_limit().is_some_and(|limit| limit < PRIORITY as u64));
            }
        }
    }
}
