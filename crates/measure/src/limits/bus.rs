//! The bus between memory and adapter: PCI and PCI Express.
//!
//! Both are bounds on bytes moved. Descriptors, doorbells and interrupts come on top of the payload and are left out,
//! so real figures are lower: a PCI bus of 1,056 Mbit/s carries about 900.

use super::{Bound, LimitError, format_rate};
use crate::Binding;
use std::fmt;

/// A bus between memory and adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bus {
    /// PCI, which both directions share.
    Pci(Pci),
    /// PCI Express.
    Pcie(Pcie),
}

impl Bus {
    /// Returns the bits per second that the bus is named after.
    #[must_use]
    pub fn nominal_bits_per_s(&self) -> f64 {
        match self {
            Bus::Pci(pci) => pci.nominal_bits_per_s(),
            Bus::Pcie(pcie) => pcie.nominal_bits_per_s(),
        }
    }

    /// Returns the bound for operations that move this many bytes in the busier direction.
    pub(super) fn bound(&self, bytes: f64) -> Bound {
        match self {
            Bus::Pci(pci) => pci.bound(bytes, 0.0),
            Bus::Pcie(pcie) => pcie.bound(bytes, 0.0),
        }
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nominal = format_rate(self.nominal_bits_per_s());
        match self {
            Bus::Pci(_) => write!(f, "PCI bus, nominal {nominal}, both directions together"),
            Bus::Pcie(pcie) => write!(
                f,
                "PCI Express, {nominal} per direction after encoding, {} in packets of {} bytes",
                format_rate(pcie.payload_bits_per_s()),
                pcie.max_payload_bytes
            ),
        }
    }
}

/// A parallel PCI bus: one transfer at a time, whatever its direction (PCI Local Bus 3.0, 3.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pci {
    width_bits: u32,
    clock_hz: f64,
}

impl Pci {
    /// Creates a bus of 32 or 64 bits at this clock: 33e6 or 66e6.
    ///
    /// # Errors
    /// [`LimitError::Width`] for another width, [`LimitError::Rate`] if the clock is not a finite rate above 0.
    pub fn new(width_bits: u32, clock_hz: f64) -> Result<Pci, LimitError> {
        if ![32, 64].contains(&width_bits) {
            return Err(LimitError::Width(width_bits));
        }
        if !(clock_hz.is_finite() && clock_hz > 0.0) {
            return Err(LimitError::Rate(clock_hz));
        }
        Ok(Pci { width_bits, clock_hz })
    }

    /// Returns the nominal rate, width x clock: every clock carries data.
    #[must_use]
    pub fn nominal_bits_per_s(&self) -> f64 {
        f64::from(self.width_bits) * self.clock_hz
    }

    /// Returns the rate of bursts of this many bytes, each with clocks that carry none (address, turn-around, waits: 2
    /// at the least): `nominal x data clocks / (data clocks + overhead clocks)`.
    #[must_use]
    pub fn payload_bits_per_s(&self, burst_bytes: u32, overhead_clocks: u32) -> f64 {
        let data_clocks = f64::from(burst_bytes.max(1).div_ceil(self.width_bits / 8));
        self.nominal_bits_per_s() * data_clocks / (data_clocks + f64::from(overhead_clocks))
    }

    /// Returns the bound that the nominal rate sets: both directions share the bus.
    #[must_use]
    pub fn bound(&self, out_bytes: f64, back_bytes: f64) -> Bound {
        let assumes = format!("PCI {} bit at {} MHz, every clock carries data", self.width_bits, self.clock_hz / 1e6);
        Bound::pipe(Binding::Bus, self.nominal_bits_per_s(), out_bytes + back_bytes, &assumes)
    }
}

/// The generation of a PCI Express link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PcieGeneration {
    /// 2.5 GT/s, 8b/10b.
    Gen1,
    /// 5 GT/s, 8b/10b.
    Gen2,
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
    /// 64 GT/s, FLITs of 256 bytes.
    Gen6,
}

impl PcieGeneration {
    /// Returns the transfers per second and lane, each of one bit.
    #[must_use]
    pub const fn transfers_per_s(self) -> f64 {
        match self {
            PcieGeneration::Gen1 => 2.5e9,
            PcieGeneration::Gen2 => 5e9,
            PcieGeneration::Gen3 => 8e9,
            PcieGeneration::Gen4 => 16e9,
            PcieGeneration::Gen5 => 32e9,
            PcieGeneration::Gen6 => 64e9,
        }
    }

