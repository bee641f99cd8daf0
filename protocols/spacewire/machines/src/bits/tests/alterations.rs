//! Bits that change on the way, over many seeds.
//!
//! Parity sees every odd number of wrong bits within the span of a parity bit: the content of a character, the parity bit and the
//! flag behind it. A code is handed on only after that, so that with wrong bits far enough apart no packet is ever altered.
use super::*;
use hodo_machine::Random;

/// A line that turns bits over, and stays a valid data-strobe line.
#[derive(Default)]
struct Noise {
    arrived: Line,
    left: Line,
    /// Bits since the last one that was turned over.
    since: u32,
    turned: u64,
}

impl Noise {
    /// Passes the levels on, with the bit turned over if `turn` says so, knowing how many bits ago the last was.
    fn pass(&mut self, line: Line, turn: impl FnOnce(u32) -> bool) -> Line {
        if let Some(bit) = line.bit_after(self.arrived) {
            self.since = self.since.saturating_add(1);
            let turned = turn(self.since);
            if turned {
                self.since = 0;
                self.turned += 1;
            }
            self.left = self.left.with(bit ^ turned);
        }
        self.arrived = line;
        self.left
    }
}

/// Packets by their fate.
#[derive(Debug, Default, Clone, Copy)]
struct Fates {
    sent: u64,
    whole: u64,
    /// Ended by an EEP.
    cut: u64,
    /// Not as they were sent, up to their EOP or EEP.
    altered: u64,
    failures: u64,
    turned: u64,
}

impl Fates {
    fn add(&mut self, more: Fates) {
        self.sent += more.sent;
        self.whole += more.whole;
        self.cut += more.cut;
        self.altered += more.altered;
        self.failures += more.failures;
        self.turned += more.turned;
    }
}

/// Returns a packet that begins with its number, from which all else follows.
fn numbered(number: u32) -> Vec<u8> {
    let size = 5 + number as usize * 7 % 60;
    [&number.to_be_bytes()[..], &packet(size, number as u8)[..]].concat()
}

/// Sends packets for `steps` through noise, judges what arrives, and ends with a quiet line on which everything arrives.
fn noisy(seed: u64, edition: Edition, steps: u32, turn: impl Fn(u32, u64) -> bool) -> Fates {
    let mut chance = Random::new(seed);
    let mut pair = Pair::running(&Settings { edition, ..Settings::default() });
    let mut noise = Noise::default();
    let (mut fates, mut current, mut last) = (Fates::default(), Vec::new(), None);
    for step in 0..steps + 30_000 {
        // The last packets are sent on the quiet line.
        if pair.one.to_send() < 100 && step < steps + 15_000 {
            assert!(pair.one.push_packet(&numbered(fates.sent as u32)));
            fates.sent += 1;
        }
        pair.step_with(|line| noise.pass(line, |since| step < steps && turn(since, chance.bits())));
        while let Some(nchar) = pair.other.pop() {
            match nchar {
                Code::Data(byte) => current.push(byte),
                end => {
                    judge(&current, end, &mut last, &mut fates);
                    current.clear();
                }
            }
        }
        for end in [&mut pair.one, &mut pair.other] {
            fates.failures += core::iter::from_fn(|| end.pop_failure()).count() as u64;
        }
    }
    assert_eq!((pair.one.to_send(), pair.other.end().state()), (0, State::Run), "seed {seed}");
    assert_eq!(last, Some(fates.sent as u32 - 1), "seed {seed}: the last packets meet no noise");
    fates.turned = noise.turned;
    fates
}

/// Compares a packet that arrived with the one of its number.
fn judge(bytes: &[u8], end: Code, last: &mut Option<u32>, fates: &mut Fates) {
    let number = bytes.first_chunk().map(|number| u32::from_be_bytes(*number));
    let expected = number.map(numbered);
    let is_next = number.is_some_and(|number| u64::from(number) < fates.sent && last.is_none_or(|last| number > last));
    if end == Code::Eop && expected.as_deref() == Some(bytes) && is_next {
        fates.whole += 1;
        *last = number;
    } else if end == Code::Eep && expected.is_none_or(|expected| expected.starts_with(bytes)) {
        fates.cut += 1;
    } else {
        fates.altered += 1;
    }
}

#[test]
fn single_wrong_bits_never_alter_a_packet() {
    let mut sum = Fates::default();
    for seed in 0..60 {
        let edition = if seed % 2 == 0 { Edition::Of2008 } else { Edition::Rev1 };
        // One wrong bit in a thousand, and never two within the span of a parity bit.
        let fates = noisy(seed, edition, 60_000, |since, chance| since > 24 && chance % 1_000 == 0);
        assert_eq!(fates.altered, 0, "seed {seed}: {fates:?}");
        // Beside the packet that is cut, the end of the one before may not be confirmed any more.
        let missing = fates.sent - fates.whole - fates.cut;
        assert!(missing <= fates.failures, "seed {seed}: {missing} lost without a report, {fates:?}");
        sum.add(fates);
    }
    assert!(sum.cut > 100 && sum.whole > 1_000 && sum.failures > 200, "{sum:?}");
}

#[test]
fn neighbouring_wrong_bits_can_alter_a_packet() {
    let mut sum = Fates::default();
    for seed in 0..40 {
        // A second wrong bit right behind the first, half of the time: parity sees neither if they share a span.
        let turn = |since, chance: u64| chance.is_multiple_of(if since == 1 { 2 } else { 4_000 });
        sum.add(noisy(seed, Edition::Of2008, 60_000, turn));
    }
    assert!(sum.altered > 20 && sum.cut > 5 && sum.whole > 1_000, "{sum:?}");
}

#[test]
fn any_levels_do_no_harm() {
    let mut chance = Random::new(5);
    let mut end = BitEnd::new(Settings::default(), Clock::default());
    for step in 0..400_000_u32 {
        let bits = chance.bits();
        let line = Line { data: bits & 1 == 1, strobe: bits & 2 == 2 };
        end.step(if step / 10_000 % 2 == 0 { line } else { Line::default() });
        end.pop();
    }
    assert!(core::iter::from_fn(|| end.pop_failure()).count() > 10);
}
