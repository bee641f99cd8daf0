use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: PingPongOptions,
}

/// The short options of rdma-core 64's `ibv_rc_pingpong`, as it hands them to getopt, in the order of [`STOCK`].
const GETOPT: &str = "p:d:i:s:m:r:n:l:eg:oOPtcjNU";
/// The letters of [`STOCK`].
const LETTERS: [char; 18] = ['p', 'd', 'i', 's', 'm', 'r', 'n', 'l', 'e', 'g', 'o', 'O', 'P', 't', 'c', 'j', 'N', 'U'];

fn parse(arguments: &[&str]) -> Result<PingPongOptions, String> {
    let line = Line::try_parse_from([&["pingpong"], arguments].concat());
    line.map(|line| line.options).map_err(|error| error.to_string())
}

/// Returns what options say, without those that stand at their defaults.
fn said(arguments: &[&str]) -> String {
    let options = parse(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    format!("{options:?}")
}

/// Returns whether an option of getopt's list takes a value.
fn takes_value(letter: char) -> bool {
    let behind = GETOPT.split_once(letter).expect("it is in the list").1;
    behind.starts_with(':')
}

fn value(letter: char) -> &'static str {
    match letter {
        'd' => "mlx5_0",
        'm' => "2048",
        'l' => "3",
        _ => "77",
    }
}

#[test]
fn every_option_of_getopts_list_is_taken_in_every_form() {
    assert_eq!(GETOPT.chars().filter(|letter| *letter != ':').count(), STOCK.len());
    for (name, letter) in STOCK.into_iter().zip(LETTERS) {
        let is_meant = |prefix: &str| {
            prefix == name || (prefix != OWN && STOCK.iter().filter(|other| other.starts_with(prefix)).count() == 1)
        };
        let names: Vec<_> = (1..=name.len()).map(|length| &name[..length]).filter(|name| is_meant(name)).collect();
        let value = value(letter);
        let mut forms: Vec<Vec<String>> = Vec::new();
        if takes_value(letter) {
            forms.push(vec![format!("-{letter}"), value.into()]);
            forms.push(vec![format!("-{letter}{value}")]);
            forms.push(vec![format!("-N{letter}{value}")]);
            for name in names {
                forms.push(vec![format!("--{name}"), value.into()]);
                forms.push(vec![format!("--{name}={value}")]);
            }
        } else {
            forms.push(vec![format!("-{letter}")]);
            forms.push(vec![format!("-{letter}{letter}")]);
            forms.extend(names.into_iter().map(|name| vec![format!("--{name}")]));
        }
        let bundled = |form: &[String]| said(&form.iter().map(String::as_str).collect::<Vec<_>>());
        let expected = bundled(&forms[0]);
        assert_ne!(expected, said(&[]), "{name}");
        for form in &forms {
            let found = bundled(form).replace("new_send: true", "new_send: false");
            assert_eq!(found, expected.replace("new_send: true", "new_send: false"), "{form:?}");
            // The host may stand anywhere, and an option may be repeated: the last one holds.
            let mut around: Vec<_> = form.iter().map(String::as_str).collect();
            around.insert(0, "there");
            around.extend(form.iter().map(String::as_str));
            assert!(said(&around).contains("host: Some(\"there\")"), "{form:?}");
        }
    }
}

#[test]
fn an_abbreviation_of_several_options_is_none() {
    for ambiguous in ["--i=1", "--ib=1", "--ib-=1", "--s=1", "--p=1"] {
        assert!(parse(&[ambiguous]).is_err(), "{ambiguous}");
    }
    // `--all` is perftest's.
    assert!(parse(&["there", "--test", "write-bw", "--all"]).unwrap().all);
}

#[test]
fn numbers_are_read_as_strtoul_does() {
    for (text, expected) in [("64", 64), ("0x40", 64), ("0X40", 64), ("0100", 64), ("+64", 64), (" 64", 64), ("0", 0)] {
        assert_eq!(parse(&["-s", text]).unwrap().size, expected, "{text}");
    }
    assert_eq!(parse(&["-m", "0x400"]).unwrap().mtu, 1024);
    assert_eq!(parse(&["-p", "0x4853", "-i", "0x2", "-l", "0xf", "-r", "010"]).unwrap().port, 18_515);
    assert_eq!(parse(&["-n", "0"]).unwrap().iters, 0);
    assert_eq!(parse(&["-n", "18446744073709551615"]).unwrap().iters, u64::MAX);
    for (letter, wrong) in [
        ("-s", "64k"),
        ("-s", ""),
        ("-s", "0x"),
        ("-s", "089"),
        ("-s", "--64"),
        ("-s", "+-64"),
        ("-s", "4294967296"),
        ("-p", "65536"),
        ("-n", "18446744073709551616"),
        ("-r", "0"),
        ("-l", "16"),
        ("-i", "0"),
        ("-m", "1500"),
        ("-g", "256"),
    ] {
        assert!(parse(&[letter, wrong]).is_err(), "{letter} {wrong}");
    }
}

#[test]
fn the_last_of_a_repeated_option_holds() {
    let options = parse(&["-s", "1", "--size=2", "-s3", "-e", "-e", "-c", "--chk", "-n", "5", "-n", "6"]).unwrap();
    assert_eq!((options.size, options.iters, options.events, options.chk), (3, 6, true, true));
}

#[test]
fn a_negative_index_of_a_gid_is_none() {
    for form in [&["-g", "-1"][..], &["-g-1"], &["--gid-idx", "-1"], &["--gid-idx=-0x1"], &["--g", "-1"]] {
        assert_eq!(parse(form).unwrap().gid_idx, Some(-1), "{form:?}");
    }
}

#[test]
fn what_stock_refuses_is_refused() {
    for wrong in
        [&["-o", "-j"][..], &["-O", "-j"], &["-U", "-o"], &["-U", "-O"], &["-U", "-j"], &["one", "two"], &["-x"]]
    {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
    let both = parse(&["-o", "-O", "-P", "-t", "-c", "-N"]).unwrap();
    assert!(both.odp && both.iodp && both.prefetch);
}
