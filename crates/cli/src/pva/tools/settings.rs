//! The options of the tools, as their own sources have them, and what they set.

use super::getopt::{Opt, getopt};
use crate::pva::options::ConnectOptions;
use crate::{Error, terminal};
use hodo_pva_host::machines::Request;
use hodo_pva_host::show::PvDataForm;
use std::time::Duration;

/// A program of pvAccessCPP or pvxs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// The options for getopt; a colon stands behind those with an argument.
    pub letters: &'static str,
    /// Whether the first operand ends the options.
    pub is_posix: bool,
}

const fn tool(name: &'static str, letters: &'static str) -> Tool {
    Tool { name, letters, is_posix: false }
}

/// All tools: pvAccessCPP 7.1.8, eget as it was last in pvAccessCPP, and pvxs 1.5.3.
pub const TOOLS: [Tool; 13] = [
    tool("pvget", "hvVRM:r:w:tmp:qdcF:f:ni"),
    tool("pvmonitor", "hvVRM:r:w:tmp:qdcF:f:ni"),
    Tool { name: "pvput", letters: "hvVM:r:w:tp:qdF:f:ns", is_posix: true },
    tool("pvinfo", "hVw:p:dc"),
    tool("pvlist", "hVw:qdF:f:i"),
    tool("pvcall", "hvVM:r:w:p:ds:a:"),
    tool("eget", "hvVRM:r:w:tmp:qdcF:f:ni"),
    tool("pvxget", "hVvdw:r:#:F:"),
    tool("pvxput", "hVvdw:r:"),
    tool("pvxmonitor", "hVvdr:#:F:"),
    tool("pvxinfo", "hVvdDw:"),
    tool("pvxlist", "hVApivdw:"),
    tool("pvxcall", "hVvdw:"),
];

impl Tool {
    /// Tells whether it is one of pvxs.
    pub fn is_pvxs(&self) -> bool {
        self.name.starts_with("pvx")
    }
}

/// The settings of a tool, from its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Seconds to wait; without end if it is not above 0.
    pub timeout: f64,
    /// The form of pvAccessCPP.
    pub form: PvDataForm,
    /// How often `-v` was there.
    pub verbosity: u8,
    /// Fields and options.
    pub request: String,
    /// Whether pvget monitors.
    pub monitors: bool,
    /// Whether pvput shows only the value after it.
    pub quiet: bool,
    /// Whether debug messages are printed.
    pub debug: bool,
    /// Whether pvlist and pvxlist ask for information of servers.
    pub info: bool,
    /// Whether pvxlist only listens.
    pub passive: bool,
    /// Whether pvxget prints a tree.
    pub tree: bool,
    /// Elements that pvxget prints at most; 0 for all.
    pub elements: usize,
    /// The name and the arguments of a call from options.
    pub service: String,
    /// The arguments of a call from options, as they were written.
    pub arguments: Vec<String>,
}

/// The result of reading a command line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// The settings, and the operands.
    Run(Box<Settings>, Vec<String>),
    /// Text for standard output, with which it ends well.
    Print(String),
    /// Text for standard error, with an exit status.
    End(String, u8),
}

/// Reads a command line.
pub fn read(tool: &Tool, arguments: &[String]) -> Line {
    let is_posix = tool.is_posix || !tool.is_pvxs() && std::env::var_os("POSIXLY_CORRECT").is_some();
    let (options, operands) = getopt(tool.letters, arguments, is_posix);
    let timeout = if tool.name == "pvlist" { 3.0 } else { 5.0 };
    let mut settings = Settings {
        timeout,
        form: PvDataForm::Nt,
        verbosity: 0,
        request: String::new(),
        monitors: tool.name == "pvmonitor",
        quiet: false,
        debug: false,
        info: false,
        passive: false,
        tree: false,
        elements: 0,
        service: String::new(),
        arguments: Vec::new(),
    };
    for option in options {
        if let Some(end) = set(tool, &mut settings, option) {
            return end;
        }
    }
    if settings.monitors {
        settings.timeout = 0.0;
    }
    Line::Run(Box::new(settings), operands)
}

