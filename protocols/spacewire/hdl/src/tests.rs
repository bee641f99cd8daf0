use super::*;
use numbers::NO_END;

const HEADER: &str = include_str!("../include/hodo_spacewire.h");

/// Returns a number of the header.
fn defined(name: &str) -> i32 {
    let mut lines = HEADER.lines().filter_map(|line| line.strip_prefix("#define HODO_SPW_"));
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect("the header defines it");
    value.trim_matches(['(', ')']).parse().expect("a number")
}

fn opened() -> i32 {
    let end = hodo_spw_open(5_000, 1, defined("2008"), 56);
    assert!(end > 0);
    end
}

/// Moves two ends on that are wired together, and returns the levels that they leave.
fn turn(ends: (i32, i32), steps: u32, mut levels: (i32, i32)) -> (i32, i32) {
    for _ in 0..steps {
        let to = |levels: i32| (levels & defined("DATA"), levels & defined("STROBE"));
        let (there, back) = (to(levels.0), to(levels.1));
        levels = (hodo_spw_step(ends.0, back.0, back.1), hodo_spw_step(ends.1, there.0, there.1));
    }
    levels
}

#[test]
fn two_ends_exchange_packets_time_codes_and_faults() {
    let (one, other) = (opened(), opened());
    let levels = turn((one, other), 5_000, (0, 0));
    assert_eq!((hodo_spw_state(one), hodo_spw_state(other)), (defined("RUN"), defined("RUN")));
    assert_eq!(hodo_spw_credit(one), 56);
    // SAFETY: three bytes.
    assert_eq!(unsafe { hodo_spw_push_packet(one, [1, 2, 3].as_ptr(), 3) }, 1);
    assert_eq!(hodo_spw_push(one, defined("EEP")), 1);
    assert_eq!(hodo_spw_to_send(one), 5);
    assert_eq!(hodo_spw_send_time_code(other, 63), 1);
    let levels = turn((one, other), 200, levels);
    let received: Vec<i32> = std::iter::from_fn(|| Some(hodo_spw_pop(other)).filter(|nchar| *nchar >= 0)).collect();
    assert_eq!(received, [1, 2, 3, defined("EOP"), defined("EEP")]);
    assert_eq!((hodo_spw_pop_time_code(one), hodo_spw_pop_time_code(one)), (63, NONE));
    assert_eq!(hodo_spw_inject(one, defined("FAULT_PARITY")), 1);
    turn((one, other), 200, levels);
    assert_eq!(hodo_spw_pop_failure(other), defined("ERROR_PARITY"));
    assert_eq!(hodo_spw_count(other, defined("PARITY_ERRORS")), 1);
    assert_eq!(hodo_spw_count(other, defined("RECEIVED_DATA")), 3);
    let mut counts = [0; 20];
    // SAFETY: room for twenty.
    assert_eq!(unsafe { hodo_spw_counts(other, counts.as_mut_ptr(), 100) }, defined("COUNTS"));
    assert_eq!(counts[defined("RECEIVED_EOPS") as usize], 1);
    assert_eq!(counts[defined("STARTS") as usize], 1);
    assert_eq!((hodo_spw_close(one), hodo_spw_close(other)), (1, 1));
}

#[test]
fn a_wrong_number_is_harmless() {
    let closed = opened();
    hodo_spw_close(closed);
    let in_its_place = opened();
    for end in [0, -1, 1, i32::MAX, i32::MIN, 0x0001_FFFF, closed] {
        // SAFETY: null is allowed.
        let with_null =
            unsafe { [hodo_spw_push_packet(end, std::ptr::null(), 9), hodo_spw_counts(end, std::ptr::null_mut(), 9)] };
        let results = [
            hodo_spw_close(end),
            hodo_spw_push(end, 0),
            hodo_spw_to_send(end),
            hodo_spw_pop(end),
            hodo_spw_send_time_code(end, 0),
            hodo_spw_pop_time_code(end),
            hodo_spw_state(end),
            hodo_spw_credit(end),
            hodo_spw_pop_failure(end),
            hodo_spw_configure(end, 1, 0, 0),
            hodo_spw_set_divider(end, 1),
            hodo_spw_inject(end, 0),
            hodo_spw_babble(end, 0),
            hodo_spw_count(end, 0),
        ];
        assert!(results.iter().chain(&with_null).all(|result| *result == NO_END), "{end}: {results:?} {with_null:?}");
        assert_eq!(hodo_spw_step(end, 1, 0), 0);
    }
    hodo_spw_close(in_its_place);
}

#[test]
fn wrong_arguments_are_harmless() {
    for (step, divider, edition, buffer) in
        [(0, 1, 0, 56), (-1, 1, 0, 56), (1, 0, 0, 56), (1, 1, 2, 56), (1, 1, -1, 56), (1, 1, 0, 7), (1, 1, 0, 65_536)]
    {
        assert_eq!(hodo_spw_open(step, divider, edition, buffer), NONE);
    }
    let end = opened();
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(hodo_spw_push_packet(end, std::ptr::null(), 9), NONE);
        assert_eq!(hodo_spw_counts(end, std::ptr::null_mut(), 9), NONE);
        assert_eq!(hodo_spw_counts(end, [0].as_mut_ptr(), -1), 0);
    }
    for result in [
        hodo_spw_push(end, 258),
        hodo_spw_push(end, -1),
        hodo_spw_send_time_code(end, 256),
        hodo_spw_set_divider(end, 0),
        hodo_spw_inject(end, 5),
        hodo_spw_babble(end, 256),
        hodo_spw_count(end, defined("COUNTS")),
        hodo_spw_count(end, -1),
    ] {
        assert_eq!(result, NONE);
    }
    assert_eq!((hodo_spw_babble(end, 7), hodo_spw_babble(end, -1)), (1, 1));
    hodo_spw_close(end);
}

#[test]
fn the_header_declares_every_function() {
    for name in
        include_str!("lib.rs").lines().filter_map(|line| line.split("extern \"C\" fn ").nth(1)?.split('(').next())
    {
        assert!(HEADER.contains(&format!("int32_t {name}(")), "{name}");
    }
}