    /// Returns the bits of the data link layer per bit on the lane, as a fraction. A FLIT has 236 bytes of packets, 6
    /// of the data link layer, 8 of check and 6 of correction: 242/256 (PCI Express Base 6.0, 4.2.3).
    #[must_use]
    pub const fn encoding(self) -> (u32, u32) {
        match self {
            PcieGeneration::Gen1 | PcieGeneration::Gen2 => (8, 10),
            PcieGeneration::Gen3 | PcieGeneration::Gen4 | PcieGeneration::Gen5 => (128, 130),
            PcieGeneration::Gen6 => (242, 256),
        }
    }

    /// Returns the bytes around a packet's payload with 64-bit addresses and no end-to-end check (PCI Express Base 5.0,
    /// 2.2, 3.6,
    /// 4.2): framing and sequence 4, header 16, link check 4. In FLITs the header alone.
    #[must_use]
    pub const fn packet_overhead_bytes(self) -> u32 {
        match self {
            PcieGeneration::Gen6 => 16,
            _ => 24,
        }
    }
}

impl TryFrom<u8> for PcieGeneration {
    type Error = LimitError;

    fn try_from(generation: u8) -> Result<PcieGeneration, LimitError> {
        Ok(match generation {
            1 => PcieGeneration::Gen1,
            2 => PcieGeneration::Gen2,
            3 => PcieGeneration::Gen3,
            4 => PcieGeneration::Gen4,
            5 => PcieGeneration::Gen5,
            6 => PcieGeneration::Gen6,
            other => return Err(LimitError::Generation(other)),
        })
    }
}

/// A PCI Express link: each direction has its own lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pcie {
    generation: PcieGeneration,
    lanes: u8,
    max_payload_bytes: u32,
}

impl Pcie {
    /// Creates a link of `lanes` lanes whose packets carry at most `max_payload_bytes`; both ends have agreed on the
    /// latter, and 128 and 256 are common (`lspci -vv`, `DevCtl: MaxPayload`).
    ///
    /// # Errors
    /// [`LimitError::Lanes`] if no link has that many lanes, [`LimitError::MaxPayload`] if the payload is not a power
    /// of two in 128..=4096.
    pub fn new(generation: PcieGeneration, lanes: u8, max_payload_bytes: u32) -> Result<Pcie, LimitError> {
        if ![1, 2, 4, 8, 12, 16, 32].contains(&lanes) {
            return Err(LimitError::Lanes(lanes));
        }
        if !(128..=4096).contains(&max_payload_bytes) || !max_payload_bytes.is_power_of_two() {
            return Err(LimitError::MaxPayload(max_payload_bytes));
        }
        Ok(Pcie { generation, lanes, max_payload_bytes })
    }

    /// Returns the rate of one direction after the encoding: `lanes x transfers x encoding`.
    #[must_use]
    pub fn nominal_bits_per_s(&self) -> f64 {
        let (data, coded) = self.generation.encoding();
        self.raw_bits_per_s() * f64::from(data) / f64::from(coded)
    }

    /// Returns the payload rate of one direction in full packets: `nominal x payload / (payload + packet overhead)`;
    /// from generation 6 on, the part of a FLIT that packets have (236/256) stands for the nominal rate.
    /// Acknowledgements and credits are left out.
    #[must_use]
    pub fn payload_bits_per_s(&self) -> f64 {
        let payload = f64::from(self.max_payload_bytes);
        let share = payload / (payload + f64::from(self.generation.packet_overhead_bytes()));
        let for_packets = match self.generation {
            PcieGeneration::Gen6 => self.raw_bits_per_s() * 236.0 / 256.0,
            _ => self.nominal_bits_per_s(),
        };
        for_packets * share
    }

    /// Returns the bound that full packets set on the busier direction.
    #[must_use]
    pub fn bound(&self, out_bytes: f64, back_bytes: f64) -> Bound {
        let assumes = format!(
            "PCI Express {:?} x{}, maximum payload {} bytes, descriptors and credits left out",
            self.generation, self.lanes, self.max_payload_bytes
        );
        Bound::pipe(Binding::Bus, self.payload_bits_per_s(), out_bytes.max(back_bytes), &assumes)
    }

    fn raw_bits_per_s(&self) -> f64 {
        f64::from(self.lanes) * self.generation.transfers_per_s()
    }
}
