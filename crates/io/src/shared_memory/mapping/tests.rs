use super::*;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;

fn memory(length: usize) -> SharedMemory {
    SharedMemory::create("hodo-test", length).expect("a little memory is there")
}

/// Maps a file once more, as another process does.
fn again(memory: &SharedMemory, length: usize) -> io::Result<SharedMemory> {
    let file = memory.file().expect("it was created here").try_clone_to_owned().expect("one more descriptor");
    SharedMemory::map(&file, length)
}

fn refusal(file: File, length: usize) -> ErrorKind {
    SharedMemory::map(&OwnedFd::from(file), length).expect_err("it is not to be mapped").kind()
}

/// Creates a file of memory as a careless or a hostile process does.
fn unsealed(length: u64) -> File {
    let file = File::from(sys::create_file("hodo-test").expect("a file of memory"));
    file.set_len(length).expect("a length");
    file
}

#[test]
fn two_mappings_show_the_same_bytes() {
    let first = memory(100);
    let second = again(&first, 100).expect("it is sealed");
    first.copy_in(90, b"0123456789").expect("it fits");
    let mut bytes = [0; 10];
    second.copy_out(90, &mut bytes).expect("it fits");
    assert_eq!(&bytes, b"0123456789");
    second.word64(8).fetch_add(7, Relaxed);
    assert_eq!((first.word64(8).load(Relaxed), first.word32(8).load(Relaxed).swap_bytes() >> 24), (7, 7));
    first.copy_to(90, &second, 0, 10).expect("it fits");
    first.copy_out(0, &mut bytes).expect("it fits");
    assert_eq!(&bytes, b"0123456789");
    second.copy_to(0, &second, 3, 10).expect("it fits");
    second.copy_out(3, &mut bytes).expect("it fits");
    assert_eq!(&bytes, b"0123456789", "runs of one mapping may overlap");
}

#[test]
fn nothing_outside_is_touched() {
    let (small, large) = (memory(10), memory(5000));
    let mut bytes = [0; 4];
    for offset in [7, 10, 11, usize::MAX - 3, usize::MAX] {
        assert_eq!(small.copy_in(offset, &bytes), Err(OutOfBounds));
        assert_eq!(small.copy_out(offset, &mut bytes), Err(OutOfBounds));
        assert_eq!(small.copy_to(offset, &large, 0, 4), Err(OutOfBounds));
        assert_eq!(large.copy_to(0, &small, offset, 4), Err(OutOfBounds));
    }
    assert_eq!(large.copy_to(0, &large, 0, usize::MAX), Err(OutOfBounds));
    assert_eq!(small.copy_in(10, &[]), Ok(()));
    assert!(std::panic::catch_unwind(|| memory(10).word64(8).load(Relaxed)).is_err());
    assert!(std::panic::catch_unwind(|| memory(10).word32(2).load(Relaxed)).is_err());
}

#[test]
fn memory_that_could_vanish_is_not_mapped() {
    assert_eq!(refusal(unsealed(4096), 4096), ErrorKind::InvalidData, "it could shrink");
    let sparse = unsealed(1 << 20);
    sys::seal(sparse.as_fd()).expect("it can be sealed");
    assert_eq!(refusal(sparse, 1 << 20), ErrorKind::InvalidData, "its pages are not there");
    let path = std::env::temp_dir().join(format!("hodo-map-{}", std::process::id()));
    let ordinary = File::options().create(true).truncate(true).read(true).write(true).open(&path).expect("a folder");
    std::fs::remove_file(&path).expect("it was made");
    ordinary.set_len(4096).expect("a length");
    assert_eq!(refusal(ordinary, 4096), ErrorKind::InvalidData, "anyone may cut it");
    assert_eq!(again(&memory(5000), 8193).expect_err("it is shorter").kind(), ErrorKind::InvalidData);
    assert_eq!(again(&memory(5000), 0).expect_err("of nothing").kind(), ErrorKind::InvalidData);
    assert_eq!(again(&memory(5000), usize::MAX).expect_err("it is shorter").kind(), ErrorKind::InvalidData);
}

#[test]
fn memory_cannot_shrink_once_it_is_made() {
    let memory = memory(8192);
    let file = File::from(memory.file().expect("ours").try_clone_to_owned().expect("one more descriptor"));
    assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
    assert!(file.as_raw_fd() > 2);
    memory.copy_in(8191, &[1]).expect("it is still there");
}

#[test]
fn too_much_memory_is_an_error() {
    for length in [usize::MAX, 1 << 50] {
        assert_eq!(SharedMemory::create("hodo-test", length).expect_err("too much").kind(), ErrorKind::OutOfMemory);
    }
    assert_eq!(SharedMemory::create("hodo-test", 0).expect_err("nothing").kind(), ErrorKind::InvalidInput);
}
