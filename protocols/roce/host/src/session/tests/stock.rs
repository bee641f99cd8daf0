//! An end that behaves as a stock `ibv_rc_pingpong`, on any device: one buffer for both directions, and no word of its options.

use crate::device::{AddressOfQueuePair, Device, Limits, Region, Reliability};
use crate::exchange::Exchange;
use hodo_machine::Wait;
use hodo_roce::{Access, Operation, ReceiveRequest, ScatterEntry, SendRequest, Status};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
/// Attributes of stock ends, but for a time-out that a busy host does not reach.
pub(super) const RELIABILITY: Reliability = Reliability {
    mtu: 1024,
    timeout: 18,
    retries: 7,
    receiver_not_ready_retries: 7,
    receiver_not_ready_timer: 12,
    reads: 1,
    service_level: 0,
};
const PAGE: usize = 4096;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const DEPTH: u32 = 500;

/// The options of a stock end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stock {
    pub(super) size: u32,
    pub(super) iterations: u64,
    pub(super) checks: bool,
    /// A byte that it damages in each message.
    pub(super) spoil: Option<usize>,
}

struct Buffer {
    local: AddressOfQueuePair,
    region: Region,
}

impl Stock {
    /// Runs a client. Returns whether its buffer is right at the end, or how a request failed.
    pub(super) fn client<D: Device>(self, device: &mut D, to: SocketAddr) -> Result<bool, Status> {
        let buffer = self.prepare(device);
        let mut exchange = Exchange::connect(to, PATIENCE).unwrap();
        exchange.tell(&buffer.local).unwrap();
        let remote = exchange.hear().unwrap();
        exchange.done().unwrap();
        device.connect(&buffer.local, &remote, &RELIABILITY).unwrap();
        if self.checks {
            (0..self.size as usize).step_by(PAGE).for_each(|page| device.write(buffer.region, page, &[0]).unwrap());
        }
        self.run(device, &buffer, true).map(|()| true)
    }

    /// Runs a server. Returns whether its check finds what its client has marked, or how a request failed.
    pub(super) fn server<D: Device>(self, device: &mut D, listener: &TcpListener) -> Result<bool, Status> {
        let buffer = self.prepare(device);
        let mut exchange = Exchange::accept(listener, PATIENCE, &mut |why| panic!("{why}")).unwrap();
        let remote = exchange.hear().unwrap();
        device.connect(&buffer.local, &remote, &RELIABILITY).unwrap();
        exchange.tell(&buffer.local).unwrap();
        exchange.wait_done().unwrap();
        self.run(device, &buffer, false)?;
        let mut bytes = vec![0; self.size as usize];
        device.read(buffer.region, 0, &mut bytes).unwrap();
        device.linger(Duration::from_millis(50)).unwrap();
        Ok(!self.checks || bytes.iter().step_by(PAGE).all(|byte| *byte == 0))
    }

    /// Tells a client its address, and does nothing more.
    pub(super) fn deaf_server<D: Device>(self, mut device: D, listener: &TcpListener) {
        let buffer = self.prepare(&mut device);
        let mut exchange = Exchange::accept(listener, PATIENCE, &mut |why| panic!("{why}")).unwrap();
        exchange.hear().unwrap();
        exchange.tell(&buffer.local).unwrap();
        exchange.wait_done().unwrap();
    }

    fn prepare<D: Device>(self, device: &mut D) -> Buffer {
        let region = device.register(self.size as usize, Access::LOCAL).unwrap();
        device.write(region, 0, &vec![0x7b; self.size as usize]).unwrap();
        let limits =
            Limits { send_depth: 1, receive_depth: DEPTH, send_entries: 1, receive_entries: 1, inline_bytes: 0 };
        let buffer = Buffer { local: device.create(&limits).unwrap(), region };
        (0..DEPTH).for_each(|_| self.receive(device, &buffer));
        buffer
    }

    fn entry(self, buffer: &Buffer) -> ScatterEntry {
        ScatterEntry { address: buffer.region.address, length: self.size, key: buffer.region.local_key }
    }

    fn receive<D: Device>(self, device: &mut D, buffer: &Buffer) {
        let request = ReceiveRequest { id: RECEIVE, entries: &[self.entry(buffer)] };
        device.post_receive(buffer.local.number, &request).unwrap();
    }

    fn send<D: Device>(self, device: &mut D, buffer: &Buffer) {
        if let Some(offset) = self.spoil {
            device.write(buffer.region, offset, &[0x7a]).unwrap();
        }
        let entries = [self.entry(buffer)];
        device.post_send(buffer.local.number, &SendRequest::new(SEND, Operation::Send, &entries)).unwrap();
    }

    fn run<D: Device>(self, device: &mut D, buffer: &Buffer, is_client: bool) -> Result<(), Status> {
        let (mut sent, mut received, mut pending, mut completions) = (0, 0, RECEIVE, Vec::new());
        let give_up = device.now() + PATIENCE;
        if is_client {
            self.send(device, buffer);
            pending |= SEND;
        }
        while sent < self.iterations || received < self.iterations {
            completions.clear();
            assert!(device.now() < give_up, "it waits for ever: {sent} messages sent, {received} received");
            device.poll(Wait::Never, give_up, &mut completions).unwrap();
            for completion in &completions {
                if completion.status != Status::Success {
                    return Err(completion.status);
                }
                match completion.id {
                    SEND => sent += 1,
                    _ => {
                        received += 1;
                        self.receive(device, buffer);
                    }
                }
                pending &= !completion.id;
                if pending == 0 && sent < self.iterations {
                    self.send(device, buffer);
                    pending = RECEIVE | SEND;
                }
            }
        }
        Ok(())
    }
}
