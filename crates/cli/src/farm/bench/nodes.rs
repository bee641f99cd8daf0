use super::Shape;
use crate::Error;
use hodo_io::usage::ProcessUsage;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The nodes of a measurement, each a process of its own that cannot outlive this one.
pub struct Nodes {
    children: Vec<(Child, Option<ChildStdin>)>,
}

impl Nodes {
    /// Starts them all.
    pub fn start(shape: &Shape, controller: SocketAddr) -> Result<Self, Error> {
        let this =
            std::env::current_exe().map_err(|why| Error::Failed(format!("this program cannot be found: {why}")))?;
        let mut nodes = Nodes { children: Vec::new() };
        for number in 0..shape.nodes {
            let mut command = Command::new(&this);
            command.args(["farm", "node", "--until-stdin-closes", "--to", &controller.to_string()]);
            command.args(["--number", &number.to_string(), "--credits", &shape.credits.to_string()]);
            command.args(["--accept", &format!("every:{}", shape.every), "--output", &shape.token_data.to_string()]);
            command.args(["--time", &shape.time, "--wait", &shape.wait.to_string()]);
            if let Some(cpu) = shape.cpu_of(number as usize) {
                command.args(["--cpu", &cpu.to_string()]);
            }
            if let Some(congestion) = &shape.congestion {
                command.args(["--congestion", congestion]);
            }
            if let Some(size) = shape.socket_buffer {
                command.args(["--socket-buffer", &size.to_string()]);
            }
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            let mut child =
                command.spawn().map_err(|why| Error::Failed(format!("node {number} cannot be started: {why}")))?;
            let stdin = child.stdin.take();
            nodes.children.push((child, stdin));
        }
        Ok(nodes)
    }

    /// What all of them have used so far.
    pub fn usage(&self) -> ProcessUsage {
        let mut sum = ProcessUsage::default();
        for usage in self.children.iter().filter_map(|(child, _)| ProcessUsage::of(child.id())) {
            sum.user_s += usage.user_s;
            sum.system_s += usage.system_s;
            sum.voluntary_switches += usage.voluntary_switches;
            sum.involuntary_switches += usage.involuntary_switches;
            sum.max_rss_bytes = sum.max_rss_bytes.max(usage.max_rss_bytes);
        }
        sum
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // All are told before the first is waited for.
        self.children.iter_mut().for_each(|(_, stdin)| drop(stdin.take()));
        for (child, _) in &mut self.children {
            // The farm is over: whatever they still do is of no use.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
