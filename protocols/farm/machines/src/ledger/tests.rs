use super::*;

#[test]
fn every_event_has_one_verdict() {
    let mut ledger = Ledger::default();
    ledger.recover(1, &[(Verdict::Accepted, 3)], [0..2, 5..6]).unwrap();
    assert_eq!(ledger.offer(0, 1, 1), Ok(Standing::Decided));
    assert_eq!(ledger.offer(0, 1, 2), Ok(Standing::New));
    assert_eq!(ledger.offer(0, 1, 2), Ok(Standing::InHand));
    ledger.decide(1, 2, Verdict::Rejected);
    ledger.decide(1, 2, Verdict::Accepted);
    let counts = ledger.counts();
    assert_eq!((counts.taken_in, counts.accepted, counts.rejected, counts.duplicates), (4, 3, 1, 2));
    assert_eq!(counts.in_hand(), 0);
}

fn opened(runs: impl IntoIterator<Item = u32>) -> Ledger {
    let mut ledger = Ledger::with_ranges(RANGES);
    runs.into_iter().for_each(|run| ledger.open(run).unwrap());
    ledger
}

/// Gives events as a source, and has each decided; returns how many were passed.
fn gives(ledger: &mut Ledger, source: u32, events: impl IntoIterator<Item = u64>) -> usize {
    let mut passed = 0;
    for event in events {
        match ledger.offer(source, 1, event).unwrap() {
            Standing::New => ledger.decide(1, event, Verdict::Rejected),
            Standing::Passed => passed += 1,
            standing => panic!("{event}: {standing:?}"),
        }
    }
    passed
}

/// Fewer than usual, so that few events fill them.
const RANGES: usize = 4096;

fn ranges(ledger: &Ledger) -> usize {
    ledger.runs[0].ranges()
}

#[test]
fn a_stride_has_no_end_and_costs_a_bounded_memory() {
    for stride in [2, 25, 1000, 1 << 20] {
        let mut ledger = opened([1]);
        let events = || (0..20_000).map(|number| number * stride);
        assert_eq!(gives(&mut ledger, 0, events()), 0);
        assert_eq!((ledger.decided(1), ledger.counts().taken_in), (20_000, 20_000));
        assert!(ranges(&ledger) <= RANGES, "{}", ranges(&ledger));
        // The last ones are known for themselves, the first ones are not.
        assert_eq!(ledger.offer(0, 1, 19_999 * stride), Ok(Standing::Decided));
        assert_eq!(ledger.offer(0, 1, 0), Ok(Standing::Passed));
        assert_eq!(ledger.counts().duplicates, 2);
    }
}

#[test]
fn runs_are_bounded() {
    let mut ledger = Ledger::default();
    for run in 0..100 {
        ledger.open(run).unwrap();
        assert_eq!(ledger.offer(0, run, 1), Ok(Standing::New));
        ledger.decide(run, 1, Verdict::Rejected);
    }
    assert_eq!(ledger.open(3), Err(Error::NoSuchRun { run: 3 }), "a run that is forgotten must not come again");
    assert_eq!(ledger.runs.len(), Ledger::RUNS_MAX);
}

#[test]
fn who_is_behind_fills_the_gaps_and_who_is_gone_leaves_them() {
    let mut ledger = opened([1]);
    // One of three gives nothing more behind its first hundred events; the others go on, one of them ahead of the other.
    gives(&mut ledger, 2, (0..100).map(|number| 3 * number + 2));
    for block in 0..4 {
        let block = || (block * 1000..(block + 1) * 1000).map(|number| 3 * number);
        assert_eq!(gives(&mut ledger, 0, block()), 0);
        assert_eq!(gives(&mut ledger, 1, block().map(|number| number + 1)), 0);
    }
    assert_eq!(ledger.offer(2, 1, 302), Ok(Standing::New), "it is connected");
    ledger.decide(1, 302, Verdict::Accepted);
    ledger.left(2);
    for block in 4..20 {
        let block = || (block * 1000..(block + 1) * 1000).map(|number| 3 * number);
        assert_eq!(gives(&mut ledger, 0, block()) + gives(&mut ledger, 1, block().map(|number| number + 1)), 0);
    }
    assert!(ranges(&ledger) <= 2 * RANGES);
    // When it comes back it is for its taker to know whether what it gives has come.
    assert_eq!(ledger.offer(2, 1, 305), Ok(Standing::Passed));
    assert!(ledger.enter_passed(1, 305) && !ledger.enter_passed(1, 305));
    assert_eq!(ledger.offer(2, 1, 305), Ok(Standing::InHand));
    assert!(!ledger.is_decided(1, 305));
    let before = ledger.decided(1);
    ledger.decide(1, 305, Verdict::Accepted);
    ledger.decide(1, 305, Verdict::Accepted);
    assert_eq!((ledger.decided(1), ledger.counts().in_hand()), (before + 1, 0));
    assert_eq!(ledger.offer(2, 1, 305), Ok(Standing::Passed));
}

