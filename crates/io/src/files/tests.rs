use super::*;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

fn place(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hodo-files-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn pipe(name: &str) -> PathBuf {
    let path = place(name);
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("`mkfifo` is everywhere");
    assert!(made.success());
    path
}

type Way = fn(&Path, u64) -> Result<Vec<u8>>;

/// The ways to read a file, with their names.
const WAYS: [(&str, Way); 2] = [("command", read), ("daemon", read_apart)];

#[test]
fn files_are_read_up_to_a_bound() {
    let path = place("plain");
    std::fs::write(&path, vec![7; 100_000]).expect("a folder to write to");
    for (way, read) in WAYS {
        assert_eq!(read(&path, 100_000).expect(way), vec![7; 100_000], "{way}");
        let long = read(&path, 99_999).unwrap_err();
        assert_eq!((long.kind(), long.to_string()), (ErrorKind::FileTooLarge, "it has more than 99999 bytes".into()));
        assert_eq!(read(Path::new("/dev/null"), 0).expect(way), b"", "{way}");
        assert_eq!(read(Path::new("/nowhere"), 1).unwrap_err().kind(), ErrorKind::NotFound, "{way}");
        assert_eq!(read(Path::new("/proc/self/mem"), 1).unwrap_err().raw_os_error(), Some(libc::EIO), "{way}");
        assert_eq!(read(Path::new("/"), 1).unwrap_err().kind(), ErrorKind::IsADirectory, "{way}");
    }
    assert_eq!(open(&path).and_then(|file| read_from(file, 1 << 20)).expect("it is a file").len(), 100_000);
    std::fs::remove_file(path).expect("it was made");
}

#[test]
fn devices_and_sockets_are_refused_at_once() {
    let socket = place("socket");
    let _listener = UnixListener::bind(&socket).expect("a folder to write to");
    for (way, read) in WAYS {
        for path in [Path::new("/dev/zero"), Path::new("/dev/ptmx"), &socket] {
            let refused = read(path, 1 << 30).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{way} {}: {refused}", path.display());
        }
    }
    assert_eq!(open(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::InvalidInput);
    std::fs::remove_file(socket).expect("it was made");
}

#[test]
fn commands_read_pipes_and_daemons_refuse_them_at_once() {
    let path = pipe("fed");
    for opened in [read_apart(&path, 10), open(&path).map(|_| Vec::new())] {
        let refused = opened.unwrap_err();
        assert_eq!((refused.kind(), refused.to_string()), (ErrorKind::InvalidInput, "it is not a regular file".into()));
    }
    let to = path.clone();
    let writer = std::thread::spawn(move || {
        let mut to = File::options().write(true).open(to).expect("a pipe");
        for part in [&b"one "[..], b"two"] {
            to.write_all(part).expect("somebody reads");
            std::thread::yield_now();
        }
    });
    assert_eq!(read(&path, 10).expect("it is fed"), b"one two");
    writer.join().expect("it does not panic");
    std::fs::remove_file(path).expect("it was made");
}

#[test]
fn a_pipe_that_nobody_writes_to_is_an_error() {
    let path = pipe("alone");
    let alone = read(&path, 10).unwrap_err();
    assert_eq!(alone.kind(), ErrorKind::TimedOut, "{alone}");
    assert_eq!(append(&path).unwrap_err().kind(), ErrorKind::NotConnected);
    std::fs::remove_file(path).expect("it was made");
}

#[test]
fn the_process_that_reads_holds_nothing_of_this_one_and_is_collected() {
    let path = place("held");
    std::fs::write(&path, b"x").expect("a folder to write to");
    for _ in 0..100 {
        read_apart(&path, 1).expect("it is a file");
    }
    let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", unix_thread())).unwrap_or_default();
    assert!(children.split_whitespace().count() <= 8, "{children}");
    std::fs::remove_file(path).expect("it was made");
}

fn unix_thread() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("Linux has it");
    link.file_name().expect("a number").to_string_lossy().into_owned()
}

#[test]
fn what_is_no_text_says_so() {
    assert_eq!(text_of(b"caf\xe9".to_vec()).unwrap_err().to_string(), "it is no text (UTF-8)");
    assert_eq!([TEXT_MAX, 1 << 30, 1_000].map(size_text), ["256 MiB", "1 GiB", "1000 bytes"]);
}
