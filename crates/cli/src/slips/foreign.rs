//! Command lines of iperf and netperf, and the command to type instead.

use crate::bench::NETPERF;
use crate::command_line::Cli;
use clap::{Command, CommandFactory};
use hodo_catalog::Uri;
use hodo_daemon::launch::quoted;

/// The names of their programs.
const PROGRAMS: &[&str] = &["iperf", "iperf2", "iperf3", "netperf", "netserver"];

/// An option of another tool: its letter, its name, and its meaning.
type Options = &'static [(&'static str, &'static str, Meaning)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The host of the far end follows.
    Host,
    /// This is the far end.
    Server,
    /// UDP instead of TCP.
    Udp,
    /// The far end sends.
    Receive,
    /// Both ends send.
    Both,
    /// The seconds of the run follow.
    Seconds,
    /// A port follows.
    Port,
    /// The name of a test of netperf follows.
    Test,
    /// A rate follows.
    Pace,
    /// The result is wanted as JSON.
    Json,
    /// A value follows, which an option of this name takes.
    Value(&'static str),
    /// A number of bytes follows, likewise.
    Size(&'static str),
    /// There is nothing that it would be, with a value or without one.
    Nothing { has_value: bool },
}

use Meaning::{Both, Host, Json, Nothing, Pace, Port, Receive, Seconds, Server, Size, Test, Udp, Value};

const IPERF: Options = &[
    ("-c", "--client", Host),
    ("-s", "--server", Server),
    ("-u", "--udp", Udp),
    ("-P", "--parallel", Value("--channels")),
    ("-R", "--reverse", Receive),
    ("-d", "--dualtest", Both),
    ("-t", "--time", Seconds),
    ("-p", "--port", Port),
    ("-b", "--bitrate", Pace),
    ("", "--bandwidth", Pace),
    ("-l", "--length", Size("--sizes")),
    ("-w", "", Size("--socket-buffer")),
    ("-M", "--set-mss", Value("--mss")),
    ("-C", "", Value("--congestion")),
    ("-B", "", Value("--bind")),
    ("-A", "--affinity", Value("--cpu")),
    ("-J", "", Json),
    ("-i", "", Nothing { has_value: true }),
    ("-f", "--format", Nothing { has_value: true }),
    ("-O", "--omit", Nothing { has_value: true }),
    ("-D", "--daemon", Nothing { has_value: false }),
    ("-V", "--verbose", Nothing { has_value: false }),
    ("-Z", "--zerocopy", Nothing { has_value: false }),
];

const NETPERF_OPTIONS: Options = &[
    ("-H", "", Host),
    ("-t", "", Test),
    ("-l", "", Seconds),
    ("-p", "", Port),
    ("-L", "", Value("--bind")),
    ("-T", "", Value("--cpu")),
    ("-m", "", Size("--sizes")),
    ("-s", "", Size("--socket-buffer")),
    ("-K", "", Value("--congestion")),
    ("-r", "", Size("--sizes")),
    ("-S", "", Nothing { has_value: true }),
    ("-M", "", Nothing { has_value: true }),
    ("-I", "", Nothing { has_value: true }),
    ("-i", "", Nothing { has_value: true }),
    ("-D", "", Nothing { has_value: true }),
    ("-P", "", Nothing { has_value: true }),
    ("-c", "", Nothing { has_value: false }),
    ("-C", "", Nothing { has_value: false }),
];

/// Returns what to type instead of the words behind `hodo`, `hodo bench` or `hodo serve`, if any is an option of iperf or netperf.
pub fn translated(path: &str, words: &[String]) -> Option<Vec<String>> {
    let serves = match path {
        // The words of other tools are theirs, whatever follows.
        "hodo" if !words.first().is_some_and(|first| begins_a_line(first)) => return None,
        "hodo" | "hodo bench" => false,
        "hodo serve" => true,
        _ => return None,
    };
    let mut read = Reading::of(words);
    let is_foreign = if serves { read.is_server || read.port.is_some() } else { read.is_foreign };
    read.is_server |= serves;
    is_foreign.then(|| read.tips())
}

/// Returns whether this may be the first word behind `hodo` of a line of theirs.
fn begins_a_line(word: &str) -> bool {
    let is_theirs = PROGRAMS.contains(&word) || test(word).is_some();
    word.starts_with('-') || is_theirs || hodo_catalog::uri(word).is_ok()
}

/// A command line of iperf or netperf, as it was read.
#[derive(Debug, Default)]
struct Reading {
    is_netperf: bool,
    /// Whether a word can only be one of theirs.
    is_foreign: bool,
    /// Whether it asks for a kind of test, and not only for another setting.
    has_kind: bool,
    is_server: bool,
    is_udp: bool,
    is_both: bool,
    receives: bool,
    is_one_run: bool,
    link: Option<Uri>,
    host: Option<String>,
    port: Option<String>,
    test: Option<String>,
    /// The options behind the link.
    options: Vec<String>,
    /// The words that have no equivalent.
    left_out: Vec<String>,
}

impl Reading {
    fn of(words: &[String]) -> Reading {
        let is_of_netperf =
            |word: &String| matches!(word.as_str(), "-H" | "netperf" | "netserver") || test(word).is_some();
        let mut read = Reading { is_netperf: words.iter().any(is_of_netperf), ..Reading::default() };
        let options = if read.is_netperf { NETPERF_OPTIONS } else { IPERF };
        let cli = Cli::command();
        let bench = cli.find_subcommand("bench").unwrap_or(&cli);
        let mut words = words.iter().flat_map(|word| expanded(word, options)).peekable();
        while let Some(word) = words.next() {
            if let Some(meaning) = meaning(options, &word) {
                let meaning = match words.peek().filter(|word| meaning == Server && !word.starts_with('-')) {
                    // `-s 64` is what ping and its kin have for a size.
                    Some(size) if hodo_measure::units::bytes(&size.to_uppercase()).is_ok() => Size("--sizes"),
                    Some(host) if hodo_catalog::uri(host).is_err() => Host,
                    _ => meaning,
                };
                let value = if meaning.has_value() { words.next_if(|word| !word.starts_with('-')) } else { None };
                read.take(&word, meaning, value);
            } else if let Some(has_value) = own_option(bench, &word) {
                read.options.push(word);
                read.options.extend(words.next_if(|_| has_value));
            } else if PROGRAMS.contains(&word.as_str()) {
                (read.is_foreign, read.has_kind) = (true, true);
                read.is_server |= word == "netserver";
            } else if let Ok(link) = hodo_catalog::uri(&word) {
                read.link = Some(link);
            } else if test(&word).is_some() {
                read.take("", Test, Some(word));
            } else if word != "--" {
                read.left_out.push(word);
            }
        }
        read
    }

    fn take(&mut self, word: &str, meaning: Meaning, value: Option<String>) {
        let is_long = word.starts_with("--") && meaning != Port;
        self.is_foreign |= is_long || !matches!(meaning, Port | Seconds | Nothing { .. });
        self.has_kind |= matches!(meaning, Host | Udp | Receive | Both | Test | Pace | Value("--channels"));
        match (meaning, value) {
            (Host, Some(host)) if host.contains("://") => self.link = hodo_catalog::uri(&host).ok(),
            // A port behind the host, which iperf does not take.
            (Host, Some(host)) if host.matches(':').count() == 1 => {
                let (host, port) = host.split_once(':').unwrap_or_default();
                (self.host, self.port) = (Some(host.to_owned()), Some(port.to_owned()));
            }
            (Host, host) => self.host = Some(host.unwrap_or_else(|| "HOST".to_owned())),
            (Server, _) => self.is_server = true,
            (Udp, _) => self.is_udp = true,
            (Receive, _) => self.receives = true,
            (Both, _) => self.is_both = true,
            (Json, _) => self.options.extend(["--json", "-"].map(str::to_owned)),
            (Port, port) => self.port = port,
            (Test, Some(name)) if test(&name).is_some() => self.test = Some(name),
            (Seconds, Some(time)) => {
                self.is_one_run = true;
                self.options.extend(["-t".to_owned(), time]);
            }
            (Pace, Some(rate)) if rate == "0" => {}
            (Pace, Some(rate)) => self.options.extend(["--pace".to_owned(), rate.to_uppercase()]),
            // A request and a response, of one size.
            (Size(option), Some(sizes)) if sizes.split_once(',').is_some_and(|(out, back)| out == back) => {
                let size = sizes.split(',').next().unwrap_or_default().to_uppercase();
                self.options.extend([option.to_owned(), size]);
            }
            (Size(option), Some(size)) if !size.contains(',') => {
                self.options.extend([option.to_owned(), size.to_uppercase()]);
            }
            (Value(option), Some(value)) => self.options.extend([option.to_owned(), value]),
            (_, value) => self.left_out.extend([word.to_owned()].into_iter().chain(value)),
        }
    }

    fn tips(self) -> Vec<String> {
        let is_udp = self.is_udp || self.test.as_ref().is_some_and(|test| test.starts_with("UDP"));
        let scheme =
            self.link.as_ref().filter(|_| !is_udp).map_or(if is_udp { "udp" } else { "tcp" }, |link| link.scheme);
        let port = self.port.as_deref().unwrap_or("4242");
        let bound = self.options.windows(2).find(|words| words[0] == "--bind" && self.is_server);
        let at = bound.map_or("", |words| words[1].as_str());
        let far_end = format!("`hodo serve {scheme}://{at}:{port}`");
        if self.is_server {
            return vec![format!("type {far_end}")];
        }
        // An IPv6 address has brackets in a URI.
        let in_uri = |host: &String| if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let host = self.host.as_ref().map(|host| format!("{scheme}://{}:{port}", in_uri(host)));
        let named = self.link.as_ref().filter(|link| !link.wants_far_end()).map(|link| match is_udp {
            true => format!("{scheme}://{}", link.authority),
            false => link.to_string(),
        });
        let mut command = vec!["hodo".to_owned(), "bench".to_owned()];
        command.push(host.or(named).unwrap_or_else(|| scheme.to_owned()));
        command.extend(self.kind_of_test(is_udp));
        command.extend(self.options.iter().cloned());
        if self.is_one_run && !self.has("--repeat") {
            command.extend(["--repeat", "1"].map(str::to_owned));
        }
        let mut tips = vec![format!("type `{}`", quoted(&command))];
        tips.extend(self.host.map(|host| format!("start {far_end} on {host} first")));
        if !self.left_out.is_empty() {
            tips.push(format!("not translated: {}", self.left_out.join(" ")));
        }
        tips
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|word| word.split('=').next() == Some(option))
    }

    /// Returns the options of the kind of test that it means.
    fn kind_of_test(&self, is_udp: bool) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        if !self.has_kind {
            return Vec::new();
        }
        if self.is_netperf {
            let mut options = words(test(self.test.as_deref().unwrap_or("TCP_STREAM")).unwrap_or_default());
            if let Some(at) = options.iter().position(|option| option == "--sizes").filter(|_| self.has("--sizes")) {
                options.drain(at..at + 2);
            }
            return options;
        }
        let mode = match (self.is_both, self.receives) {
            _ if self.has("--mode") || self.has("--bidir") => "",
            (true, _) => "--bidir",
            (_, true) => "--mode receive",
            _ if is_udp && !self.has("--window") => "--mode send --window none",
            _ => "--mode send",
        };
        let test = if self.has("--test") { "" } else { "--test rate " };
        words(format!("{test}{mode}").trim())
    }
}

