#![allow(unsafe_code)]

use super::context::Opened;
use super::functions::Functions;
use super::layout::ibv_device;
use super::{Context, Error};
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// The library's name, as applications link against it.
pub const LIBRARY: &str = "libibverbs.so.1";

/// The library libibverbs, loaded.
#[derive(Clone)]
pub struct Library {
    functions: Arc<Functions>,
}

impl Library {
    /// Loads libibverbs.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] if it is not installed, [`Error::NoFunction`] if it is too old.
    pub fn open() -> Result<Self, Error> {
        Self::open_named(LIBRARY)
    }

    /// Loads a library of another name that has the same functions.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] if it is not installed, [`Error::NoFunction`] if it is something else or too old.
    pub fn open_named(name: &str) -> Result<Self, Error> {
        let functions = Functions::load(name)?;
        // SAFETY: takes nothing. It makes the library's own queues survive a fork; where it comes too late, or the kernel does it
        // anyway, it does nothing.
        unsafe { (functions.ibv_fork_init)() };
        Ok(Library { functions: Arc::new(functions) })
    }

    /// Returns the names of the devices of this host, in the library's order.
    ///
    /// # Errors
    /// [`Error::Refused`] if the kernel has no RDMA at all (`ENOSYS`), or denies access.
    pub fn devices(&self) -> Result<Vec<String>, Error> {
        Ok(self.list()?.iter().map(|(name, _)| name).collect())
    }

    /// Opens the device of this name.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is none, [`Error::Refused`] if it cannot be opened.
    pub fn open_device(&self, name: &str) -> Result<Context, Error> {
        let list = self.list()?;
        let (_, device) =
            list.iter().find(|(other, _)| other == name).ok_or_else(|| Error::NoDevice(name.to_owned()))?;
        // SAFETY: the device is one of a list that is alive.
        let raw = unsafe { (self.functions.ibv_open_device)(device) };
        Opened::new(raw, &self.functions).map(Context::new)
    }

    fn list(&self) -> Result<DeviceList<'_>, Error> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is that of a live integer.
        let first = unsafe { (self.functions.ibv_get_device_list)(&raw mut count) };
        if first.is_null() {
            return Err(Error::last("ibv_get_device_list"));
        }
        Ok(DeviceList { first, count: usize::try_from(count).unwrap_or(0), functions: &self.functions })
    }
}

/// A list of devices, which the library allocated.
struct DeviceList<'a> {
    first: *mut *mut ibv_device,
    count: usize,
    functions: &'a Functions,
}

impl DeviceList<'_> {
    fn iter(&self) -> impl Iterator<Item = (String, *mut ibv_device)> + '_ {
        (0..self.count).map(|at| {
            // SAFETY: the list has this many devices, and the name of a device of a live list is a string that ends in a zero byte.
            unsafe {
                let device = *self.first.add(at);
                let name = CStr::from_ptr((self.functions.ibv_get_device_name)(device));
                (name.to_string_lossy().into_owned(), device)
            }
        })
    }
}

impl Drop for DeviceList<'_> {
    fn drop(&mut self) {
        // SAFETY: the list came from the library and is freed once. Devices that were opened stay valid.
        unsafe { (self.functions.ibv_free_device_list)(self.first) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, LIBRARY, Library};

    #[test]
    fn a_library_that_is_not_installed_is_named_with_the_packages_that_have_it() {
        let error = Library::open_named("libno-such-verbs.so.1").map(drop).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("no RDMA library (libno-such-verbs.so.1) on this host: install"), "{text}");
        assert!(text.contains("libibverbs1 ibverbs-providers"), "{text}");
    }

    #[test]
    fn another_library_is_refused() {
        let error = Library::open_named("libc.so.6").map(drop).unwrap_err();
        assert_eq!(error, Error::NoFunction { library: "libc.so.6".to_owned(), name: "ibv_fork_init" });
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let library = Library::open().expect("libibverbs1 is installed");
        assert!(LIBRARY.ends_with(".so.1"));
        let error = library.open_device("no-such-device").map(drop).unwrap_err();
        // A kernel without RDMA has no list at all.
        let known = [
            Error::NoDevice("no-such-device".to_owned()),
            Error::Refused { verb: "ibv_get_device_list", errno: libc::ENOSYS },
        ];
        assert!(known.contains(&error), "{error}");
    }
}
