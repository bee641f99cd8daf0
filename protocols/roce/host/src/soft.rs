//! The software adapter on UDP sockets: RoCEv2 without an adapter, a kernel module or privileges.

use crate::device::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability};
use hodo_io::{Clock, Endpoint, PathOptions, Port, PortOptions, SocketSettings, Sockets, path_mtu, random_bits};
use hodo_machine::{Address, Driver, DriverError, Instant, Wait};
use hodo_roce::icrc::Places;
use hodo_roce::wire::{HEADERS_MAX, ICRC_LENGTH, PORT};
use hodo_roce::{
    Access, AckTimeout, Adapter, AdapterConfig, Capacity, Completion, Connection, Counters, Mtu, Psn, ReceiveRequest,
    SendRequest, VerbError,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Bytes of the headers of IP and UDP.
const V4_HEADERS: u32 = 28;
const V6_HEADERS: u32 = 48;

/// The settings of a software adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftSettings {
    /// The address of this end. The port is 4791 unless both ends agree on others; 0 is any free one.
    pub address: SocketAddr,
    /// The UDP port of far ends.
    pub far_port: u16,
    /// The size of the socket's buffers in bytes.
    pub socket_buffer: Option<usize>,
    /// The code point and the time to live of the packets; the address is the adapter's own.
    pub path: PathOptions,
    /// Bytes in flight of each queue pair.
    pub window_bytes: u32,
    /// Whether acknowledgement timeouts follow measured round trips instead of the standard's fixed times.
    pub measures_timeout: bool,
}

impl SoftSettings {
    /// Returns the settings of an adapter at this address, with the standard's port and timeouts.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        SoftSettings {
            address: SocketAddr::new(address, PORT),
            far_port: PORT,
            socket_buffer: None,
            path: PathOptions::default(),
            window_bytes: 1 << 20,
            measures_timeout: false,
        }
    }
}

/// The software adapter, on a UDP socket.
pub struct SoftDevice {
    endpoint: Endpoint<Adapter, Sockets>,
    settings: SoftSettings,
    address: SocketAddr,
}

impl SoftDevice {
    /// Opens an adapter at an address of this host.
    ///
    /// # Errors
    /// [`DeviceError::Missing`] if the address is not this host's, or the port is taken.
    pub fn open(settings: SoftSettings, clock: Clock) -> Result<Self, DeviceError> {
        let bound = Port::bind(&Address::Udp(settings.address), &PortOptions::default());
        // The header of IPv6 has no identification.
        let (mut places, has_identification) = (Places::default(), settings.address.is_ipv4());
        let correction = move |length, place| match has_identification {
            true => places.at(length, place).to_le_bytes(),
            false => [0; 4],
        };
        let port =
            bound.and_then(|port| port.numbered(correction)).map_err(|error| cannot_bind(settings.address, &error))?;
        let address = port.address().ip().unwrap_or(settings.address);
        let (socket_buffer, path) = (settings.socket_buffer, settings.path.clone());
        let sockets = SocketSettings { socket_buffer, path, ..SocketSettings::default() };
        let refused = |error: std::io::Error| DeviceError::Refused {
            what: "UDP socket".into(),
            errno: error.raw_os_error().unwrap_or(0),
        };
        let mut sockets = Sockets::new(sockets).map_err(refused)?;
        sockets.bind(port).map_err(refused)?;
        let config =
            AdapterConfig { window_bytes: settings.window_bytes, seed: random_bits(), ..AdapterConfig::default() };
        Ok(SoftDevice { endpoint: Endpoint::new(Adapter::new(config), sockets, clock), settings, address })
    }

    /// Returns the address that the adapter is at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the UDP port of far ends that are connected from now on.
    pub fn set_far_port(&mut self, port: u16) {
        self.settings.far_port = port;
    }

