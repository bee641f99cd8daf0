#![allow(unsafe_code)]

mod on_device;
mod pages;

use super::context::{Opened, later};
use super::error::check;
use super::layout::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_ZERO_BASED, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
    ibv_mr, ibv_pd, ibv_sge,
};
use super::{Context, Error};
use on_device::DeviceMemory;
use pages::Pages;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The rights of a region. The local side may always read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Receives, reads and atomic operations of the local side may write.
    pub local_write: bool,
    /// The far end may write.
    pub remote_write: bool,
    /// The far end may read.
    pub remote_read: bool,
    /// The far end may do atomic operations.
    pub remote_atomic: bool,
}

impl Rights {
    pub(super) fn flags(self) -> u32 {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        flag(self.local_write, IBV_ACCESS_LOCAL_WRITE)
            | flag(self.remote_write, IBV_ACCESS_REMOTE_WRITE)
            | flag(self.remote_read, IBV_ACCESS_REMOTE_READ)
            | flag(self.remote_atomic, IBV_ACCESS_REMOTE_ATOMIC)
    }

    fn is_remote(self) -> bool {
        self.remote_write || self.remote_read || self.remote_atomic
    }
}

/// How the pages of a region come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paging {
    /// They are pinned when the region is registered.
    #[default]
    Pinned,
    /// The device faults them in when it needs them.
    OnDemand,
    /// The device faults them in, under one key for the whole address space. A region that gives rights to the far end has a
    /// key of its own instead, because otherwise the far end could reach all memory of the process.
    Implicit,
}

/// The place of a region's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the host's memory.
    Host(Paging),
    /// In the device's memory.
    Device,
}

/// A protection domain: queue pairs reach only the regions of their own.
#[derive(Clone)]
pub struct Domain {
    pub(super) handle: Arc<DomainHandle>,
}

/// A protection domain in the library.
pub(super) struct DomainHandle {
    pub(super) raw: NonNull<ibv_pd>,
    pub(super) opened: Arc<Opened>,
    /// The region of the whole address space, once a region was registered with [`Paging::Implicit`].
    whole: OnceLock<WholeSpace>,
}

// SAFETY: the library's functions may be called from any thread, and several at a time.
unsafe impl Send for DomainHandle {}
// SAFETY: as above; all else in it is shared safely.
unsafe impl Sync for DomainHandle {}

/// The registration of the whole address space. Pages that were ever used with it stay allocated as long as it, because the device
/// may still write to them when a request for them is outstanding.
struct WholeSpace {
    local_key: u32,
    remote_key: u32,
    raw: NonNull<ibv_mr>,
    pages: Mutex<Vec<Arc<Pages>>>,
}

impl Drop for DomainHandle {
    fn drop(&mut self) {
        let functions = &self.opened.functions;
        if let Some(whole) = self.whole.take() {
            // SAFETY: the region was registered once, and no queue pair of this domain is left.
            if unsafe { (functions.ibv_dereg_mr)(whole.raw.as_ptr()) } != 0 {
                std::mem::forget(whole);
            }
        }
        // SAFETY: the domain was allocated once, and everything made from it is gone, for that keeps it alive.
        unsafe { (functions.ibv_dealloc_pd)(self.raw.as_ptr()) };
    }
}

impl DomainHandle {
    /// Returns whether a run of bytes may be handed to the device. Entries with other keys than that of the whole address space are
    /// checked by the device.
    pub(super) fn allows(&self, key: u32, address: u64, length: u32) -> bool {
        let Some(whole) = self.whole.get().filter(|whole| whole.local_key == key) else { return true };
        let pages = whole.pages.lock().unwrap_or_else(PoisonError::into_inner);
        length == 0 || pages.iter().any(|pages| pages.contains(address, length))
    }
}

