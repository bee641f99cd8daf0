//! The command line as it was meant: with every default that it left out.

use super::BenchOptions;
use hodo_measure::units::span_text;
use hodo_measure::{Repeats, Until};
use hodo_tester::Timing;

/// Returns the command line of this process, followed by the options that it left at their defaults.
pub fn effective(bench: &BenchOptions, timing: &Timing) -> Vec<String> {
    let mut arguments: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    complete(bench, timing, &mut arguments);
    arguments
}

fn complete(bench: &BenchOptions, timing: &Timing, arguments: &mut Vec<String>) {
    let mut defaults = vec![
        ("--batch", bench.choice.batch.to_string()),
        ("--warmup", span_text(timing.warmup)),
        ("--wait", timing.wait.to_string()),
        ("--seed", timing.seed.to_string()),
        ("--timeout", span_text(timing.timeout)),
    ];
    if let Until::Elapsed(duration) = timing.until {
        defaults.push(("--duration", span_text(duration)));
    }
    match timing.repeats {
        Repeats::Fixed(times) => defaults.push(("--repeat", times.to_string())),
        Repeats::Confidence { percent, width, max } => defaults.extend([
            ("--confidence", percent.to_string()),
            ("--interval", format!("{}%", width * 100.0)),
            ("--max-repeats", max.to_string()),
        ]),
    }
    for (option, value) in defaults {
        let given = |word: &String| {
            let is_short = option == "--duration" && word.starts_with("-t");
            is_short || word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
        };
        if !arguments.iter().any(given) {
            arguments.extend([option.to_owned(), value]);
        }
    }
}

/// Returns one line for people that says how the measurement is made.
pub fn summary(bench: &BenchOptions, timing: &Timing) -> String {
    let repeat = match timing.repeats {
        Repeats::Fixed(times) => format!("{times} x"),
        Repeats::Confidence { percent, width, max } => {
            format!("until the {percent} % interval is {:.3} % wide, at most {max} x", width * 100.0)
        }
    };
    let one = match timing.until {
        Until::Elapsed(duration) => span_text(duration),
        Until::Count(count) => format!("{count} operations"),
    };
    let warmup = span_text(timing.warmup);
    format!("{}: {repeat} {one} after {warmup} of warm-up, wait {}, seed {}", bench.link, timing.wait, timing.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Cli, Command};
    use clap::Parser;

    #[test]
    fn what_was_left_out_is_added() {
        let words = ["hodo", "bench", "tcp", "--repeat", "3", "--seed=7"];
        let Some(Command::Bench(bench)) = Cli::try_parse_from(words).unwrap().command else { panic!("not bench") };
        let mut arguments: Vec<String> = words.map(str::to_owned).to_vec();
        complete(&bench, &crate::bench::plan::timing(&bench, None), &mut arguments);
        assert_eq!(arguments[6..].join(" "), "--batch 1 --warmup 200ms --wait adaptive --timeout 5s --duration 500ms");
        let mut short: Vec<String> = ["hodo", "bench", "tcp", "-t", "2"].map(str::to_owned).to_vec();
        complete(&bench, &crate::bench::plan::timing(&bench, None), &mut short);
        assert!(!short.iter().any(|word| word == "--duration"), "{short:?}");
    }
}
