//! The theory of a link: how much it carries and how long a packet takes, exact to the bit.
//!
//! R is the rate of the line in bit/s, N the size of a packet in bytes, its addresses included.
//!
//! | quantity | formula | unit |
//! |---|---|---|
//! | [`packet_bits`] | 10 N + 4 | bit |
//! | [`one_way`] | R 8 N / (10 N + 4) | bit/s of data |
//! | [`loaded`] | (R - r / 2 - 14 f) 8 N / (10 N + 4), with r N-chars/s against it and f time-codes/s | bit/s of data |
//! | [`both_ways`] | R 8 N / (10 N + 4 + (N + 1) / 2), in each direction | bit/s of data |
//! | [`credit_limit`] | 8 N / (N + 1) W / (T + 8 (10 N + 4) / (N + 1) / R), with W of credit and a loop of T | bit/s of data |
//! | [`credit_packets`] | W / n / (T + 8 B / n / R), for packets of B bits and n N-chars | packets/s |
//! | [`credit_loop`] | 10 ns/m of cable + (4 + 2 + c / 2) / R, with characters of c bits in the way of FCTs | s |
//! | [`latency`] | (10 N + 4) / R + 5 ns/m of cable | s |
//! | [`confirmation`] | 2 / R, for the parity bit behind the end of a packet | s |
//! | [`rest_of_null`] | (8 - (2 + R 5 ns/m of cable) mod 8) / R, for a packet that is sent when the one before it has arrived | s |
//! | [`latency_through`] | (10 (N + k) + 4) / R + cable + k (switching + cut-through), with k routers and as many path bytes | s |
//! | [`CutThrough::gap_bits`] | 8 ceil((R T - 4) / 8) more in each packet behind a router that switches for T | bit |
//! | [`Transaction::serial`] | 1 / (command + reply) | transactions/s |
//! | [`Transaction::pipelined`] | R / the busier direction's bits, FCTs included | transactions/s |
//!
//! An FCT has 4 bits and makes room for 8 N-chars: every N-char costs half a bit in the other direction.
use crate::character::{Character, Code};
use crate::end::{CREDIT_MAX, CREDIT_OF_FCT};

/// The delay of a cable, in seconds per metre.
pub const CABLE_S_PER_M: f64 = 5e-9;
/// Bits that a packet of N bytes takes for its end.
const END: u64 = Code::Eop.bits() as u64;
const DATA: u64 = Character::Data(0).bits() as u64;
/// Bits that confirm an N-char and the FCT for it: the parity bits behind them.
const CONFIRMING: f64 = 2.0;
/// Bits of a NULL.
const NULL: f64 = Code::Null.bits() as f64;
/// Bits of FCTs that each N-char costs in the other direction.
const FCT_BITS_PER_NCHAR: f64 = Code::Fct.bits() as f64 / CREDIT_OF_FCT as f64;

/// Returns the bits of a packet of `size` bytes and its EOP.
#[must_use]
pub const fn packet_bits(size: u64) -> u64 {
    DATA * size + END
}

/// Returns the most data of packets of `size` bytes in one direction, in bit/s, if nothing is sent against it.
#[must_use]
pub fn one_way(rate_bps: f64, size: u64) -> f64 {
    loaded(rate_bps, size, Load::default())
}

/// Further traffic that a direction has to carry.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// N-chars per second of the other direction, for which this one carries FCTs.
    pub reverse_nchars_per_s: f64,
    /// Time-codes per second in this direction.
    pub time_codes_per_s: f64,
}

/// Returns the most data of packets of `size` bytes beside `load`, in bit/s; 0 if the load leaves no room.
#[must_use]
pub fn loaded(rate_bps: f64, size: u64, load: Load) -> f64 {
    let time_code = f64::from(Code::TimeCode(0).bits());
    let left = rate_bps - load.reverse_nchars_per_s * FCT_BITS_PER_NCHAR - load.time_codes_per_s * time_code;
    left.max(0.0) * data_share(size)
}

/// Returns the most data in each direction, in bit/s, if both carry packets of `size` bytes as fast as they can.
#[must_use]
pub fn both_ways(rate_bps: f64, size: u64) -> f64 {
    let bits = packet_bits(size) as f64 + (size + 1) as f64 * FCT_BITS_PER_NCHAR;
    rate_bps * 8.0 * size as f64 / bits
}

