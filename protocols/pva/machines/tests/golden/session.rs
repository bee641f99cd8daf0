//! Follows what two peers say to each other: decodes each message, and encodes what was understood.

use hodo_pva::data::{BitSet, Scalar};
use hodo_pva::wire::connection::{
    AccessRights, ChannelCreated, CreateChannel, Credentials, DestroyChannel, Note, Validation, encode_authentication,
    encode_echo, encode_validated,
};
use hodo_pva::wire::operation::{
    ArrayPlace, ArraySlice, EndRequest, FieldReply, GetField, Operation, Reply, Subcommand, decode_length,
};
use hodo_pva::wire::{Command, Message, Segment, Side, Status};
use hodo_pva::{Array, Error, Limits, Plan, Reader, Type, TypeCache, Value, Writer};
use std::collections::HashMap;
use std::sync::Arc;

/// The values that an operation has, each with the type that the server stated for it.
#[derive(Default)]
struct Operations {
    /// Put to the server, or the only one.
    put: Option<Value>,
    got: Option<Value>,
    array: Option<Array>,
}

/// A value that was said, with the command that said it.
pub struct Heard {
    pub command: Command,
    pub from: Side,
    pub subcommand: Subcommand,
    pub status: Status,
    pub value: Value,
}

/// One connection, followed from its beginning.
#[derive(Default)]
pub struct Session {
    client_types: TypeCache,
    server_types: TypeCache,
    operations: HashMap<u32, Operations>,
    /// Values in the order in which they were said.
    pub heard: Vec<Heard>,
}

impl Session {
    /// Decodes a message, writes what was understood, and returns what was left of it.
    pub fn follow(&mut self, from: Side, message: &Message<'_>, writer: &mut Writer) -> Result<usize, Error> {
        let limits = Limits::default();
        let limits: &'static Limits = Box::leak(Box::new(limits));
        let payload: &'static [u8] = message.payload().to_vec().leak();
        let mut reader = Reader::new(payload, message.order, limits);
        writer.set_order(message.order);
        let command = Command::from_code(message.command);
        match (command, from) {
            (Command::Validation, Side::Server) => Validation::decode(&mut reader)?.encode(writer),
            (Command::Validation, Side::Client) => {
                Credentials::decode(&mut reader, &mut self.client_types)?.encode(writer);
            }
            (Command::Validated, _) => encode_validated(&Status::decode(&mut reader)?, writer),
            (Command::Echo, _) => {
                encode_echo(reader.rest(), writer);
                reader.bytes(payload.len())?;
            }
            (Command::Authentication, _) => {
                encode_authentication(Value::decode_any(&mut reader, self.types(from))?.as_ref(), writer);
            }
            (Command::AccessRights, _) => AccessRights::decode(&mut reader)?.encode(writer),
            (Command::CreateChannel, Side::Client) => {
                CreateChannel::decode(&mut reader, |channel| channel.encode(writer))?;
            }
            (Command::CreateChannel, Side::Server) => ChannelCreated::decode(&mut reader)?.encode(writer),
            (Command::DestroyChannel, _) => DestroyChannel::decode(&mut reader)?.encode(writer),
            (Command::Message, _) => Note::decode(&mut reader)?.encode(writer),
            (Command::DestroyRequest | Command::CancelRequest, _) => {
                EndRequest::decode(&mut reader)?.encode(command, writer);
            }
            (Command::GetField, Side::Client) => GetField::decode(&mut reader)?.encode(writer),
            (Command::GetField, Side::Server) => {
                let reply = FieldReply::decode(&mut reader)?;
                reply.begin(writer);
                if reply.status.is_success() {
                    self.plan(from, &mut reader)?.of().encode(writer);
                }
                writer.end();
            }
            (_, Side::Client) => self.request(command, &mut reader, writer)?,
            (_, Side::Server) => self.reply(command, &mut reader, writer)?,
        }
        Ok(reader.rest().len())
    }

    fn types(&mut self, from: Side) -> &mut TypeCache {
        if from == Side::Client { &mut self.client_types } else { &mut self.server_types }
    }

    fn plan(&mut self, from: Side, reader: &mut Reader<'_>) -> Result<Arc<Plan>, Error> {
        Ok(self.types(from).decode(reader)?.expect("a type is there"))
    }

