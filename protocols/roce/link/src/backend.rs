//! Devices as links open them.

use crate::options::Place;
use hodo_io::{Clock, PathOptions};
use hodo_roce::Counters;
use hodo_roce_host::{
    Device, DeviceError, Gid, SharedMemoryDevice, SharedMemorySettings, SoftDevice, SoftSettings, UDP_PORT,
    VerbsDevice, VerbsSettings,
};
use std::net::{IpAddr, SocketAddr};

/// The surroundings that a device is opened in.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The address of this host over which the ends meet.
    pub(crate) here: IpAddr,
    /// The clock of everything that the device stamps.
    pub(crate) clock: Clock,
    /// The size of socket buffers in bytes; `None` leaves the device's.
    pub(crate) socket_buffer: Option<usize>,
    /// The code point and the time to live of packets that leave by sockets.
    pub(crate) path: PathOptions,
    /// Queue pairs that may send at once.
    pub(crate) pairs: u32,
}

/// A device that a link can be opened on.
pub(crate) trait Backend: Device + Send + Sized + 'static {
    /// Opens the device that the options name.
    ///
    /// # Errors
    /// [`DeviceError`] if it is not there, or what it needs is taken.
    fn open(place: &Place, surroundings: &Surroundings) -> Result<Self, DeviceError>;

    /// Returns the UDP port that far ends send to.
    fn udp_port(&self) -> u16 {
        UDP_PORT
    }

    /// Sets the UDP port of far ends that are connected from now on.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] if the device sends to the standard's port only.
    fn set_far_port(&mut self, port: u16) -> Result<(), DeviceError> {
        if port == UDP_PORT {
            return Ok(());
        }
        Err(DeviceError::OutOfRange(format!(
            "adapters send to UDP port {UDP_PORT}, and the far end of this one is at {port}, because another adapter of its host has that \
             port: give each an address of its own (address=), and a link one thread (--cpu 0)"
        )))
    }

    /// Returns whether a connection from this address of a network proves where a queue pair is: what is sent there could be meant for a
    /// host that has asked for nothing.
    fn proves(from: IpAddr, gid: Gid) -> bool {
        let _ = (from, gid);
        true
    }

    /// Returns the counters of the device's port, where it counts for this process alone.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// Bytes in flight of all queue pairs of a software adapter together: they fit in the far end's socket buffer.
const WINDOW_BYTES: u32 = 1 << 20;
/// Bytes in flight of one queue pair at least.
const WINDOW_BYTES_MIN: u32 = 16 << 10;

impl Backend for SoftDevice {
    fn open(place: &Place, surroundings: &Surroundings) -> Result<Self, DeviceError> {
        let address = place.address.unwrap_or(surroundings.here).to_canonical();
        let settings = SoftSettings {
            socket_buffer: surroundings.socket_buffer,
            path: surroundings.path.clone(),
            window_bytes: (WINDOW_BYTES / surroundings.pairs.max(1)).max(WINDOW_BYTES_MIN),
            ..SoftSettings::at(address)
        };
        let at = |port| SoftSettings { address: SocketAddr::new(address, port), ..settings.clone() };
        match place.udp_port {
            Some(port) => SoftDevice::open(at(port), surroundings.clock),
            // The ends tell each other of their ports, so that many of them can be on one host.
            None => SoftDevice::open(at(UDP_PORT), surroundings.clock)
                .or_else(|_| SoftDevice::open(at(0), surroundings.clock)),
        }
    }

    fn udp_port(&self) -> u16 {
        self.address().port()
    }

    fn set_far_port(&mut self, port: u16) -> Result<(), DeviceError> {
        SoftDevice::set_far_port(self, port);
        Ok(())
    }

    fn proves(from: IpAddr, gid: Gid) -> bool {
        gid.address() == from.to_canonical()
    }

    fn counters(&self) -> Counters {
        SoftDevice::counters(self)
    }
}

impl Backend for VerbsDevice {
    fn open(place: &Place, surroundings: &Surroundings) -> Result<Self, DeviceError> {
        let settings = VerbsSettings {
            device: place.device.clone(),
            port: place.port.unwrap_or(1),
            gid: place.gid,
            ..VerbsSettings::default()
        };
        VerbsDevice::open(&settings, surroundings.clock)
    }
}

impl Backend for SharedMemoryDevice {
    fn open(_place: &Place, surroundings: &Surroundings) -> Result<Self, DeviceError> {
        SharedMemoryDevice::open(SharedMemorySettings::default(), surroundings.clock)
    }
}
