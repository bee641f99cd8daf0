use crate::client::operation::{Ask, Job, Operation, State};
use crate::client::subscription::Subscription;
use crate::client::tables::{Channel, NUMBER_BITS, Step, next_number};
use crate::client::{Client, Command, Event, Failure, Kind, Timer};
use crate::request::Delivery;
use crate::wire::Status;
use alloc::boxed::Box;
use alloc::string::String;
use hodo_machine::{Address, Instant};

impl Client {
    pub(super) fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Execute { operation } => self.execute(operation, Job::Execute),
            Command::Put { operation, value } => self.execute(operation, Job::Put(value)),
            Command::ReadBack { operation } => self.execute(operation, Job::ReadBack),
            Command::Call { operation, argument } => self.execute(operation, Job::Call(argument)),
            Command::Array { operation, request } => self.execute(operation, Job::Array(request)),
            Command::Open { channel, name, server } => self.open(now, channel, name, server),
            Command::Close { channel } => self.close(now, channel),
            Command::Prepare { operation, channel, kind, request } => {
                let subscription = (kind == Kind::Monitor)
                    .then(|| Box::new(Subscription::new(Delivery::of(&request, self.config.queue_max))));
                let ask = Ask::Operate(kind, Box::new(request.to_value()));
                if self.prepare(operation, channel, ask, State::Unset)
                    && let Some(known) = self.tables.operation_at(operation)
                {
                    known.subscription = subscription;
                    self.queue(operation);
                }
            }
            Command::Describe { operation, channel, field } => {
                if self.prepare(operation, channel, Ask::Describe(field.into()), State::Ready) {
                    self.execute(operation, Job::Execute);
                }
            }
            Command::Stop { operation } => {
                if let Some(known) = self.tables.operation_at(operation)
                    && let Some(subscription) = &mut known.subscription
                {
                    subscription.run(false);
                    self.queue(operation);
                }
            }
            Command::Cancel { operation } => self.cancel(operation),
            Command::Finish { operation } => self.finish(operation),
            Command::List => self.tables.finder.list(),
            // They are queued already; a driver looks after a command.
        }
    }

    fn execute(&mut self, operation: u32, job: Job) {
        let why = match self.tables.operation_at(operation) {
            Some(known) => known.ask_for(job),
            None => Some(Failure::Number("there is no such operation: prepare it first")),
        };
        match why {
            Some(why) => self.tables.tell(Event::Failed { operation, why }),
            None => self.queue(operation),
        }
    }

    fn open(&mut self, now: Instant, number: u32, name: String, server: Option<Address>) {
        let max = self.config.channels_max.min(1 << NUMBER_BITS);
        let refused = |why: &str| Event::Refused { channel: number, status: Status::error(why) };
        if number >= max {
            return self.tables.tell(refused("the number is over the bound of channels: raise channels_max"));
        }
        let channels = &mut self.tables.channels;
        if channels.len() <= number as usize {
            channels.resize_with(number as usize + 1, Channel::default);
        }
        let channel = &mut channels[number as usize];
        if channel.step != Step::Free {
            return self.tables.tell(refused("the number is that of an open channel: close it first"));
        }
        channel.cid = next_number(channel.cid, number);
        (channel.name, channel.server, channel.step) = (name, server.clone(), Step::Waiting);
        match server {
            Some(server) => self.attach(number, server),
            None => self.search(now, number, false),
        }
    }

    /// Puts a channel on the connection to a server.
    pub(super) fn attach(&mut self, number: u32, address: Address) {
        let connection = match self.addresses.get(&address) {
            Some(connection) => *connection,
            None => self.connect(address, None),
        };
        if let (Some(Some(known)), Some(channel)) = (self.connections.at(connection), self.tables.channel_at(number)) {
            channel.connection = Some(connection);
            channel.place = known.channels.len() as u32;
            known.channels.push(number);
            known.idle_until = None;
            if let Some(link) = &mut known.link {
                link.talk.to_create.push_back(number);
            }
        }
        self.wake(connection);
    }

    fn close(&mut self, now: Instant, number: u32) {
        let Some(channel) = self.tables.channel_at(number) else { return };
        let (step, cid, connection) = (channel.step, channel.cid, channel.connection);
        while let Some(operation) = self.tables.channels[number as usize].operations.last().copied() {
            self.tables.free_operation(operation);
        }
        if let Some(link) = connection.and_then(|connection| self.link(connection)) {
            link.talk.close(step, cid);
        }
        self.detach(now, number);
        self.tables.finder.cancel(number);
        let channel = &mut self.tables.channels[number as usize];
        *channel = Channel { epoch: channel.epoch + 1, cid: next_number(cid, number), ..Channel::default() };
        self.timers.cancel(Timer::Channel(number));
    }

    /// Adds an operation to a channel; returns whether it could be.
    fn prepare(&mut self, number: u32, channel: u32, ask: Ask, state: State) -> bool {
        let why = if number >= self.config.operations_max.min(1 << NUMBER_BITS) {
            "the number is over the bound of operations: raise operations_max"
        } else if self.tables.operation(number).is_some() {
            "the number is that of another operation: finish it first"
        } else if self.tables.channel(channel).is_none() {
            "there is no such channel: open it first"
        } else {
            let Some(place) = self.tables.channel_at(channel).map(|channel| {
                channel.operations.push(number);
                channel.operations.len() as u32 - 1
            }) else {
                return false;
            };
            let operations = &mut self.tables.operations;
            if operations.len() <= number as usize {
                operations.resize_with(number as usize + 1, Operation::default);
            }
            let known = &mut operations[number as usize];
            known.ioid = next_number(known.ioid, number);
            (known.channel, known.place, known.state, known.ask) = (channel, place, state, Some(ask));
            return true;
        };
        self.tables.tell(Event::Failed { operation: number, why: Failure::Number(why) });
        false
    }

    /// Gives an execution up. If the server knows of it, the operation is set up again under another number.
    fn cancel(&mut self, number: u32) {
        let route = self.tables.route(number);
        let Some(operation) = self.tables.operation_at(number) else { return };
        let is_executing = matches!(operation.state, State::Executing(_));
        if !operation.cancel() {
            return;
        }
        if is_executing {
            let (ioid, is_at_server) = (operation.ioid, operation.is_at_server());
            operation.renumber(number);
            operation.state = if is_at_server { State::Unset } else { State::Ready };
            if let Some((connection, sid)) = route.filter(|_| is_at_server)
                && let Some(link) = self.link(connection)
            {
                link.talk.end(sid, ioid, true);
            }
            self.queue(number);
        }
        self.tables.tell(Event::Failed { operation: number, why: Failure::Cancelled });
    }

    fn finish(&mut self, number: u32) {
        let route = self.tables.route(number);
        let Some(operation) = self.tables.operation_at(number) else { return };
        let (ioid, is_executing) = (operation.ioid, matches!(operation.state, State::Executing(_)));
        let route = route.filter(|_| operation.is_at_server());
        self.tables.free_operation(number);
        if let Some((connection, sid)) = route
            && let Some(link) = self.link(connection)
        {
            link.talk.end(sid, ioid, is_executing);
            self.wake(connection);
        }
    }
}
