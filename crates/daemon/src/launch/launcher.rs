use super::quoted;

/// A program to run, and its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The name of the task.
    pub name: String,
    /// The host, as the launcher names hosts; ignored by [`Launcher::Local`].
    pub host: String,
    /// The program and its arguments.
    pub words: Vec<String>,
}

/// The way in which programs are started on hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launcher {
    /// A process of this machine, whatever the host.
    Local,
    /// A connection of `ssh`, with which the program ends.
    Ssh {
        /// Arguments of `ssh` before the host.
        options: Vec<String>,
    },
    /// A step of a job of Slurm.
    Slurm {
        /// The number of the job.
        job: String,
        /// Arguments of `srun`.
        options: Vec<String>,
    },
}

/// A connection that asks nothing, has no terminal, and notices within 15 s that the host is gone.
const SSH: [&str; 8] =
    ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];

/// The line that a host prints before the program starts.
const CONNECTED: &str = "hodo:connected";
/// Connections that log in at once: a server of ssh refuses some from ten on.
const LOGINS: usize = 8;

impl Launcher {
    /// Returns how many connections may log in at once, and the line that marks the end of a login.
    #[must_use]
    pub fn on_their_way(&self) -> Option<(usize, &'static str)> {
        matches!(self, Launcher::Ssh { .. }).then_some((LOGINS, CONNECTED))
    }

    /// Returns the command line that starts a task.
    #[must_use]
    pub fn words(&self, task: &Task) -> Vec<String> {
        match self {
            Launcher::Local => task.words.clone(),
            Launcher::Ssh { options } => {
                let mut words: Vec<String> = SSH.map(str::to_owned).to_vec();
                words.extend(options.iter().cloned());
                // A shell that execs leaves nobody between the connection and the program.
                let script = format!("echo {CONNECTED}; exec {}", quoted(&task.words));
                words.extend(["--".to_owned(), task.host.clone(), script]);
                words
            }
            Launcher::Slurm { job, options } => {
                // A step has the whole node beside the others' (--overlap). The number of tasks and nodes is said,
                // because that of the job would be taken else.
                let mut words = vec!["srun".to_owned(), format!("--jobid={job}"), format!("--job-name={}", task.name)];
                words.extend(["--overlap", "--nodes=1", "--ntasks=1", "--quiet"].map(str::to_owned));
                words.push(format!("--nodelist={}", task.host));
                words.extend(options.iter().cloned());
                words.extend(task.words.iter().cloned());
                words
            }
        }
    }

    /// Returns the command line that prints a host's address, or `None` if the name is the address.
    #[must_use]
    pub fn address_words(&self, host: &str) -> Option<Vec<String>> {
        match self {
            Launcher::Local => None,
            Launcher::Ssh { options } => {
                let mut words = vec!["ssh".to_owned(), "-G".to_owned()];
                words.extend(options.iter().cloned());
                words.extend(["--".to_owned(), host.to_owned()]);
                Some(words)
            }
            Launcher::Slurm { .. } => {
                Some(["scontrol", "--oneliner", "show", "node", host].map(str::to_owned).to_vec())
            }
        }
    }

    /// Returns the address in the output of [`Launcher::address_words`].
    #[must_use]
    pub fn address(&self, printed: &str) -> Option<String> {
        let mut words = printed.split_whitespace();
        match self {
            Launcher::Local => None,
            Launcher::Ssh { .. } => printed.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned),
            Launcher::Slurm { .. } => words.find_map(|word| word.strip_prefix("NodeAddr=")).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let words = ["hodo", "farm", "node", "--to", "a b"].map(str::to_owned).to_vec();
        Task { name: "node.3".to_owned(), host: "n3".to_owned(), words }
    }

    #[test]
    fn ssh_gets_one_word_that_a_shell_takes_apart() {
        let words = Launcher::Ssh { options: vec!["-p".to_owned(), "2222".to_owned()] }.words(&task());
        assert_eq!(
            words[words.len() - 5..],
            ["-p", "2222", "--", "n3", "echo hodo:connected; exec hodo farm node --to 'a b'"]
        );
        assert!(words.contains(&"BatchMode=yes".to_owned()));
    }

    #[test]
    fn slurm_gets_a_step_at_the_node() {
        let words = Launcher::Slurm { job: "7".to_owned(), options: vec!["--mem=0".to_owned()] }.words(&task());
        let expected = "srun --jobid=7 --job-name=node.3 --overlap --nodes=1 --ntasks=1 --quiet \
                        --nodelist=n3 --mem=0 hodo farm node --to";
        assert_eq!(words[..words.len() - 1].join(" "), expected);
    }

    #[test]
    fn addresses_are_read_from_what_the_launcher_prints() {
        let ssh = Launcher::Ssh { options: Vec::new() };
        assert_eq!(ssh.address("user me\nhostname 10.1.2.3\nport 22\n").as_deref(), Some("10.1.2.3"));
        let slurm = Launcher::Slurm { job: "7".to_owned(), options: Vec::new() };
        let printed = "NodeName=sfc Arch=x86_64 CoresPerSocket=1 NodeAddr=127.0.0.1 NodeHostName=vm Port=17000";
        assert_eq!(slurm.address(printed).as_deref(), Some("127.0.0.1"));
        assert_eq!(slurm.address("Node sfc not found"), None);
    }
}
