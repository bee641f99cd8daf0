use super::shape::{Flow, Shape};
use hodo_farm_host::Error;
use hodo_io::LISTENING_ON;
use hodo_io::usage::Usage;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The nodes of a measurement, and the generator of the study's version 1: each a process of its own that cannot outlive
/// this one.
pub struct Nodes {
    children: Vec<(Child, Option<ChildStdin>)>,
}

impl Nodes {
    /// Starts all nodes.
    pub fn start(shape: &Shape, controller: SocketAddr) -> Result<Self, Error> {
        let mut nodes = Nodes { children: Vec::new() };
        let (to, credits, output) = (controller.to_string(), shape.credits.to_string(), shape.token_data.to_string());
        let accept = format!("every:{}", shape.every);
        for number in 0..shape.nodes {
            let number = number.to_string();
            let mut words = vec!["node", "--to", &to, "--number", &number, "--credits", &credits];
            match shape.flow {
                Flow::Poured => words.push("--no-tokens"),
                Flow::Asked | Flow::Queued { .. } => {
                    words.extend(["--accept", &accept, "--output", &output, "--time", &shape.time]);
                }
            }
            nodes.add(shape, &words, shape.cpu_of(nodes.children.len()), Stdio::null())?;
        }
        Ok(nodes)
    }

    /// Starts the generator, a controller that makes events as fast as they are taken. Returns where it listens.
    pub fn start_generator(&mut self, shape: &Shape) -> Result<SocketAddr, Error> {
        let (size, different, events) = (shape.size.to_string(), shape.pool.to_string(), u64::MAX.to_string());
        let made = ["--events", &events, "--size", &size, "--different", &different, "--credits-max", "65536"];
        let mut words = vec!["controller", "--listen", "127.0.0.1:0", "--no-metrics", "--ahead", "0"];
        words.extend(made);
        let rate = shape.rate.map(|rate| rate.to_string());
        words.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
        let stdout = self.add(shape, &words, None, Stdio::piped())?;
        let mut line = String::new();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let at = line.trim_end().strip_prefix(LISTENING_ON).and_then(|at| at.parse().ok());
        at.ok_or_else(|| Error::Run {
            what: "the generator does not say where it listens".to_owned(),
            why: format!("{line:?} {read:?}"),
        })
    }

    fn add(
        &mut self,
        shape: &Shape,
        words: &[&str],
        cpu: Option<usize>,
        stdout: Stdio,
    ) -> Result<Option<ChildStdout>, Error> {
        let this =
            std::env::current_exe().map_err(|why| Error::run("the path of this program cannot be read", &why))?;
        let mut command = Command::new(&this);
        command.arg("farm").args(words).args(["--until-stdin-closes", "--wait", &shape.wait.to_string()]);
        if let Some(cpu) = cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        if let Some(congestion) = &shape.congestion {
            command.args(["--congestion", congestion]);
        }
        if let Some(size) = shape.socket_buffer {
            command.args(["--socket-buffer", &size.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::null()).process_group(0);
        let what = words.join(" ");
        let mut child = command.spawn().map_err(|why| Error::run(format!("{what} cannot be started"), &why))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        self.children.push((child, stdin));
        Ok(stdout)
    }

    /// Returns what all of them have used so far.
    pub fn usage(&self) -> Usage {
        let each = self.children.iter().filter_map(|(child, _)| Usage::of(child.id()));
        each.fold(Usage::default(), Usage::and)
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
