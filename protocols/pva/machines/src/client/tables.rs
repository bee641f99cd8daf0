use crate::client::command::{Event, Lost, Subject};
use crate::client::operation::{Operation, State};
use crate::discovery::Finder;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use hodo_machine::{Address, BackOff};

/// Bits of a number on the wire that are the application's number. The others count how often it was used.
pub(crate) const NUMBER_BITS: u32 = 22;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// Returns the application's number that a number on the wire stands for.
pub(crate) const fn number_of(id: u32) -> u32 {
    id & NUMBER_MASK
}

/// Returns the next number on the wire for a number of the application.
pub(crate) const fn next_number(id: u32, number: u32) -> u32 {
    (id | NUMBER_MASK).wrapping_add(1) | number
}

/// The channels and operations of a client by their numbers, and what it has to tell of them.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) channels: Vec<Channel>,
    pub(crate) operations: Vec<Operation>,
    events: VecDeque<(u32, Event)>,
    /// Channels that their server has refused or closed, and that are to be opened again later.
    pub(crate) again: Vec<u32>,
    pub(crate) finder: Finder,
}

/// The step that a channel has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Step {
    /// The number is free.
    #[default]
    Free,
    /// No server is known to have it, and it is searched for.
    Searching,
    /// To be opened as soon as there is a connection.
    Waiting,
    /// The server has been asked to open it.
    Creating,
    /// The server has not opened it, or has closed it, or is not reached. It is asked, or searched for, again later.
    Refused,
    /// Open, with this number of the server.
    Open(u32),
}

/// A channel of a client.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Counts the uses of the number.
    pub(crate) epoch: u32,
    /// Number on the wire, another one each time that the channel is opened.
    pub(crate) cid: u32,
    pub(crate) name: String,
    /// The server that the application has stated.
    pub(crate) server: Option<Address>,
    pub(crate) step: Step,
    /// The connection to its server, and the place among the channels there.
    pub(crate) connection: Option<u32>,
    pub(crate) place: u32,
    pub(crate) operations: Vec<u32>,
    /// How long to wait when it was refused.
    pub(crate) back_off: Option<Box<BackOff>>,
}

impl Tables {
    pub(crate) const fn new(finder: Finder) -> Self {
        Tables { channels: Vec::new(), operations: Vec::new(), events: VecDeque::new(), again: Vec::new(), finder }
    }

    /// Reports an event.
    pub(crate) fn tell(&mut self, event: Event) {
        let epoch = self.epoch(&event).unwrap_or_default();
        self.events.push_back((epoch, event));
    }

    /// Returns the next event that is not about a channel or an operation which has ended since.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        loop {
            let (epoch, event) = self.events.pop_front()?;
            if self.epoch(&event).is_none_or(|now| now == epoch) {
                return Some(event);
            }
        }
    }

    fn epoch(&self, event: &Event) -> Option<u32> {
        match event.subject() {
            Subject::Channel(number) => self.channels.get(number as usize).map(|channel| channel.epoch),
            Subject::Operation(number) => self.operations.get(number as usize).map(|operation| operation.epoch),
            Subject::None => None,
        }
    }

    /// Returns an open operation.
    pub(crate) fn operation(&self, number: u32) -> Option<&Operation> {
        self.operations.get(number as usize).filter(|operation| !operation.is_free())
    }

    /// Returns an open operation to be changed.
    pub(crate) fn operation_at(&mut self, number: u32) -> Option<&mut Operation> {
        self.operations.get_mut(number as usize).filter(|operation| !operation.is_free())
    }

    /// Returns a channel.
    pub(crate) fn channel(&self, number: u32) -> Option<&Channel> {
        self.channels.get(number as usize).filter(|channel| channel.step != Step::Free)
    }

    /// Returns a channel to be changed.
    pub(crate) fn channel_at(&mut self, number: u32) -> Option<&mut Channel> {
        self.channels.get_mut(number as usize).filter(|channel| channel.step != Step::Free)
    }

    /// Returns the channel of a number on the wire, if it is one of a connection.
    pub(crate) fn channel_of(&mut self, cid: u32, connection: u32) -> Option<(u32, &mut Channel)> {
        let number = number_of(cid);
        let channel = self.channel_at(number)?;
        (channel.cid == cid && channel.connection == Some(connection)).then_some((number, channel))
    }

    /// Returns the connection of an operation's channel, and the server's number of the channel, if it is open.
    pub(crate) fn route(&self, operation: u32) -> Option<(u32, u32)> {
        let channel = self.channels.get(self.operation(operation)?.channel as usize)?;
        match channel.step {
            Step::Open(sid) => Some((channel.connection?, sid)),
            _ => None,
        }
    }

    /// Notes that a channel is open no more, and what that means for its operations.
    pub(crate) fn lost(&mut self, number: u32, step: Step, why: &Lost) {
        let Some(channel) = self.channels.get_mut(number as usize) else { return };
        let was_open = matches!(channel.step, Step::Open(_));
        channel.step = step;
        channel.cid = next_number(channel.cid, number);
        if !was_open {
            return;
        }
        let operations = core::mem::take(&mut channel.operations);
        for number in &operations {
            let operation = &mut self.operations[*number as usize];
            operation.is_queued = false;
            operation.renumber(*number);
            if let Some(why) = operation.lost() {
                self.tell(Event::Failed { operation: *number, why });
            }
        }
        self.channels[number as usize].operations = operations;
        self.tell(Event::Disconnected { channel: number, why: why.clone() });
    }

    /// Ends an operation; returns whether its number was taken.
    pub(crate) fn free_operation(&mut self, number: u32) -> bool {
        let Some(operation) = self.operation_at(number) else { return false };
        let (channel, place) = (operation.channel, operation.place as usize);
        operation.free(number);
        let Some(channel) = self.channels.get_mut(channel as usize) else { return true };
        channel.operations.swap_remove(place);
        if let Some(moved) = channel.operations.get(place) {
            self.operations[*moved as usize].place = place as u32;
        }
        true
    }

    /// Returns the operations of a channel that has just been opened and that have something to say.
    pub(crate) fn awakened(&mut self, channel: u32, mut each: impl FnMut(u32)) {
        let Some(channel) = self.channels.get(channel as usize) else { return };
        for number in &channel.operations {
            let operation = &mut self.operations[*number as usize];
            if (operation.state == State::Unset || operation.job.is_some()) && !operation.is_queued {
                operation.is_queued = true;
                each(*number);
            }
        }
    }
}
