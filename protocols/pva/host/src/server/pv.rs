use super::Core;
use super::handlers::{Call, Check, Handlers, Put};
use super::orders::Order;
use super::workers::Lane;
use crate::machines::data::SetError;
use crate::machines::normative::TimeStamp;
use crate::machines::server::Server;
use crate::machines::{BitSet, Item, Value};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of no channel.
const NOT_SERVED: u32 = u32::MAX;
/// Updates whose memory a PV with arrays keeps for the next ones: they may hold arrays of former values.
const SPARE_WITH_ARRAYS: usize = 8;
/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A PV that is served. All clones are the same PV; it is served until [`Pv::remove`].
#[derive(Clone)]
pub struct Pv {
    pub(super) core: Arc<Core>,
    shared: Arc<Shared>,
}

/// The state that the handles of a PV and the serving thread share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) handlers: Handlers,
    pub(crate) lane: Mutex<Lane>,
    /// The number of its channel while it is served, or [`NOT_SERVED`].
    channel: AtomicU32,
    posts: Mutex<Posts>,
    room: Condvar,
}

/// The updates that the serving thread has not taken.
struct Posts {
    /// The value as it is with all of them.
    latest: Value,
    /// A copy of it for [`Pv::update`].
    draft: Option<Value>,
    waiting: VecDeque<Update>,
    spare: Vec<Update>,
    spare_max: usize,
    scratch: BitSet,
    /// Whether the serving thread knows that some are waiting.
    is_ordered: bool,
    merged: u64,
    /// Threads that wait for room.
    sleepers: usize,
}

/// An update, and the fields of it that overwrote others.
#[derive(Debug)]
struct Update {
    value: Value,
    overrun: BitSet,
}

impl Update {
    /// Creates an empty update of a value's type, whose sets have grown, so that merging allocates nothing.
    fn new(value: &Value) -> Self {
        let mut overrun = BitSet::new();
        overrun.insert(value.plan().len());
        Update { value: Value::new(value.plan()), overrun }
    }
}

/// The outcome of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is an update of its own.
    Queued,
    /// The serving thread does not keep up: it became part of the update before it, which says so by its overrun bits.
    Merged,
}

/// Why an update was not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue had no room in time, because the serving thread does not keep up.
    #[error("the queue of updates is full: post less often, or raise posts_max")]
    Full,
    /// The value does not fit into the PV.
    #[error("the value does not fit into the PV: {0}")]
    Value(#[from] SetError),
}

/// A PV that is being put together.
#[must_use = "it is served by `serve`"]
pub struct PvOptions {
    core: Arc<Core>,
    name: String,
    value: Value,
    handlers: Handlers,
    concurrent: usize,
}

impl PvOptions {
    pub(crate) fn new(core: Arc<Core>, name: String, value: Value) -> Self {
        PvOptions { core, name, value, handlers: Handlers::default(), concurrent: 1 }
    }

    /// Lets clients put values, which become the PV's.
    pub fn accept_puts(self) -> Self {
        self.check_puts(|_, _, _| Ok(()))
    }

    /// Lets clients put values that a function accepts. It gets the PV's value, what is put, which it may change, and who puts it; it runs
    /// on the serving thread and must not wait for anything.
    pub fn check_puts(mut self, check: impl Check) -> Self {
        self.handlers.check = Some(Box::new(check));
        self
    }

    /// Gives what clients put to a function on a worker, which decides. Those that `check_puts` refuses do not reach it.
    pub fn on_put(mut self, handler: impl Fn(Put) + Send + Sync + 'static) -> Self {
        self.handlers.put = Some(Box::new(handler));
        self
    }

    /// Gives calls to a function on a worker, which replies.
    pub fn on_call(mut self, handler: impl Fn(Call) + Send + Sync + 'static) -> Self {
        self.handlers.call = Some(Box::new(handler));
        self
    }

    /// Sets how many handlers of this PV may run at once; one unless this is set, so that puts are handled in their order.
    pub fn concurrent(mut self, handlers: usize) -> Self {
        self.concurrent = handlers.max(1);
        self
    }