impl Context {
    /// Allocates a protection domain.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device has no more.
    pub fn domain(&self) -> Result<Domain, Error> {
        // SAFETY: the context is open.
        let raw = unsafe { (self.opened.functions.ibv_alloc_pd)(self.opened.raw.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_alloc_pd"))?;
        Ok(Domain { handle: Arc::new(DomainHandle { raw, opened: self.opened.clone(), whole: OnceLock::new() }) })
    }
}

impl Domain {
    /// Allocates and registers a region of zeroes. In the device's memory it has what was there before.
    ///
    /// # Errors
    /// [`Error::Refused`] if the memory cannot be allocated or pinned, [`Error::Unsupported`] if the device has no memory of its own.
    pub fn register(&self, length: usize, rights: Rights, placement: Placement) -> Result<Region, Error> {
        match placement {
            Placement::Device => self.register_on_device(length, rights),
            Placement::Host(Paging::Implicit) if !rights.is_remote() => self.register_in_whole_space(length),
            Placement::Host(paging) => {
                let on_demand = if paging == Paging::Pinned { 0 } else { IBV_ACCESS_ON_DEMAND };
                let pages = Arc::new(Pages::new(length)?);
                let flags = (rights.flags() | on_demand) as c_int;
                // SAFETY: the pages are those of a live mapping of this length, which the region keeps until it is deregistered.
                let raw = unsafe {
                    let register = self.handle.opened.functions.ibv_reg_mr;
                    register(self.handle.raw.as_ptr(), pages.address().as_ptr().cast(), length, flags)
                };
                let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_reg_mr"))?;
                Ok(Region::new(self, Some(raw), Memory::Host(pages), length))
            }
        }
    }

    fn register_in_whole_space(&self, length: usize) -> Result<Region, Error> {
        let whole = match self.handle.whole.get() {
            Some(whole) => whole,
            None => {
                let flags = (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) as c_int;
                // SAFETY: this registers the whole address space for the local side. Entries with its key are checked against
                // pages of this crate whenever they are posted, and the far end gets no right.
                let raw = unsafe {
                    let register = self.handle.opened.functions.ibv_reg_mr;
                    register(self.handle.raw.as_ptr(), std::ptr::null_mut(), usize::MAX, flags)
                };
                let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_reg_mr"))?;
                // SAFETY: the library returned a region that is registered.
                let (local_key, remote_key) = unsafe { ((*raw.as_ptr()).lkey, (*raw.as_ptr()).rkey) };
                let whole = WholeSpace { local_key, remote_key, raw, pages: Mutex::default() };
                if let Err(whole) = self.handle.whole.set(whole) {
                    // SAFETY: another thread was first; this region was registered once, and nobody has its key.
                    unsafe { (self.handle.opened.functions.ibv_dereg_mr)(whole.raw.as_ptr()) };
                }
                self.handle.whole.get().expect("it has been set")
            }
        };
        let pages = Arc::new(Pages::new(length)?);
        whole.pages.lock().unwrap_or_else(PoisonError::into_inner).push(pages.clone());
        let (local_key, remote_key) = (whole.local_key, whole.remote_key);
        let address = pages.address().addr().get() as u64;
        let domain = self.clone();
        Ok(Region { raw: None, memory: Memory::Host(pages), address, length, local_key, remote_key, domain })
    }

    fn register_on_device(&self, length: usize, rights: Rights) -> Result<Region, Error> {
        let opened = &self.handle.opened;
        let register = later!(opened, reg_dm_mr).ok_or(Error::Unsupported("ibv_reg_dm_mr"))?;
        let memory = DeviceMemory::allocate(opened, length)?;
        let flags = rights.flags() | IBV_ACCESS_ZERO_BASED;
        // SAFETY: domain and device memory are live, and the memory is at least as long.
        let raw = unsafe { register(self.handle.raw.as_ptr(), memory.raw(), 0, length, flags) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_reg_dm_mr"))?;
        Ok(Region::new(self, Some(raw), Memory::Device(memory), length))
    }
}

enum Memory {
    Host(Arc<Pages>),
    Device(DeviceMemory),
}

/// A registered region of memory. Dropping it ends the registration.
pub struct Region {
    /// The registration, if it is not that of the whole address space.
    raw: Option<NonNull<ibv_mr>>,
    memory: Memory,
    address: u64,
    length: usize,
    local_key: u32,
    remote_key: u32,
    domain: Domain,
}

// SAFETY: the library's functions may be called from any thread, and the memory is reached through pointers only.
unsafe impl Send for Region {}
// SAFETY: as above. Several threads that copy at a time may see torn bytes, as they do when the device writes.
unsafe impl Sync for Region {}

impl Region {
    fn new(domain: &Domain, raw: Option<NonNull<ibv_mr>>, memory: Memory, length: usize) -> Self {
        // SAFETY: the library returned a region that is registered.
        let (local_key, remote_key) = raw.map_or((0, 0), |raw| unsafe { ((*raw.as_ptr()).lkey, (*raw.as_ptr()).rkey) });
        let address = match &memory {
            Memory::Host(pages) => pages.address().addr().get() as u64,
            Memory::Device(_) => 0,
        };
        Region { raw, memory, address, length, local_key, remote_key, domain: domain.clone() }
    }

    /// Returns the virtual address of the first byte; 0 for the device's memory, whose addresses begin there.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the key for entries of requests.
    #[must_use]
    pub fn local_key(&self) -> u32 {
        self.local_key
    }

    /// Returns the key for the far end.
    #[must_use]
    pub fn remote_key(&self) -> u32 {
        self.remote_key
    }

    /// Copies bytes out of the region. Bytes that the device writes meanwhile may be old or new.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if they are not all inside, [`Error::Refused`] if the device's memory cannot be read.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(offset, bytes.len())?;
        match &self.memory {
            Memory::Host(pages) => pages.read(offset, bytes),
            Memory::Device(memory) => memory.read(offset, bytes)?,
        }
        Ok(())
    }

    /// Copies bytes into the region.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if they are not all inside, [`Error::Refused`] if the device's memory cannot be written.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check(offset, bytes.len())?;
        match &self.memory {
            Memory::Host(pages) => pages.write(offset, bytes),
            Memory::Device(memory) => memory.write(offset, bytes)?,
        }
        Ok(())
    }

    /// Faults in the whole region, before the device needs it (`ibv_advise_mr`).
    ///
    /// # Errors
    /// [`Error::Unsupported`] or [`Error::Refused`] if the device cannot; the region can be used all the same.
    pub fn prefetch(&self) -> Result<(), Error> {
        let handle = &self.domain.handle;
        let advise = later!(handle.opened, advise_mr).ok_or(Error::Unsupported("ibv_advise_mr"))?;
        // An entry is at most 4 GiB long.
        let chunk = 1 << 30;
        for first in (0..self.length).step_by(chunk) {
            let length = chunk.min(self.length - first) as u32;
            let mut entry = ibv_sge { addr: self.address + first as u64, length, lkey: self.local_key };
            let advice = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE as c_int;
            // SAFETY: the domain is live, and pointer and count are those of one live entry inside of the region.
            let answer = unsafe { advise(handle.raw.as_ptr(), advice, IBV_ADVISE_MR_FLAG_FLUSH, &raw mut entry, 1) };
            check("ibv_advise_mr", answer)?;
        }
        Ok(())
    }

    fn check(&self, offset: usize, length: usize) -> Result<(), Error> {
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if is_inside { Ok(()) } else { Err(Error::OutOfBounds { offset, length, available: self.length }) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(raw) = self.raw else { return };
        // SAFETY: the region was registered once.
        let answer = unsafe { (self.domain.handle.opened.functions.ibv_dereg_mr)(raw.as_ptr()) };
        if answer != 0 {
            // The device may still write to the memory, so nobody else may have it.
            if let Memory::Host(pages) = &self.memory {
                std::mem::forget(pages.clone());
            }
        }
    }
}
