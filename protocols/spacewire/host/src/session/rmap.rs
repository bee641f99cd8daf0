use super::{Arrival, Session, SessionError};
use hodo_machine::Instant;
use hodo_spacewire::EndOfPacket;
use hodo_spacewire::rmap::{
    Destination, Failure, Ignored, Initiator, InitiatorSettings, InitiatorStatistics, Request, RequestError,
};
use thiserror::Error;

/// The reason that a transaction failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RmapError {
    /// The port cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// No command expresses the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The target refused, or its reply was damaged or did not come.
    #[error("{port}: {what}: {failure}")]
    Failed {
        /// The port.
        port: String,
        /// The transaction.
        what: String,
        /// The failure.
        failure: Failure,
    },
    /// No reply came, but packets that are none to a command of this session.
    #[error("{port}: {what}: {}; packets that arrived instead: {count}, the last one: {why}", Failure::TimedOut)]
    OthersInstead {
        /// The port.
        port: String,
        /// The transaction.
        what: String,
        /// The packets since the call began.
        count: u64,
        /// The reason that the last one completes no transaction.
        why: Ignored,
    },
}

/// How a transfer of many bytes is divided into commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes of one command.
    pub part: u32,
    /// Commands that are under way at a time.
    pub window: u16,
    /// Whether the address advances.
    pub increment: bool,
}

impl Default for Transfer {
    /// Returns 16 commands of 4096 bytes at a time, with an address that advances.
    fn default() -> Self {
        Transfer { part: 4096, window: 16, increment: true }
    }
}

/// An RMAP initiator at a port. Packets that are no replies to it are discarded and counted.
pub struct RmapSession {
    port: Session,
    initiator: Initiator,
    command: Vec<u8>,
    /// The packets of this call that completed no transaction, and the reason of the last one.
    ignored: Option<(u64, Ignored)>,
}

impl RmapSession {
    /// Creates an initiator that has a port.
    #[must_use]
    pub fn new(port: Session, settings: InitiatorSettings) -> Self {
        RmapSession { port, initiator: Initiator::new(settings), command: Vec::new(), ignored: None }
    }

    /// Returns the port.
    pub fn port(&mut self) -> &mut Session {
        &mut self.port
    }

    /// Returns the port, for which there is no initiator any more.
    #[must_use]
    pub fn into_port(self) -> Session {
        self.port
    }

    /// Returns the counts since the session was created.
    #[must_use]
    pub fn statistics(&self) -> &InitiatorStatistics {
        self.initiator.statistics()
    }

    /// Carries out one request, and returns the data of its reply. A write without a reply ends when it has left.
    ///
    /// # Errors
    /// The reason that it failed.
    pub fn call(&mut self, to: &Destination, request: &Request<'_>) -> Result<Vec<u8>, RmapError> {
        let mut data = Vec::new();
        self.ignored = None;
        if self.submit(to, request, 0)? {
            let failed = self.next(&mut |_, bytes| data.extend_from_slice(bytes))?;
            failed.map_or(Ok(()), |(_, failure)| Err(self.failed(request, failure)))?;
        } else {
            self.port.flush()?;
        }
        Ok(data)
    }

    /// Reads as many bytes as `data` has.
    ///
    /// # Errors
    /// The first transaction that failed.
    pub fn read(&mut self, to: &Destination, address: u64, data: &mut [u8], by: Transfer) -> Result<(), RmapError> {
        let length = data.len();
        let request = |number: u64| {
            let (begin, end) = by.bounds(number, length)?;
            Some(Request::Read {
                address: by.address(address, begin),
                length: (end - begin) as u32,
                increment: by.increment,
            })
        };
        self.pipeline(to, by.window, request, &mut |number, bytes| {
            if let Some((begin, end)) = by.bounds(number, length) {
                data[begin..end].copy_from_slice(bytes);
            }
        })
    }

    /// Writes bytes, and waits for all replies.
    ///
    /// # Errors
    /// The first transaction that failed.
    pub fn write(
        &mut self,
        to: &Destination,
        address: u64,
        data: &[u8],
        verify: bool,
        by: Transfer,
    ) -> Result<(), RmapError> {
        let request = |number: u64| {
            let (begin, end) = by.bounds(number, data.len())?;
            let address = by.address(address, begin);
            Some(Request::Write { address, data: &data[begin..end], increment: by.increment, verify, reply: true })
        };
        self.pipeline(to, by.window, request, &mut |_, _| {})
    }