#[test]
fn what_is_in_hand_stays_so_when_its_number_is_passed() {
    let mut ledger = opened([1]);
    assert_eq!(ledger.offer(0, 1, 10), Ok(Standing::New));
    gives(&mut ledger, 0, (10..12_000).map(|number| 2 * number));
    assert_eq!(ledger.offer(0, 1, 10), Ok(Standing::InHand));
    assert_eq!(ledger.counts().in_hand(), 1);
    ledger.decide(1, 10, Verdict::Accepted);
    assert_eq!((ledger.counts().in_hand(), ledger.counts().accepted), (0, 1));
    assert_eq!(ledger.offer(0, 1, 10), Ok(Standing::Passed));
}

#[test]
fn sources_whose_numbers_are_wrong_take_nothing_from_the_others() {
    let mut random = hodo_machine::Random::new(1);
    let mut ledger = opened([1]);
    for event in 0..20_000_u64 {
        // Two that share their numbers, one of them ahead, a third with every fifth.
        let ahead = event ^ 1;
        assert_eq!(ledger.offer((ahead % 2) as u32, 1, ahead), Ok(Standing::New), "{event}");
        if event % 1000 == 0 {
            assert_eq!(ledger.offer(2, 1, (1 << 30) + event / 200), Ok(Standing::New));
        }
        // Gaps far above, far above and downwards, and any numbers at all.
        for wrong in [(1 << 40) + 2 * event, (1 << 50) - 3 * event, random.bits() | 1 << 51] {
            let source = 10 + wrong.leading_zeros();
            let _ = ledger.offer(source, 1, wrong & u64::MAX >> 1).unwrap();
        }
    }
    assert!(ranges(&ledger) <= 2 * RANGES + 30 * run::RESERVE, "{}", ranges(&ledger));
    assert!(!ledger.is_decided(1, 20_000), "their next events are not passed");
}

#[test]
fn what_an_earlier_process_has_decided_is_known_and_the_lowest_of_many_gaps_are_passed() {
    let mut ledger = Ledger::with_ranges(RANGES);
    ledger.recover(1, &[(Verdict::Accepted, 15_000)], (0..15_000).map(|number| 2 * number..2 * number + 1)).unwrap();
    assert!(ranges(&ledger) <= RANGES);
    assert_eq!((ledger.decided(1), ledger.counts().accepted), (15_000, 15_000));
    assert_eq!(ledger.offer(0, 1, 29_998), Ok(Standing::Decided));
    assert_eq!(ledger.offer(0, 1, 29_997), Ok(Standing::New));
    assert_eq!(ledger.offer(0, 1, 1), Ok(Standing::Passed));
    assert!(!ledger.enter_passed(1, 1), "it may have come then");
    assert!(ledger.enter_made(1, 1), "who makes events knows which are decided");
}

#[test]
fn an_event_of_a_run_that_nobody_has_opened_is_refused_and_changes_nothing() {
    let mut ledger = opened([1]);
    ledger.offer(0, 1, 0).unwrap();
    for run in 100..200 {
        assert_eq!(ledger.offer(7, run, 0), Err(Error::NoSuchRun { run }));
    }
    assert_eq!((ledger.runs.len(), ledger.counts().taken_in), (1, 1));
    assert_eq!(ledger.offer(0, 1, 1), Ok(Standing::New));
}

#[test]
fn a_run_that_was_forgotten_is_not_begun_anew() {
    let mut ledger = Ledger::default();
    for run in [9, 1, 2, 3, 4, 5, 6, 7, 10, 11] {
        ledger.open(run).unwrap();
        assert_eq!(ledger.offer(0, run, 0), Ok(Standing::New));
        ledger.decide(run, 0, Verdict::Accepted);
    }
    for run in [1, 2] {
        assert_eq!(ledger.open(run), Err(Error::NoSuchRun { run }));
        assert_eq!(ledger.offer(0, run, 0), Err(Error::NoSuchRun { run }));
    }
    assert_eq!(ledger.offer(0, 9, 0), Ok(Standing::Decided));
    assert_eq!(ledger.offer(0, 9, u64::MAX), Err(Error::NoNumber));
}
