//! Errors in the words of `ibv_rc_pingpong`, and what helps.

use crate::{DeviceError, Gid};
use hodo_io::verbs::Error;
use std::io;

/// How a host without an adapter gets a device.
const GET_A_DEVICE: &str = "install the adapter's driver, or make a software device on a network interface \
     (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0)";

/// Returns the error of a verb that failed, with what was tried.
pub(super) fn refused(what: &str, error: &Error) -> DeviceError {
    match error {
        Error::Refused { errno, .. } => DeviceError::Refused { what: what.to_owned(), errno: *errno },
        other => DeviceError::Missing(format!("{what}: {other}")),
    }
}

/// Returns why the devices cannot be listed. A kernel whose RDMA modules are not loaded has no list.
pub(super) fn listing(error: &Error) -> DeviceError {
    match error {
        Error::Refused { errno: 38, .. } => DeviceError::Missing(format!(
            "No IB devices found: the kernel has no RDMA support loaded (modprobe ib_uverbs); {GET_A_DEVICE}"
        )),
        other => refused("Failed to get IB devices list", other),
    }
}

/// Returns that there is no device, or not this one.
pub(super) fn no_device(wish: Option<&str>, names: &[String]) -> DeviceError {
    DeviceError::Missing(match wish {
        Some(name) if !names.is_empty() => {
            format!("IB device {name} not found: this host has {}", names.join(", "))
        }
        Some(name) => format!("IB device {name} not found: this host has none; {GET_A_DEVICE}"),
        None => format!("No IB devices found: {GET_A_DEVICE}"),
    })
}

/// Returns why a device cannot be opened.
pub(super) fn context(name: &str, error: &Error) -> DeviceError {
    let rights = "check that you may read and write /dev/infiniband/uverbs*";
    DeviceError::Missing(format!("Couldn't get context for {name}: {}; {rights}", words(error)))
}

/// Returns why memory cannot be registered.
pub(super) fn registering(length: usize, error: &Error) -> DeviceError {
    let Error::Refused { verb, errno } = error else { return refused("Couldn't register MR", error) };
    match (*verb, *errno) {
        ("mmap", _) => DeviceError::Missing(format!("Couldn't allocate work buf. of {length} bytes: {}", words(error))),
        ("ibv_alloc_dm", errno) => DeviceError::Refused { what: "Dev mem allocation failed".to_owned(), errno },
        // ENOMEM and EAGAIN: the limit of locked memory.
        (_, 12 | 11) => DeviceError::Missing(format!(
            "Couldn't register MR of {length} bytes: {}; raise the limit of locked memory (ulimit -l)",
            words(error)
        )),
        _ => refused("Couldn't register MR", error),
    }
}

/// Returns why a queue pair cannot be connected.
pub(super) fn connecting(remote: Gid, error: &Error) -> DeviceError {
    const WHAT: &str = "Failed to modify QP to RTR";
    match error {
        // ENETUNREACH, ETIMEDOUT and EHOSTUNREACH: the far end's Ethernet address was not found.
        Error::Refused { errno: 101 | 110 | 113, .. } => DeviceError::Missing(format!(
            "{WHAT}: {}; {} does not answer: check the route to it, and the index of the GID at both ends",
            words(error),
            remote.address()
        )),
        other => refused(WHAT, other),
    }
}

/// Returns that a far end on Ethernet gave no global identifier.
pub(super) fn no_remote_gid() -> DeviceError {
    let remedy = "start it with the index of its GID (ibv_rc_pingpong -g 1)";
    DeviceError::Missing(format!("the far end has no GID, without which it cannot be reached on Ethernet: {remedy}"))
}

/// Returns what went wrong, without the function's name.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::Refused { errno, .. } => io::Error::from_raw_os_error(*errno).to_string(),
        other => other.to_string(),
    }
}
