//! Gives turns to run a tool while nothing is measured: a limited number in parallel, the most urgent first.
//!
//! If jobs ran in the order of arrival, processors would be idle for two reasons. First, all verifications
//! would wait for all compilations and then run last, on the single processor to which verifying is pinned.
//! Second, a large model at the end of a suite would be compiled alone, although smaller ones could run next
//! to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{OnceCell, oneshot};

/// The priority of a waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// A compilation. Large sources come first, so that the last compilations are short.
    Compile { bytes: u64 },
    /// Work that a benchmark needs before its next stage.
    Now,
}

/// The queue for the turns of a run.
#[derive(Debug)]
pub(super) struct Slots(Arc<Mutex<SlotState>>);

#[derive(Debug)]
struct SlotState {
    free: usize,
    /// The last job is the most urgent. Among equal priorities, the first job to arrive comes first.
    waiting: BTreeMap<(Priority, Reverse<u64>), oneshot::Sender<SlotTurn>>,
    next: u64,
}

/// A turn, which passes to the next job when it is dropped.
#[derive(Debug)]
pub(super) struct SlotTurn(Arc<Mutex<SlotState>>);

impl Drop for SlotTurn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = state.waiting.pop_last();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some((_, turn)) = next {
            // If the job has stopped waiting, sending returns the turn; dropping it passes it to the next
            // job.
            drop(turn.send(Self(Arc::clone(&self.0))));
        }
    }
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        let state = SlotState { free: count.max(1), waiting: BTreeMap::new(), next: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) async fn turn(&self, urgency: Priority) -> SlotTurn {
        let waited = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.free > 0 {
                state.free -= 1;
                None
            } else {
                let (turn, waited) = oneshot::channel();
                let order = Reverse(state.next);
                state.next += 1;
                state.waiting.insert((urgency, order), turn);
                Some(waited)
            }
        };
        match waited {
            // The sender stays in the queue until it has sent.
            Some(waited) => match waited.await {
                Ok(turn) => turn,
                Err(_) => std::future::pending().await,
            },
            None => SlotTurn(Arc::clone(&self.0)),
        }
    }
}

/// Number of processors that this process may use.
pub(super) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Results by key. If a result is being computed, others wait for it. A failed computation is repeated.
#[derive(Debug)]
pub(super) struct Memo<K, V>(Mutex<HashMap<K, Arc<OnceCell<V>>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    pub(super) async fn get<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
    ) -> Result<V, E> {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        cell.get_or_try_init(ask).await.cloned()
    }

    /// Stores a result that is already known.
    pub(super) fn set(&self, key: K, value: V) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, Arc::new(OnceCell::new_with(Some(value))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// Polls a future once.
    fn ready<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Option<T> {
        future.as_mut().now_or_never()
    }

    #[test]
    fn the_most_urgent_goes_first_and_of_equals_who_came_first() {
        let slots = Slots::new(1);
        let held = slots.turn(Priority::Now).now_or_never().unwrap();
        let mut waiting: Vec<_> = [
            Priority::Compile { bytes: 10 },
            Priority::Compile { bytes: 500 },
            Priority::Now,
            Priority::Compile { bytes: 500 },
        ]
        .into_iter()
        .map(|urgency| Box::pin(slots.turn(urgency)))
        .collect();
        assert!(waiting.iter_mut().all(|future| ready(future).is_none()));
        let mut held = Some(held);
        let mut order = Vec::new();
        while order.len() < waiting.len() {
            drop(held.take());
            for (index, future) in
                waiting.iter_mut().enumerate().filter(|(index, _)| !order.contains(index)).collect::<Vec<_>>()
            {
                if let Some(turn) = ready(future) {
                    assert!(held.is_none(), "two turns at once");
                    held = Some(turn);
                    order.push(index);
                }
            }
        }
        assert_eq!(order, [2, 1, 3, 0]);
    }

    #[test]
    fn a_waiter_that_stops_does_not_take_the_turn_of_another() {
        let slots = Slots::new(1);
        let held = slots.turn(Priority::Now).now_or_never().unwrap();
        let mut gone = Box::pin(slots.turn(Priority::Now));
        let mut next = Box::pin(slots.turn(Priority::Compile { bytes: 1 }));
        assert!(ready(&mut gone).is_none() && ready(&mut next).is_none());
        drop(gone);
        drop(held);
        let turn = ready(&mut next);
        assert!(turn.is_some());
        drop(turn);
        assert!(slots.turn(Priority::Now).now_or_never().is_some());
    }
}