    /// Serves the PV.
    pub fn serve(self) -> Pv {
        let PvOptions { core, name, mut value, handlers, concurrent } = self;
        value.unmark();
        let posts = Posts {
            latest: value.clone(),
            draft: None,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            // As many wait as the serving thread has taken, at most.
            spare_max: if has_arrays(&value) { SPARE_WITH_ARRAYS } else { 2 * core.posts_max },
            scratch: BitSet::new(),
            is_ordered: false,
            merged: 0,
            sleepers: 0,
        };
        let lane = Mutex::new(Lane::new(concurrent));
        let (channel, posts) = (AtomicU32::new(NOT_SERVED), Mutex::new(posts));
        let shared = Arc::new(Shared { name, handlers, lane, channel, posts, room: Condvar::new() });
        core.orders.push(Order::Serve(Arc::clone(&shared), Box::new(value)));
        Pv { core, shared }
    }
}

impl Pv {
    pub(crate) fn new(core: Arc<Core>, shared: Arc<Shared>) -> Self {
        Pv { core, shared }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Tells whether another handle is of the same PV.
    #[must_use]
    pub fn is(&self, other: &Pv) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the value as it is with everything that was posted.
    #[must_use]
    pub fn value(&self) -> Value {
        self.shared.posts().latest.clone()
    }

    /// Posts the changed fields of a value of the PV's type to all subscribers. Never waits: an update that finds the queue full is
    /// merged into the last one.
    ///
    /// # Errors
    /// [`SetError::WrongType`] for a value of another type.
    pub fn post(&self, value: &Value) -> Result<Posted, SetError> {
        let mut posts = self.shared.posts();
        let posted = posts.add(value, self.core.posts_max)?;
        self.order(posts);
        Ok(posted)
    }

    /// Posts the changed fields of a value of the PV's type as an update of its own. Waits until the queue has room.
    ///
    /// # Errors
    /// [`PostError::Full`] if it has none in time, [`PostError::Value`] for a value of another type.
    pub fn post_within(&self, value: &Value, timeout: Duration) -> Result<(), PostError> {
        let mut posts = self.shared.posts();
        let max = self.core.posts_max;
        if posts.waiting.len() >= max {
            posts.sleepers += 1;
            let waited = self.shared.room.wait_timeout_while(posts, timeout, |posts| posts.waiting.len() >= max);
            let (woken, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            posts = woken;
            posts.sleepers -= 1;
            if outcome.timed_out() {
                return Err(PostError::Full);
            }
        }
        posts.add(value, max)?;
        self.order(posts);
        Ok(())
    }

    /// Changes the value by a function, sets its time stamp to now unless the function did, and posts what has changed as
    /// [`Pv::post`] does.
    ///
    /// # Errors
    /// The error of the function; nothing is posted then.
    pub fn update(&self, change: impl FnOnce(&mut Value) -> Result<(), SetError>) -> Result<Posted, SetError> {
        let mut posts = self.shared.posts();
        let mut draft = posts.draft.take().unwrap_or_else(|| posts.latest.clone());
        let changed = change(&mut draft).and_then(|()| stamp(&mut draft));
        let posted = changed.and_then(|()| posts.add(&draft, self.core.posts_max));
        if posted.is_err() {
            draft = posts.latest.clone();
        }
        draft.unmark();
        posts.draft = Some(draft);
        self.order(posts);
        posted
    }

    /// Serves the PV no more. Its clients are told, and search it again.
    pub fn remove(&self) {
        self.core.orders.push(Order::Remove(Arc::clone(&self.shared)));
    }

    /// Tells the serving thread that updates are waiting, unless it knows.
    fn order(&self, mut posts: MutexGuard<'_, Posts>) {
        if !posts.waiting.is_empty() && !std::mem::replace(&mut posts.is_ordered, true) {
            drop(posts);
            self.core.orders.push(Order::Post(Arc::clone(&self.shared)));
        }
    }
}

impl Shared {
    fn posts(&self) -> MutexGuard<'_, Posts> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of its channel, if it is served.
    pub(crate) fn channel(&self) -> Option<u32> {
        Some(self.channel.load(Ordering::Relaxed)).filter(|channel| *channel != NOT_SERVED)
    }

    /// Sets the number of its channel.
    pub(crate) fn set_channel(&self, channel: Option<u32>) {
        self.channel.store(channel.unwrap_or(NOT_SERVED), Ordering::Relaxed);
    }

    /// Calls a function with the value as it is with everything that was posted.
    pub(crate) fn with_latest<R>(&self, read: impl FnOnce(&Value) -> R) -> R {
        read(&self.posts().latest)
    }

    /// Posts on the serving thread itself. Returns whether it has to be told.
    pub(crate) fn post_here(&self, value: &Value, posts_max: usize) -> Result<bool, SetError> {
        let mut posts = self.posts();
        posts.add(value, posts_max)?;
        Ok(!posts.waiting.is_empty() && !std::mem::replace(&mut posts.is_ordered, true))
    }

    /// Hands the waiting updates to the machine, on the serving thread. Returns how many were merged while they waited.
    pub(crate) fn publish(&self, machine: &mut Server, taken: &mut Taken) -> u64 {
        let Taken(taken) = taken;
        let mut posts = self.posts();
        posts.is_ordered = false;
        std::mem::swap(&mut posts.waiting, taken);
        let merged = std::mem::take(&mut posts.merged);
        if posts.sleepers > 0 {
            self.room.notify_all();
        }
        drop(posts);
        if let Some(channel) = self.channel() {
            for Update { value, overrun } in &*taken {
                machine.post(channel, value, overrun);
            }
        }
        let mut posts = self.posts();
        let room = posts.spare_max.saturating_sub(posts.spare.len());
        posts.spare.extend(taken.drain(..).take(room));
        merged
    }
}

/// Returns whether fields of a value hold more than a number or a text.
fn has_arrays(value: &Value) -> bool {
    let is_small = |item| matches!(item, Item::Bool(_) | Item::Int(_) | Item::Uint(_) | Item::Float(_) | Item::Text(_));
    !(0..value.plan().len())
        .filter_map(|number| value.at(number))
        .all(|item| is_small(item) || matches!(item, Item::Structure(..)))
}

/// Updates on their way from a PV to the machine; the queue keeps its room.
#[derive(Default)]
pub(crate) struct Taken(VecDeque<Update>);

impl Posts {
    fn add(&mut self, value: &Value, max: usize) -> Result<Posted, SetError> {
        let mut overrun = std::mem::take(&mut self.scratch);
        overrun.clear();
        self.latest.unmark();
        let is_same = self.latest.merge(value, value.changed(), &mut overrun);
        self.scratch = overrun;
        if !is_same {
            return Err(SetError::WrongType);
        }
        if value.changed().is_empty() {
            return Ok(Posted::Queued);
        }
        let is_merged = self.waiting.len() >= max;
        if !is_merged {
            let mut update = self.spare.pop().unwrap_or_else(|| Update::new(value));
            update.value.unmark();
            update.overrun.clear();
            self.waiting.push_back(update);
        }
        if let Some(last) = self.waiting.back_mut() {
            last.value.merge(value, value.changed(), &mut last.overrun);
        }
        self.merged += u64::from(is_merged);
        Ok(if is_merged { Posted::Merged } else { Posted::Queued })
    }
}

/// Sets the time stamp to now, if there is one and it was not set.
pub(crate) fn stamp(value: &mut Value) -> Result<(), SetError> {
    match value.plan().number("timeStamp") {
        Some(number) if !value.has_changed(number) => value.set_time_stamp(now()),
        _ => Ok(()),
    }
}

/// Returns the time of day.
#[must_use]
pub fn now() -> TimeStamp {
    let now = hodo_io::unix_time_ns();
    let (seconds, nanoseconds) = ((now / SECOND_NS) as i64, (now % SECOND_NS) as i32);
    TimeStamp { seconds, nanoseconds, user_tag: 0 }
}