    /// Returns the counters of the port.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.endpoint.machine().counters()
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(Completion)) -> Result<(), DeviceError> {
        self.endpoint.turn(wait, until, told).map_err(|error| match error {
            DriverError::System(errno) => DeviceError::Refused { what: "UDP socket".into(), errno },
            other => DeviceError::Missing(other.to_string()),
        })
    }

    /// Checks that full packets of this path MTU fit through the path.
    fn check_path(&self, remote: SocketAddr, mtu: Mtu) -> Result<(), DeviceError> {
        let headers = if remote.is_ipv4() { V4_HEADERS } else { V6_HEADERS };
        let most = path_mtu(self.address, remote).map_err(|error| DeviceError::Refused {
            what: format!("route from {} to {}", self.address.ip(), remote.ip()),
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        let more = headers + HEADERS_MAX as u32 + ICRC_LENGTH as u32;
        let fitting = |mtu: &Mtu| mtu.bytes() + more <= most;
        if fitting(&mtu) {
            return Ok(());
        }
        let best = Mtu::ALL.into_iter().rev().find(fitting);
        let remedy = best.map_or_else(String::new, |best| format!("; the largest that fits is {best}"));
        Err(DeviceError::OutOfRange(format!(
            "path MTU {mtu} needs IP packets of {} bytes, and the way to {} takes {most}{remedy}",
            mtu.bytes() + more,
            remote.ip()
        )))
    }
}

impl Device for SoftDevice {
    fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(length)
            .map_err(|_| DeviceError::Refused { what: format!("memory of {length} bytes"), errno: libc_enomem() })?;
        bytes.resize(length, 0);
        let (key, address) =
            self.endpoint.machine_mut().register(bytes, access, None).map_err(|error| refused("reg_mr", error))?;
        Ok(Region { address, length, local_key: key, remote_key: key })
    }

    fn deregister(&mut self, region: Region) -> Result<(), DeviceError> {
        self.endpoint.machine_mut().deregister(region.local_key).map(drop).ok_or_else(|| no_region(region))
    }

    fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let whole = self.endpoint.machine().region(region.local_key).ok_or_else(|| no_region(region))?;
        let part = offset.checked_add(bytes.len()).and_then(|end| whole.get(offset..end));
        bytes.copy_from_slice(part.ok_or_else(|| outside(region, offset, bytes.len()))?);
        Ok(())
    }

    fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let whole = self.endpoint.machine_mut().region_mut(region.local_key).ok_or_else(|| no_region(region))?;
        let part = offset.checked_add(bytes.len()).and_then(|end| whole.get_mut(offset..end));
        part.ok_or_else(|| outside(region, offset, bytes.len()))?.copy_from_slice(bytes);
        Ok(())
    }

    fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError> {
        let capacity = Capacity {
            send_depth: limits.send_depth,
            receive_depth: limits.receive_depth,
            send_entries: limits.send_entries,
            receive_entries: limits.receive_entries,
            inline_bytes: limits.inline_bytes,
        };
        let number = self.endpoint.machine_mut().create(&capacity).map_err(|error| refused("create_qp", error))?;
        let psn = Psn::new(random_bits() as u32).value();
        Ok(AddressOfQueuePair { lid: 0, number, psn, gid: Gid::of(self.address.ip()) })
    }

    fn connect(
        &mut self,
        local: &AddressOfQueuePair,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<(), DeviceError> {
        let connection = self.connection(local.psn, remote, reliability)?;
        self.endpoint.machine_mut().connect(local.number, &connection).map_err(|error| refused("modify_qp", error))
    }

    #[inline]
    fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError> {
        self.endpoint.machine_mut().post_send(queue_pair, request).map_err(|error| refused("post_send", error))
    }

    #[inline]
    fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError> {
        self.endpoint.machine_mut().post_receive(queue_pair, request).map_err(|error| refused("post_recv", error))
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let before = completions.len();
        loop {
            self.turn(wait, until, &mut |completion| completions.push(completion))?;
            if completions.len() > before || wait == Wait::Never || self.endpoint.last_turn() >= until {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Instant {
        self.endpoint.now()
    }

    fn linger(&mut self, span: Duration) -> Result<(), DeviceError> {
        let until = self.endpoint.now() + span;
        while self.endpoint.now() < until {
            self.turn(Wait::Block, until, &mut |_| {})?;
        }
        Ok(())
    }

    fn destroy(&mut self, queue_pair: u32) {
        self.endpoint.machine_mut().destroy(queue_pair);
    }
}

impl SoftDevice {
    fn connection(
        &self,
        local_psn: u32,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<Connection, DeviceError> {
        let mtu = Mtu::new(reliability.mtu).ok_or_else(|| {
            DeviceError::OutOfRange(format!("path MTU {} is not one of 256, 512, 1024, 2048, 4096", reliability.mtu))
        })?;
        let ip = remote.gid.address();
        if ip.is_unspecified() {
            return Err(DeviceError::Missing(
                "the far end has told no GID: RoCE needs one; give it `-g 1` there, or whichever `show_gids` lists for IPv4".into(),
            ));
        }
        if ip.is_ipv4() != self.address.is_ipv4() {
            return Err(DeviceError::OutOfRange(format!(
                "the far end's GID is the address {ip}, and this adapter is at {}: both ends have to be IPv4, or both IPv6",
                self.address.ip()
            )));
        }
        let far = SocketAddr::new(ip, self.settings.far_port);
        self.check_path(far, mtu)?;
        let timeout = match AckTimeout::of_code(reliability.timeout) {
            AckTimeout::Fixed(_) if self.settings.measures_timeout => AckTimeout::Measured(Duration::from_millis(1)),
            timeout => timeout,
        };
        Ok(Connection {
            address: Address::UdpFrom(self.address.port(), far),
            queue_pair: remote.number,
            receive_psn: Psn::new(remote.psn),
            send_psn: Psn::new(local_psn),
            mtu,
            timeout,
            retries: reliability.retries,
            receiver_not_ready_retries: reliability.receiver_not_ready_retries,
            receiver_not_ready_timer: reliability.receiver_not_ready_timer,
            reads: reliability.reads,
            reads_served: reliability.reads,
        })
    }
}

impl std::fmt::Debug for SoftDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoftDevice").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Returns the error number of "out of memory".
const fn libc_enomem() -> i32 {
    12
}

/// Returns the error of a verb, with the number that libibverbs would give.
#[cold]
fn refused(verb: &str, error: VerbError) -> DeviceError {
    const EINVAL: i32 = 22;
    let errno = match error {
        VerbError::QueueFull(_) | VerbError::OverBound(_) => libc_enomem(),
        _ => EINVAL,
    };
    DeviceError::Refused { what: format!("{verb}: {error}"), errno }
}

#[cold]
fn no_region(region: Region) -> DeviceError {
    DeviceError::OutOfRange(format!("no region has the key {:#010x}", region.local_key))
}

#[cold]
fn outside(region: Region, offset: usize, length: usize) -> DeviceError {
    DeviceError::OutOfRange(format!("{length} bytes at {offset} are not all inside of a region of {}", region.length))
}

fn cannot_bind(address: SocketAddr, error: &std::io::Error) -> DeviceError {
    let remedy = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; another program, or the kernel's own rxe, has it: stop that, or choose another port at both ends"
        }
        std::io::ErrorKind::AddrNotAvailable => "; choose an address of this host",
        _ => "",
    };
    DeviceError::Missing(format!("UDP {address} cannot be bound: {error}{remedy}"))
}
