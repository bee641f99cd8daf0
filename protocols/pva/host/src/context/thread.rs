//! The thread that serves the connections of a context.

use super::feed::Feed;
use super::monitor::{ConnectionState, MonitorEvent, Update};
use super::orders::{Job, Order, Owner, Target};
use super::pending::Ticket;
use super::{ContextOptions, Core};
use crate::client::{Channel, Client, ClientError, Notice, Operation, Trouble};
use crate::machines::client::{Command, Kind};
use crate::machines::{Request, Value};
use hodo_machine::{Instant, Timers};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Operations of a channel that are kept for the next executions.
const KEPT: usize = 4;
/// How long the thread sleeps at most.
const SLEEP: Duration = Duration::from_secs(10);

/// The part of a context that its connections' thread owns.
pub(super) struct Serving {
    core: Arc<Core>,
    client: Client,
    orders: VecDeque<Order>,
    channels: HashMap<Channel, Usage>,
    executions: HashMap<Operation, Execution>,
    /// Operations of drafts that have not been put.
    lent: HashMap<Operation, Prepared>,
    monitors: HashMap<Operation, Owner<MonitorEvent>>,
    deadlines: Timers<u32>,
    updates_max: usize,
    keep: Duration,
    sweep_at: Instant,
}

/// The uses of a channel.
struct Usage {
    /// Executions, drafts and monitors.
    count: usize,
    idle_since: Instant,
    kept: Vec<Prepared>,
    watches: Vec<Owner<ConnectionState>>,
}

/// An operation that is set up, and may be executed again.
struct Prepared {
    operation: Operation,
    kind: Kind,
    request: Request,
}

struct Execution {
    job: Job,
    within: Duration,
    /// The operation, unless it is a description, which is made once.
    prepared: Option<Prepared>,
}

impl Serving {
    pub(super) fn new(core: &Arc<Core>, client: Client, options: &ContextOptions) -> Self {
        let sweep_at = client.now() + options.keep;
        Serving {
            core: Arc::clone(core),
            client,
            orders: VecDeque::new(),
            channels: HashMap::new(),
            executions: HashMap::new(),
            lent: HashMap::new(),
            monitors: HashMap::new(),
            deadlines: Timers::default(),
            updates_max: options.updates_max.max(1),
            keep: options.keep,
            sweep_at,
        }
    }

    /// Serves until the context is closed or the network fails. Those who wait then learn of it.
    pub(super) fn run(mut self) {
        let why = self.serve().err();
        let core = Arc::clone(&self.core);
        core.close();
        if let Some(why) = why {
            tracing::error!("a pvAccess context has ended: {why}");
            self.executions.drain().for_each(|(_, execution)| execution.job.fail(why.clone()));
        }
        drop(self);
        core.end_orders();
        core.workers.end();
    }

