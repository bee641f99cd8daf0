use super::*;
use crate::{SharedMemoryDevice, SharedMemorySettings};
use hodo_io::Clock;
use hodo_machine::{Instant, Wait};
use std::sync::mpsc;

/// An adapter that takes long for each message, and may miss the acknowledgement of one: it says so after the next message has come.
struct Slow {
    inner: SharedMemoryDevice,
    sends: u64,
    missed: Option<u64>,
    late: Option<Completion>,
    is_answered: bool,
}

impl Device for Slow {
    fn register(&mut self, length: usize, access: Access) -> Result<Region, DeviceError> {
        self.inner.register(length, access)
    }

    fn deregister(&mut self, region: Region) -> Result<(), DeviceError> {
        self.inner.deregister(region)
    }

    fn read(&self, region: Region, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(region, offset, bytes)
    }

    fn write(&mut self, region: Region, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(region, offset, bytes)
    }

    fn create(&mut self, limits: &Limits) -> Result<AddressOfQueuePair, DeviceError> {
        self.inner.create(limits)
    }

    fn connect(
        &mut self,
        local: &AddressOfQueuePair,
        remote: &AddressOfQueuePair,
        reliability: &Reliability,
    ) -> Result<(), DeviceError> {
        self.inner.connect(local, remote, reliability)
    }

    fn post_send(&mut self, queue_pair: u32, request: &SendRequest<'_>) -> Result<(), DeviceError> {
        hodo_io::sleep(Duration::from_millis(30));
        self.inner.post_send(queue_pair, request)
    }

    fn post_receive(&mut self, queue_pair: u32, request: &ReceiveRequest<'_>) -> Result<(), DeviceError> {
        self.inner.post_receive(queue_pair, request)
    }

    fn poll(&mut self, wait: Wait, until: Instant, completions: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if let Some(late) = self.late.take_if(|_| self.is_answered) {
            completions.push(Completion { status: Status::RetryExceeded, ..late });
            completions.push(Completion { id: RECEIVE, status: Status::Flushed, ..late });
            return Ok(());
        }
        self.inner.poll(wait, until, completions)?;
        self.is_answered |= self.late.is_some() && completions.iter().any(|completion| completion.id == RECEIVE);
        if let Some(index) = completions.iter().position(|completion| completion.id == SEND) {
            self.sends += 1;
            if self.missed == Some(self.sends) {
                self.late = Some(completions.remove(index));
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn destroy(&mut self, queue_pair: u32) {
        self.inner.destroy(queue_pair);
    }
}

/// Runs one end, which exchanges `iterations` messages.
fn run(
    (side, iterations, missed): (Side, u64, Option<u64>),
    (tell, hear): (mpsc::Sender<AddressOfQueuePair>, mpsc::Receiver<AddressOfQueuePair>),
) -> Result<Took, PingPongError> {
    let patience = Duration::from_millis(200);
    let parameters = PingPong { iterations, patience, wait: WaitMode::Events, ..PingPong::default() };
    let device = SharedMemoryDevice::open(SharedMemorySettings::default(), Clock::start()).unwrap();
    let mut device = Slow { inner: device, sends: 0, missed, late: None, is_answered: false };
    let mut end = End::new(&mut device, &parameters).unwrap();
    tell.send(*end.local()).unwrap();
    end.connect(&hear.recv().unwrap(), &Reliability::default()).unwrap();
    let took = end.run(side);
    // The far end may still wait for this one.
    drop(tell);
    let _ = hear.recv();
    took
}

fn both(client: u64, server: u64) -> (Result<Took, PingPongError>, Result<Took, PingPongError>) {
    both_of(client, server, None)
}

/// Returns what both ends say, of which the client misses an acknowledgement.
fn both_of(
    client: u64,
    server: u64,
    missed: Option<u64>,
) -> (Result<Took, PingPongError>, Result<Took, PingPongError>) {
    let (to_client, at_client) = mpsc::channel();
    let (to_server, at_server) = mpsc::channel();
    let far = std::thread::spawn(move || run((Side::Server, server, None), (to_client, at_server)));
    let took = run((Side::Client, client, missed), (to_server, at_client));
    (took, far.join().unwrap())
}

#[test]
fn a_slow_far_end_is_none_that_has_stopped() {
    let (client, server) = both(12, 12);
    assert_eq!((client.unwrap().iterations, server.unwrap().iterations), (12, 12));
    let (client, server) = both(12, 3);
    // Its last message was taken by a receive that the far end had posted.
    assert!(matches!(client, Err(PingPongError::Unanswered { received: 3, iterations: 12, .. })), "{client:?}");
    assert_eq!(server.unwrap().iterations, 3);
}
#[test]
fn the_last_reply_proves_that_the_last_message_arrived() {
    let (client, server) = both_of(5, 5, Some(5));
    assert_eq!((client.unwrap().iterations, server.unwrap().iterations), (5, 5));
    let (client, _) = both_of(5, 5, Some(3));
    assert!(matches!(client, Err(PingPongError::Failed { status: Status::RetryExceeded, .. })), "{client:?}");
}
