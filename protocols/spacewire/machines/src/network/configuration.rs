//! The configuration port of a router, with the registers of the SpW-10X (its manual, issue 3.4, clause 9).
//!
//! | address | register | |
//! |--:|---|---|
//! | 0 | the configuration port: errors in commands | read |
//! | 1 to 31 | a port: errors, state, current connection; bits 12 to 14 start it, or disable it | write bits 12 to 14 |
//! | 32 to 254 | the route of a logical address: outputs in bits 1 to 28, 29 deletes the header, 30 priority, 31 none | write |
//! | 256 | the network: 1 for a router in bits 0 to 3, the port of this command in 4 to 7, running ports from 8 on | read |
//! | 257 | an identity, which is kept | write |
//! | 259 | ports with errors, one in each bit; any write forgets the errors of the ports in its bits | write |
//! | 260 | the last time-code | read |
//! | 265 | the key | write |
//!
//! Each address is that of 32 bits, most significant byte first, and lengths are multiples of 4. Commands need logical address 254 and the key,
//! 0x20 at first.
use super::router::{Configuration, PORTS, Registers, Route};
use super::{EndOfPacket, PortFaults};
use crate::end::{Errors, State};
use crate::rmap::packet::DEFAULT_LOGICAL_ADDRESS;
use crate::rmap::{
    Access, AccessError, Discarded, Memory, Operation, Outcome, Refusal, Status, Target, TargetSettings,
};
use alloc::vec::Vec;

/// The key of a configuration port at first.
pub const CONFIGURATION_KEY: u8 = 0x20;

/// Bytes of a register.
const REGISTER: u32 = 4;
const ROUTES: core::ops::RangeInclusive<u64> = 32..=254;
const NETWORK: u64 = 256;
const IDENTITY: u64 = 257;
const ERRORS: u64 = 259;
const TIME: u64 = 260;
const KEY: u64 = 265;

const AUTO_START: u32 = 1 << 12;
const LINK_START: u32 = 1 << 13;
const DISABLED: u32 = 1 << 14;
/// An output that no input feeds.
const UNCONNECTED: u32 = 31;
const SPACEWIRE_PORT: u32 = 1 << 29;
const DELETE_HEADER: u32 = 1 << 29;
const PRIORITY: u32 = 1 << 30;
const NO_ROUTE: u32 = 1 << 31;
const OUTPUTS: u32 = (1 << 29) - 2;

/// A router, as its configuration port sees it.
#[derive(Debug)]
pub struct RouterView<'a> {
    /// The routing table.
    pub registers: &'a mut Registers,
    /// The ports by their number, of which 0 has no link.
    pub ports: [Option<PortView>; PORTS],
    /// The last time-code.
    pub time: u8,
}

/// The link of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortView {
    /// The state.
    pub state: State,
    /// Errors in Run.
    pub errors: Errors,
    /// Packets that were not forwarded whole.
    pub faults: PortFaults,
    /// The input that feeds this output.
    pub source: Option<u8>,
    /// Starts by itself: what is written here is done after the answer.
    pub link_start: bool,
    /// Starts when the far end does.
    pub auto_start: bool,
    /// Never starts.
    pub disabled: bool,
}

impl PortView {
    /// Returns one bit for each kind of error that has occurred since `before`.
    fn errors_since(&self, before: &(Errors, PortFaults)) -> u32 {
        let (errors, faults) = before;
        let kinds = [
            self.faults.invalid_address > faults.invalid_address || self.faults.empty > faults.empty,
            self.faults.watchdog > faults.watchdog,
            self.errors.disconnect > errors.disconnect,
            self.errors.parity > errors.parity,
            self.errors.escape > errors.escape,
            self.errors.credit > errors.credit,
            self.errors.sequence > errors.sequence,
        ];
        let bits = (1..).zip(kinds).fold(0, |bits, (bit, is_set)| bits | u32::from(is_set) << bit);
        bits | u32::from(bits != 0)
    }

