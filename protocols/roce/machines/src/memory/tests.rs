use super::*;
use alloc::vec;

const ALL_USES: [Use; 5] = [Use::LocalRead, Use::LocalWrite, Use::RemoteRead, Use::RemoteWrite, Use::RemoteAtomic];

fn memory() -> (Memory, u32, u64) {
    let mut memory = Memory::new(1);
    let (key, address) = memory.register((0..100).collect(), Access::ALL, Some(0x1000)).unwrap();
    (memory, key, address)
}

fn entry(address: u64, length: u32, key: u32) -> ScatterEntry {
    ScatterEntry { address, length, key }
}

#[test]
fn bytes_are_found_inside_of_a_region_and_nowhere_else() {
    let (mut memory, key, address) = memory();
    assert_eq!(memory.get(key, address + 10, 2, Use::RemoteRead), Ok(&[10, 11][..]));
    assert_eq!(memory.at(key, address, 100, Use::RemoteWrite).map(|bytes| bytes.len()), Ok(100));
    assert_eq!(memory.get(key, address + 100, 0, Use::RemoteRead), Ok(&[][..]));
    for (address, length) in [
        (address, 101),
        (address + 99, 2),
        (address - 1, 1),
        (address - 1, 0),
        (address + 101, 0),
        (0, usize::MAX),
        (u64::MAX, 2),
        (address, usize::MAX),
    ] {
        let out = AccessError::OutOfBounds { key, address, length: length as u64 };
        assert_eq!(memory.get(key, address, length, Use::LocalRead), Err(out));
        assert_eq!(memory.at(key, address, length, Use::LocalWrite), Err(out));
    }
    assert_eq!(memory.get(key ^ 1 << 16, address, 1, Use::LocalRead), Err(AccessError::NoSuchKey(key ^ 1 << 16)));
    assert_eq!(memory.get(key + 1, address, 1, Use::LocalRead), Err(AccessError::NoSuchKey(key + 1)));
}

#[test]
fn each_use_needs_its_right() {
    let none = Access::default();
    for (access, allowed) in [
        (none, &[Use::LocalRead][..]),
        (Access { local_write: true, ..none }, &[Use::LocalRead, Use::LocalWrite]),
        (Access { remote_read: true, ..none }, &[Use::LocalRead, Use::RemoteRead]),
        (Access { remote_write: true, ..none }, &[Use::LocalRead, Use::RemoteWrite]),
        (Access { remote_atomic: true, ..none }, &[Use::LocalRead, Use::RemoteAtomic]),
        (Access::ALL, &ALL_USES),
    ] {
        let mut memory = Memory::new(1);
        let (key, address) = memory.register(vec![0; 8], access, None).unwrap();
        for intent in ALL_USES {
            let expected = if allowed.contains(&intent) { Ok(8) } else { Err(AccessError::NotAllowed(key)) };
            assert_eq!(memory.get(key, address, 8, intent).map(<[u8]>::len), expected, "{access:?} {intent:?}");
        }
    }
}

#[test]
fn a_key_that_was_invalidated_stays_a_local_one() {
    let (mut memory, key, address) = memory();
    assert!(memory.invalidate(key));
    assert!(!memory.invalidate(key) && !memory.invalidate(0));
    for intent in ALL_USES {
        let is_local = matches!(intent, Use::LocalRead | Use::LocalWrite);
        assert_eq!(memory.get(key, address, 1, intent).is_ok(), is_local, "{intent:?}");
    }
}

/// A key has 16 random bits, and returns at some time; what it opened before stays out of reach.
#[test]
fn an_address_does_not_return_with_the_key_of_another_region() {
    let mut memory = Memory::new(1);
    let mut known = vec![];
    for _ in 0..1000 {
        let (key, address) = memory.register(vec![0; 3], Access::ALL, None).unwrap();
        assert!(key != 0 && !known.contains(&address), "{key:#x} {address:#x}");
        assert!(known.iter().all(|before| memory.get(key, *before, 1, Use::RemoteRead).is_err()));
        assert_eq!(memory.deregister(key), Some(vec![0; 3]));
        assert!(memory.deregister(key).is_none() && memory.bytes(key).is_none() && memory.bytes_mut(key).is_none());
        known.push(address);
    }
}

#[test]
fn the_number_of_regions_has_a_bound_and_addresses_do_not_wrap() {
    let mut memory = Memory::new(1);
    assert_eq!(memory.register(vec![0; 2], Access::ALL, Some(u64::MAX)), None);
    assert!(memory.register(vec![0; 2], Access::ALL, Some(u64::MAX - 2)).is_some());
    for _ in 1..1 << PLACE_BITS {
        assert!(memory.register(vec![], Access::ALL, None).is_some());
    }
    assert_eq!(memory.register(vec![], Access::ALL, None), None);
}

#[test]
fn bytes_are_gathered_and_scattered_from_any_offset_on() {
    let (mut memory, key, address) = memory();
    let entries =
        [entry(address + 10, 3, key), entry(address, 0, key), entry(address + 50, 1, key), entry(address + 20, 4, key)];
    let whole = [10, 11, 12, 50, 20, 21, 22, 23];
    for offset in 0..=whole.len() {
        for end in offset..=whole.len() {
            let mut found = vec![];
            memory.gather(&entries, offset, end - offset, |run| found.extend_from_slice(run)).unwrap();
            assert_eq!(found, whole[offset..end]);
        }
    }
    memory.scatter(&entries, 2, &[1, 2, 3, 4]).unwrap();
    let bytes = memory.bytes(key).unwrap();
    assert_eq!((&bytes[10..13], bytes[50], &bytes[20..24]), (&[10, 11, 1][..], 2, &[3, 4, 22, 23][..]));
}

#[test]
fn entries_outside_of_a_region_are_refused() {
    let (mut memory, key, address) = memory();
    for wrong in [entry(address + 99, 2, key), entry(u64::MAX, 2, key), entry(address, 2, key ^ 1)] {
        assert!(memory.gather(&[wrong], 0, 2, |_| {}).is_err());
        assert!(memory.gather(&[wrong], 1, 1, |_| {}).is_err());
        assert!(memory.scatter(&[wrong], 0, &[1, 1]).is_err());
        // Without bytes there is nothing to refuse.
        assert!(memory.gather(&[wrong], 0, 0, |_| {}).is_ok());
    }
    assert!(memory.bytes(key).unwrap().iter().copied().eq(0..100));
}
