//! The states of a queue pair, and what each transition needs (volume 1, 10.3.1 and 11.2.5.2).

use super::{Capacity, Error, QueuePair, zeroed_attributes};
use crate::verbs::Rights;
use crate::verbs::layout::{
    IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC,
    IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY,
    IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR,
    IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, ibv_gid, ibv_qp_attr, ibv_qp_init_attr,
};

/// The state of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing can be posted.
    Reset,
    /// Receives can be posted; nothing is sent or received.
    Init,
    /// Ready to receive.
    ReadyToReceive,
    /// Ready to receive and to send.
    ReadyToSend,
    /// The send queue is being drained.
    SendQueueDrained,
    /// A send failed; receives go on.
    SendQueueError,
    /// All requests are flushed.
    Error,
    /// A state that is not known here.
    Unknown,
}

/// The state and some attributes of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairFacts {
    /// The state.
    pub state: State,
    /// The far end's number.
    pub remote_number: u32,
    /// The sequence number of the next packet that is expected.
    pub receive_psn: u32,
    /// The sequence number of the next packet that is sent.
    pub send_psn: u32,
    /// The path MTU in bytes; 0 while it is not set.
    pub mtu: u32,
    /// The sizes.
    pub capacity: Capacity,
}

impl PairFacts {
    pub(super) fn of(attributes: &ibv_qp_attr, initial: &ibv_qp_init_attr) -> Self {
        let mut capacity = Capacity::of(&attributes.cap);
        // Some drivers fill the one, some the other.
        if capacity.send_depth == 0 && capacity.receive_depth == 0 {
            capacity = Capacity::of(&initial.cap);
        }
        capacity.inline_bytes = attributes.cap.max_inline_data.max(initial.cap.max_inline_data);
        PairFacts {
            state: match attributes.qp_state {
                IBV_QPS_RESET => State::Reset,
                IBV_QPS_INIT => State::Init,
                IBV_QPS_RTR => State::ReadyToReceive,
                IBV_QPS_RTS => State::ReadyToSend,
                IBV_QPS_SQD => State::SendQueueDrained,
                IBV_QPS_SQE => State::SendQueueError,
                IBV_QPS_ERR => State::Error,
                _ => State::Unknown,
            },
            remote_number: attributes.dest_qp_num,
            receive_psn: attributes.rq_psn,
            send_psn: attributes.sq_psn,
            mtu: if (1..=5).contains(&attributes.path_mtu) { 128 << attributes.path_mtu } else { 0 },
            capacity,
        }
    }
}

/// The path to a far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The far end's queue pair.
    pub number: u32,
    /// The first packet sequence number that the far end sends.
    pub psn: u32,
    /// The far end's local identifier; 0 on Ethernet.
    pub lid: u16,
    /// The far end's global identifier, and the index of the local one; needed on Ethernet, and between subnets.
    pub global: Option<([u8; 16], u8)>,
    /// Routers on the way at most.
    pub hop_limit: u8,
    /// The service level.
    pub service_level: u8,
    /// The path MTU in bytes.
    pub mtu: u32,
    /// The local port.
    pub port: u8,
}

/// The timers and retries of a requester, as verbs code them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The acknowledgement timeout: 4.096 us * 2^timeout, or none for 0.
    pub timeout: u8,
    /// Retries after a timeout or a sequence error, 0 to 7.
    pub retries: u8,
    /// Retries when the receiver is not ready, 0 to 6, or 7 for any number.
    pub receiver_not_ready_retries: u8,
    /// Reads and atomic operations in flight.
    pub reads: u8,
}

impl QueuePair {
    /// Moves from RESET to INIT. The rights bound those of all regions, and the local one is not used.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such port, or the state is another.
    pub fn initialize(&mut self, port: u8, rights: Rights) -> Result<(), Error> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = port;
        attributes.qp_access_flags = Rights { local_write: false, ..rights }.flags();
        self.modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
    }

    /// Moves from INIT to RTR: messages of the far end are received. The far end may have so many reads and atomic operations in
    /// flight, and waits for the time that `timer` codes when no receive is posted.
    ///
    /// # Errors
    /// [`Error::Refused`] if an attribute is out of range, the far end cannot be reached, or the state is another.
    pub fn receive_from(&mut self, path: &Path, reads: u8, timer: u8) -> Result<(), Error> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = IBV_QPS_RTR;
        // 256 bytes are coded as 1.
        attributes.path_mtu = path.mtu.max(1).ilog2().saturating_sub(7);
        attributes.dest_qp_num = path.number;
        attributes.rq_psn = path.psn;
        attributes.max_dest_rd_atomic = reads;
        attributes.min_rnr_timer = timer;
        let address = &mut attributes.ah_attr;
        address.dlid = path.lid;
        address.sl = path.service_level;
        address.port_num = path.port;
        if let Some((remote, index)) = path.global {
            address.is_global = 1;
            address.grh.dgid = ibv_gid(remote);
            address.grh.sgid_index = index;
            address.grh.hop_limit = path.hop_limit;
        }
        let mask = IBV_QP_STATE
            | IBV_QP_AV
            | IBV_QP_PATH_MTU
            | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN
            | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
        self.modify(attributes, mask)
    }

    /// Moves from RTR to RTS: requests are sent, with sequence numbers from `psn` on.
    ///
    /// # Errors
    /// [`Error::Refused`] if an attribute is out of range, or the state is another.
    pub fn send_from(&mut self, psn: u32, timing: Timing) -> Result<(), Error> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = IBV_QPS_RTS;
        attributes.sq_psn = psn;
        attributes.timeout = timing.timeout;
        attributes.retry_cnt = timing.retries;
        attributes.rnr_retry = timing.receiver_not_ready_retries;
        attributes.max_rd_atomic = timing.reads;
        let mask = IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN
            | IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(attributes, mask)
    }

    /// Moves to the error state, from any other: all requests that are outstanding are completed as flushed.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device does not answer.
    pub fn flush(&mut self) -> Result<(), Error> {
        let mut attributes = zeroed_attributes();
        attributes.qp_state = IBV_QPS_ERR;
        self.modify(attributes, IBV_QP_STATE)
    }
}
