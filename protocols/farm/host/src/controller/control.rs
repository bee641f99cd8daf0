//! Orders of an operator over HTTP: pause, resume, drain, stop, another run.

use super::orders::{Order, Orders};
use super::snapshot::ControllerSnapshot;
use hodo_daemon::{Pages, Reply};
use hodo_io::{Bell, Stop};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Snapshots that are awaited until an order has been carried out.
const LOOKS: u32 = 3;

/// Passes orders from the pages to the threads of a controller.
#[derive(Clone)]
pub struct OrderDispatch {
    orders: Arc<Vec<Arc<Orders>>>,
    stop: Arc<OnceLock<Arc<Stop>>>,
    bell: Bell,
}

impl OrderDispatch {
    /// Prepares a queue for each thread; the threads are called with this bell.
    pub fn new(threads: usize, bell: &Bell) -> Self {
        let orders = Arc::new((0..threads).map(|_| Arc::default()).collect());
        OrderDispatch { orders, stop: Arc::default(), bell: bell.clone() }
    }

    /// Returns the queue of one thread.
    pub fn orders(&self, index: usize) -> Arc<Orders> {
        Arc::clone(&self.orders[index])
    }

    /// Sets what ends the process.
    pub fn set_stop(&self, stop: &Arc<Stop>) {
        // Set once, right after the pages are there.
        let _ = self.stop.set(Arc::clone(stop));
    }

    /// Adds the actions to the pages.
    pub fn actions(
        &self,
        pages: Pages,
        look: impl Fn() -> Option<ControllerSnapshot> + Clone + Send + Sync + 'static,
    ) -> Pages {
        let order = |what: fn(&str) -> Result<Order, String>| {
            let (dispatch, look) = (self.clone(), look.clone());
            move |query: &str| match what(query) {
                Ok(order) => dispatch.carry_out(order, &look),
                Err(why) => Reply::text(400, format!("{why}\n")),
            }
        };
        let (stop, bell) = (Arc::clone(&self.stop), self.bell.clone());
        pages
            .with_action("/pause", order(|_| Ok(Order::Pause)))
            .with_action("/resume", order(|_| Ok(Order::Resume)))
            .with_action("/drain", order(|_| Ok(Order::Drain)))
            .with_action("/run", order(run))
            .with_action("/stop", move |_| match stop.get() {
                Some(stop) => {
                    stop.store(true, Ordering::Relaxed);
                    bell.ring();
                    Reply::text(200, "stopping\n")
                }
                None => Reply::text(503, "the controller has not begun\n"),
            })
    }

    /// Gives an order to every thread and waits until each has carried it out.
    fn carry_out(&self, order: Order, look: &impl Fn() -> Option<ControllerSnapshot>) -> Reply {
        let given: Option<Vec<u64>> = self.orders.iter().map(|orders| orders.give(order)).collect();
        let stuck = || Reply::text(503, "the controller has not begun, or is stuck\n");
        let Some(number) = given.and_then(|given| given.into_iter().max()) else { return stuck() };
        // Each look calls the threads, and waits for them.
        for _ in 0..LOOKS {
            match look() {
                Some(snapshot) if snapshot.orders >= number => {
                    return Reply::text(
                        200,
                        format!("run {}: {}\n", snapshot.counters.run, snapshot.counters.state.name()),
                    );
                }
                Some(_) => {}
                None => break,
            }
        }
        stuck()
    }
}

fn run(query: &str) -> Result<Order, String> {
    let number = query.split('&').find_map(|pair| pair.strip_prefix("number="));
    let number = number.ok_or("which run? write /run?number=N")?;
    number.parse().map(Order::Run).map_err(|_| format!("`{number}` is not a run number; write /run?number=N"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_run_is_read() {
        assert_eq!(run("number=7"), Ok(Order::Run(7)));
        assert_eq!(run("a=b&number=4294967295"), Ok(Order::Run(u32::MAX)));
        for (query, says) in
            [("", "which run"), ("number=", "not a run number"), ("number=4294967296", "not a run number")]
        {
            assert!(run(query).is_err_and(|why| why.contains(says)), "{query}");
        }
    }
}
