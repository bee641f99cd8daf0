//! Replies to operations, and those that come when nobody waits for them any more.

use crate::client::command::{Event, Kind};
use crate::client::operation::State;
use crate::client::tables::{Tables, number_of};
use crate::data::{Plan, Value};
use crate::wire::Command;
use crate::wire::operation::{FieldReply, Reply, Subcommand};
use crate::{Error, Reader, TypeCache};
use alloc::sync::Arc;

/// Takes in a reply that came over a connection; returns the operation if it has something more to say.
#[inline]
pub(crate) fn take(
    connection: u32,
    command: Command,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
    tables: &mut Tables,
) -> Result<Option<u32>, Error> {
    let reply = if command == Command::GetField {
        let FieldReply { ioid, status } = FieldReply::decode(reader)?;
        Reply { ioid, subcommand: Subcommand::NONE, status }
    } else {
        Reply::decode(command, reader)?
    };
    let Some(number) = operation_of(reply.ioid, connection, tables) else {
        let known = tables.operations.get(number_of(reply.ioid) as usize);
        let former = known.and_then(|operation| operation.former.as_ref()).filter(|(ioid, _)| *ioid == reply.ioid);
        pass_over(command, &reply, former.map(|(_, plan)| plan), reader, types);
        return Ok(None);
    };
    let operation = &mut tables.operations[number as usize];
    if operation.command() != command {
        return Err(Error::Unexpected { command: command.code() });
    }
    let is_set_up = reply.subcommand.has(Subcommand::INIT);
    let event = match operation.state {
        State::SettingUp if is_set_up => operation.set_up(number, reply.status, reader, types)?,
        State::Executing(brings) if !is_set_up => operation.executed(number, brings, reply.status, reader, types)?,
        State::Ready if operation.kind() == Some(Kind::Monitor) && !is_set_up => {
            let is_last = reply.subcommand.has(Subcommand::DESTROY);
            if operation.updated(is_last, reader, types)? {
                tables.tell(Event::Updates { operation: number });
            }
            if is_last {
                tables.tell(Event::Ended { operation: number, status: reply.status });
            }
            return Ok(None);
        }
        // Nobody has asked.
        _ => return Ok(None),
    };
    let has_more = operation.has_more();
    tables.tell(event);
    Ok(has_more.then_some(number))
}

/// Returns the operation of a number on the wire, if it is one of a connection.
#[inline]
pub(crate) fn operation_of(ioid: u32, connection: u32, tables: &Tables) -> Option<u32> {
    let number = number_of(ioid);
    let operation = tables.operation(number).filter(|operation| operation.ioid == ioid)?;
    let channel = tables.channels.get(operation.channel as usize)?;
    (channel.connection == Some(connection)).then_some(number)
}

/// Passes over a reply to an operation that has ended, but for the types that it defines. What cannot be read is left: the message ends
/// where its header says.
fn pass_over(
    command: Command,
    reply: &Reply,
    plan: Option<&Arc<Plan>>,
    reader: &mut Reader<'_>,
    types: &mut TypeCache,
) {
    if !reply.status.is_success() {
        return;
    }
    if reply.subcommand.has(Subcommand::INIT) || command == Command::GetField {
        while !reader.rest().is_empty() && types.decode_type(reader).is_ok() {}
    } else if command == Command::Rpc {
        _ = Value::decode_any(reader, types);
    } else if let Some(plan) = plan.filter(|_| command != Command::Array && !reader.rest().is_empty()) {
        _ = Value::new(plan).decode_changed(reader, types);
    }
}
