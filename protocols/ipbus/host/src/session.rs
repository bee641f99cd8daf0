mod access;
mod error;
mod line;

pub use access::{Access, AccessResult, Action, At};
pub use error::{Failure, SessionError};

use crate::file_system::Files;
use access::Resolved;
use hodo_ipbus::wire::Version;
use hodo_ipbus::{Command, Data, Event};
use hodo_machine::{Instant, Wait};
use hodo_uhal::connections::Connection;
use hodo_uhal::table::{Limits, Mask, Table};
use hodo_uhal::uri::Uri;
use line::Line;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Accesses that may be under way at once; one more waits for an earlier one.
const OPEN_MAX: usize = 1 << 16;
/// Words of blocks, likewise; a single block may have more.
const OPEN_WORDS_MAX: usize = 1 << 24;
/// Accesses after which what fills packets is sent without being dispatched.
const SEND_AFTER: usize = 256;
/// How long one step of waiting lasts at the most; the machine ends every access by itself.
const STEP: Duration = Duration::from_secs(60);

/// How a device is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// How long nothing may get on before an access fails.
    pub timeout: Duration,
    /// How to wait for answers.
    pub wait: Wait,
    /// Whether packets over UDP have ids, so that what is lost is recovered, where the URI does not say. A device has one
    /// count of ids for all its clients. If `None`, they have ids only where nobody else's have: see
    /// [`Path::SharedUdp`](hodo_ipbus::Path::SharedUdp).
    pub reliable: Option<bool>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings { timeout: Duration::from_secs(1), wait: Wait::Adaptive, reliable: None }
    }
}

/// The registers of one device: accesses are queued, dispatched together, and what they brought is taken; or each is
/// called directly.
///
/// Nothing is sent before it is dispatched, unless it fills packets. The connection is made with the first dispatch, and
/// made again where it was lost; what was under way then has failed.
pub struct Session {
    uri: String,
    version: Version,
    table: Option<Arc<Table>>,
    wait: Wait,
    line: Line,
    /// The accesses that were queued since the last dispatch, or belong to it.
    asked: VecDeque<QueuedAccess>,
    /// The tag of the first of these accesses.
    first: u64,
    /// The number of these accesses that have not ended.
    open: usize,
    /// Words of blocks among these accesses.
    open_words: usize,
    /// Accesses since something was last sent.
    unsent: usize,
    dispatched: bool,
}

/// The place of an access in its session.
#[derive(Debug)]
pub struct Queued<T> {
    tag: u64,
    mask: Mask,
    brings: PhantomData<T>,
}

#[derive(Debug)]
struct QueuedAccess {
    action: Action,
    node: Option<u32>,
    words: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    Done(Data),
    Failed { address: u32, error: hodo_ipbus::Error, taken: Vec<u32> },
    Taken,
}

impl Session {
    /// Creates a session with the device at a URI, whose registers have addresses only until it gets a
    /// [table](Self::with_table).
    ///
    /// # Errors
    /// [`SessionError::NoAddress`] if a host's name has no address, [`SessionError::System`] if there is no socket.
    pub fn open(uri: &Uri, settings: &SessionSettings) -> Result<Self, SessionError> {
        Ok(Session {
            uri: uri.to_string(),
            version: uri.version,
            table: None,
            wait: settings.wait,
            line: Line::open(uri, settings)?,
            asked: VecDeque::new(),
            first: 0,
            open: 0,
            open_words: 0,
            unsent: 0,
            dispatched: false,
        })
    }

    /// Creates a session with a device of a connection file, with its address table.
    ///
    /// # Errors
    /// Those of [`Self::open`], and an error if the URI or the table cannot be used.
    pub fn of_connection(connection: &Connection, settings: &SessionSettings) -> Result<Self, SessionError> {
        let uri: Uri = connection.uri.parse().map_err(SessionError::Uri)?;
        let file = connection.table_file(&Files).map_err(SessionError::TableFile)?;
        let table = Table::read(&file, &Files, &Limits::default()).map_err(SessionError::Table)?;
        Ok(Session::open(&uri, settings)?.with_table(Arc::new(table)))
    }

    /// Returns the session with an address table.
    #[must_use]
    pub fn with_table(mut self, table: Arc<Table>) -> Self {
        self.table = Some(table);
        self
    }

