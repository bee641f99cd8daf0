//! Other processes: whether one has locked a file, and how to end one.
#![allow(unsafe_code)]

use crate::sys::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Returns the user id with whose rights this process acts.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes no pointers, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Opens a file to be read and written, which is created if it is not there. A link at its path is not followed.
///
/// # Errors
/// Returns the operating system's error, for a link too.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Locks a file for this process as long as the file is open, and returns whether it was free.
///
/// # Errors
/// Returns the operating system's error if the file cannot be locked, for instance because it is not open for writing.
pub fn lock(file: &File) -> io::Result<bool> {
    let mut lock = whole();
    match control(file, libc::F_OFD_SETLK, &mut lock) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        other => other.map(|()| true),
    }
}

/// Returns whether another open file holds the lock, without taking it. The file has to be open for writing.
///
/// # Errors
/// Returns the operating system's error if the lock cannot be queried.
pub fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = whole();
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

/// Sends a process SIGTERM.
///
/// # Errors
/// Returns `InvalidInput` for a number that is not a single process's, and otherwise the operating system's error if
/// there is no such process or this one may not signal it.
pub fn terminate(pid: u32) -> io::Result<()> {
    // 0 and negative numbers would mean whole groups.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointers.
    unsafe { check(libc::kill(pid, libc::SIGTERM)).map(drop) }
}

/// Kills a process that leads a group, and all of the group, with SIGKILL. The process must not have been collected
/// yet, because its number may be another's afterwards.
///
/// # Errors
/// Returns `InvalidInput` for a number that is not a group's leader, and otherwise the operating system's error if
/// there is no such group or this process may not signal it.
pub fn kill_group(leader: u32) -> io::Result<()> {
    // 0 and 1 would mean our own group and all processes.
    let leader = i32::try_from(leader).ok().filter(|pid| *pid > 1).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointers.
    unsafe { check(libc::kill(-leader, libc::SIGKILL)).map(drop) }
}

/// Waits until a child has ended, and leaves it to be collected, so that its number stays its own.
///
/// # Errors
/// Returns the operating system's error if there is no such child.
pub fn await_end(child: u32) -> io::Result<()> {
    loop {
        // SAFETY: the pointer is to a live siginfo_t, of which all zeroes are one.
        let done = unsafe {
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            check(libc::waitid(libc::P_PID, child, &raw mut ended, libc::WEXITED | libc::WNOWAIT))
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(drop),
        }
    }
}

/// Returns the description of a write lock on a whole file.
fn whole() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn control(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: both commands take a pointer to a flock, which lives through the call.
    unsafe { check(libc::fcntl(file.as_raw_fd(), command, &raw mut *lock)).map(drop) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_by_one_until_it_is_closed() {
        let path = std::env::temp_dir().join(format!("hodo-lock-{}", std::process::id()));
        let open =
            || File::options().create(true).truncate(false).write(true).open(&path).expect("a folder to write to");
        let (first, second) = (open(), open());
        assert!(!is_locked(&second).expect("it can be asked"));
        assert!(lock(&first).expect("it can be taken"));
        assert!(!lock(&second).expect("it can be tried"));
        assert!(is_locked(&second).expect("it can be asked"));
        assert!(!is_locked(&first).expect("it can be asked"), "its own lock is in nobody's way");
        drop(first);
        // A child that another test starts meanwhile has the file, too, until its own program runs.
        let is_taken = |_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            lock(&second).expect("it can be tried")
        };
        assert!((0..30_000).any(is_taken));
        std::fs::remove_file(path).expect("it was made");
    }

    #[test]
    fn a_group_ends_with_its_leader_and_is_collected_after() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 60 & wait"]).process_group(0);
        let mut child = command.spawn().expect("`sh` is everywhere");
        kill_group(child.id()).expect("it is ours");
        await_end(child.id()).expect("it is ours");
        await_end(child.id()).expect("it was not collected");
        assert_eq!(child.wait().expect("it has ended").code(), None);
        assert!(await_end(child.id()).is_err(), "it was collected");
        assert!(kill_group(0).is_err() && kill_group(1).is_err());
    }

    #[test]
    fn only_single_processes_are_ended() {
        assert!(terminate(0).is_err() && terminate(u32::MAX).is_err());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("`sleep` is everywhere");
        terminate(child.id()).expect("it is ours");
        assert!(!child.wait().expect("it ends").success());
    }
}
