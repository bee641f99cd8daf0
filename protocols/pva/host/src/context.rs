//! A client for programs of many threads, whose connections are served by a thread of its own.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use hodo_pva_host::{machines::{normative::Normative, Scalar, Value}, server::{Server, ServerOptions}};
//! # use hodo_pva_host::{ClientOptions, ContextOptions};
//! # let server = Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into()))?;
//! # let _setpoint = server.pv("SETPOINT", Value::of(Normative::scalar(Scalar::F64).build())).accept_puts().serve();
//! # let _sensor = server.pv("SENSOR", Value::of(Normative::scalar(Scalar::F64).build())).serve();
//! # let client = ClientOptions { server: Some(server.address().to_string()), ..ClientOptions::default() };
//! # let options = ContextOptions::of(client);
//! # let (done, is_done) = std::sync::mpsc::channel();
//! use hodo_pva_host::context::{Context, MonitorEvent};
//! let context = Context::open(&options)?;
//! let own = context.clone();
//! let monitor = context.monitor_with("SENSOR", &"field(value)".parse()?, move |event| {
//!     let MonitorEvent::Update(update) = event else { return };
//!     // A callback may call whatever waits.
//!     let number = update.value.get("value").and_then(|item| item.as_f64()).unwrap_or_default();
//!     if let Err(why) = own.put("SETPOINT", |value| value.set("value", number + 1.0)) {
//!         eprintln!("{why}");
//!     }
//! #   done.send(()).unwrap();
//! })?;
//! # is_done.recv()?;
//! # assert_eq!(context.get("SETPOINT")?.get("value").and_then(|item| item.as_f64()), Some(1.0));
//! # drop(monitor);
//! # Ok(())
//! # }
//! ```

mod callbacks;
mod feed;
mod monitor;
mod orders;
mod pending;
mod thread;

use crate::client::{Client, ClientError, ClientOptions, Operation, Place, Trouble};
use crate::machines::{Request, Type, Value};
use crate::orders::Orders;
use callbacks::Workers;
use feed::Feed;
use orders::{Job, Order, Owner, Target};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::Duration;
use thread::Serving;

pub use monitor::{ConnectionState, Monitor, MonitorEvent, Update, Watch};
pub use pending::Pending;

/// Channels of [`Context::read_many`] that are read at once.
const AT_ONCE: usize = 10_000;

/// The settings of a context.
#[derive(Debug, Clone)]
pub struct ContextOptions {
    /// Settings of its client.
    pub client: ClientOptions,
    /// Threads that run callbacks. A callback may wait; as many as there are threads may wait at once.
    pub workers: usize,
    /// Operations that may be under way at once, those included whose callbacks wait for a worker; further ones are refused.
    pub operations_max: usize,
    /// Updates of a monitor that are handed on at once, beside those in its queue, whose length is the request's `queueSize`.
    pub updates_max: usize,
    /// How long a channel is kept open that nobody uses.
    pub keep: Duration,
}

impl Default for ContextOptions {
    fn default() -> Self {
        ContextOptions::of(ClientOptions::default())
    }
}

impl ContextOptions {
    /// Creates the options of a context over a client with these options.
    #[must_use]
    pub fn of(client: ClientOptions) -> Self {
        ContextOptions { client, workers: 4, operations_max: 100_000, updates_max: 64, keep: Duration::from_secs(30) }
    }
}

/// A client that any number of threads use at once.
///
/// It may be cloned, and ends with the last clone, monitor and pending operation, or by [`Context::close`]. One thread serves all
/// connections, and never runs code of the program: what waits, waits on the caller's thread, and callbacks run on a few workers. So a
/// callback may call whatever waits, also on this context, and none of it needs a further worker.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hodo_pva_host::{machines::{normative::Normative, Scalar, Value}, server::{Server, ServerOptions}};
/// # let server = Server::start(ServerOptions { is_found: false, ..ServerOptions::default() }.at(([127, 0, 0, 1], 0).into()))?;
/// # let _pv = server.pv("TEMPERATURE", Value::of(Normative::scalar(Scalar::F64).build())).accept_puts().serve();
/// # let server = Some(server.address().to_string());
/// use hodo_pva_host::{ClientOptions, Context, ContextOptions};
/// let options = ClientOptions { server, ..ClientOptions::default() };
/// let context = Context::open(&ContextOptions::of(options))?;
/// context.put("TEMPERATURE", |value| value.set("value", 20.5))?;
/// let other = context.clone();
/// let read = std::thread::spawn(move || other.get("TEMPERATURE"));
/// assert_eq!(read.join().unwrap()?.get("value").and_then(|item| item.as_f64()), Some(20.5));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    running: Arc<Running>,
    timeout: Duration,
}