/// Returns the most data that credit allows, in bit/s, or [`one_way`] if the line itself is slower.
///
/// `window` and `loop_s` are those of [`credit_packets`].
#[must_use]
pub fn credit_limit(rate_bps: f64, size: u64, window: u16, loop_s: f64) -> f64 {
    let packets = credit_packets(rate_bps, packet_bits(size) as f64, (size + 1) as f64, window, loop_s);
    one_way(rate_bps, size).min(packets * 8.0 * size as f64)
}

/// Returns the most packets of `bits`, their FCTs included, and `nchars` that credit allows in a second. Only where the line allows more
/// does it hold.
///
/// `window` is the credit of the sender in N-chars, whole FCTs and at most 56. `loop_s` is the time from the end of the eighth N-char
/// at the sender to the use of the FCT that comes back for these eight: both cables, and what the far end's host and line take.
/// Up to 48 N-chars may leave in that time before the line falls silent, and no more than 56 are ever on their way.
#[must_use]
pub fn credit_packets(rate_bps: f64, bits: f64, nchars: f64, window: u16, loop_s: f64) -> f64 {
    let window = f64::from(window.min(CREDIT_MAX) / CREDIT_OF_FCT * CREDIT_OF_FCT);
    let eight_s = f64::from(CREDIT_OF_FCT) * bits / nchars / rate_bps;
    window / nchars / (eight_s + loop_s)
}

/// Returns the loop of credit between two ends whose hosts take N-chars at once, in seconds: the cable there and back, the FCT, the
/// bit behind it and behind the eighth N-char that confirms either, and half of a character that is on its way when the FCT is due. That is
/// the mean over all phases; `has_data_back` tells data from NULLs.
#[must_use]
pub fn credit_loop(rate_bps: f64, cable_m: f64, has_data_back: bool) -> f64 {
    let before_fct = if has_data_back { DATA as f64 } else { NULL } / 2.0;
    let bits = f64::from(Code::Fct.bits()) + CONFIRMING + before_fct;
    2.0 * cable_m * CABLE_S_PER_M + bits / rate_bps
}

/// Returns the longest loop that does not slow the sender down, in seconds: see [`credit_limit`].
#[must_use]
pub fn longest_loop(rate_bps: f64, size: u64, window: u16) -> f64 {
    let fcts = window.min(CREDIT_MAX) / CREDIT_OF_FCT;
    let spare = f64::from(fcts.saturating_sub(1) * CREDIT_OF_FCT);
    spare * packet_bits(size) as f64 / (size + 1) as f64 / rate_bps
}

/// Returns the least time from the first bit at the sender to the last at the receiver, in seconds.
#[must_use]
pub fn latency(rate_bps: f64, size: u64, cable_m: f64) -> f64 {
    packet_bits(size) as f64 / rate_bps + cable_m * CABLE_S_PER_M
}

/// Returns the time from the last bit of a packet's end until the receiver takes it, in seconds: the parity bit of the character behind it
/// covers the end, and stands in front of that character's flag.
#[must_use]
pub fn confirmation(rate_bps: f64) -> f64 {
    CONFIRMING / rate_bps
}

/// Returns the time for which a packet waits that is sent at the moment when the receiver has taken the one before it, in seconds: NULLs have
/// left since, and the one on the line ends first.
#[must_use]
pub fn rest_of_null(rate_bps: f64, cable_m: f64) -> f64 {
    let since = CONFIRMING + cable_m * CABLE_S_PER_M * rate_bps;
    let begun = since % NULL;
    // A boundary of NULLs to within a rounding error is one.
    if (1e-6..=NULL - 1e-6).contains(&begun) { (NULL - begun) / rate_bps } else { 0.0 }
}

/// The delays of a router that forwards a packet before it has all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutThrough {
    /// The choice of a port for a new packet, in seconds.
    pub switching_s: f64,
    /// Receive clocks on the way through, each of two bits.
    pub receive_clocks: u32,
    /// System clocks on the way through.
    pub system_clocks: u32,
    /// Transmit clocks on the way through, each of two bits.
    pub transmit_clocks: u32,
    /// The period of the system clock, in seconds.
    pub system_clock_s: f64,
}

impl CutThrough {
    /// The SpW-10X, at most (user manual, table 10-6): 133.3 ns, and 5 T_rx + 8 T_sys + 23 T_tx = 546.7 ns at 200 Mbit/s.
    pub const SPW_10X: CutThrough = CutThrough {
        switching_s: 133.3e-9,
        receive_clocks: 5,
        system_clocks: 8,
        transmit_clocks: 23,
        system_clock_s: 1.0 / 30e6,
    };

