//! The verdict on a run in which nothing completed for longer than its test can explain.

use crate::units::text::{count, time_ns};
use crate::{Interval, Observed, Stall, State, Verdict, Whose};

/// A silence of a run that is known by its pieces is a stall if it lasts for this many usual gaps, and this long.
const USUAL_GAPS: f64 = 10.0;
const STALL_MIN_S: f64 = 0.005;
/// Stalls of this host are no matter of the link: the row is not called stalled for them unless they take this share of its time.
const HOST_SHARE: f64 = 0.01;

/// Judges whether nothing completed for longer than the test can explain; `None` where that did not happen.
///
/// What this host itself lost is listed among the stalls, but short losses of a processor make no row stalled: they are of the machine that
/// measures, and not of the link.
#[must_use]
pub fn stalled(stalls: &[Stall], elapsed_s: f64) -> Option<Verdict> {
    let sum_s = |of: &dyn Fn(&&Stall) -> bool| stalls.iter().filter(of).map(|stall| stall.lasted_s).sum::<f64>();
    let of_host_s = sum_s(&|stall| stall.whose == Some(Whose::Host));
    let is_stalled = stalls.iter().any(|stall| stall.whose != Some(Whose::Host)) || of_host_s > HOST_SHARE * elapsed_s;
    is_stalled.then(|| Verdict { state: State::Stalled, text: format!("stalled: {}", stalls_text(stalls)) })
}

/// Finds the stalls of a run that is known by its pieces alone: times without any completion that are at least as long as ten usual
/// gaps between completions, of which a piece with `n` of them holds `n`.
#[must_use]
pub fn stalls_between(intervals: &[Interval]) -> Vec<Stall> {
    let operations: u64 = intervals.iter().map(|interval| interval.operations).sum();
    let busy = intervals.iter().filter(|interval| interval.operations > 0).count();
    let (Some(last), true) = (intervals.last(), operations > 0) else { return Vec::new() };
    // As much of the time as is not empty, for each operation.
    let gap_s = last.t_s * busy as f64 / intervals.len() as f64 / operations as f64;
    let least_s = (USUAL_GAPS * gap_s).max(STALL_MIN_S);
    let mut stalls: Vec<Stall> = Vec::new();
    let (mut began_s, mut end_s) = (0.0, 0.0);
    for interval in intervals {
        if interval.operations > 0 {
            stalls.extend(silence(began_s, end_s, least_s));
            began_s = interval.t_s;
        }
        end_s = interval.t_s;
    }
    stalls.extend(silence(began_s, end_s, least_s));
    stalls
}

fn silence(from_s: f64, to_s: f64, least_s: f64) -> Option<Stall> {
    let (lasted_s, saw) = (to_s - from_s, Observed::default());
    (lasted_s >= least_s).then_some(Stall { at_s: from_s, lasted_s, operations_late: 0, whose: None, saw })
}

/// Returns stalls in a sentence.
fn stalls_text(stalls: &[Stall]) -> String {
    let Some(longest) = stalls.iter().max_by(|a, b| a.lasted_s.total_cmp(&b.lasted_s)) else { return String::new() };
    let late: u64 = stalls.iter().map(|stall| stall.operations_late).sum();
    let noun = if late == 1 { "operation" } else { "operations" };
    let (lasted, at) = (time_s(longest.lasted_s), time_s(longest.at_s));
    let when = match stalls.len() {
        1 => format!("nothing for {lasted} from {at} on"),
        several => {
            let all_s: f64 = stalls.iter().map(|stall| stall.lasted_s).sum();
            format!("nothing for {} in {several} silences, the longest of {lasted} from {at} on", time_s(all_s))
        }
    };
    let late = if late > 0 { format!("; {} {noun} up to {lasted} late", count(late)) } else { String::new() };
    format!("{when}{late}{}", whose_text(longest))
}