/// The state that all handles and the threads share.
struct Core {
    orders: Orders<Order>,
    workers: Arc<Workers>,
    under_way: AtomicUsize,
    operations_max: usize,
    /// Whether the connections' thread is to end.
    is_closed: AtomicBool,
    /// Whether it has ended, but for orders that come from now on.
    is_over: AtomicBool,
}

impl Core {
    /// Leaves an order. If the connections' thread has ended, the order ends here; until then only that thread takes orders, so that
    /// all that were left before [`Context::close`] have ended when that returns.
    fn push(&self, order: Order) {
        self.orders.push(order);
        if self.is_over.load(Ordering::SeqCst) {
            self.drop_orders();
        }
    }

    /// Ends all orders on the connections' thread, whose last step but one this is.
    fn end_orders(&self) {
        self.drop_orders();
        self.is_over.store(true, Ordering::SeqCst);
        // Those that were left in between.
        self.drop_orders();
    }

    /// Drops all orders, by which those who wait for them learn that the context is closed.
    fn drop_orders(&self) {
        let mut orders = VecDeque::new();
        self.orders.take(&mut orders);
    }

    /// Takes nothing more, and ends the connections' thread.
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.orders.wake();
    }
}

struct Running {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Context {
    /// Opens the sockets of a client and starts the threads.
    ///
    /// # Errors
    /// A [`ClientError`] if the server has no address, or a socket or thread cannot be made.
    pub fn open(options: &ContextOptions) -> Result<Self, ClientError> {
        let (client, waker) = Client::open_woken(&options.client)?;
        let core = Arc::new(Core {
            orders: Orders::default(),
            workers: Arc::default(),
            under_way: AtomicUsize::new(0),
            operations_max: options.operations_max,
            is_closed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        core.orders.serve_with(waker);
        // What has been started ends with this, if a thread cannot be.
        let running = Arc::new(Running { core: Arc::clone(&core), threads: Mutex::default() });
        let serving = Serving::new(&core, client, options);
        let thread = Builder::new().name("pva context".to_owned()).spawn(move || serving.run());
        let mut threads = vec![thread.map_err(|why| ClientError::NoThread(why.to_string()))?];
        for number in 0..options.workers.max(1) {
            match core.workers.start(number) {
                Ok(worker) => threads.push(worker),
                Err(why) => {
                    *running.threads() = threads;
                    return Err(why);
                }
            }
        }
        *running.threads() = threads;
        Ok(Context { running, timeout: options.client.timeout })
    }

    /// Returns the same context with another time that each reply may take.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Context {
        Context { running: Arc::clone(&self.running), timeout }
    }

    /// Reads all fields of a channel.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, or no reply.
    pub fn get(&self, name: &str) -> Result<Value, ClientError> {
        self.begin_get(name, &Request::default())?.wait()
    }

    /// Begins to read fields of a channel.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or too many operations are under way.
    pub fn begin_get(&self, name: &str, request: &Request) -> Result<Pending<Value>, ClientError> {
        let (pending, completer) = Pending::pair(&self.running)?;
        self.begin(name, Job::Get(Box::new(request.clone()), completer))?;
        Ok(pending)
    }

    /// Reads fields of many channels at once, and returns a value or an error for each.
    #[must_use]
    pub fn read_many<N: AsRef<str>>(&self, names: &[N], request: &Request) -> Vec<Result<Value, ClientError>> {
        let mut values = Vec::with_capacity(names.len());
        let mut under_way = VecDeque::new();
        let at_once = AT_ONCE.min(self.running.core.operations_max / 2).max(1);
        for name in names {
            if under_way.len() >= at_once {
                values.extend(under_way.pop_front().map(wait));
            }
            under_way.push_back(self.begin_get(name.as_ref(), request));
        }
        values.extend(under_way.into_iter().map(wait));
        values
    }

    /// Writes the fields that `change` sets in the present value of a channel. It runs on the caller's thread.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, the server refuses, or `change` returns an error, which is [`Trouble::Value`].
    pub fn put<E: std::fmt::Display>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), E>,
    ) -> Result<(), ClientError> {
        let mut draft = self.draft(name, &Request::default(), true)?;
        change(&mut draft.value).map_err(|why| ClientError::new(name, Trouble::Value(why.to_string())))?;
        draft.begin_put()?.wait()
    }

    /// Returns the present value of a channel, or an empty one, to be changed and put, with options of a request such as
    /// `record[block=true]`.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, or the server refuses.
    pub fn draft(&self, name: &str, request: &Request, reads_first: bool) -> Result<Draft, ClientError> {
        let (pending, completer) = Pending::pair(&self.running)?;
        self.begin(name, Job::Draft { request: Box::new(request.clone()), reads_first, completer })?;
        let (operation, value) = pending.wait()?;
        Ok(Draft { context: self.clone(), operation: Some(operation), value })
    }

    /// Calls a channel with an argument, or with nothing, and returns what it returns.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel, the server refuses, or there is no reply.
    pub fn call(&self, name: &str, argument: Option<Value>) -> Result<Option<Value>, ClientError> {
        self.begin_call(name, argument)?.wait()
    }

