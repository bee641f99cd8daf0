//! A device in software that answers while a test runs.

use hodo_io::{ServeOptions, Server};
use hodo_ipbus::device::{Device, DeviceConfig, Registers};
use hodo_ipbus::wire::Version;
use hodo_machine::{Address, Transport};
use hodo_uhal::uri::Uri;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// One device, until it is dropped.
pub struct Board {
    uri: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Board {
    /// Creates a device on a free port of loopback.
    pub fn start(transport: Transport, version: Version, registers: Registers) -> Self {
        let options = ServeOptions::default();
        let config = DeviceConfig { registers, ..DeviceConfig::new(transport, version) };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let make = move || Device::new(config.clone());
        let loopback = Address::of(transport, ([127, 0, 0, 1], 0).into());
        let (scheme, address, thread) = match transport {
            Transport::Datagram => {
                let server = Server::bind(&loopback, options).expect("a free port");
                let address = server.address().clone();
                let run = move || server.run(make, |_| None, &stopped).expect("the device runs");
                ("udp", address, std::thread::spawn(run))
            }
            Transport::Stream => {
                let server = Server::bind(&loopback, options).expect("a free port");
                let address = server.address().clone();
                let run = move || server.run(make, |_| None, &stopped).expect("the device runs");
                ("tcp", address, std::thread::spawn(run))
            }
        };
        Board { uri: format!("ipbus{scheme}-{version}://{address}"), stop, thread: Some(thread) }
    }

    /// Returns the URI of the board.
    pub fn uri(&self) -> Uri {
        self.uri.parse().expect("a URI of a device")
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was running").expect("the device does not panic");
        }
    }
}
