use super::*;

fn at(nanos: u64) -> Picos {
    Picos::from_nanos(nanos)
}

/// Returns two ends in Run, each with the other's codes, and the time.
fn running() -> (End, End, Picos) {
    let (mut one, mut other) = (End::new(Settings::default(), at(0)), End::new(Settings::default(), at(0)));
    let mut now = at(0);
    while one.state() != State::Run || other.state() != State::Run {
        now = now + at(400);
        assert!(now < at(40_000), "{:?} {:?}", one.state(), other.state());
        one.elapsed(now);
        other.elapsed(now);
        for first in [true, false] {
            let (from, to) = if first { (&mut one, &mut other) } else { (&mut other, &mut one) };
            if let Sent::Code(code) = from.send(None, now) {
                assert_eq!(to.receive(Arrival::Code(code), now), Received::Nothing);
            }
        }
    }
    (one, other, now)
}

#[test]
fn both_ends_reach_run_after_the_times_of_the_standard() {
    let (_, _, now) = running();
    assert!(now > ERROR_RESET + ANSWER && now < ERROR_RESET + ANSWER + at(3_200), "{now:?}");
}

#[test]
fn credit_never_passes_56() {
    let (mut one, mut other, now) = running();
    for _ in 0..20 {
        if let Sent::Code(code) = one.send(None, now) {
            other.receive(Arrival::Code(code), now);
        }
    }
    assert_eq!((other.credit(), one.promised()), (CREDIT_MAX, CREDIT_MAX));
    let received = other.receive(Arrival::Code(Code::Fct), now);
    assert!(matches!(received, Received::Failed(Failure { error: LinkError::Credit, .. })));
}

#[test]
fn time_codes_go_before_fcts_before_nchars_before_nulls() {
    let (mut one, _, now) = running();
    one.send_time_code(7);
    assert_eq!(one.send(Some(Code::Data(1)), now), Sent::Code(Code::TimeCode(7)));
    while one.fct_is_due() {
        assert_eq!(one.send(Some(Code::Data(1)), now), Sent::Code(Code::Fct));
    }
    assert_eq!(one.send(Some(Code::Data(1)), now), Sent::Offered);
    assert_eq!(one.send(None, now), Sent::Code(Code::Null));
}

#[test]
fn an_error_says_what_was_cut() {
    let (mut one, _, now) = running();
    while one.send(Some(Code::Data(1)), now) != Sent::Offered {}
    one.receive(Arrival::Code(Code::Data(2)), now);
    let Received::Failed(failure) = one.receive(Arrival::Error(LinkError::Parity), now) else { panic!() };
    assert_eq!(failure, Failure { error: LinkError::Parity, cut_receiving: true, cut_sending: true });
    assert_eq!((one.state(), one.statistics().errors.parity), (State::ErrorReset, 1));
}

#[test]
fn an_end_that_starts_with_the_other_waits_for_its_null() {
    let settings = Settings { link_start: false, ..Settings::default() };
    let mut end = End::new(settings, at(0));
    end.elapsed(at(6_400));
    end.elapsed(at(19_200));
    assert_eq!(end.state(), State::Ready);
    end.receive(Arrival::Code(Code::Null), at(20_000));
    assert_eq!(end.state(), State::Connecting);
}

#[test]
fn nobody_answers_within_12_8_us() {
    let mut end = End::new(Settings::default(), at(0));
    end.elapsed(at(6_400));
    end.elapsed(at(19_200));
    assert_eq!(end.state(), State::Started);
    assert!(end.elapsed(at(31_999)).is_none());
    assert_eq!(end.elapsed(at(32_000)).map(|failure| failure.error), Some(LinkError::Timeout));
}

#[test]
fn rev_1_sends_before_it_moves_on() {
    let settings = Settings { edition: Edition::Rev1, link_start: false, ..Settings::default() };
    let mut end = End::new(settings, at(0));
    end.elapsed(at(6_400));
    end.elapsed(at(19_200));
    end.receive(Arrival::Code(Code::Null), at(20_000));
    assert_eq!(end.state(), State::Started);
    end.send(None, at(20_000));
    assert_eq!(end.state(), State::Connecting);
    end.receive(Arrival::Code(Code::Fct), at(20_000));
    assert_eq!(end.state(), State::Connecting);
    end.send(None, at(20_800));
    assert_eq!(end.state(), State::Run);
}
