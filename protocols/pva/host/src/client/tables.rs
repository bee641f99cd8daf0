//! The state of channels and operations, from the events of the machine.

use super::{Channel, Notice, Operation, Trouble};
use crate::machines::client::{Command, Event, Failure, Kind};
use crate::machines::discovery::Found;
use hodo_machine::Slab;
use hodo_pva::Request;
use std::collections::{HashMap, VecDeque};

/// Operations that a channel keeps for calls that are repeated.
const REMEMBERED: usize = 4;
/// Messages of servers that are kept until they are taken. Older ones are dropped.
const MESSAGES_MAX: usize = 1000;

/// How an execution came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is under way, or none was asked for.
    None,
    Done,
    Failed(Trouble),
}

#[derive(Debug)]
struct KnownChannel {
    name: String,
    trouble: Option<Trouble>,
    operations: Vec<u32>,
    remembered: VecDeque<(Kind, Request, u32)>,
    is_noticed: bool,
}

#[derive(Debug)]
struct KnownOperation {
    channel: u32,
    kind: Option<Kind>,
    runs: bool,
    /// Whether what runs is its set-up alone.
    sets_up: bool,
    /// Executions that nobody waits for any more, and whose ends are still to come.
    given_up: u32,
    is_noticed: bool,
    outcome: Outcome,
}

/// Channels and operations by their numbers, and what is to be told of them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    channels: Slab<Option<KnownChannel>>,
    names: HashMap<String, u32>,
    operations: Slab<Option<KnownOperation>>,
    running: usize,
    notices: VecDeque<Notice>,
    messages: VecDeque<Notice>,
    /// Commands for the machine that follow from its events.
    commands: VecDeque<Command>,
    /// Executions that are over, if somebody takes them.
    finished: Option<VecDeque<u32>>,
}

impl Tables {
    pub(super) fn channel_of(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(super) fn open(&mut self, name: &str) -> u32 {
        let known = KnownChannel {
            name: name.into(),
            trouble: None,
            operations: Vec::new(),
            remembered: VecDeque::new(),
            is_noticed: false,
        };
        let number = self.channels.insert(Some(known));
        self.names.insert(name.into(), number);
        number
    }

    pub(super) fn close(&mut self, number: u32) {
        let Some(channel) = self.channels.at(number).and_then(Option::take) else { return };
        self.channels.release(number);
        self.names.remove(&channel.name);
        if channel.is_noticed {
            self.notices.retain(|notice| *notice != Notice::Channel(Channel(number)));
        }
        for operation in channel.operations {
            self.forget(operation);
        }
    }

    pub(super) fn name(&self, number: u32) -> &str {
        self.channels.get(number).and_then(Option::as_ref).map_or("", |channel| &channel.name)
    }

    pub(super) fn trouble(&self, number: u32) -> Option<&Trouble> {
        self.channels.get(number)?.as_ref()?.trouble.as_ref()
    }

    /// Returns the number of a new operation.
    pub(super) fn operation(&mut self, channel: u32, kind: Option<Kind>) -> u32 {
        let known = KnownOperation {
            channel,
            kind,
            runs: false,
            sets_up: false,
            given_up: 0,
            is_noticed: false,
            outcome: Outcome::None,
        };
        let number = self.operations.insert(Some(known));
        if let Some(Some(channel)) = self.channels.at(channel) {
            channel.operations.push(number);
        }
        number
    }

    /// Returns the operation of a kind and a request that was remembered.
    pub(super) fn known(&self, channel: u32, kind: Kind, request: &Request) -> Option<u32> {
        let remembered = &self.channels.get(channel)?.as_ref()?.remembered;
        remembered.iter().find(|known| known.0 == kind && known.1 == *request).map(|known| known.2)
    }

    /// Returns a new operation that will be [known](Self::known), and one that is to be finished for it.
    pub(super) fn remembered(&mut self, channel: u32, kind: Kind, request: &Request) -> (u32, Option<u32>) {
        let former = self.superfluous(channel);
        if let Some(former) = former {
            self.finish(former);
        }
        let number = self.operation(channel, Some(kind));
        if let Some(Some(channel)) = self.channels.at(channel) {
            channel.remembered.push_back((kind, request.clone(), number));
        }
        (number, former)
    }

    /// Returns the oldest operation of a channel that remembers too many, and that is not under way.
    fn superfluous(&self, channel: u32) -> Option<u32> {
        let remembered = &self.channels.get(channel)?.as_ref()?.remembered;
        let mut idle = remembered.iter().map(|known| known.2).filter(|number| !self.runs(Operation(*number)));
        if remembered.len() < REMEMBERED { None } else { idle.next() }
    }

    pub(super) fn finish(&mut self, number: u32) {
        let channel = self.channel(number);
        self.forget(number);
        if let Some(Some(channel)) = self.channels.at(channel) {
            channel.operations.retain(|known| *known != number);
            channel.remembered.retain(|known| known.2 != number);
        }
    }

    fn forget(&mut self, number: u32) {
        if let Some(known) = self.operations.at(number).and_then(Option::take) {
            self.running -= usize::from(known.runs);
            self.operations.release(number);
            if known.is_noticed {
                self.notices.retain(|notice| *notice != Notice::Monitor(Operation(number)));
            }
        }
    }

    pub(super) fn channel(&self, operation: u32) -> u32 {
        self.operations.get(operation).and_then(Option::as_ref).map_or(u32::MAX, |known| known.channel)
    }

    pub(super) fn runs(&self, operation: Operation) -> bool {
        self.operations.get(operation.0).and_then(Option::as_ref).is_some_and(|known| known.runs)
    }

    pub(super) fn is_over(&self, operation: Operation) -> bool {
        *self.outcome(operation.0) != Outcome::None
    }

    pub(super) fn outcome(&self, operation: u32) -> &Outcome {
        self.operations.get(operation).and_then(Option::as_ref).map_or(&Outcome::None, |known| &known.outcome)
    }

    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) fn all_running(&self) -> Vec<Operation> {
        let running = self.operations.iter().filter(|(_, known)| known.as_ref().is_some_and(|known| known.runs));
        running.map(|(number, _)| Operation(number)).collect()
    }

