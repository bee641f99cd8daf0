//! The published study of `ibv_rc_pingpong`, setting by setting, with its figures: one host with an adapter of two ports.
//!
//! It found a path MTU of 512 or 1024 best for up to 16 KiB, a receive depth of 200 and more, and few scatter entries; on-demand paging and
//! device memory were not supported there.

use hodo_machine::Wait;
use hodo_measure::{Mode, Test};
use hodo_tester::{Figures, Preset, TestGroup};
use std::time::Duration;

/// The study's name.
const NAME: &str = "rc-study";
/// The machine of the study.
const SETTING: &str = "an adapter of 2 ports";
/// The warm-up, and one of six repeats: all measurements together take a minute.
const TIMING: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(50));

/// The sizes of the comparison of ports.
const PORTS: &[TestGroup] = &[ping_pong(&[64, 1 << 10, 16 << 10])];
/// The sizes of the table of path MTUs.
const SIZES: &[TestGroup] = &[ping_pong(&[256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10])];
/// The size of all other comparisons.
const ONE: &[TestGroup] = &[ping_pong(&[1 << 10])];

/// The parts that any link can repeat.
pub(crate) const STUDY: &[Preset] = STUDY_OF_ONE_HOST.split_at(STUDY_OF_ONE_HOST.len() - 1).0;

/// The parts for a link whose far end is started here: in the last, the two ends are at two addresses.
pub(crate) const STUDY_OF_ONE_HOST: &[Preset] = &[
    part(&[], PORTS, &[published(&[(64, us(2.63)), (1 << 10, us(3.97)), (16 << 10, us(9.99))])]),
    part(&[("mtu", "256")], SIZES, &[published(&sizes([3.59, 3.74, 3.95, 4.37, 5.17, 6.81, 9.98]))]),
    part(&[("mtu", "512")], SIZES, &[published(&sizes([3.60, 3.84, 4.08, 4.42, 5.15, 6.61, 9.53]))]),
    part(&[("mtu", "1024")], SIZES, &[published(&sizes([3.62, 3.87, 4.34, 4.74, 5.44, 6.86, 9.49]))]),
    part(&[("mtu", "2048")], SIZES, &[published(&sizes([3.57, 3.78, 4.25, 5.21, 5.92, 7.29, 10.03]))]),
    part(&[("mtu", "4096")], SIZES, &[published(&sizes([3.63, 3.90, 4.30, 5.21, 7.10, 8.51, 11.16]))]),
    part(&[("receive-depth", "1")], ONE, &[published(&[(1 << 10, us(16.12))])]),
    part(&[("receive-depth", "10")], ONE, &[published(&[(1 << 10, us(5.35))])]),
    part(&[("receive-depth", "100")], ONE, &[published(&[(1 << 10, us(4.33))])]),
    part(&[("receive-depth", "200")], ONE, &[published(&[(1 << 10, us(4.29))])]),
    part(&[("receive-depth", "400")], ONE, &[published(&[(1 << 10, us(4.28))])]),
    part(&[("receive-depth", "800")], ONE, &[published(&[(1 << 10, us(4.28))])]),
    part(&[], ONE, &[published(&[(1 << 10, us(4.31))])]),
    Preset { wait: Some(Wait::Block), ..part(&[], ONE, &[published(&[(1 << 10, us(10.05))])]) },
    // Times are recorded at both ends of each stage.
    Preset { stages: true, ..part(&[], ONE, &[published(&[(1 << 10, us(4.27))])]) },
    // The study's last table is of the capacity of entries, of which a message uses one; it says only that less is faster.
    part(&[("entries", "1")], ONE, &[]),
    part(&[("entries", "32")], ONE, &[]),
    // Ours beside it: the entries in use.
    part(&[("send-entries", "2"), ("receive-entries", "2")], ONE, &[]),
    part(&[("send-entries", "4"), ("receive-entries", "4")], ONE, &[]),
    part(&[("send-entries", "8"), ("receive-entries", "8")], ONE, &[]),
    part(&[("send-entries", "16"), ("receive-entries", "16")], ONE, &[]),
    part(
        &[("address", "127.0.0.2")],
        PORTS,
        &[published(&[(64, us(3.29)), (1 << 10, us(4.29)), (16 << 10, us(9.53))])],
    ),
];

/// Returns a part of the study, which polls.
const fn part(
    options: &'static [(&'static str, &'static str)],
    groups: &'static [TestGroup],
    figures: &'static [Figures],
) -> Preset {
    Preset { options, wait: Some(Wait::Spin), timing: Some(TIMING), ..Preset::new(NAME, groups, figures) }
}

const fn published(operations_per_s: &'static [(u32, f64)]) -> Figures {
    Figures { setting: SETTING, channels: 1, operations_per_s, facts: &[] }
}

/// Returns the rates of a row of the table of path MTUs.
const fn sizes(each_us: [f64; 7]) -> [(u32, f64); 7] {
    let [a, b, c, d, e, f, g] = each_us;
    [
        (256, us(a)),
        (512, us(b)),
        (1 << 10, us(c)),
        (2 << 10, us(d)),
        (4 << 10, us(e)),
        (8 << 10, us(f)),
        (16 << 10, us(g)),
    ]
}

/// Returns the exchanges per second of which each takes this many microseconds.
const fn us(each: f64) -> f64 {
    1e6 / each
}

const fn ping_pong(sizes: &'static [u32]) -> TestGroup {
    TestGroup::new(Test::Latency, Mode::Both, sizes, 1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Plan, PublishedFigure};

    #[test]
    fn every_figure_of_the_study_stands_beside_its_plan() {
        let found = |index: usize, size: u32| {
            let published = STUDY_OF_ONE_HOST[index].published(&Plan::one(Mode::Both, size));
            published.first().map(|found| match found.figure {
                PublishedFigure::OperationsPerS(rate) => (1e8 / rate).round() / 100.0,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!([found(0, 64), found(0, 16 << 10), found(0, 256)], [Some(2.63), Some(9.99), None]);
        assert_eq!([found(3, 1024), found(5, 16 << 10)], [Some(4.34), Some(11.16)]);
        assert_eq!([found(6, 1024), found(11, 1024)], [Some(16.12), Some(4.28)]);
        assert_eq!([found(13, 1024), found(21, 64)], [Some(10.05), Some(3.29)]);
        assert_eq!((STUDY_OF_ONE_HOST.len(), STUDY.len()), (22, 21));
        let figures =
            STUDY_OF_ONE_HOST.iter().flat_map(|part| part.figures).flat_map(|figures| figures.operations_per_s);
        assert_eq!(figures.count(), 3 + 35 + 6 + 3 + 3);
    }
}