    /// Carries out the requests that `request` returns for 0, 1 and so on up to its first `None`, `window` of them at a time. Each must want a
    /// reply, whose data is passed to `done` with the request's number.
    ///
    /// # Errors
    /// The first that failed, once those under way have ended. No further ones are begun then.
    pub fn pipeline<'a>(
        &mut self,
        to: &Destination,
        window: u16,
        request: impl Fn(u64) -> Option<Request<'a>>,
        done: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), RmapError> {
        let (mut next, mut failed) = (0, None);
        self.ignored = None;
        loop {
            while failed.is_none()
                && self.initiator.outstanding() < window.max(1)
                && let Some(request) = request(next)
            {
                self.submit(to, &request, next)?;
                next += 1;
            }
            if self.initiator.outstanding() == 0 {
                return failed.map_or(Ok(()), Err);
            }
            if let Some((number, failure)) = self.next(done)?
                && failed.is_none()
            {
                failed = request(number).map(|request| self.failed(&request, failure));
            }
        }
    }

    /// Sends a request. Returns whether a completion will come.
    fn submit(&mut self, to: &Destination, request: &Request<'_>, tag: u64) -> Result<bool, RmapError> {
        let deadline = self.port.now() + self.port.settings().timeout;
        let before = self.initiator.outstanding();
        self.command.clear();
        self.initiator.send(request, to, tag, deadline, &mut self.command)?;
        self.port.send(&self.command, EndOfPacket::Eop)?;
        Ok(self.initiator.outstanding() > before)
    }

    /// Waits for the next completion. Returns its tag and failure if it failed.
    fn next(&mut self, done: &mut dyn FnMut(u64, &[u8])) -> Result<Option<(u64, Failure)>, SessionError> {
        let RmapSession { port, initiator, ignored, .. } = self;
        loop {
            let until = initiator.deadline().unwrap_or(Instant::ZERO);
            match port.receive_until(until)? {
                Some(Arrival::Packet(packet, end)) => match initiator.receive(packet, end) {
                    Ok(completion) => {
                        return Ok(match completion.result {
                            Ok(data) => {
                                done(completion.tag, data);
                                None
                            }
                            Err(failure) => Some((completion.tag, failure)),
                        });
                    }
                    Err(why) => *ignored = Some((ignored.map_or(1, |(count, _)| count + 1), why)),
                },
                Some(Arrival::TimeCode(_)) | None => {}
            }
            // Also where something else arrives all the time.
            let now = port.now();
            if let Some(late) = initiator.expire(now) {
                return Ok(Some((late.tag, Failure::TimedOut)));
            }
        }
    }

    fn failed(&self, request: &Request<'_>, failure: Failure) -> RmapError {
        let what = match *request {
            Request::Read { address, length, .. } => format!("read of {length} bytes at 0x{address:X}"),
            Request::Write { address, data, .. } => format!("write of {} bytes at 0x{address:X}", data.len()),
            Request::ReadModifyWrite { address, data, .. } => {
                format!("read-modify-write of {} bytes at 0x{address:X}", data.len())
            }
        };
        let port = self.port.name().to_owned();
        match (failure, self.ignored) {
            (Failure::TimedOut, Some((count, why))) => RmapError::OthersInstead { port, what, count, why },
            _ => RmapError::Failed { port, what, failure },
        }
    }
}

impl Transfer {
    /// Returns the bounds of a part of `length` bytes. Nothing at all is one part.
    fn bounds(self, number: u64, length: usize) -> Option<(usize, usize)> {
        let part = self.part.max(1) as usize;
        let begin = usize::try_from(number).ok()?.checked_mul(part)?;
        (begin < length || number == 0).then(|| (begin, length.min(begin + part)))
    }

    fn address(self, first: u64, offset: usize) -> u64 {
        if self.increment { first.saturating_add(offset as u64) } else { first }
    }
}
