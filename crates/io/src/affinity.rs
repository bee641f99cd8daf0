//! Placement of threads on processors.
#![allow(unsafe_code)]

use std::io;

/// Puts the calling thread on one processor.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    allow_cpus(&[cpu])
}

/// Lets the calling thread run on these processors.
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

/// The processors that the calling thread may use, in order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_tells() {
        std::thread::spawn(|| {
            let first = allowed_cpus().unwrap()[0];
            pin_thread(first).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [first]);
            assert!(pin_thread(1 << 20).is_err());
        })
        .join()
        .unwrap();
    }
}
