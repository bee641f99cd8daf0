use super::*;

#[test]
fn every_linux_has_a_kernel_processors_and_memory() {
    let facts = HostFacts::collect();
    assert!(facts.kernel.is_some_and(|kernel| kernel.contains('.')));
    assert!(facts.cores.is_some_and(|cores| cores >= 1));
    assert!(boot_id().is_some_and(|boot| boot.len() == 36 && boot.matches('-').count() == 4));
    assert!(facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    if let Some(chosen) = facts.congestion_control {
        assert!(!chosen.contains(char::is_whitespace));
    }
}

#[test]
fn a_clock_reading_costs_something_but_not_much() {
    let cost = clock_cost_ns();
    assert!(cost > 0.0 && cost < 100_000.0, "{cost}");
}

#[test]
fn dates_are_those_of_the_calendar() {
    for (unix_s, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_000_000_000, "2001-09-09T01:46:40Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (2_147_483_648, "2038-01-19T03:14:08Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(format_utc(unix_s), text);
    }
}

/// Checks 400 years of days, one after the other, against the rule of the calendar itself.
#[test]
fn days_follow_each_other() {
    let mut expected = (1970, 1, 1);
    for days in 0..146_097 {
        assert_eq!(civil_date(days), expected);
        let (year, month, day) = expected;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        expected = match (month, day == length) {
            (_, false) => (year, month, day + 1),
            (12, true) => (year + 1, 1, 1),
            (_, true) => (year, month + 1, 1),
        };
    }
}

#[test]
fn now_is_after_this_was_written() {
    let now = utc_now();
    assert_eq!(now.len(), 20);
    assert!(now.as_str() > "2025-01-01T00:00:00Z" && now.ends_with('Z'));
}

#[test]
fn the_descriptor_limit_is_raised_once_and_for_all() {
    let first = raise_descriptor_limit().unwrap();
    assert!(first > 0);
    assert_eq!(raise_descriptor_limit().unwrap(), first);
}

#[test]
fn the_processor_is_named_on_several_architectures() {
    assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\nmodel\t: 17\n").as_deref(), Some("AMD EPYC"));
    assert_eq!(
        cpu_model("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n").as_deref(),
        Some("POWER9, altivec supported")
    );
    assert_eq!(cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
}

#[test]
fn memory_is_read_in_kibibytes() {
    assert_eq!(memory_bytes("MemTotal:        4022684 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(4_022_684 * 1024));
    assert_eq!(memory_bytes("MemTotal: lots\n", "MemTotal:"), None);
    assert_eq!(memory_bytes("", "MemTotal:"), None);
    assert!(memory_available() <= memory("MemTotal:"));
}

#[test]
fn hypervisors_are_known_by_signature_and_by_board() {
    assert_eq!(hypervisor_of_signature("KVMKVMKVM").as_deref(), Some("KVM"));
    assert_eq!(hypervisor_of_signature("ACRNACRNACRN").as_deref(), Some("ACRNACRNACRN"));
    assert_eq!(hypervisor_of_signature("\u{1}\u{2}"), None);
    assert_eq!(hypervisor_of_signature(""), None);
    assert_eq!(hypervisor_of_board("QEMU", "KVM Virtual Machine"), Some("KVM"));
    assert_eq!(hypervisor_of_board("Microsoft Corporation", "Surface Book"), None);
    assert_eq!(hypervisor_of_board("Dell Inc.", "PowerEdge R640"), None);
}