impl Meaning {
    fn has_value(self) -> bool {
        !matches!(self, Server | Udp | Receive | Both | Json | Nothing { has_value: false })
    }
}

fn meaning(options: Options, word: &str) -> Option<Meaning> {
    let is_it = |(short, long, _): &&(&str, &str, Meaning)| !word.is_empty() && (word == *short || word == *long);
    options.iter().find(is_it).map(|(_, _, meaning)| *meaning)
}

/// Returns the words of a word that is several: `-P4`, `-uR`, `--parallel=4`.
fn expanded(word: &str, options: Options) -> Vec<String> {
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| meaning(options, name).is_some()) {
        return vec![name.to_owned(), value.to_owned()];
    }
    let (letter, rest) = word.split_at_checked(2).unwrap_or((word, ""));
    match meaning(options, letter).filter(|_| !rest.is_empty()) {
        Some(meaning) if meaning.has_value() => vec![letter.to_owned(), rest.to_owned()],
        Some(_) => [vec![letter.to_owned()], expanded(&format!("-{rest}"), options)].concat(),
        None => vec![word.to_owned()],
    }
}

/// Returns whether a value follows an option of `hodo bench`; `None` if it has no such one.
fn own_option(bench: &Command, word: &str) -> Option<bool> {
    let (name, has_value_within) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
    let is_it = |arg: &&clap::Arg| {
        let is_long = arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        is_long || arg.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
    };
    let option = bench.get_arguments().find(is_it)?;
    Some(option.get_action().takes_values() && !has_value_within)
}