    /// Notes that an execution was asked for. A monitor is none that ends.
    pub(super) fn asked(&mut self, command: &Command) {
        let number = match command {
            Command::Execute { operation }
            | Command::Put { operation, .. }
            | Command::ReadBack { operation }
            | Command::Call { operation, .. }
            | Command::Array { operation, .. }
            | Command::Describe { operation, .. } => *operation,
            _ => return,
        };
        let Some(Some(known)) = self.operations.at(number) else { return };
        known.outcome = Outcome::None;
        if known.kind != Some(Kind::Monitor) {
            self.running += usize::from(!std::mem::replace(&mut known.runs, true));
        }
    }

    /// Notes that the set-up of an operation is waited for.
    pub(super) fn awaits_set_up(&mut self, number: u32) {
        let Some(Some(known)) = self.operations.at(number) else { return };
        known.outcome = Outcome::None;
        known.sets_up = true;
        self.running += usize::from(!std::mem::replace(&mut known.runs, true));
    }

    /// Takes in that an operation is set up.
    fn set_up(&mut self, number: u32) {
        if self.operations.get(number).and_then(Option::as_ref).is_some_and(|known| known.sets_up) {
            self.over(number, Outcome::Done);
        }
    }

    /// Has the machine give an execution up, if one is under way: it has failed for this reason, and the end of which the machine is still
    /// to tell is not that of the next one.
    pub(super) fn give_up(&mut self, number: u32, why: Trouble) {
        let Some(Some(known)) = self.operations.at(number) else { return };
        if !known.runs {
            return;
        }
        if !known.sets_up {
            known.given_up += 1;
            self.commands.push_back(Command::Cancel { operation: number });
        }
        self.end(number, Outcome::Failed(why));
    }

    /// Returns what the machine is to do because of what it told.
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Takes in that the machine has ended an execution.
    fn over(&mut self, number: u32, outcome: Outcome) {
        let Some(Some(known)) = self.operations.at(number) else { return };
        if known.kind == Some(Kind::Monitor) {
            known.outcome = outcome;
            return self.note_monitor(number);
        }
        if known.given_up > 0 {
            known.given_up -= 1;
        } else {
            self.end(number, outcome);
        }
    }

    /// Ends the execution that somebody waits for, if there is one.
    fn end(&mut self, number: u32, outcome: Outcome) {
        let Some(Some(known)) = self.operations.at(number) else { return };
        if std::mem::take(&mut known.runs) {
            known.sets_up = false;
            self.running -= 1;
            known.outcome = outcome;
            self.finished.iter_mut().for_each(|finished| finished.push_back(number));
        }
    }

    pub(super) fn keep_finished(&mut self) {
        self.finished.get_or_insert_default();
    }

    pub(super) fn next_finished(&mut self) -> Option<u32> {
        self.finished.as_mut()?.pop_front()
    }

    /// Takes in that the connection was lost: a get may be executed again without harm.
    fn cut(&mut self, number: u32) {
        match self.operations.get(number) {
            Some(Some(known)) if known.kind == Some(Kind::Get) && known.runs && known.given_up == 0 => {
                self.commands.push_back(Command::Execute { operation: number });
            }
            _ => self.over(number, Outcome::Failed(Trouble::Disconnected)),
        }
    }