    fn read(&self, before: &(Errors, PortFaults)) -> u32 {
        let state = self.state as u32;
        let controls = [(self.auto_start, AUTO_START), (self.link_start, LINK_START), (self.disabled, DISABLED)];
        let controls = controls.into_iter().fold(0, |bits, (is_set, bit)| if is_set { bits | bit } else { bits });
        self.errors_since(before)
            | state << 8
            | u32::from(self.state == State::Run) << 11
            | controls
            | self.source.map_or(UNCONNECTED, u32::from) << 24
            | SPACEWIRE_PORT
    }
}

/// The configuration port of a router.
#[derive(Debug)]
pub struct ConfigurationPort {
    target: Target,
    identity: u32,
    /// Errors in commands since they were forgotten, as in register 0.
    errors: u32,
    /// The counts of each port when its errors were forgotten.
    forgotten: Vec<(Errors, PortFaults)>,
}

impl ConfigurationPort {
    /// Creates a configuration port with this key.
    #[must_use]
    pub fn new(key: u8) -> Self {
        let settings = TargetSettings {
            logical_address: Some(DEFAULT_LOGICAL_ADDRESS),
            key: Some(key),
            length_max: (KEY as u32 + 1) * REGISTER,
            ..TargetSettings::default()
        };
        let forgotten = (0..PORTS).map(|_| <(Errors, PortFaults)>::default()).collect();
        ConfigurationPort { target: Target::new(settings), identity: 0, errors: 0, forgotten }
    }
}

impl Configuration for ConfigurationPort {
    fn answer(&mut self, port: u8, packet: &[u8], end: EndOfPacket, router: &mut RouterView<'_>) -> Vec<u8> {
        let key = self.target.settings().key.unwrap_or(CONFIGURATION_KEY);
        let ConfigurationPort { target, identity, errors, forgotten } = self;
        let mut map = Map { router, port, identity, errors, forgotten, key };
        let mut reply = Vec::new();
        let outcome = target.receive(packet, end, &mut map, &mut reply);
        let new_key = map.key;
        if new_key != key {
            let settings = TargetSettings { key: Some(new_key), ..target.settings().clone() };
            *target = Target::new(settings);
        }
        *errors |= match outcome {
            Outcome::Finished { status, .. } => error_bit(status),
            Outcome::Discarded(why) => discarded_bit(why),
        };
        reply
    }
}

/// Returns the bits of register 0 for a status: bit 0, and that of the error.
fn error_bit(status: Status) -> u32 {
    let bit = match status {
        Status::Success => return 0,
        Status::DataCrc => 3,
        Status::InvalidKey => 4,
        Status::ModifyLength => 7,
        Status::InvalidLogicalAddress => 8,
        Status::EarlyEop => 9,
        Status::TooMuchData => 10,
        Status::Eep => 11,
        Status::UnusedCode => 19,
        _ => 14,
    };
    1 | 1 << bit
}

/// Returns the bits of register 0 for a packet that got no reply.
fn discarded_bit(why: Discarded) -> u32 {
    let bit = match why {
        Discarded::HeaderCrc => 2,
        Discarded::Truncated => 9,
        Discarded::Eep => 11,
        Discarded::OtherProtocol => 15,
        Discarded::Reply | Discarded::ReservedType => 19,
    };
    1 | 1 << bit
}

/// The registers while a command is carried out.
struct Map<'a, 'r> {
    router: &'a mut RouterView<'r>,
    /// The port that the command came from.
    port: u8,
    identity: &'a mut u32,
    errors: &'a mut u32,
    forgotten: &'a mut [(Errors, PortFaults)],
    key: u8,
}

impl Map<'_, '_> {
    fn ports(&self) -> impl Iterator<Item = (usize, &PortView)> {
        self.router.ports.iter().enumerate().filter_map(|(number, port)| Some((number, port.as_ref()?)))
    }

