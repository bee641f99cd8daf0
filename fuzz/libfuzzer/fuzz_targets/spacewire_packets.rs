#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| (hodo_fuzz::target("spacewire_packets").expect("it is in the table").run)(input));
