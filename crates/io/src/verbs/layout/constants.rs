use std::ffi::c_uint;

/// Defines constants of the header, and lists them for the comparison with it.
macro_rules! constants {
    ($( $name:ident = $value:expr; )+) => {
        $( pub(in crate::verbs) const $name: c_uint = $value; )+

        #[cfg(test)]
        pub(super) const CONSTANTS: &[(&str, c_uint)] = &[ $( (stringify!($name), $name), )+ ];
    };
}

constants! {
    IBV_ATOMIC_NONE = 0;

    IBV_ODP_SUPPORT = 1;
    IBV_ODP_SUPPORT_IMPLICIT = 1 << 1;
    IBV_ODP_SUPPORT_SEND = 1;
    IBV_ODP_SUPPORT_RECV = 1 << 1;
    IBV_ODP_SUPPORT_WRITE = 1 << 2;
    IBV_ODP_SUPPORT_READ = 1 << 3;
    IBV_ODP_SUPPORT_ATOMIC = 1 << 4;

    IBV_PORT_ACTIVE = 4;
    IBV_LINK_LAYER_INFINIBAND = 1;
    IBV_LINK_LAYER_ETHERNET = 2;
    IBV_GID_TYPE_ROCE_V2 = 2;

    IBV_ACCESS_LOCAL_WRITE = 1;
    IBV_ACCESS_REMOTE_WRITE = 1 << 1;
    IBV_ACCESS_REMOTE_READ = 1 << 2;
    IBV_ACCESS_REMOTE_ATOMIC = 1 << 3;
    IBV_ACCESS_ZERO_BASED = 1 << 5;
    IBV_ACCESS_ON_DEMAND = 1 << 6;
    IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE = 1;
    IBV_ADVISE_MR_FLAG_FLUSH = 1;

    IBV_WC_SUCCESS = 0;
    IBV_WC_RECV = 1 << 7;
    IBV_WC_WITH_IMM = 1 << 1;
    IBV_WC_WITH_INV = 1 << 3;
    IBV_WC_EX_WITH_BYTE_LEN = 1;
    IBV_WC_EX_WITH_IMM = 1 << 1;
    IBV_WC_EX_WITH_QP_NUM = 1 << 2;
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP = 1 << 7;

    IBV_WR_RDMA_WRITE = 0;
    IBV_WR_RDMA_WRITE_WITH_IMM = 1;
    IBV_WR_SEND = 2;
    IBV_WR_SEND_WITH_IMM = 3;
    IBV_WR_RDMA_READ = 4;
    IBV_WR_ATOMIC_CMP_AND_SWP = 5;
    IBV_WR_ATOMIC_FETCH_AND_ADD = 6;
    IBV_WR_SEND_WITH_INV = 9;
    IBV_SEND_FENCE = 1;
    IBV_SEND_SIGNALED = 1 << 1;
    IBV_SEND_SOLICITED = 1 << 2;
    IBV_SEND_INLINE = 1 << 3;

    IBV_QPT_RC = 2;
    IBV_QPS_RESET = 0;
    IBV_QPS_INIT = 1;
    IBV_QPS_RTR = 2;
    IBV_QPS_RTS = 3;
    IBV_QPS_SQD = 4;
    IBV_QPS_SQE = 5;
    IBV_QPS_ERR = 6;
    IBV_QP_STATE = 1;
    IBV_QP_ACCESS_FLAGS = 1 << 3;
    IBV_QP_PKEY_INDEX = 1 << 4;
    IBV_QP_PORT = 1 << 5;
    IBV_QP_AV = 1 << 7;
    IBV_QP_PATH_MTU = 1 << 8;
    IBV_QP_TIMEOUT = 1 << 9;
    IBV_QP_RETRY_CNT = 1 << 10;
    IBV_QP_RNR_RETRY = 1 << 11;
    IBV_QP_RQ_PSN = 1 << 12;
    IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13;
    IBV_QP_MIN_RNR_TIMER = 1 << 15;
    IBV_QP_SQ_PSN = 1 << 16;
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17;
    IBV_QP_CAP = 1 << 19;
    IBV_QP_DEST_QPN = 1 << 20;

    IBV_EVENT_CQ_ERR = 0;
    IBV_EVENT_DEVICE_FATAL = 8;
}
