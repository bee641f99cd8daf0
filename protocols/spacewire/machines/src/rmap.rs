//! The remote memory access protocol (ECSS-E-ST-50-52C): packets, a [`Target`] that serves a memory, and an [`Initiator`] that
//! keeps many transactions outstanding.
//!
//! Both take in whole packets, as they arrive at a node, after routers have deleted the path in front of the logical address.
//! Where no router does that, [`packet::split_path`] does.

mod crc;
mod initiator;
mod memory;
pub mod packet;
mod target;

pub use crc::Crc;
pub use initiator::{
    Completion, Destination, Failure, Ignored, Initiator, InitiatorSettings, InitiatorStatistics, Request, RequestError,
};
pub use memory::{Access, AccessError, Memory, Ram, Refusal, Region, Rights};
pub use packet::{Command, CommandHeader, Instruction, Operation, Reply, ReplyAddress, ReplyHeader, Status};
pub use target::{Discarded, Outcome, Target, TargetSettings, TargetStatistics};
