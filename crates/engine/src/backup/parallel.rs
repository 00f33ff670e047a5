//! Several threads that work off one list.
//!
//! Concurrency: each takes the next item under a lock that is held for no longer. After the first error nothing further is begun.

use crate::panic::caught;
use outcrop_base::Result;
use outcrop_env::Threads;
use parking_lot::Mutex;
use std::sync::Arc;

/// Items to do, and the results of those that were done.
struct List<I, O> {
    /// Items still to be done, last first, each with its place in the list.
    todo: Mutex<Vec<(usize, I)>>,
    done: Mutex<Vec<Option<Result<O>>>>,
}

/// Does `work` for each of `items` on `threads` threads, this one included if it is one; gives the results in the order of the items.
///
/// # Errors
/// The first error in the order of the items. All threads have ended by then.
pub fn for_each<I, O>(
    spawner: &dyn Threads,
    threads: usize,
    items: Vec<I>,
    work: impl Fn(I) -> Result<O> + Send + Sync + 'static,
) -> Result<Vec<O>>
where
    I: Send + 'static,
    O: Send + 'static,
{
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().map(work).collect();
    }
    let threads = threads.min(items.len());
    let done = items.iter().map(|_| None).collect();
    let todo: Vec<(usize, I)> = items.into_iter().enumerate().rev().collect();
    let list = Arc::new(List { todo: Mutex::new(todo), done: Mutex::new(done) });
    let work = Arc::new(work);
    let mut running = Vec::new();
    let mut spawned = Ok(());
    for _ in 0..threads {
        let (mine, work) = (list.clone(), work.clone());
        match spawner.spawn("backup", Box::new(move || mine.work(&*work))) {
            Ok(thread) => running.push(thread),
            Err(error) => {
                spawned = Err(error);
                break;
            }
        }
    }
    if running.is_empty() {
        spawned?;
    }
    for thread in running {
        thread.join()?;
    }
    let mut done = list.done.lock();
    let mut results = Vec::with_capacity(done.len());
    // Items that were not begun come after the error that stopped the work.
    for result in done.iter_mut().filter_map(Option::take) {
        results.push(result?);
    }
    Ok(results)
}

impl<I, O> List<I, O> {
    fn work(&self, work: &impl Fn(I) -> Result<O>) {
        loop {
            let Some((place, item)) = self.todo.lock().pop() else { return };
            let result = caught("backup", || work(item));
            if result.is_err() {
                self.todo.lock().clear();
            }
            self.done.lock()[place] = Some(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::{Error, ErrorKind};
    use outcrop_env::threads::SystemThreads;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [0, 1, 2, 7, 500] {
            let doubled = for_each(&SystemThreads, threads, (0..100).collect(), |n| Ok(n * 2)).unwrap();
            assert_eq!(doubled, (0..100).map(|n| n * 2).collect::<Vec<i32>>());
        }
    }

    #[test]
    fn an_error_or_a_panic_ends_it() {
        for threads in [1, 3] {
            let failed = for_each(&SystemThreads, threads, (0..100).collect(), |n: i32| match n {
                7 => Err(Error::corruption("seven")),
                n => Ok(n),
            });
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::Corruption);
        }
        let panicked = for_each(&SystemThreads, 3, (0..100).collect(), |n: i32| {
            assert_ne!(n, 7);
            Ok(n)
        });
        assert_eq!(panicked.unwrap_err().kind(), ErrorKind::Aborted);
    }
}
