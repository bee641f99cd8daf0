use super::event::Subscriber;
use super::*;
use std::fs::{self, File};
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Long enough for a loaded machine.
const LONG: Duration = Duration::from_secs(30);
const ROOM: u64 = 1024;

fn outlet(sink: Sink, format: Format) -> Arc<Outlet> {
    Arc::new(Outlet::new(sink, Some(("hodo hub".to_owned(), format))))
}

fn counts(outlet: &Outlet) -> (u64, u64) {
    (outlet.counts().written.load(Relaxed), outlet.counts().lost.load(Relaxed))
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("hodo-log-{name}-{}", std::process::id()))
}

/// Returns the lines that are written in a format while `log` runs.
fn logged(name: &str, format: Format, level: LevelFilter, log: impl FnOnce()) -> Vec<String> {
    let path = file(name);
    let outlet = outlet(Sink::file(&path).expect("a folder to write to"), format);
    tracing::subscriber::with_default(Subscriber::new("hodo hub", level, format, Arc::clone(&outlet)), log);
    outlet.drain(LONG);
    let text = fs::read_to_string(&path).expect("it was written");
    fs::remove_file(&path).expect("it is there");
    text.lines().map(str::to_owned).collect()
}

fn events() {
    tracing::warn!(client = "a:1", bytes = 8, "is gone");
    tracing::info!("a\nb\u{1b}[2J");
    tracing::debug!("has connected");
    tracing::info!(target: "hyper", "of no interest");
    tracing::error!(target: "hyper", "is broken");
}

#[test]
fn plain_lines_are_those_of_a_terminal() {
    let lines = logged("plain", Format::Plain, LevelFilter::INFO, events);
    let expected =
        ["hodo hub: is gone bytes=8 client=a:1", "hodo hub: a\\nb\\u{1b}[2J", "hodo hub: is broken"].map(str::to_owned);
    assert_eq!(lines, expected);
}

#[test]
fn a_file_has_time_and_level() {
    let lines = logged("text", Format::Text, LevelFilter::DEBUG, events);
    let ends: Vec<&str> = lines.iter().map(|line| &line[27..]).collect();
    let expected = [
        " WARN  hodo hub: is gone bytes=8 client=a:1",
        " INFO  hodo hub: a\\nb\\u{1b}[2J",
        " DEBUG hodo hub: has connected",
        " ERROR hodo hub: is broken",
    ];
    assert_eq!(ends, expected);
    assert!(lines[0].starts_with("20") && lines[0][..27].ends_with('Z'), "{}", lines[0]);
}

#[test]
fn programs_read_json() {
    let lines = logged("json", Format::Json, LevelFilter::WARN, events);
    assert_eq!(lines.len(), 2);
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("it is JSON");
    let found = ["level", "name", "message", "client", "bytes"].map(|key| line[key].to_string());
    assert_eq!(found, ["\"warn\"", "\"hodo hub\"", "\"is gone\"", "\"a:1\"", "8"]);
    assert!(lines[0].starts_with("{\"time\":\"20"), "{}", lines[0]);
}

#[test]
fn the_journal_gets_priorities() {
    let lines = logged("journald", Format::Journald, LevelFilter::TRACE, events);
    let starts: Vec<&str> = lines.iter().map(|line| &line[..3]).collect();
    assert_eq!(starts, ["<4>", "<6>", "<7>", "<3>"]);
}

#[test]
fn levels_have_names() {
    assert_eq!((level("debug"), level("off")), (Some(LevelFilter::DEBUG), Some(LevelFilter::OFF)));
    assert_eq!((level("loud"), level("3")), (None, None));
    assert_eq!((Format::named("json"), Format::named("xml")), (Some(Format::Json), None));
}

#[test]
fn lines_for_a_full_disk_are_counted_as_lost() {
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let outlet = outlet(Sink::to(full), Format::Plain);
    (0..3).for_each(|_| outlet.send(b"a line\n".to_vec()));
    outlet.drain(LONG);
    assert_eq!(counts(&outlet), (0, 3));
    let refused = outlet.print(b"text\n", LONG).expect_err("there is no room");
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn lines_for_a_reader_that_has_gone_are_counted_as_lost() {
    let (reader, writer) = pipe().expect("a descriptor is free");
    drop(reader);
    let outlet = outlet(Sink::to(OwnedFd::from(writer).into()), Format::Plain);
    (0..3).for_each(|_| outlet.send(b"a line\n".to_vec()));
    outlet.drain(LONG);
    assert_eq!(counts(&outlet), (0, 3));
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody_and_is_told_later_what_it_missed() {
    let (mut reader, writer) = pipe().expect("a descriptor is free");
    let outlet = outlet(Sink::to(OwnedFd::from(writer).into()), Format::Plain);
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let sent = 4 * ROOM;
    (0..sent).for_each(|_| outlet.send(line.clone()));
    let lost = counts(&outlet).1;
    assert!(lost > ROOM, "{lost} of {sent}");
    outlet.drain(Duration::from_millis(10));
    // Who prints has patience, but no longer than it says.
    assert!(outlet.print(b"more\n", Duration::from_millis(10)).is_ok());
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    outlet.drain(LONG);
    let (written, lost) = counts(&outlet);
    assert_eq!(written + lost, sent + 1);
    drop(outlet);
    let text = reading.join().expect("it does not panic").expect("it is text");
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("hodo hub: ")).collect();
    let number = |line: &&str| line["hodo hub: ".len()..].split(' ').next().and_then(|word| word.parse::<u64>().ok());
    assert_eq!(told.iter().map(|line| number(line).expect("a number")).sum::<u64>(), lost, "{told:?}");
}

#[test]
fn a_file_is_opened_again_after_a_signal() {
    let (path, moved) = (file("rotated"), file("rotated.1"));
    let outlet = outlet(Sink::file(&path).expect("a folder to write to"), Format::Plain);
    let say = |line: &str| {
        outlet.send(format!("{line}\n").into_bytes());
        outlet.drain(LONG);
    };
    say("one");
    fs::rename(&path, &moved).expect("it is there");
    say("two");
    signal_hook::low_level::raise(signal_hook::consts::SIGHUP).expect("a process may signal itself");
    while !path.exists() {
        std::thread::yield_now();
    }
    say("three");
    let read = |path: &Path| fs::read_to_string(path).expect("it is there");
    assert_eq!((read(&moved), read(&path)), ("one\ntwo\n".to_owned(), "three\n".to_owned()));
    fs::remove_file(path).and_then(|()| fs::remove_file(moved)).expect("they are there");
}

#[test]
fn a_line_that_was_cut_off_does_not_run_into_the_next() {
    let (mut reader, writer) = UnixStream::pair().expect("descriptors are free");
    writer.set_nonblocking(true).expect("it is a socket");
    let mut sink = Sink::to(OwnedFd::from(writer).into());
    let refused = sink.write(&[b'x'; 10 << 20]).expect_err("there is no room for all of it");
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    let mut text = vec![0; 1 << 10];
    while sink.write(b"next\n").is_err() {
        reader.read_exact(&mut text).expect("there is more");
    }
    drop(sink);
    reader.read_to_end(&mut text).expect("it has ended");
    assert!(text.ends_with(b"x\nnext\n"));
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let error = Sink::file(Path::new("/nowhere/at/all.log")).err().expect("there is no such folder").to_string();
    assert!(error.contains("/nowhere/at/all.log"), "{error}");
}
