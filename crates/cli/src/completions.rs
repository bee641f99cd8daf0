//! `hodo completions`: the script with which a shell asks this program what may come next on its command line, and the answer.

use crate::command_line::Cli;
use crate::{Error, Outcome, help, terminal};
use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use std::env;

/// The variable by which the script asks.
const ASKS: &str = "HODO_COMPLETE";

/// Prints the script of a shell.
pub fn run(options: &CompletionsOptions) -> Result<Outcome, Error> {
    let mut script = Vec::new();
    options
        .shell
        .program()
        .write_registration(ASKS, "hodo", "hodo", &this_program(), &mut script)
        .map_err(|why| Error::Failed(why.to_string()))?;
    terminal::print_bytes(&script)?;
    Ok(Outcome::Done)
}

/// Returns the name that this program was started by, or its path where that was no name in `PATH`.
fn this_program() -> String {
    let name = env::args().next().unwrap_or_else(|| "hodo".to_owned());
    if name.contains('/') { std::path::absolute(&name).map_or(name, |path| path.display().to_string()) } else { name }
}

/// Tells a shell that asks what may come next. Returns `false` if none does.
pub fn answer() -> bool {
    let asks = env::var(ASKS).unwrap_or_default();
    if !Shell::value_variants().iter().any(|shell| shell.program().name() == asks) {
        return false;
    }
    let folder = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command).var(ASKS).try_complete(env::args_os(), folder.as_deref());
    // An incomplete line may have no answer, and a shell has no place for a reason.
    asked.unwrap_or(true)
}

fn command() -> Command {
    help::summed_up("hodo", Cli::command())
}

/// The script of a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsOptions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn program(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        }
    }
}

const EXAMPLES: &str = "\
In the file that the shell reads when it starts:
  source <(hodo completions bash)    # ~/.bashrc
  source <(hodo completions zsh)     # ~/.zshrc, after compinit
  hodo completions fish | source     # ~/.config/fish/config.fish";
