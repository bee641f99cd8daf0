//! The structures of completion queues, queue pairs and requests.

use super::{Opaque, Unused, ibv_context, ibv_gid, ibv_pd};
#[cfg(test)]
use super::{Structure, size_of_field};
use std::ffi::{c_int, c_uint};

super::structures! {
    QUEUES;

    /// A channel for completion events.
    whole ibv_comp_channel { context: *mut ibv_context, fd: c_int, refcnt: c_int, }

    /// A completion queue.
    head ibv_cq {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: Opaque,
        handle: u32,
        cqe: c_int,
    }

    /// A completion queue that is read field by field.
    head ibv_cq_ex {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: Opaque,
        handle: u32,
        cqe: c_int,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
        comp_mask: u32,
        status: c_uint,
        wr_id: u64,
        start_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_poll_cq_attr) -> c_int>,
        next_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int>,
        end_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex)>,
        read_opcode: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_uint>,
        read_vendor_err: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_byte_len: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_imm_data: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_qp_num: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
        read_src_qp: Unused,
        read_wc_flags: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_uint>,
        read_slid: Unused,
        read_sl: Unused,
        read_dlid_path_bits: Unused,
        read_completion_ts: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
    }

    /// Attributes of a round of polling.
    whole ibv_poll_cq_attr { comp_mask: u32, }

    /// Attributes of a completion queue that is read field by field.
    whole ibv_cq_init_attr_ex {
        cqe: u32,
        cq_context: Opaque,
        channel: *mut ibv_comp_channel,
        comp_vector: u32,
        wc_flags: u64,
        comp_mask: u32,
        flags: u32,
        parent_domain: *mut ibv_pd,
    }

    /// A completion.
    whole ibv_wc {
        wr_id: u64,
        status: c_uint,
        opcode: c_uint,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }

    /// A run of bytes of a region.
    whole ibv_sge { addr: u64, length: u32, lkey: u32, }

    /// A request for the send queue. For an operation on the far end's memory, `wr` has address, key; for an atomic one address,
    /// compare or add, swap, key.
    whole ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: c_uint,
        send_flags: c_uint,
        imm_data: u32,
        wr: remote,
        qp_type: u32,
        bind_mw: [u64; 6],
    }

    /// A request for the receive queue.
    whole ibv_recv_wr { wr_id: u64, next: *mut ibv_recv_wr, sg_list: *mut ibv_sge, num_sge: c_int, }

    /// The sizes of a queue pair.
    whole ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }

    /// Attributes with which a queue pair is created.
    whole ibv_qp_init_attr {
        qp_context: Opaque,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: Opaque,
        cap: ibv_qp_cap,
        qp_type: c_uint,
        sq_sig_all: c_int,
    }

    /// A queue pair.
    head ibv_qp {
        context: *mut ibv_context,
        qp_context: Opaque,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: Opaque,
        handle: u32,
        qp_num: u32,
    }

    /// A route between subnets.
    whole ibv_global_route { dgid: ibv_gid, flow_label: u32, sgid_index: u8, hop_limit: u8, traffic_class: u8, }

    /// A path to a far end.
    whole ibv_ah_attr {
        grh: ibv_global_route,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }

    /// The attributes of a queue pair.
    whole ibv_qp_attr {
        qp_state: c_uint,
        cur_qp_state: c_uint,
        path_mtu: c_uint,
        path_mig_state: c_uint,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr,
        alt_ah_attr: ibv_ah_attr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
}

/// The far end's memory, in a request for the send queue.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::verbs) union remote {
    pub(in crate::verbs) rdma: remote_access,
    pub(in crate::verbs) atomic: remote_atomic,
}

/// The place of a read or a write.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::verbs) struct remote_access {
    pub(in crate::verbs) remote_addr: u64,
    pub(in crate::verbs) rkey: u32,
}

/// The place and the operands of an atomic operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::verbs) struct remote_atomic {
    pub(in crate::verbs) remote_addr: u64,
    pub(in crate::verbs) compare_add: u64,
    pub(in crate::verbs) swap: u64,
    pub(in crate::verbs) rkey: u32,
}
