//! Other processes: whether one has locked a file, and how to end one.
#![allow(unsafe_code)]

use crate::sys::check;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a user's entry in the system's list.
const ENTRY_MAX: usize = 64 << 10;

/// Returns the user id with whose rights this process acts.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes no pointers, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Returns the id of a user of this name or number; `None` if the system's list of users has no such name.
#[must_use]
pub fn user_named(user: &str) -> Option<u32> {
    if let Ok(number) = user.parse() {
        return Some(number);
    }
    let name = std::ffi::CString::new(user).ok()?;
    let mut entry: MaybeUninit<libc::passwd> = MaybeUninit::uninit();
    let (mut room, mut found) = (vec![0; ENTRY_MAX], std::ptr::null_mut());
    // SAFETY: all pointers are to places that live through the call, and the room is as long as is said.
    let outcome =
        unsafe { libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found) };
    // SAFETY: the entry is written where `found` points to it.
    (outcome == 0 && !found.is_null()).then(|| unsafe { (*found).pw_uid })
}

/// Takes the right to write what this process makes from everybody but its user, if its umask lets everybody write. Another umask stays.
///
/// The process has no other thread yet: files that those make meanwhile could have any mode.
pub fn keep_others_from_writing() {
    // SAFETY: takes no pointers, and cannot fail.
    let umask = unsafe { libc::umask(0o077) };
    let is_open = umask & 0o002 == 0;
    // SAFETY: as above.
    unsafe { libc::umask(if is_open { umask | 0o022 } else { umask }) };
}

/// Has memory go back to the system as soon as it is not needed, where it is in pieces of 1 MiB and more.
///
/// The C library keeps such pieces once one has been given back, and what peers make a daemon retain is then up to half as much again as it
/// charges to them. A program that takes and leaves large pieces all the time is slower by it.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, 1 << 20), (libc::M_TRIM_THRESHOLD, 4 << 20)] {
        // SAFETY: takes no pointers; where it fails, nothing changes.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Opens a file to be read and written, which is created for its user to write if it is not there. A link at its path is not followed.
///
/// # Errors
/// Returns the operating system's error, for a link too.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    open_with_mode(path, 0o644)
}

/// Opens a file as [`open_without_links`] does, which nobody else may read.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    open_with_mode(path, 0o600)
}

fn open_with_mode(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(mode).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Opens a file that is there to be read and written. A link is not followed, and nothing else is waited for, as the other end of a pipe.
///
/// # Errors
/// Returns the operating system's error, and `InvalidInput` if it is no regular file.
pub fn open_existing(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Opens a file to be read and written that another process may have locked. Opening a pipe so does not wait for anybody.
///
/// # Errors
/// Returns the operating system's error.
pub fn open_locked(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Locks a file for this process as long as the file is open, and returns whether it was free.
///
/// # Errors
/// Returns the operating system's error if the file cannot be locked, for instance because it is not open for writing.
pub fn lock(file: &File) -> io::Result<bool> {
    lock_part(file, WHOLE)
}

/// Locks the bytes of a file that begin at the first number, as many as the second says, as [`lock`] does.
///
/// # Errors
/// Returns the operating system's error if the file cannot be locked, for instance because it is not open for writing.
pub(crate) fn lock_part(file: &File, part: (i64, i64)) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, &mut write_lock(part)) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        other => other.map(|()| true),
    }
}

/// Returns whether another open file holds the lock, without taking it. The file has to be open for writing.
///
/// # Errors
/// Returns the operating system's error if the lock cannot be queried.
pub fn is_locked(file: &File) -> io::Result<bool> {
    is_part_locked(file, WHOLE)
}

/// Returns whether another open file holds the lock of some of these bytes, without taking it.
///
/// # Errors
/// Returns the operating system's error if the lock cannot be queried.
pub(crate) fn is_part_locked(file: &File, part: (i64, i64)) -> io::Result<bool> {
    let mut lock = write_lock(part);
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

/// Ends this process at once: nothing is flushed, and no thread is waited for.
pub fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes no pointers, and runs nothing of this process.
    unsafe { libc::_exit(status) }
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

/// All bytes of a file, of which the number is not known.
const WHOLE: (i64, i64) = (0, 0);

/// Returns the description of a write lock on a part of a file.
fn write_lock((l_start, l_len): (i64, i64)) -> libc::flock {
    let (l_type, l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start, l_len, l_pid: 0 }
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
        assert!(lock(&second).expect("it can be taken"));
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