    fn serve(&mut self) -> Result<(), ClientError> {
        while !self.core.is_closed.load(Ordering::SeqCst) {
            self.core.orders.take(&mut self.orders);
            while let Some(order) = self.orders.pop_front() {
                self.obey(order);
            }
            let latest = (self.client.now() + SLEEP).min(self.sweep_at);
            self.client.turn_until(self.deadlines.next().map_or(latest, |at| at.min(latest)))?;
            let now = self.client.now();
            while let Some(number) = self.deadlines.pop_due(now) {
                self.give_up(Operation(number));
            }
            while let Some(operation) = self.client.next_finished() {
                self.complete(operation);
            }
            while let Some(notice) = self.client.take_notice() {
                self.note(&notice);
            }
            if now >= self.sweep_at {
                self.sweep(now);
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Begin { target, job, within } => {
                let channel = self.open(&target);
                self.begin(channel, job, within);
            }
            Order::Put { operation, value, completer, within } => match self.lent.remove(&operation) {
                None => completer.finish(Err(ClientError::Closed)),
                Some(prepared) => {
                    self.client.command(Command::Put { operation: operation.0, value });
                    self.wait_for(operation, Execution { job: Job::Put(completer), within, prepared: Some(prepared) });
                }
            },
            Order::Release(operation) => {
                if let Some(prepared) = self.lent.remove(&operation) {
                    self.put_back(prepared);
                }
            }
            Order::Cancel(ticket) => self.cancel(&ticket),
            Order::Monitor { target, request, owner } => {
                let channel = self.open(&target);
                let operation = self.client.prepare(channel, Kind::Monitor, &request);
                self.client.execute(operation);
                owner.0.set_source(operation.0);
                self.monitors.insert(operation, owner);
                self.usage(channel).count += 1;
            }
            Order::Refill(number) => self.refill(Operation(number)),
            Order::EndMonitor(feed) => self.end_monitor(&feed),
            Order::Watch { target, owner } => {
                let channel = self.open(&target);
                owner.0.set_source(channel.0);
                owner.0.replace(self.state(channel));
                self.usage(channel).watches.push(owner);
            }
            Order::EndWatch(feed) => {
                if let Some(usage) = self.channels.get_mut(&Channel(feed.source())) {
                    usage.watches.retain(|owner| !Arc::ptr_eq(&owner.0, &feed));
                }
            }
        }
    }

    fn open(&mut self, target: &Target) -> Channel {
        let channel = self.client.channel_at(&target.name, &target.channel, target.server);
        let _ = self.usage(channel);
        channel
    }

    fn usage(&mut self, channel: Channel) -> &mut Usage {
        let now = self.client.now();
        self.channels.entry(channel).or_insert_with(|| Usage {
            count: 0,
            idle_since: now,
            kept: Vec::new(),
            watches: Vec::new(),
        })
    }

    /// Executes a job with an operation that is set up already, if there is one.
    fn begin(&mut self, channel: Channel, mut job: Job, within: Duration) {
        let everything = Request::default();
        let Some((kind, request)) = job.kind() else { return self.describe(channel, job, within) };
        let request = request.unwrap_or(&everything);
        let kept = &mut self.usage(channel).kept;
        let known = kept.iter().position(|one| one.kind == kind && one.request == *request);
        let prepared = match known {
            Some(at) => kept.swap_remove(at),
            None => Prepared { operation: self.client.prepare(channel, kind, request), kind, request: request.clone() },
        };
        self.usage(channel).count += 1;
        let operation = prepared.operation;
        match &mut job {
            Job::Call(argument, _) => {
                self.client.command(Command::Call { operation: operation.0, argument: argument.take() });
            }
            Job::Draft { reads_first, .. } => {
                if *reads_first {
                    self.client.command(Command::ReadBack { operation: operation.0 });
                } else if let Some(value) = self.client.blank(operation) {
                    return self.lend(job, prepared, value);
                } else {
                    // The set-up states the type, so that a channel that can only be written is not read.
                    self.client.await_set_up(operation);
                }
            }
            _ => self.client.execute(operation),
        }
        self.wait_for(operation, Execution { job, within, prepared: Some(prepared) });
    }

    fn describe(&mut self, channel: Channel, job: Job, within: Duration) {
        let Job::Info(field, _) = &job else { return };
        let operation = self.client.describe(channel, field);
        self.usage(channel).count += 1;
        self.wait_for(operation, Execution { job, within, prepared: None });
    }

    fn wait_for(&mut self, operation: Operation, execution: Execution) {
        execution.job.ticket().begin(operation.0);
        self.deadlines.arm(operation.0, self.client.now() + execution.within);
        self.executions.insert(operation, execution);
    }

    /// Hands the outcome of an execution to who waits for it.
    fn complete(&mut self, operation: Operation) {
        let Some(Execution { job, mut prepared, .. }) = self.executions.remove(&operation) else { return };
        self.deadlines.cancel(operation.0);
        let channel = self.client.channel_of(operation);
        let nothing = ClientError::new(self.client.name(channel), Trouble::Nothing);
        match (self.client.outcome(operation).unwrap_or(Ok(())), job) {
            (Err(why), job @ Job::Draft { reads_first: false, .. }) => {
                job.fail(why);
                self.unuse(channel);
                // One that could not be set up is set up anew.
                return self.client.finish(operation);
            }
            (Err(why), job) => job.fail(why),
            (Ok(()), Job::Get(_, completer)) => {
                completer.finish(self.client.value(operation).cloned().ok_or(nothing));
            }
            (Ok(()), Job::Call(_, completer)) => completer.finish(Ok(self.client.value(operation).cloned())),
            (Ok(()), Job::Info(_, completer)) => completer.finish(self.client.described(operation).ok_or(nothing)),
            (Ok(()), Job::Put(completer)) => completer.finish(Ok(())),
            (Ok(()), job @ Job::Draft { reads_first, .. }) => {
                let present = self.client.value(operation).filter(|_| reads_first).cloned().map(Box::new);
                if let Some(value) = present.or_else(|| self.client.blank(operation))
                    && let Some(prepared) = prepared.take()
                {
                    return self.lend(job, prepared, value);
                }
                job.fail(nothing);
            }
        }
        match prepared {
            Some(prepared) => self.put_back(prepared),
            None => {
                self.unuse(channel);
                self.client.finish(operation);
            }
        }
    }

    /// Gives a value to be changed to who asked for it, and keeps its operation for the put.
    fn lend(&mut self, job: Job, prepared: Prepared, mut value: Box<Value>) {
        value.unmark();
        let operation = prepared.operation;
        self.lent.insert(operation, prepared);
        if let Job::Draft { completer, .. } = job {
            // If nobody takes it any more, its end gives the operation back.
            completer.finish(Ok((operation, value)));
        }
    }

    /// Keeps an operation for the next execution, unless there are enough.
    fn put_back(&mut self, prepared: Prepared) {
        let channel = self.client.channel_of(prepared.operation);
        self.unuse(channel);
        let kept = &mut self.usage(channel).kept;
        if kept.len() < KEPT {
            kept.push(prepared);
        } else {
            self.client.finish(prepared.operation);
        }
    }

    fn unuse(&mut self, channel: Channel) {
        let now = self.client.now();
        let usage = self.usage(channel);
        usage.count -= 1;
        usage.idle_since = now;
    }

    /// Gives an execution up, which is then over.
    fn give_up(&mut self, operation: Operation) {
        if let Some(execution) = self.executions.get(&operation) {
            self.client.give_up_after(operation, execution.within);
        }
    }

    fn cancel(&mut self, ticket: &Ticket) {
        let Some(operation) = ticket.operation().map(Operation) else { return };
        if self.executions.get(&operation).is_some_and(|execution| execution.job.ticket().is(ticket)) {
            self.give_up(operation);
        }
    }

    fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::Monitor(operation) => {
                // One that was kept back is asked for when there is room.
                if self.monitors.get(operation).is_some_and(|owner| !owner.0.is_held()) {
                    self.refill(*operation);
                }
            }
            Notice::Channel(channel) => {
                let state = self.state(*channel);
                if let Some(usage) = self.channels.get(channel) {
                    usage.watches.iter().for_each(|owner| owner.0.replace(state.clone()));
                }
            }
            Notice::Message(operation, text) => {
                let channel = self.client.channel_of(*operation);
                tracing::info!("{}: {text}", self.client.name(channel));
            }
            Notice::Twice(channel, server) => {
                tracing::warn!("{}: {server} has it, too; the first that answered is used", self.client.name(*channel));
            }
        }
    }

    /// Hands updates of a monitor on, as many as there is room for, and its end behind them.
    fn refill(&mut self, operation: Operation) {
        let Some(owner) = self.monitors.get(&operation) else { return };
        let client = &mut self.client;
        owner.0.fill(self.updates_max, || {
            let update = client.take_update(operation)?;
            Some(MonitorEvent::Update(Update { value: update.value.clone(), overrun: update.overrun.clone() }))
        });
        if !owner.0.is_held()
            && let Some(outcome) = self.client.outcome(operation)
        {
            owner.0.end(Some(MonitorEvent::Ended(outcome)));
        }
    }

    fn end_monitor(&mut self, feed: &Arc<Feed<MonitorEvent>>) {
        let operation = Operation(feed.source());
        if self.monitors.get(&operation).is_some_and(|owner| Arc::ptr_eq(&owner.0, feed)) {
            self.monitors.remove(&operation);
            let channel = self.client.channel_of(operation);
            self.client.finish(operation);
            self.unuse(channel);
        }
    }

    fn state(&mut self, channel: Channel) -> ConnectionState {
        match self.client.server(channel) {
            Some(server) if self.client.is_open(channel) => ConnectionState::Connected(server.to_string()),
            _ => ConnectionState::Disconnected(self.client.trouble(channel)),
        }
    }

    /// Closes channels that nobody has used for long.
    fn sweep(&mut self, now: Instant) {
        let is_used =
            |usage: &Usage| usage.count > 0 || !usage.watches.is_empty() || now < usage.idle_since + self.keep;
        let unused: Vec<Channel> =
            self.channels.iter().filter(|(_, usage)| !is_used(usage)).map(|(channel, _)| *channel).collect();
        for channel in unused {
            self.channels.remove(&channel);
            self.client.close(channel);
        }
        self.sweep_at = now + self.keep;
    }
}
