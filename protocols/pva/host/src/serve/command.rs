//! Calls that a program answers, in any language: the request in JSON on its standard input, the reply in JSON on its standard output.

use crate::machines::Value;
use crate::server::{Call, ClientName};
use crate::{parse, show};
use hodo_io::process;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Bytes that a program may reply, and those of its complaint that the client gets.
const REPLY_MAX: u64 = 64 << 20;
const COMPLAINT_MAX: u64 = 4096;

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
        match self.run(request, call.pv.name(), &call.client) {
            Ok(reply) => call.reply(reply),
            Err(why) => {
                tracing::warn!("{}: called by {}: {why}", call.pv.name(), call.client);
                call.refuse(why);
            }
        }
    }

    fn run(&self, request: String, pv: &str, client: &ClientName) -> Result<Option<Value>, String> {
        let program = &self.command[0];
        let child = Command::new(program)
            .args(&self.command[1..])
            .current_dir(&self.folder)
            .env("PVA_PV", pv)
            .env("PVA_USER", &client.user)
            .env("PVA_HOST", &client.host)
            .env("PVA_ADDRESS", &client.address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that all that it starts ends with it.
            .process_group(0)
            .spawn()
            .map_err(|why| format!("{program} cannot be started: {why}"))?;
        let reply = self.talk(child, request)?;
        let text = String::from_utf8(reply).map_err(|_| format!("{program} has replied with what is no UTF-8"))?;
        parse::reply(&text).map_err(|why| format!("{program} has replied with what is no JSON: {why}"))
    }

    /// Gives the program its request, and returns its reply once it has ended.
    fn talk(&self, mut child: Child, request: String) -> Result<Vec<u8>, String> {
        let program = &self.command[0];
        let group = child.id();
        let (input, output, complaint) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (ended, has_ended) = mpsc::channel();
        let outcome = thread::scope(|scope| {
            scope.spawn(move || {
                // One that does not read its request may reply all the same.
                let _ = input.map(|mut input| input.write_all(request.as_bytes()));
            });
            let complaint = scope.spawn(move || read(complaint, COMPLAINT_MAX));
            let reply = scope.spawn(move || read(output, REPLY_MAX + 1));
            scope.spawn(move || {
                let _ = process::await_end(group);
                let _ = ended.send(());
            });
            let is_late = has_ended.recv_timeout(self.timeout).is_err();
            // Also what it has started and left behind, which holds the pipes open.
            let _ = process::kill_group(group);
            let status = child.wait();
            let texts = (reply.join().unwrap_or_default(), complaint.join().unwrap_or_default());
            (is_late, status, texts)
        });
        let (is_late, status, (reply, complaint)) = outcome;
        if is_late {
            return Err(format!("{program} has not replied within {:?}", self.timeout));
        }
        match status {
            Err(why) => Err(format!("{program}: {why}")),
            Ok(status) if !status.success() => {
                let complaint = String::from_utf8_lossy(&complaint);
                let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no complaint");
                Err(format!("{program} has failed with {status}: {last}"))
            }
            Ok(_) if reply.len() as u64 > REPLY_MAX => {
                Err(format!("{program} has replied with more than {REPLY_MAX} bytes"))
            }
            Ok(_) => Ok(reply),
        }
    }
}

/// Reads to the end, and keeps this many bytes.
fn read(from: Option<impl Read>, max: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(max).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    bytes
}