    /// Returns the URI of the device.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the version of the protocol.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the address table, or `None` if there is none.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        self.table.as_deref()
    }

    /// Checks that an access is possible, as far as can be known without the device.
    ///
    /// # Errors
    /// The reason if it is not possible.
    pub fn check<T: Clone>(&self, access: &Access<'_, T>) -> Result<(), SessionError> {
        access.clone().resolve(0, self.table.as_deref()).map(|_| ())
    }

    /// Queues an access. What an earlier dispatch brought and nobody took is forgotten then.
    ///
    /// # Errors
    /// Where the access is not possible; nothing is queued then.
    pub fn queue<T>(&mut self, access: Access<'_, T>) -> Result<Queued<T>, SessionError> {
        let tag = self.first + self.asked.len() as u64;
        let Resolved { command, node, mask, action } = access.resolve(tag, self.table.as_deref())?;
        if std::mem::take(&mut self.dispatched) {
            self.asked.clear();
            self.first = tag;
        }
        let words = match &command {
            Command::ReadBlock { words, .. } => *words as usize,
            Command::WriteBlock { data, .. } => data.len(),
            _ => 0,
        };
        while self.open > 0 && (self.open >= OPEN_MAX || self.open_words + words > OPEN_WORDS_MAX) {
            self.send()?;
            self.step(self.wait)?;
        }
        self.line.command(command);
        self.asked.push_back(QueuedAccess { action, node, words, state: State::Open });
        self.open += 1;
        self.open_words += words;
        self.unsent += 1;
        if self.unsent >= SEND_AFTER || self.open_words >= OPEN_WORDS_MAX / 16 {
            self.unsent = 0;
            self.step(Wait::Never)?;
        }
        Ok(Queued { tag, mask, brings: PhantomData })
    }

    /// Sends all that is queued, and waits until it has ended.
    ///
    /// # Errors
    /// The first that failed; what became of each can be [taken](Self::take) nevertheless.
    pub fn dispatch(&mut self) -> Result<(), SessionError> {
        self.send()?;
        while self.open > 0 {
            self.step(self.wait)?;
        }
        self.dispatched = true;
        let failed = self.asked.iter().find_map(|asked| asked.failure(&self.uri, self.table.as_deref()));
        failed.map_or(Ok(()), |failure| Err(SessionError::Failed(failure)))
    }

    /// Queues an access, dispatches it with all that was queued before, and takes what it brought.
    ///
    /// # Errors
    /// The error of this access if it is not possible or failed; [`Self::take`] returns the results of the accesses
    /// before it.
    pub fn call<T: AccessResult>(&mut self, access: Access<'_, T>) -> Result<T, SessionError> {
        let queued = self.queue(access)?;
        match self.dispatch() {
            Err(error) if !matches!(error, SessionError::Failed(_)) => Err(error),
            _ => self.take(queued),
        }
    }

    /// Takes what an access brought, or why it failed.
    ///
    /// # Errors
    /// Where it failed, has not ended, was taken before, or is of a dispatch before the last one.
    pub fn take<T: AccessResult>(&mut self, queued: Queued<T>) -> Result<T, SessionError> {
        let index = queued.tag.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let asked = index.and_then(|index| self.asked.get_mut(index)).ok_or(SessionError::Gone)?;
        let failure = asked.failure(&self.uri, self.table.as_deref());
        let outcome = match std::mem::replace(&mut asked.state, State::Taken) {
            State::Done(data) => Ok(T::of(data, queued.mask)),
            State::Open => {
                asked.state = State::Open;
                return Err(SessionError::NotDone);
            }
            State::Failed { .. } | State::Taken => Err(failure.map_or(SessionError::Gone, SessionError::Failed)),
        };
        while matches!(self.asked.front(), Some(QueuedAccess { state: State::Taken, .. })) {
            self.asked.pop_front();
            self.first += 1;
        }
        outcome
    }

    /// Sends all that is queued, without waiting for it: for those who [poll](Self::poll).
    ///
    /// # Errors
    /// Where the operating system refuses to.
    pub fn send(&mut self) -> Result<(), SessionError> {
        self.unsent = 0;
        self.line.command(Command::Flush);
        self.step(Wait::Never)
    }

    /// Takes in what has come, without waiting; answers how many accesses have not ended. Who polls and does not dispatch
    /// takes what each brought, lest it is kept for ever.
    ///
    /// # Errors
    /// Where the operating system refuses to.
    pub fn poll(&mut self) -> Result<usize, SessionError> {
        self.step(Wait::Never)?;
        Ok(self.open)
    }

    fn step(&mut self, wait: Wait) -> Result<(), SessionError> {
        let Session { line, asked, first, open, open_words, uri, .. } = self;
        let until = if wait == Wait::Never { Instant::ZERO } else { line.last_turn() + STEP };
        let ended = line.step(wait, until, &mut |event| {
            let (tag, state) = match event {
                Event::Done { tag, data } => (tag, State::Done(data)),
                Event::Failed { tag, address, error, taken } => (tag, State::Failed { address, error, taken }),
                Event::Ready | Event::Down(_) => return,
            };
            let index = usize::try_from(tag - *first).expect("nothing is forgotten before it has ended");
            asked[index].state = state;
            *open -= 1;
            *open_words -= asked[index].words;
        });
        ended.map_err(|error| SessionError::System { uri: uri.clone(), why: error.to_string() })
    }
}

impl QueuedAccess {
    fn failure(&self, uri: &str, table: Option<&Table>) -> Option<Failure> {
        let State::Failed { address, error, taken } = &self.state else { return None };
        let node = self.node.and_then(|number| Some(table?.numbered(number)?.path()));
        let (address, error, taken) = (*address, *error, taken.clone());
        Some(Failure { action: self.action, node, address, uri: uri.to_owned(), error, taken })
    }
}

impl<T> Clone for Queued<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Queued<T> {}