/// Applies one option. Returns a line with which the tool ends at once.
fn set(tool: &Tool, settings: &mut Settings, option: Opt) -> Option<Line> {
    let help = |text: String| Some(Line::End(format!("{text}. ('{} -h' for help.)", tool.name), 1));
    let (letter, argument) = match option {
        Opt::Known(letter, argument) => (letter, argument),
        Opt::Unknown(letter) => return help(format!("Unrecognized option: '-{letter}'")),
        Opt::Incomplete(letter) => return help(format!("Option '-{letter}' requires an argument")),
    };
    match letter {
        'h' => return Some(Line::End(usage(tool), 0)),
        'V' => return Some(Line::Print(format!("hodo {} as {}\n", env!("CARGO_PKG_VERSION"), tool.name))),
        'v' if tool.name == "pvput" => settings.form = PvDataForm::Raw,
        'v' => settings.verbosity = settings.verbosity.saturating_add(1),
        'd' => settings.debug = true,
        'w' => return set_timeout(tool, settings, &argument),
        'r' => settings.request = argument,
        'M' => settings.form = form(&argument),
        'm' => settings.monitors = true,
        'q' => settings.quiet = true,
        'i' => settings.info = true,
        'p' if tool.is_pvxs() => settings.passive = true,
        'A' => settings.passive = false,
        'p' if argument != "pva" => {
            return Some(Line::End(format!("Error: there is no provider {argument}: only pva"), 1));
        }
        'F' if tool.is_pvxs() => match &argument[..] {
            "tree" => settings.tree = true,
            "delta" => settings.tree = false,
            _ => terminal::complain(&format!("Warning: ignoring unknown format '{argument}'")),
        },
        '#' => match argument.parse() {
            Ok(count) => settings.elements = count,
            Err(_) => return Some(Line::End(format!("ERROR: -# {argument}: a number of elements"), 1)),
        },
        // Its -F and -f do nothing but this, whatever their help says.
        'F' | 'f' if tool.name == "pvlist" => return Some(Line::End(usage(tool), 1)),
        'f' => return Some(Line::End("Unsupported option -f".into(), 1)),
        's' if tool.name == "pvcall" => settings.service = argument,
        'a' => settings.arguments.push(argument),
        'D' => return Some(Line::Print(host())),
        // What is left has no effect in the tools, either: -n, -t, -F, -c, -R, and -i, -q, -s where they are not above.
        _ => {}
    }
    None
}

fn set_timeout(tool: &Tool, settings: &mut Settings, argument: &str) -> Option<Line> {
    match argument.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (tool.name != "pvlist" || seconds > 0.0) => settings.timeout = seconds,
        _ if tool.is_pvxs() => return Some(Line::End(format!("ERROR: -w {argument}: a number of seconds"), 1)),
        _ => terminal::complain(&format!(
            "'{argument}' is not a valid timeout value - ignored. ('{} -h' for help.)",
            tool.name
        )),
    }
    None
}

fn form(argument: &str) -> PvDataForm {
    match argument {
        "nt" => PvDataForm::Nt,
        "json" => PvDataForm::Json,
        "raw" => PvDataForm::Raw,
        _ => {
            terminal::complain(&format!("Unknown output mode '{argument}'"));
            PvDataForm::Raw
        }
    }
}

fn usage(tool: &Tool) -> String {
    let command = match tool.name {
        "eget" => "get` or, with -s, `hodo pva call",
        name => name.trim_start_matches("pvx").trim_start_matches("pv"),
    };
    let letters: Vec<String> = tool
        .letters
        .char_indices()
        .filter(|(_, letter)| *letter != ':')
        .map(
            |(at, letter)| {
                if tool.letters[at + 1..].starts_with(':') { format!("-{letter} ARG") } else { format!("-{letter}") }
            },
        )
        .collect();
    format!(
        "Usage: {} [options] ...\nOptions, with the meaning that they have in {}: {}.\nUnder its own name this is `hodo pva {command}`, with more.",
        tool.name,
        tool.name,
        letters.join(", ")
    )
}

