//! Calls that a program answers, in any language: the request in JSON on its standard input, the reply in JSON on its standard output.

use crate::machines::Value;
use crate::server::Call;
use crate::{parse, show};
use hodo_io::program::{Program as Started, Talk, Talked};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Bytes that a program may reply, and those of its complaint that the client gets.
const REPLY_MAX: usize = 64 << 20;
const COMPLAINT_MAX: usize = 4096;

/// A program that answers calls.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
}

impl Program {
    /// Runs the program for a call, and replies once it has ended.
    pub fn answer(&self, call: Call) {
        let request =
            call.argument.as_deref().map_or_else(|| "null".to_owned(), |argument| show::json(argument, false));
        match self.run(&request, &call) {
            Ok(reply) => call.reply(reply),
            Err(why) => {
                tracing::warn!("{}: called by {}: {why}", call.pv.name(), call.client);
                call.refuse(why);
            }
        }
    }

    fn run(&self, request: &str, call: &Call) -> Result<Option<Value>, String> {
        let program = &self.command[0];
        let client = &call.client;
        let mut command = Command::new(program);
        command.args(&self.command[1..]).current_dir(&self.folder).env("PVA_PV", call.pv.name());
        command.env("PVA_USER", &client.user).env("PVA_HOST", &client.host).env("PVA_ADDRESS", &client.address);
        let started =
            Started::start(&mut command, true).map_err(|why| format!("{program} cannot be started: {why}"))?;
        let reply = self.talk(started, request, call)?;
        let text = String::from_utf8(reply).map_err(|_| format!("{program} has replied with what is no UTF-8"))?;
        parse::reply(&text).map_err(|why| format!("{program} has replied with what is no JSON: {why}"))
    }

    /// Gives the program its request, and returns its reply once it has ended. What it leaves behind is not waited for.
    fn talk(&self, mut started: Started, request: &str, call: &Call) -> Result<Vec<u8>, String> {
        let program = &self.command[0];
        let mut reply = Vec::new();
        let talked = started.talk(&mut Talk {
            // One that does not read its request may reply all the same.
            input: &[request.as_bytes()],
            closes_input: true,
            output: &mut reply,
            is_enough: &|reply| reply.len() > REPLY_MAX,
            awaits_end: true,
            within: self.timeout,
            is_needed: &|| call.is_needed(),
        });
        let complaint = started.complaint(COMPLAINT_MAX);
        let status = started.end();
        match (talked.map_err(|why| format!("{program}: {why}"))?, status) {
            (Talked::Late, _) => Err(format!("{program} has not replied within {:?}", self.timeout)),
            (Talked::Dropped, _) => Err(format!("{program} was ended: nobody waits for its reply any more")),
            (Talked::Enough, _) => Err(format!("{program} has replied with more than {REPLY_MAX} bytes")),
            (_, Err(why)) => Err(format!("{program}: {why}")),
            (_, Ok(status)) if !status.success() => {
                let complaint = String::from_utf8_lossy(&complaint);
                let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no complaint");
                Err(format!("{program} has failed with {status}: {last}"))
            }
            (_, Ok(_)) => Ok(reply),
        }
    }
}
