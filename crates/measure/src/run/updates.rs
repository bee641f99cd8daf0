use super::schedule::Share;
use crate::{Plan, Subscription, Test};
use std::time::Duration;

/// The updates of a plan, as seen by the link that receives them.
pub(super) struct Updates {
    /// Bytes of payload of each.
    pub size: u32,
    /// The longest time between two of one subscription, if none is skipped.
    pub spacing: Duration,
    /// Subscriptions that have not ended.
    pub live: u32,
}

impl Updates {
    /// Returns the updates of a plan; `None` for a plan of operations.
    pub fn of(plan: &Plan) -> Option<Self> {
        let spacing_s = plan.rate.map_or(0.0, |rate| f64::from(plan.channels) / rate);
        (plan.test == Test::Updates).then(|| Updates {
            size: plan.size.bounds().1,
            spacing: Duration::from_secs_f64(spacing_s),
            live: 0,
        })
    }
}

impl Share {
    /// Returns the subscriptions of this link's channels. With a rate, those of all links are due one after the other, as
    /// the operations of an open loop.
    pub fn subscriptions(self, plan: &Plan) -> impl Iterator<Item = Subscription> {
        let Plan { rate, window, channels, size, .. } = *plan;
        (0..self.channels()).map(move |channel| {
            let among_all = u64::from(channel) * u64::from(self.links) + u64::from(self.index);
            Subscription {
                channel,
                size: size.bounds().1,
                rate: rate.map(|rate| rate / f64::from(channels)),
                first_after: Duration::from_secs_f64(rate.map_or(0.0, |rate| among_all as f64 / rate)),
                queue: window,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    #[test]
    fn subscriptions_of_all_links_share_the_rate_and_take_turns() {
        let plan =
            Plan { test: Test::Updates, channels: 4, window: 8, rate: Some(1000.0), ..Plan::one(Mode::Receive, 64) };
        let mut all: Vec<Subscription> =
            (0..3).flat_map(|index| Share { index, links: 3, channels_in_all: 4 }.subscriptions(&plan)).collect();
        all.sort_by_key(|subscription| subscription.first_after);
        let first_ms: Vec<u128> = all.iter().map(|subscription| subscription.first_after.as_millis()).collect();
        assert_eq!(first_ms, [0, 1, 2, 3]);
        assert!(all.iter().all(|subscription| subscription.rate == Some(250.0) && subscription.queue == 8));
        assert_eq!(Updates::of(&plan).map(|updates| updates.spacing), Some(Duration::from_millis(4)));
        assert!(Updates::of(&Plan { test: Test::Open, ..plan }).is_none());
    }
}