    /// Returns the bits between the end of a packet and the next packet at an output, which switches from the beginning of the end on: whole
    /// NULLs.
    #[must_use]
    pub fn gap_bits(&self, rate_bps: f64) -> f64 {
        NULL * self.nulls_behind(rate_bps, END as f64)
    }

    /// Returns the bits that switching adds to a packet of `bits`, its FCTs included, for which `nchars_back` N-chars come back.
    ///
    /// An FCT that is asked for between the beginning of the packet's end and that of the last NULL leaves in the gap. Where the others
    /// then last until the output has switched, that NULL is spared. The result is the mean over all phases of the two directions.
    #[must_use]
    pub fn gap_bits_beside(&self, rate_bps: f64, bits: f64, nchars_back: f64) -> f64 {
        let (end, fct) = (END as f64, f64::from(Code::Fct.bits()));
        let (nulls, beside_fct) = (self.nulls_behind(rate_bps, end), self.nulls_behind(rate_bps, end + fct));
        let fcts_per_bit = nchars_back / f64::from(CREDIT_OF_FCT) / bits;
        let in_time = (end + NULL * (nulls - 1.0).max(0.0)) * fcts_per_bit;
        NULL * (nulls - (nulls - beside_fct) * in_time.min(1.0))
    }

    /// Returns the NULLs behind so many bits until an output has switched.
    fn nulls_behind(&self, rate_bps: f64, bits: f64) -> f64 {
        let nulls = ((self.switching_s * rate_bps - bits) / NULL).max(0.0);
        let whole = nulls as u64;
        // Rounded up, which takes the standard library otherwise.
        (whole + u64::from((whole as f64) < nulls)) as f64
    }

    /// Returns the delay of a character on its way through, in seconds.
    #[must_use]
    pub fn through(&self, rate_bps: f64) -> f64 {
        let line_clocks = f64::from(self.receive_clocks + self.transmit_clocks);
        line_clocks * 2.0 / rate_bps + f64::from(self.system_clocks) * self.system_clock_s
    }
}

/// Returns the least time through `routers` idle routers, in seconds: each takes one byte of path address away.
#[must_use]
pub fn latency_through(rate_bps: f64, size: u64, cable_m: f64, routers: u64, router: &CutThrough) -> f64 {
    let delay = router.switching_s + router.through(rate_bps);
    latency(rate_bps, size + routers, cable_m) + routers as f64 * delay
}

/// The two packets of an RMAP transaction (ECSS-E-ST-50-52C), in bytes without their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// The command.
    pub command: u64,
    /// The reply.
    pub reply: u64,
}

impl Transaction {
    /// Returns a read of `length` bytes, without path addresses: a command of 16 bytes, a reply of 13 and the data.
    #[must_use]
    pub const fn read(length: u64) -> Self {
        Transaction { command: 16, reply: 13 + length }
    }

    /// Returns a write of `length` bytes with a reply, without path addresses: 17 bytes and the data, a reply of 8.
    #[must_use]
    pub const fn write(length: u64) -> Self {
        Transaction { command: 17 + length, reply: 8 }
    }

    /// Returns this transaction through routers, with so many bytes of path there and back. The command holds the path back, too, in
    /// a field of whole words.
    #[must_use]
    pub const fn through(self, there: u64, back: u64) -> Self {
        Transaction { command: self.command + there + back.next_multiple_of(4), reply: self.reply + back }
    }

    /// Returns the most transactions per second if each waits for the reply to the one before, over `cable_m` metres.
    #[must_use]
    pub fn serial(self, rate_bps: f64, cable_m: f64) -> f64 {
        1.0 / (latency(rate_bps, self.command, cable_m) + latency(rate_bps, self.reply, cable_m))
    }

    /// Returns the most transactions per second if the link never waits.
    #[must_use]
    pub fn pipelined(self, rate_bps: f64) -> f64 {
        let bits = |there: u64, back: u64| packet_bits(there) as f64 + (back + 1) as f64 * FCT_BITS_PER_NCHAR;
        rate_bps / bits(self.command, self.reply).max(bits(self.reply, self.command))
    }
}

/// Returns the bits of data for each bit of a packet.
fn data_share(size: u64) -> f64 {
    8.0 * size as f64 / packet_bits(size) as f64
}

#[cfg(test)]
mod tests;
