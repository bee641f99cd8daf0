//! The structures of libibverbs, as far as they are used here. Names are those of `infiniband/verbs.h`; a test compares every
//! offset, size and constant with that header.
//!
//! The library and its drivers only append to these structures, and `verbs_context` only grows in front, so that one layout
//! serves every version since 1.1.
#![allow(non_camel_case_types)]

mod constants;
mod queues;
#[cfg(test)]
mod tests;

pub(super) use constants::*;
pub(super) use queues::*;
use std::ffi::{c_int, c_uint, c_void};

/// A structure's layout, for the comparison with the header.
#[cfg(test)]
struct Structure {
    name: &'static str,
    /// Whether every field is listed; otherwise more fields follow.
    is_whole: bool,
    size: usize,
    /// Name, offset and size.
    fields: &'static [(&'static str, usize, usize)],
}

#[cfg(test)]
const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Defines structures, and lists them for the comparison: a `whole` one has every field of the header, of a `head` more follow.
macro_rules! structures {
    ($list:ident; $( $(#[$about:meta])* $extent:ident $name:ident { $( $field:ident: $type:ty, )+ } )+) => {
        $(
            $(#[$about])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            // Some fields are only for the library.
            #[allow(dead_code)]
            pub(in crate::verbs) struct $name { $( pub(in crate::verbs) $field: $type, )+ }
        )+

        #[cfg(test)]
        pub(in crate::verbs::layout) const $list: &[Structure] = &[ $( Structure {
            name: stringify!($name),
            is_whole: matches!(stringify!($extent).as_bytes(), b"whole"),
            size: size_of::<$name>(),
            fields: &[ $( (
                stringify!($field),
                std::mem::offset_of!($name, $field),
                size_of_field::<$name, _>(|whole| &whole.$field),
            ), )+ ],
        }, )+ ];
    };
}

use structures;

/// A function that is not called here.
type Unused = *mut c_void;
/// A pointer to something that only the library looks at.
pub(super) type Opaque = *mut c_void;

structures! {
    DEVICES;

    /// A device that the library found.
    head ibv_device { unused_ops: [Unused; 2], node_type: c_int, transport_type: c_int, }

    /// The calls of a driver that are made without a system call.
    whole ibv_context_ops {
        unused_before_poll: [Unused; 11],
        poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        unused_before_post: [Unused; 12],
        post_send: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
        post_recv: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
        unused_after: [Unused; 5],
    }

    /// A device that is open.
    whole ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: libc::pthread_mutex_t,
        abi_compat: *mut c_void,
    }

    /// The calls of a driver that were added later, with the context at their end: `ibv_open_device` returns a pointer to that.
    whole verbs_context {
        query_port: Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
        advise_mr: Option<unsafe extern "C" fn(*mut ibv_pd, c_int, u32, *mut ibv_sge, u32) -> c_int>,
        unused_before_dm: [Unused; 5],
        reg_dm_mr: Option<unsafe extern "C" fn(*mut ibv_pd, *mut ibv_dm, u64, usize, c_uint) -> *mut ibv_mr>,
        alloc_dm: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_alloc_dm_attr) -> *mut ibv_dm>,
        free_dm: Option<unsafe extern "C" fn(*mut ibv_dm) -> c_int>,
        unused_before_cq: [Unused; 15],
        create_cq_ex: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
        unused_private: Unused,
        query_device_ex:
            Option<unsafe extern "C" fn(*mut ibv_context, *const c_void, *mut ibv_device_attr_ex, usize) -> c_int>,
        unused_before_size: [Unused; 10],
        unused_counter: u64,
        sz: usize,
        context: ibv_context,
    }

    /// The limits of a device.
    whole ibv_device_attr {
        fw_ver: [u8; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: c_uint,
        unused_counts: [c_int; 14],
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }

    /// The capabilities of a device with memory that is paged in on demand.
    whole ibv_odp_caps { general_caps: u64, per_transport_caps: [u32; 3], }

    /// The limits of a device, with the capabilities that were added later.
    whole ibv_device_attr_ex {
        orig_attr: ibv_device_attr,
        comp_mask: u32,
        odp_caps: ibv_odp_caps,
        completion_timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        tso_caps: [u32; 2],
        rss_caps: [u64; 4],
        max_wq_type_rq: u32,
        packet_pacing_caps: [u32; 3],
        raw_packet_caps: u32,
        tm_caps: [u32; 5],
        cq_mod_caps: [u16; 2],
        max_dm_size: u64,
        pci_atomic_caps: [u16; 3],
        xrc_odp_caps: u32,
        phys_port_cnt_ex: u32,
    }

    /// The state of a port.
    whole ibv_port_attr {
        state: c_uint,
        max_mtu: c_uint,
        active_mtu: c_uint,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }

    /// An entry of a port's table of global identifiers.
    whole ibv_gid_entry { gid: ibv_gid, gid_index: u32, port_num: u32, gid_type: u32, ndev_ifindex: u32, }

    /// A protection domain.
    whole ibv_pd { context: *mut ibv_context, handle: u32, }

    /// A memory region.
    whole ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }

    /// A request for device memory.
    whole ibv_alloc_dm_attr { length: usize, log_align_req: u32, comp_mask: u32, }

    /// Memory on the device.
    whole ibv_dm {
        context: *mut ibv_context,
        memcpy_to_dm: Option<unsafe extern "C" fn(*mut ibv_dm, u64, *const c_void, usize) -> c_int>,
        memcpy_from_dm: Option<unsafe extern "C" fn(*mut c_void, *mut ibv_dm, u64, usize) -> c_int>,
        comp_mask: u32,
        handle: u32,
    }

    /// Something that happened to a device, a port, a completion queue or a queue pair.
    whole ibv_async_event { element: *mut c_void, event_type: c_uint, }
}

/// A global identifier. The header aligns it to eight bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct ibv_gid(pub(super) [u8; 16]);