/// Returns whose a stall was, and by what that is known.
fn whose_text(stall: &Stall) -> String {
    let Some(whose) = stall.whose else { return String::new() };
    let saw = &stall.saw;
    let counts = [
        (saw.retransmitted, "segments sent again"),
        (saw.timeouts, "timeouts of TCP"),
        (saw.queue_drops, "drops of the queue"),
        (saw.card_drops, "drops of the card"),
    ];
    let times = [
        (saw.waited_for_processor_s, "waiting for a processor"),
        (saw.far_waited_for_processor_s, "waiting for a processor at the far end"),
        (saw.steal_s, "taken by the hypervisor"),
        (saw.others_s, "of others' CPU"),
        (saw.throttled_s, "without quota here"),
        (saw.far_throttled_s, "without quota at the far end"),
    ];
    let counted =
        counts.iter().filter_map(|(count, what)| Some(format!("{} {what}", count.filter(|count| *count > 0)?)));
    let is_much = |time_s: &f64| *time_s > 0.1 * stall.lasted_s;
    let timed = times.iter().filter_map(|(time, what)| Some(format!("{} {what}", time_s(time.filter(is_much)?))));
    let seen: Vec<String> = counted.chain(timed).collect();
    let by = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join(", ")) };
    format!("; the silence was {}{by}", whose.text())
}

fn time_s(seconds: f64) -> String {
    time_ns(seconds * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(at_s: f64, lasted_s: f64, whose: Option<Whose>) -> Stall {
        Stall { at_s, lasted_s, operations_late: 1000, whose, saw: Observed::default() }
    }

    fn text(stalls: &[Stall]) -> Option<String> {
        stalled(stalls, 6.0).map(|verdict| verdict.text)
    }

    #[test]
    fn a_stall_says_how_long_from_when_how_late_and_whose() {
        assert_eq!(text(&[]), None);
        let mut one = stall(2.0, 2.0, Some(Whose::Link));
        one.saw.retransmitted = Some(5);
        one.saw.steal_s = Some(0.01);
        let expected = "stalled: nothing for 2.00 s from 2.00 s on; 1,000 operations up to 2.00 s late; the silence was the \
                        link's (5 segments sent again)";
        assert_eq!(text(&[one]).as_deref(), Some(expected));
        let several = [stall(0.5, 0.04, Some(Whose::FarEnd)), stall(1.0, 0.06, Some(Whose::FarEnd))];
        let expected = "stalled: nothing for 100 ms in 2 silences, the longest of 60.0 ms from 1.00 s on; 2,000 operations \
                        up to 60.0 ms late; the silence was the far end's";
        assert_eq!(text(&several).as_deref(), Some(expected));
        let unknown = Stall { operations_late: 0, ..stall(0.5, 0.04, None) };
        assert_eq!(text(&[unknown]).as_deref(), Some("stalled: nothing for 40.0 ms from 500 ms on"));
    }

    #[test]
    fn what_this_host_lost_makes_no_row_stalled_unless_it_is_much() {
        assert_eq!(text(&[stall(0.5, 0.02, Some(Whose::Host)), stall(1.5, 0.02, Some(Whose::Host))]), None);
        assert!(text(&[stall(0.5, 0.1, Some(Whose::Host))]).is_some_and(|text| text.ends_with("was this host's")));
        assert!(text(&[stall(0.5, 0.02, Some(Whose::Host)), stall(1.5, 0.02, None)]).is_some());
    }

    #[test]
    fn stalls_are_found_between_the_pieces_of_a_run() {
        let run = |counts: &[u64]| -> Vec<Interval> {
            let piece = |(place, operations): (usize, &u64)| Interval {
                t_s: 0.01 * (place + 1) as f64,
                operations: *operations,
                payload_bytes: 0,
            };
            counts.iter().enumerate().map(piece).collect()
        };
        let spans = |counts: &[u64]| -> Vec<(u64, u64)> {
            let ms = |seconds: f64| (1e3 * seconds).round() as u64;
            stalls_between(&run(counts)).iter().map(|stall| (ms(stall.at_s), ms(stall.lasted_s))).collect()
        };
        assert_eq!(spans(&[50, 50, 0, 0, 50, 0, 50, 50, 0]), [(20, 20), (50, 10), (80, 10)]);
        assert_eq!(spans(&[50, 40, 60, 50]), []);
        assert_eq!(spans(&[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]), [], "a gap of three pieces is usual");
        assert_eq!([spans(&[]), spans(&[0, 0])], [[], []]);
    }
}
