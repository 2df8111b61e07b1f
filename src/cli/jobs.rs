//! Work on several threads, its results in the order of the items whatever the number of threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// As many threads as there are cores.
pub(super) fn standard() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does `work` for each of `items` on at most `jobs` threads. If one fails, what comes after it is not begun, and its
/// error is given; of several the first in the order of the items.
pub(super) fn each<T, R, E>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(items.len()));
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            // items are begun in order: of all that fail the first has been begun when this is lowered
            if at >= end.load(Ordering::Relaxed) {
                return done;
            }
            let result = work(&items[at]);
            if result.is_err() {
                end.fetch_min(at, Ordering::Relaxed);
            }
            done.push((at, result));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.min(items.len())).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_and_the_first_error_of_all_is_told() {
        let items: Vec<u64> = (0..200).collect();
        let begun = AtomicUsize::new(0);
        for jobs in [1, 2, 7, 1_000] {
            // the first take longest
            let square = |n: &u64| {
                let turns = (0..(200 - n) * 100).map(std::hint::black_box).max();
                Ok::<_, String>(turns.map_or(0, |_| n * n))
            };
            assert_eq!(each(jobs, &items, square), Ok(items.iter().map(|n| n * n).collect()));
            begun.store(0, Ordering::Relaxed);
            let fails = |n: &u64| {
                begun.fetch_add(1, Ordering::Relaxed);
                if *n >= 50 { Err(format!("no {n}")) } else { Ok(*n) }
            };
            assert_eq!(each(jobs, &items, fails), Err("no 50".to_owned()));
            let begun = begun.load(Ordering::Relaxed);
            assert!((51..=50 + jobs.min(150)).contains(&begun), "{jobs} threads: {begun} begun");
        }
        assert_eq!(each(4, &[], |n: &u64| Ok::<_, String>(*n)), Ok(Vec::new()));
    }
}