    /// Begins a call.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or too many operations are under way.
    pub fn begin_call(&self, name: &str, argument: Option<Value>) -> Result<Pending<Option<Value>>, ClientError> {
        let (pending, completer) = Pending::pair(&self.running)?;
        self.begin(name, Job::Call(argument.map(Box::new), completer))?;
        Ok(pending)
    }

    /// Returns the type of a channel, or of one of its fields.
    ///
    /// # Errors
    /// A [`ClientError`] if there is no such channel or field, or no reply.
    pub fn info(&self, name: &str, field: &str) -> Result<Type, ClientError> {
        let (pending, completer) = Pending::pair(&self.running)?;
        self.begin(name, Job::Info(field.into(), completer))?;
        pending.wait()
    }

    /// Subscribes to a channel: updates are taken with [`Monitor::next_update`], or as from an iterator. Those that are not taken are merged,
    /// and say so; with `record[pipeline=true]` the server keeps them back.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or its server has no address.
    pub fn monitor(&self, name: &str, request: &Request) -> Result<Monitor, ClientError> {
        self.subscribe(name, request, None)
    }

    /// Subscribes to a channel, and calls a function with each event, one after the other, on a worker. It may call whatever waits.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or its server has no address.
    pub fn monitor_with(
        &self,
        name: &str,
        request: &Request,
        callback: impl FnMut(MonitorEvent) + Send + 'static,
    ) -> Result<Monitor, ClientError> {
        self.subscribe(name, request, Some(Box::new(callback)))
    }

    /// Calls a function with the state of a channel's connection, now and whenever it changes, on a worker. While it runs, several
    /// changes become one.
    ///
    /// # Errors
    /// A [`ClientError`] if the name is none, or its server has no address.
    pub fn watch(
        &self,
        name: &str,
        callback: impl FnMut(ConnectionState) + Send + 'static,
    ) -> Result<Watch, ClientError> {
        let target = target(name)?;
        let feed = Feed::new(&self.running.core, Some(Box::new(callback)));
        self.running.core.push(Order::Watch { target, owner: Owner(Arc::clone(&feed)) });
        Ok(Watch::new(&self.running, feed))
    }

    /// Closes all connections. Operations under way fail, monitors end, and callbacks that wait for a worker are run before this
    /// returns, unless it is called from one.
    pub fn close(&self) {
        self.running.close();
    }

    fn subscribe(
        &self,
        name: &str,
        request: &Request,
        callback: Option<feed::Callback<MonitorEvent>>,
    ) -> Result<Monitor, ClientError> {
        let target = target(name)?;
        let feed = Feed::new(&self.running.core, callback);
        let owner = Owner(Arc::clone(&feed));
        self.running.core.push(Order::Monitor { target, request: Box::new(request.clone()), owner });
        Ok(Monitor::new(&self.running, feed))
    }

    fn begin(&self, name: &str, job: Job) -> Result<(), ClientError> {
        let target = target(name)?;
        self.running.core.push(Order::Begin { target, job, within: self.timeout });
        Ok(())
    }
}

/// A value to be put, and the operation that will put it.
pub struct Draft {
    context: Context,
    operation: Option<Operation>,
    /// The value, of which nothing is marked as changed: what is set from now on is put.
    pub value: Box<Value>,
}

impl Draft {
    /// Begins to put the fields that were set.
    ///
    /// # Errors
    /// [`ClientError::Overloaded`] if too many operations are under way.
    pub fn begin_put(mut self) -> Result<Pending<()>, ClientError> {
        let (pending, completer) = Pending::pair(&self.context.running)?;
        if let Some(operation) = self.operation.take() {
            let empty = Box::new(Value::new(self.value.plan()));
            let value = std::mem::replace(&mut self.value, empty);
            let within = self.context.timeout;
            self.context.running.core.push(Order::Put { operation, value, completer, within });
        }
        Ok(pending)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take() {
            self.context.running.core.push(Order::Release(operation));
        }
    }
}

impl Running {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.core.close();
        let threads = std::mem::take(&mut *self.threads());
        // A thread of its own cannot wait for itself, nor for what waits for it.
        if threads.iter().any(|thread| thread.thread().id() == current().id()) {
            return;
        }
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

fn wait(begun: Result<Pending<Value>, ClientError>) -> Result<Value, ClientError> {
    begun.and_then(Pending::wait)
}

/// Finds the server that a name states, on the caller's thread since that may take long.
fn target(name: &str) -> Result<Target, ClientError> {
    let wrong = |why: String| ClientError::new(name, Trouble::Name(why));
    let place: Place = name.parse().map_err(wrong)?;
    let server = place.resolved().map_err(wrong)?;
    Ok(Target { name: name.to_owned(), channel: place.name, server })
}
