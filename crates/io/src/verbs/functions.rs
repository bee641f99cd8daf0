//! The functions of libibverbs that are called by name.
#![allow(unsafe_code)]

use super::Error;
use super::layout::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_gid, ibv_gid_entry,
    ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

/// A library that is loaded. It is never unloaded: its drivers register themselves in the process.
struct Loaded(NonNull<c_void>);

impl Loaded {
    fn open(name: &str) -> Result<Self, Error> {
        let missing = |reason: String| Error::NoLibrary { name: name.to_owned(), reason };
        let path = CString::new(name).map_err(|error| missing(error.to_string()))?;
        // SAFETY: the path is a string that ends in a zero byte. The constructors of the library run, which is what loading means.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Loaded).ok_or_else(|| missing(last_problem()))
    }

    /// Finds a function, in its newest version.
    fn find(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of a loaded library, and the name ends in a zero byte.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

/// Returns the words of the loader for what failed last on this thread.
fn last_problem() -> String {
    // SAFETY: takes nothing; the text stays valid until the next call of the loader on this thread, and is copied before.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { "unknown error".to_owned() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// Defines a table of functions that are found by their names: those that every version has, and those that newer ones have.
macro_rules! functions {
    (
        $(#[$about:meta])* struct $Table:ident;
        always { $( fn $name:ident($( $argument:ty ),*) $( -> $result:ty )?; )+ }
        newer { $( fn $newer:ident($( $newer_argument:ty ),*) $( -> $newer_result:ty )?; )+ }
    ) => {
        $(#[$about])*
        pub(super) struct $Table {
            $( pub(super) $name: unsafe extern "C" fn($( $argument ),*) $( -> $result )?, )+
            $( pub(super) $newer: Option<unsafe extern "C" fn($( $newer_argument ),*) $( -> $newer_result )?>, )+
        }

        impl $Table {
            /// Loads the library of this name, and finds all functions.
            pub(super) fn load(library: &str) -> Result<Self, Error> {
                let loaded = Loaded::open(library)?;
                let find = |name: &CStr| loaded.find(name);
                // SAFETY: a function of this name has this signature, by the header of the library's first version that has it,
                // and keeps it as long as the library's version stays 1. A pointer to a function has the size of any pointer.
                unsafe {
                    Ok($Table {
                        $( $name: {
                            let name = concat!(stringify!($name), "\0");
                            let missing = || Error::NoFunction { library: library.to_owned(), name: stringify!($name) };
                            let found = find(CStr::from_bytes_with_nul_unchecked(name.as_bytes())).ok_or_else(missing)?;
                            std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($( $argument ),*) $( -> $result )?>(found)
                        }, )+
                        $( $newer: {
                            let name = concat!(stringify!($newer), "\0");
                            let found = find(CStr::from_bytes_with_nul_unchecked(name.as_bytes()));
                            std::mem::transmute::<
                                Option<NonNull<c_void>>,
                                Option<unsafe extern "C" fn($( $newer_argument ),*) $( -> $newer_result )?>,
                            >(found)
                        }, )+
                    })
                }
            }
        }
    };
}

functions! {
    /// The functions of libibverbs.
    struct Functions;
    always {
        fn ibv_fork_init() -> c_int;
        fn ibv_get_device_list(*mut c_int) -> *mut *mut ibv_device;
        fn ibv_free_device_list(*mut *mut ibv_device);
        fn ibv_get_device_name(*mut ibv_device) -> *const c_char;
        fn ibv_open_device(*mut ibv_device) -> *mut ibv_context;
        fn ibv_close_device(*mut ibv_context) -> c_int;
        fn ibv_query_device(*mut ibv_context, *mut ibv_device_attr) -> c_int;
        fn ibv_query_port(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
        fn ibv_query_gid(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
        fn ibv_get_async_event(*mut ibv_context, *mut ibv_async_event) -> c_int;
        fn ibv_ack_async_event(*mut ibv_async_event);
        fn ibv_event_type_str(c_uint) -> *const c_char;
        fn ibv_alloc_pd(*mut ibv_context) -> *mut ibv_pd;
        fn ibv_dealloc_pd(*mut ibv_pd) -> c_int;
        fn ibv_reg_mr(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
        fn ibv_dereg_mr(*mut ibv_mr) -> c_int;
        fn ibv_create_comp_channel(*mut ibv_context) -> *mut ibv_comp_channel;
        fn ibv_destroy_comp_channel(*mut ibv_comp_channel) -> c_int;
        fn ibv_create_cq(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
        fn ibv_resize_cq(*mut ibv_cq, c_int) -> c_int;
        fn ibv_destroy_cq(*mut ibv_cq) -> c_int;
        fn ibv_get_cq_event(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
        fn ibv_ack_cq_events(*mut ibv_cq, c_uint);
        fn ibv_create_qp(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
        fn ibv_modify_qp(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
        fn ibv_query_qp(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int;
        fn ibv_destroy_qp(*mut ibv_qp) -> c_int;
    }
    newer {
        fn _ibv_query_gid_ex(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int;
    }
}
