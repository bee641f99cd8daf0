//! `hodo man`: the manual pages.

use crate::command_line::Cli;
use crate::{Error, Outcome, help, terminal};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use hodo_tester::OutputFile;
use std::io;
use std::path::{Path, PathBuf};

/// Columns of what is not filled, on a terminal of 80.
const WIDTH: usize = 72;

/// Writes a page for each command.
pub fn run(options: &ManOptions) -> Result<Outcome, Error> {
    let folder = &options.out;
    let wrong = |path: &Path, why: io::Error| Error::Failed(format!("{} cannot be written: {why}", path.display()));
    std::fs::create_dir_all(folder).map_err(|why| wrong(folder, why))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, None, &mut pages).map_err(|why| wrong(folder, why))?;
    for (name, page) in &pages {
        let file = folder.join(name);
        OutputFile::prepare(&file).and_then(|output| output.write(page)).map_err(|why| wrong(&file, why))?;
    }
    terminal::print(&format!("{} pages in {}\n", pages.len(), folder.display()))?;
    Ok(Outcome::Done)
}

/// Adds the page of a command, and those of its subcommands.
fn collect(command: &Command, above: Option<&str>, into: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or("hodo");
    into.push((format!("{name}.1"), page(command, above)?));
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| collect(sub, Some(name), into))
}

fn page(command: &Command, above: Option<&str>) -> io::Result<Vec<u8>> {
    let usage = command.clone().render_usage().to_string();
    let command = command.clone().override_usage(usage.trim_start_matches("Usage:").trim().to_owned());
    let remarks = help::remarks(&command, WIDTH);
    let has_subcommands = command.has_subcommands();
    let man =
        Man::new(command).source("Hodoscope").date(concat!("hodo ", env!("CARGO_PKG_VERSION"))).manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    // Without hyphens in links, and without gaps.
    Roff::new().control("nh", []).control("ad", ["l"]).to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let mut end = Roff::new();
    if let Some(remarks) = remarks {
        render_remarks(&remarks, &mut end);
    }
    if let Some(above) = above {
        end.control("SH", ["SEE ALSO"]).text([roman(format!("{above}(1)"))]);
    }
    end.to_writer(&mut page)?;
    Ok(page)
}

/// Writes what stands below the options: tables and examples, which are indented, stay as they are.
fn render_remarks(text: &str, to: &mut Roff) {
    let mut is_verbatim = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("  ") != is_verbatim && !line.is_empty() {
            is_verbatim = !is_verbatim;
            to.control(if is_verbatim { "nf" } else { "fi" }, []);
        }
        match line.split_once(": ").map_or((line, ""), |(title, rest)| (title, rest)) {
            ("Examples:", _) => to.control("SH", ["EXAMPLES"]),
            ("Exit status", rest) => to.control("SH", ["EXIT STATUS"]).text([roman(rest)]),
            _ if number == 0 => to.control("SH", ["NOTES"]).text([roman(line)]),
            ("", _) => to.control("PP", []),
            _ => to.text([roman(line)]),
        };
    }
    if is_verbatim {
        to.control("fi", []);
    }
}

/// Where the pages go.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManOptions {
    /// Write hodo.1, hodo-bench.1 and so on into this folder, which is created.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  hodo man --out ~/.local/share/man/man1
  man hodo-bench";