/// Returns the options that do a test of netperf.
fn test(name: &str) -> Option<&'static str> {
    let of_line = |line: &'static str| line.trim_start().strip_prefix(name)?.trim_start().strip_prefix("hodo bench ");
    let command = NETPERF.lines().filter(|_| !name.is_empty()).find_map(of_line)?;
    command.split_once(' ').map(|(_, options)| options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn tips(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (path, words) = match words.first().map(String::as_str) {
            Some("bench") => ("hodo bench", &words[1..]),
            Some("serve") => ("hodo serve", &words[1..]),
            _ => ("hodo", &words[..]),
        };
        translated(path, words).unwrap_or_default()
    }

    #[test]
    fn each_line_has_its_command() {
        for (line, command) in [
            ("-c there", "bench tcp://there:4242 --test rate --mode send"),
            (
                "-c there -p 5201 -P4 -t 10",
                "bench tcp://there:5201 --test rate --mode send --channels 4 -t 10 --repeat 1",
            ),
            ("iperf3 -c there -R", "bench tcp://there:4242 --test rate --mode receive"),
            ("bench tcp --parallel=4 --reverse", "bench tcp --test rate --mode receive --channels 4"),
            ("bench tcp://there:7 -w 256k -d", "bench tcp://there:7 --test rate --bidir --socket-buffer 256K"),
            ("-uc there -b 100m", "bench udp://there:4242 --test rate --mode send --window none --pace 100M"),
            ("-c fe80::1%eth0 -l 128k", "bench 'tcp://[fe80::1%eth0]:4242' --test rate --mode send --sizes 128K"),
            ("bench pva -P 2 --test channels", "bench pva --mode send --channels 2 --test channels"),
            ("-s -p 5201", "serve tcp://:5201"),
            ("-su", "serve udp://:4242"),
            ("-s -B 127.0.0.1", "serve tcp://127.0.0.1:4242"),
            ("-c there:5201", "bench tcp://there:5201 --test rate --mode send"),
            ("tcp://there -P2 --omit 1", "bench tcp://there --test rate --mode send --channels 2"),
            ("-H there -t TCP_RR -- -r 64,64", "bench tcp://there:4242 --test latency --mode both --sizes 64"),
            ("serve udp -p 7", "serve udp://:7"),
            ("netserver", "serve tcp://:4242"),
            ("-H there -l 10 -- -m 32k", "bench tcp://there:4242 --test rate --mode send -t 10 --sizes 32K --repeat 1"),
            ("-H there -t TCP_RR", "bench tcp://there:4242 --test latency --mode both --sizes 1"),
            ("bench tcp -t UDP_RR", "bench udp --test latency --mode both --sizes 1"),
            ("bench tcp --time 10", "bench tcp -t 10 --repeat 1"),
            ("bench tcp -J", "bench tcp --json -"),
            ("bench udp -s 64", "bench udp --sizes 64"),
            ("bench --server there", "bench tcp://there:4242 --test rate --mode send"),
            ("bench tcp://netbook:7 -u", "bench udp://netbook:7 --test rate --mode send --window none"),
            ("-H there -t omni", "bench tcp://there:4242 --test rate --mode send --sizes 128K"),
            ("bench tcp -w 1M -l 64k", "bench tcp --socket-buffer 1M --sizes 64K"),
            ("TCP_MAERTS", "bench tcp --test rate --mode receive --sizes 128K"),
        ] {
            let tips = tips(line);
            let (_, found) = tips.first().and_then(|tip| tip.split_once("`hodo ")).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(found.trim_end_matches('`'), command, "{line}");
            let words = command.replace('\'', "");
            if let Err(why) = Cli::try_parse_from(format!("hodo {words}").split(' ')) {
                panic!("{line}: {why}");
            }
        }
    }

    #[test]
    fn what_it_has_no_equivalent_for_is_said() {
        let said = tips("-c there -i 1 -Z stray");
        assert_eq!(said[1..], ["start `hodo serve tcp://:4242` on there first", "not translated: -i 1 -Z stray"]);
    }

    #[test]
    fn what_is_no_line_of_theirs_is_left_alone() {
        for line in [
            "",
            "bench tcp --nonesuch",
            "bench tcp -t 10 -p 7",
            "serve",
            "serve tcp://:4242 -x",
            "tcp",
            "pvget -w 1 -M json MY:PV",
            "read -c conn.xml dev",
            "ping -c 3 there",
            "perf -s 1",
            "bench -i 1",
        ] {
            assert!(tips(line).is_empty(), "{line}");
        }
    }
}
