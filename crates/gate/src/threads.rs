//! Divides work on many items among threads.

use std::thread::{Builder, ScopedJoinHandle};

/// The number is fixed, because verdicts must not depend on the machine. Items are independent, so it only
/// affects the duration.
pub(super) const THREADS: usize = 4;

/// Applies `of` to each item and returns the results in order. Fewer than `worth` items don't justify
/// starting a thread.
pub(super) fn each<T: Sync, R: Send>(items: &[T], worth: usize, of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    each_on(THREADS, items, worth, of)
}

/// Applies `of` to each item on this many threads and returns the results in order.
pub fn each_on<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    worth: usize,
    of: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if items.len() < worth {
        return items.iter().map(of).collect();
    }
    let in_turn = |part: &[T]| -> Vec<R> { part.iter().map(&of).collect() };
    let (own, others) = items.split_at(items.len().div_ceil(threads.max(1)));
    std::thread::scope(|scope| {
        let start = |part| Builder::new().spawn_scoped(scope, move || in_turn(part)).map_err(|_| part);
        let threads: Vec<_> = others.chunks(own.len().max(1)).map(start).collect();
        let mut made = in_turn(own);
        for thread in threads {
            match thread.map(ScopedJoinHandle::join) {
                Ok(Ok(more)) => made.extend(more),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread can be started (for example because of `ulimit -u`).
                Err(part) => made.extend(in_turn(part)),
            }
        }
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_answered_in_its_place_whether_shared_out_or_not() {
        for count in [0, 1, 3, 4, 5, 17, 100] {
            let items: Vec<usize> = (0..count).collect();
            let twice: Vec<usize> = items.iter().map(|item| item * 2).collect();
            for worth in [0, 1, 10, 1000] {
                assert_eq!(each(&items, worth, |item| item * 2), twice, "{count} items, {worth}");
            }
        }
    }
}
