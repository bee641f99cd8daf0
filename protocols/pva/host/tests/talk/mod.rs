//! A client of a few lines, on a blocking socket: enough to see what a server says.

use hodo_machine::{Instant, Outbox};
use hodo_pva_host::machines::session::{SessionConfig, Step};
use hodo_pva_host::machines::wire::connection::{ChannelCreated, CreateChannel};
use hodo_pva_host::machines::wire::operation::{Operation, Reply, Subcommand};
use hodo_pva_host::machines::wire::{Command, Inbound, Incoming, Side, Status};
use hodo_pva_host::machines::{BitSet, Limits, Plan, Request, Session, TypeCache, Value};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// One connection with one operation.
pub struct Talk {
    stream: TcpStream,
    session: Session,
    inbound: Inbound,
    types: TypeCache,
    plan: Option<Arc<Plan>>,
    said: VecDeque<Said>,
    kind: Command,
}

/// A reply or an update.
#[derive(Debug)]
pub struct Said {
    pub sid: u32,
    pub status: Status,
    pub value: Option<Value>,
    pub overrun: BitSet,
}

impl Talk {
    /// Connects, opens a channel and sets an operation up.
    pub fn begin(at: SocketAddr, name: &str, kind: Command, request: &str) -> Talk {
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
        let mut talk = Talk {
            stream,
            session: Session::new(Side::Client, SessionConfig::default(), Instant::ZERO),
            inbound: Inbound::new(Side::Server),
            types: TypeCache::new(),
            plan: None,
            said: VecDeque::new(),
            kind,
        };
        while !talk.session.is_ready() {
            talk.receive();
        }
        CreateChannel { cid: 1, name: name.as_bytes() }.encode(&mut talk.session.writer);
        let created = talk.next();
        assert!(created.status.is_success(), "{name}: {}", created.status.message());
        let request = request.parse::<Request>().expect("it is one").to_value();
        let writer = &mut talk.session.writer;
        Operation { sid: created.sid, ioid: 1, subcommand: Subcommand::INIT }.begin(kind, writer);
        Value::encode_any(Some(&request), writer);
        writer.end();
        let ready = talk.next();
        assert!(ready.status.is_success(), "{name}: {}", ready.status.message());
        talk
    }

    /// Executes the operation, or starts a monitor, and returns what is said then.
    pub fn execute(&mut self, value: Option<&Value>) -> Said {
        let subcommand = if self.kind == Command::Monitor { Subcommand::START } else { Subcommand::NONE };
        let writer = &mut self.session.writer;
        Operation { sid: 1, ioid: 1, subcommand }.begin(self.kind, writer);
        match (self.kind, value) {
            (Command::Rpc, value) => Value::encode_any(value, writer),
            (_, Some(value)) => value.encode_changed(writer),
            _ => {}
        }
        writer.end();
        self.next()
    }

    /// Puts a number to the field `value`.
    pub fn put(&mut self, to: f64) -> Said {
        let mut value = Value::new(self.plan.as_ref().expect("it is set up"));
        value.set("value", to).expect("it has one");
        self.execute(Some(&value))
    }

    /// Returns the next thing that is said.
    pub fn next(&mut self) -> Said {
        loop {
            if let Some(said) = self.said.pop_front() {
                return said;
            }
            self.receive();
        }
    }

    fn receive(&mut self) {
        let bytes = self.session.writer.to_vec();
        self.session.writer.flush(&mut Outbox::new());
        self.stream.write_all(&bytes).expect("it takes it");
        let mut buffer = vec![0; 1 << 16];
        let length = self.stream.read(&mut buffer).expect("it says something in time");
        assert_ne!(length, 0, "the server has closed the connection");
        let mut rest = &buffer[..length];
        let Talk { session, inbound, types, plan, said, .. } = self;
        while let Some(incoming) = inbound.next(&mut rest, &Limits::DEFAULT).expect("a server's stream") {
            let (Step::Pass, Incoming::Message(message)) =
                (session.take(Instant::ZERO, &incoming).expect("it is allowed"), &incoming)
            else {
                continue;
            };
            let mut reader = message.reader(&Limits::DEFAULT);
            let mut one = Said { sid: 0, status: Status::OK, value: None, overrun: BitSet::new() };
            match Command::from_code(message.command) {
                Command::CreateChannel => {
                    let created = ChannelCreated::decode(&mut reader).expect("it is one");
                    (one.sid, one.status) = (created.sid, created.status);
                }
                command => {
                    let reply = Reply::decode(command, &mut reader).expect("it is one");
                    if reply.subcommand.has(Subcommand::INIT) && !reader.rest().is_empty() {
                        *plan = types.decode(&mut reader).expect("a type");
                    } else if command == Command::Rpc && !reader.rest().is_empty() {
                        one.value = Value::decode_any(&mut reader, types).expect("a value");
                    } else if let Some(plan) = plan.as_ref().filter(|_| !reader.rest().is_empty()) {
                        let mut value = Value::new(plan);
                        value.decode_changed(&mut reader, types).expect("a value");
                        if command == Command::Monitor {
                            one.overrun.decode(plan.len(), &mut reader).expect("a set");
                        }
                        one.value = Some(value);
                    }
                    one.status = reply.status;
                }
            }
            said.push_back(one);
        }
    }
}

impl Said {
    /// Returns the number in the field `value`.
    pub fn number(&self) -> Option<f64> {
        self.value.as_ref()?.get("value")?.as_f64()
    }
}