    /// Returns the value of a register, or `None` if there is none.
    fn value(&self, address: u64) -> Option<u32> {
        Some(match address {
            0 => *self.errors,
            NETWORK => {
                let running = self.ports().filter(|(_, port)| port.state == State::Run);
                let running = running.fold(0, |bits, (number, _)| bits | 1u64 << (8 + number));
                1 | u32::from(self.port & 15) << 4 | running as u32
            }
            IDENTITY => *self.identity,
            ERRORS => {
                let failed = self.ports().filter(|(number, port)| port.errors_since(&self.forgotten[*number]) != 0);
                failed.fold(u32::from(*self.errors != 0), |bits, (number, _)| bits | 1 << number)
            }
            TIME => u32::from(self.router.time),
            KEY => u32::from(self.key),
            _ if ROUTES.contains(&address) => match self.router.registers.route(address as u8) {
                None => NO_ROUTE,
                Some(route) => {
                    let flags = [(route.delete_header, DELETE_HEADER), (route.priority, PRIORITY)];
                    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
                    flags.fold(route.outputs & OUTPUTS, |bits, (_, bit)| bits | bit)
                }
            },
            _ => {
                let number = usize::try_from(address).ok()?;
                self.router.ports.get(number)?.as_ref()?.read(&self.forgotten[number])
            }
        })
    }

    fn set(&mut self, address: u64, value: u32) {
        match address {
            IDENTITY => *self.identity = value,
            ERRORS => {
                if value & 1 != 0 {
                    *self.errors = 0;
                }
                for (number, port) in self.router.ports.iter().enumerate() {
                    if let Some(port) = port
                        && value >> number & 1 != 0
                    {
                        self.forgotten[number] = (port.errors, port.faults);
                    }
                }
            }
            KEY => self.key = value as u8,
            _ if ROUTES.contains(&address) => {
                let outputs = value & OUTPUTS;
                let route =
                    Route { outputs, delete_header: value & DELETE_HEADER != 0, priority: value & PRIORITY != 0 };
                let route = (outputs != 0 && value & NO_ROUTE == 0).then_some(route);
                self.router.registers.set_route(address as u8, route).expect("32 to 254 are logical addresses");
            }
            _ => {
                if let Some(port) = self.router.ports.get_mut(address as usize).and_then(Option::as_mut) {
                    port.auto_start = value & AUTO_START != 0;
                    port.link_start = value & LINK_START != 0;
                    port.disabled = value & DISABLED != 0;
                }
            }
        }
    }
}

fn is_writable(address: u64) -> bool {
    ![0, NETWORK, TIME].contains(&address)
}

/// Returns the address of each register of an access.
fn registers(access: &Access) -> impl Iterator<Item = u64> {
    let step = u64::from(access.increments);
    let first = access.address;
    (0..u64::from(access.length / REGISTER)).map(move |number| first + step * number)
}

impl Memory for Map<'_, '_> {
    fn authorise(&self, access: &Access) -> Result<(), Refusal> {
        let reads = access.operation == Operation::Read;
        let is_allowed = |address| self.value(address).is_some() && (reads || is_writable(address));
        let is_whole = access.length > 0 && access.length.is_multiple_of(REGISTER);
        if is_whole && registers(access).all(is_allowed) { Ok(()) } else { Err(Refusal::NotAuthorised) }
    }

    fn read(&mut self, access: &Access, data: &mut [u8]) -> Result<(), AccessError> {
        for (address, bytes) in registers(access).zip(data.chunks_exact_mut(REGISTER as usize)) {
            bytes.copy_from_slice(&self.value(address).ok_or(AccessError)?.to_be_bytes());
        }
        Ok(())
    }

    fn write(&mut self, access: &Access, data: &[u8]) -> Result<(), AccessError> {
        for (address, bytes) in registers(access).zip(data.as_chunks::<4>().0) {
            self.set(address, u32::from_be_bytes(*bytes));
        }
        Ok(())
    }
}
