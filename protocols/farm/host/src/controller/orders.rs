use hodo_farm::controller::Command;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Orders that may wait for one thread.
const WAITING_MAX: usize = 64;

/// An order of an operator to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Pause,
    Resume,
    Drain,
    Run(u32),
}

/// The queue of orders to one thread of a controller, which takes them after each turn. Whoever gives one rings the
/// server's bell.
#[derive(Default)]
pub struct Orders {
    waiting: Mutex<Waiting>,
    some: AtomicBool,
    taken: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    orders: VecDeque<Order>,
    given: u64,
}

impl Orders {
    /// Queues an order. Returns the number of orders queued so far, or `None` if the thread has stopped taking them.
    pub fn give(&self, order: Order) -> Option<u64> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.orders.len() >= WAITING_MAX {
            return None;
        }
        waiting.orders.push_back(order);
        waiting.given += 1;
        self.some.store(true, Ordering::Release);
        Some(waiting.given)
    }

    /// Takes the next order, which the thread carries out at once.
    #[inline]
    pub fn next(&self) -> Option<Command> {
        if !self.some.load(Ordering::Acquire) {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let order = waiting.orders.pop_front();
        if waiting.orders.is_empty() {
            self.some.store(false, Ordering::Release);
        }
        self.taken.fetch_add(u64::from(order.is_some()), Ordering::Release);
        Some(match order? {
            Order::Pause => Command::Pause,
            Order::Resume => Command::Resume,
            Order::Drain => Command::Drain,
            Order::Run(run) => Command::Run(run),
        })
    }

    /// Returns how many orders the thread has taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_taken_in_their_order_and_bounded() {
        let orders = Orders::default();
        assert!(orders.next().is_none());
        assert_eq!((orders.give(Order::Run(7)), orders.give(Order::Resume)), (Some(1), Some(2)));
        assert!(matches!(orders.next(), Some(Command::Run(7))) && orders.taken() == 1);
        assert!(matches!(orders.next(), Some(Command::Resume)) && orders.next().is_none() && orders.taken() == 2);
        let given = (0..2 * WAITING_MAX).filter(|_| orders.give(Order::Pause).is_some()).count();
        assert_eq!(given, WAITING_MAX, "a thread that is stuck gathers no more");
    }
}