    fn request(&mut self, command: Command, reader: &mut Reader<'_>, writer: &mut Writer) -> Result<(), Error> {
        let front = Operation::decode(reader)?;
        front.begin(command, writer);
        let at = front.subcommand;
        let operation = self.operations.entry(front.ioid).or_default();
        if at.has(Subcommand::INIT) || command == Command::Rpc {
            Value::encode_any(Value::decode_any(reader, &mut self.client_types)?.as_ref(), writer);
            if command == Command::Monitor && at.has(Subcommand::PIPELINE) {
                writer.u32(reader.u32()?);
            }
        } else {
            match command {
                Command::Put | Command::PutGet if at.0 & 0xC0 == 0 => {
                    let value = operation.put.as_mut().expect("it was set up");
                    value.decode_changed(reader, &mut self.client_types)?;
                    value.encode_changed(writer);
                    let status = Status::OK;
                    let value = value.clone();
                    self.heard.push(Heard { command, from: Side::Client, subcommand: at, status, value });
                }
                Command::Monitor if at.has(Subcommand::PIPELINE) => writer.u32(reader.u32()?),
                Command::Array if at.has(Subcommand::GET) => ArraySlice::decode(reader)?.encode(writer),
                Command::Array if at.has(Subcommand::GET_PUT) => writer.size(decode_length(reader)?),
                Command::Array if at.0 & 0x04 == 0 => {
                    ArrayPlace::decode(reader)?.encode(writer);
                    let array = operation.array.as_mut().expect("it was set up");
                    array.decode_counted(reader)?;
                    array.encode_counted(writer);
                }
                _ => {}
            }
        }
        writer.end();
        Ok(())
    }

    fn reply(&mut self, command: Command, reader: &mut Reader<'_>, writer: &mut Writer) -> Result<(), Error> {
        let front = Reply::decode(command, reader)?;
        front.begin(command, writer);
        let at = front.subcommand;
        if front.status.is_success() {
            if at.has(Subcommand::INIT) {
                self.set_up(command, front.ioid, reader, writer)?;
            } else if let Some(value) = self.answered(command, &front, reader, writer)? {
                self.heard.push(Heard {
                    command,
                    from: Side::Server,
                    subcommand: at,
                    status: front.status.clone(),
                    value,
                });
            }
        }
        writer.end();
        Ok(())
    }

    fn set_up(
        &mut self,
        command: Command,
        ioid: u32,
        reader: &mut Reader<'_>,
        writer: &mut Writer,
    ) -> Result<(), Error> {
        let mut fresh = Operations::default();
        match command {
            Command::Process | Command::Rpc => {}
            Command::Array => {
                let plan = self.plan(Side::Server, reader)?;
                plan.of().encode(writer);
                let Some(Type::Scalar(scalar)) = plan.of().element() else { panic!("{:?}", plan.of()) };
                fresh.array = Some(Array::empty(scalar));
            }
            _ => {
                let plan = self.plan(Side::Server, reader)?;
                plan.of().encode(writer);
                fresh.put = Some(Value::new(&plan));
                fresh.got = Some(Value::new(&plan));
                if command == Command::PutGet {
                    let plan = self.plan(Side::Server, reader)?;
                    plan.of().encode(writer);
                    fresh.got = Some(Value::new(&plan));
                }
            }
        }
        self.operations.insert(ioid, fresh);
        Ok(())
    }

    fn answered(
        &mut self,
        command: Command,
        front: &Reply,
        reader: &mut Reader<'_>,
        writer: &mut Writer,
    ) -> Result<Option<Value>, Error> {
        let at = front.subcommand;
        let operation = self.operations.get_mut(&front.ioid).expect("it was set up");
        let types = &mut self.server_types;
        let value = match command {
            Command::Rpc => {
                let value = Value::decode_any(reader, types)?;
                Value::encode_any(value.as_ref(), writer);
                return Ok(value);
            }
            Command::PutGet if at.has(Subcommand::GET_PUT) => operation.put.as_mut(),
            Command::Get | Command::Monitor | Command::PutGet => operation.got.as_mut(),
            Command::Put if at.has(Subcommand::GET) => operation.got.as_mut(),
            Command::Array => {
                match at.0 & 0xC4 {
                    0x40 => {
                        let array = operation.array.as_mut().expect("it was set up");
                        array.decode_counted(reader)?;
                        array.encode_counted(writer);
                        let mut value = Value::of(Type::array(Scalar::I32));
                        value.set("", array.clone()).expect("it is one of numbers");
                        return Ok(Some(value));
                    }
                    0x04 => writer.size(decode_length(reader)?),
                    _ => {}
                }
                None
            }
            _ => None,
        };
        let Some(value) = value else { return Ok(None) };
        value.decode_changed(reader, types)?;
        value.encode_changed(writer);
        if command == Command::Monitor {
            let mut overrun = BitSet::new();
            overrun.decode(value.plan().len(), reader)?;
            overrun.encode(writer);
        }
        Ok(Some(value.clone()))
    }
}

/// Returns the payload of a message that is not segmented, as a message of its own.
pub fn is_whole(bytes: &[u8]) -> bool {
    let header = bytes.first_chunk().map(hodo_pva::wire::Header::decode);
    header.is_some_and(|header| header.is_ok_and(|header| header.segment == Segment::Whole))
}