/// Returns what pvxinfo -D is for: this host and its variables.
fn host() -> String {
    let mut text =
        format!("hodo {} on {} {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| name.starts_with("EPICS_PVA") || name.starts_with("PVXS_"))
        .collect();
    variables.sort();
    text.extend(variables.iter().map(|(name, value)| format!("{name}={value}\n")));
    text.push_str("`hodo doctor` says more about this host and the way to a server.\n");
    text
}

impl Settings {
    /// Returns how to reach servers: they are searched for.
    pub fn connect(&self) -> ConnectOptions {
        // Longer than any tool runs, and short enough to be added to a clock.
        const FOR_EVER: f64 = 1e9;
        let seconds = if self.timeout > 0.0 { self.timeout.min(FOR_EVER) } else { FOR_EVER };
        let timeout = Duration::from_secs_f64(seconds).max(Duration::from_millis(1));
        ConnectOptions { server: None, timeout, provider: None }
    }

    /// Returns fields and options.
    pub fn request(&self) -> Result<Request, Error> {
        self.request.parse().map_err(|why| Error::Failed(format!("failed to parse request string: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The argument of getopt in each tool's source, without the leading colon.
    const SOURCES: [(&str, &str); 13] = [
        ("pvget", "hvVRM:r:w:tmp:qdcF:f:ni"),
        ("pvmonitor", "hvVRM:r:w:tmp:qdcF:f:ni"),
        ("pvput", "hvVM:r:w:tp:qdF:f:ns"),
        ("pvinfo", "hVw:p:dc"),
        ("pvlist", "hVw:qdF:f:i"),
        ("pvcall", "hvVM:r:w:p:ds:a:"),
        ("eget", "hvVRM:r:w:tmp:qdcF:f:ni"),
        ("pvxget", "hVvdw:r:#:F:"),
        ("pvxput", "hVvdw:r:"),
        ("pvxmonitor", "hVvdr:#:F:"),
        ("pvxinfo", "hVvdDw:"),
        ("pvxlist", "hVApivdw:"),
        ("pvxcall", "hVvdw:"),
    ];

    fn valid(letter: char) -> &'static str {
        match letter {
            'w' | '#' => "3",
            'p' => "pva",
            'M' => "raw",
            'F' => "tree",
            _ => "x",
        }
    }

    #[test]
    fn every_option_of_every_tool_is_one_here() {
        for (tool, (name, letters)) in TOOLS.iter().zip(SOURCES) {
            assert_eq!((tool.name, tool.letters), (name, letters));
            for (at, letter) in letters.char_indices().filter(|(_, letter)| *letter != ':') {
                let takes = letters[at + 1..].starts_with(':');
                let mut line = vec![format!("-{letter}")];
                line.extend(takes.then(|| valid(letter).to_owned()));
                line.push("PV".into());
                match (letter, read(tool, &line)) {
                    ('h', Line::End(_, 0)) | ('V' | 'D', Line::Print(_)) => {}
                    // What the tools themselves refuse.
                    ('f' | 'F', Line::End(text, 1)) if name == "pvlist" => assert!(text.starts_with("Usage: pvlist")),
                    ('f', Line::End(text, 1)) => assert_eq!(text, "Unsupported option -f"),
                    (_, Line::Run(_, operands)) => assert_eq!(operands, ["PV"], "{name} {line:?}"),
                    (_, end) => panic!("{name} {line:?}: {end:?}"),
                }
                if takes {
                    assert!(matches!(read(tool, &line[..1]), Line::End(_, 1)), "{name} -{letter}");
                }
            }
            assert!(matches!(read(tool, &["-Z".into()]), Line::End(_, 1)), "{name}");
        }
    }

    #[test]
    fn options_set_what_they_set_there() {
        let of = |name: &str, line: &str| {
            let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
            match read(tool, &line.split(' ').map(String::from).collect::<Vec<_>>()) {
                Line::Run(settings, _) => settings,
                end => panic!("{end:?}"),
            }
        };
        assert!(of("pvget", "-m A").monitors && !of("pvget", "A").monitors && of("pvmonitor", "A").monitors);
        assert_eq!(of("pvget", "-vvw 2.5 A").verbosity, 2);
        assert!((of("pvget", "-w 2.5 A").timeout - 2.5).abs() < 1e-9);
        // What is no number is ignored.
        assert!((of("pvget", "-w x A").timeout - 5.0).abs() < 1e-9);
        assert_eq!(of("pvput", "-v A -1").form, PvDataForm::Raw);
        assert_eq!(of("pvget", "-M yaml A").form, PvDataForm::Raw);
        assert!(of("pvxlist", "-p").passive && !of("pvxlist", "-p -A").passive);
        assert_eq!(of("pvcall", "-s S -a a=1 -a b=2").arguments, ["a=1", "b=2"]);
    }
}