    /// Fails what waits for a channel that its server does not open.
    fn fail_all(&mut self, number: u32, status: &Trouble) {
        let Some(Some(channel)) = self.channels.get(number) else { return };
        for operation in channel.operations.clone() {
            self.give_up(operation, status.clone());
        }
    }

    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        let notice = self.messages.pop_front().or_else(|| self.notices.pop_front())?;
        match &notice {
            Notice::Channel(Channel(number)) => {
                if let Some(Some(channel)) = self.channels.at(*number) {
                    channel.is_noticed = false;
                }
            }
            Notice::Monitor(Operation(number)) => {
                if let Some(Some(known)) = self.operations.at(*number) {
                    known.is_noticed = false;
                }
            }
            Notice::Message(..) | Notice::Twice(..) => {}
        }
        Some(notice)
    }

    /// Takes in an event of the machine.
    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Connected { channel } => self.note_channel(channel, None),
            Event::Disconnected { channel, why } => self.note_channel(channel, Some(Trouble::Lost(why.to_string()))),
            Event::Refused { channel, status } => {
                let why = Trouble::NotOpened(status);
                self.note_channel(channel, Some(why.clone()));
                self.fail_all(channel, &why);
            }
            Event::Ready { operation } => self.set_up(operation),
            Event::Done { operation } => self.over(operation, Outcome::Done),
            Event::Failed { operation, why: Failure::Disconnected } => self.cut(operation),
            Event::Failed { operation, why } => {
                let why = match why {
                    Failure::Refused(status) => Trouble::Refused(status),
                    why => Trouble::Failed(why.to_string()),
                };
                self.over(operation, Outcome::Failed(why));
            }
            Event::Updates { operation } => self.note_monitor(operation),
            Event::Ended { operation, status } if status.is_success() => self.over(operation, Outcome::Done),
            Event::Ended { operation, status } => self.over(operation, Outcome::Failed(Trouble::Refused(status))),
            Event::Found(found) => self.note_found(*found),
            Event::Message { operation, text, .. } => {
                self.note_message(Notice::Message(Operation(operation), text.into()));
            }
        }
    }

    /// Notes that two servers have a name; other finds matter to the machine alone.
    fn note_found(&mut self, found: Found) {
        if let Found::Twice { number, server } = found {
            self.note_message(Notice::Twice(Channel(number), server));
        }
    }

    fn note_message(&mut self, notice: Notice) {
        if self.messages.len() == MESSAGES_MAX {
            self.messages.pop_front();
        }
        self.messages.push_back(notice);
    }

    fn note_channel(&mut self, number: u32, trouble: Option<Trouble>) {
        let Some(Some(channel)) = self.channels.at(number) else { return };
        channel.trouble = trouble;
        if !std::mem::replace(&mut channel.is_noticed, true) {
            self.notices.push_back(Notice::Channel(Channel(number)));
        }
    }

    fn note_monitor(&mut self, number: u32) {
        let Some(Some(known)) = self.operations.at(number) else { return };
        if !std::mem::replace(&mut known.is_noticed, true) {
            self.notices.push_back(Notice::Monitor(Operation(number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called() -> (Tables, u32) {
        let mut tables = Tables::default();
        tables.keep_finished();
        let channel = tables.open("A");
        let operation = tables.operation(channel, Some(Kind::Call));
        call(&mut tables, operation);
        (tables, operation)
    }

    fn call(tables: &mut Tables, operation: u32) {
        tables.asked(&Command::Call { operation, argument: None });
    }

    fn timed_out() -> Trouble {
        Trouble::Failed("it has taken too long".into())
    }

    #[test]
    fn what_is_over_is_not_given_up() {
        let (mut tables, operation) = called();
        tables.note(Event::Done { operation });
        tables.give_up(operation, timed_out());
        assert!(tables.next_command().is_none() && tables.next_finished() == Some(operation));
        assert_eq!((tables.next_finished(), tables.outcome(operation)), (None, &Outcome::Done));
        call(&mut tables, operation);
        tables.note(Event::Done { operation });
        assert_eq!((tables.next_finished(), tables.outcome(operation)), (Some(operation), &Outcome::Done));
    }

    #[test]
    fn one_after_the_other_is_given_up_before_the_machine_has_ended_any() {
        let (mut tables, operation) = called();
        for _ in 0..2 {
            tables.give_up(operation, timed_out());
            assert_eq!((tables.outcome(operation), tables.running()), (&Outcome::Failed(timed_out()), 0));
            assert!(matches!(tables.next_command(), Some(Command::Cancel { .. })));
            assert_eq!((tables.next_finished(), tables.next_finished()), (Some(operation), None));
            call(&mut tables, operation);
        }
        for _ in 0..2 {
            tables.note(Event::Failed { operation, why: Failure::Cancelled });
            assert!(tables.runs(Operation(operation)) && tables.next_finished().is_none());
        }
        tables.note(Event::Done { operation });
        assert_eq!((tables.next_finished(), tables.outcome(operation)), (Some(operation), &Outcome::Done));
    }
}
