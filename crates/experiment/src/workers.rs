//! Runs a list of tasks on several workers. A worker that is free takes the next task of the list.
//!
//! ```text
//! tasks:    0  1  2  3  4  5  ...
//! worker a: 0     2     4
//! worker b:    1     3        5
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// Runs `work` for each of the `tasks`, in the order of the list. Each worker has a thread of its own. After
/// the first failure no further task starts, the running tasks end, and the failure is returned.
///
/// If the system starts fewer threads than there are workers, the threads that did start run all tasks. If it
/// starts none, that is the failure.
pub(crate) fn run_on_workers<W: Send, T: Sync>(
    workers: &mut [W],
    tasks: &[T],
    work: impl Fn(&mut W, &T) -> Result<(), Error> + Sync,
) -> Option<Error> {
    run_on_threads(|_| thread::Builder::new(), workers, tasks, work)
}

/// Does the same as [`run_on_workers`]. The thread of worker `number`, counted from 0, is made by
/// `thread_builder(number)`, so that a test can make a thread fail.
fn run_on_threads<W: Send, T: Sync>(
    thread_builder: impl Fn(usize) -> thread::Builder,
    workers: &mut [W],
    tasks: &[T],
    work: impl Fn(&mut W, &T) -> Result<(), Error> + Sync,
) -> Option<Error> {
    let next_index = AtomicUsize::new(0);
    let first_failure = Mutex::new(None);
    let work_until_done = |worker: &mut W| {
        while locked(&first_failure).is_none() {
            let Some(task) = tasks.get(next_index.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Err(why) = work(worker, task) {
                locked(&first_failure).get_or_insert(why);
            }
        }
    };
    thread::scope(|scope| {
        for (number, worker) in workers.iter_mut().take(tasks.len()).enumerate() {
            if let Err(why) = thread_builder(number).spawn_scoped(scope, || work_until_done(worker)) {
                if number == 0 {
                    locked(&first_failure).get_or_insert_with(|| Error::no_thread(&why));
                }
                break;
            }
        }
    });
    first_failure.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `mutex`, even if a thread panicked while it held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the builder of a thread that no system can start, because its stack needs more memory than a
    /// process has addresses for.
    fn impossible_thread() -> thread::Builder {
        thread::Builder::new().stack_size(1 << 47)
    }

    /// Runs five tasks on three workers. Returns the tasks that were done, sorted, and the failure.
    fn run_five_tasks(thread_builder: impl Fn(usize) -> thread::Builder) -> (Vec<u32>, Option<Error>) {
        let done = Mutex::new(Vec::new());
        let failure = run_on_threads(thread_builder, &mut [(); 3], &[0, 1, 2, 3, 4], |(), &task| {
            done.lock().unwrap().push(task);
            Ok(())
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        (done, failure)
    }

    #[test]
    fn threads_that_start_run_all_tasks() {
        let (done, failure) = run_five_tasks(|number| match number {
            0 | 1 => thread::Builder::new(),
            _ => impossible_thread(),
        });
        assert!(done == [0, 1, 2, 3, 4] && failure.is_none(), "{done:?}");
    }

    #[test]
    fn if_no_thread_starts_no_task_runs_and_that_is_the_failure() {
        let (done, failure) = run_five_tasks(|_| impossible_thread());
        let failure = failure.expect("nothing ran");
        assert!(done.is_empty() && matches!(failure, Error::Unavailable { .. }), "{failure}");
        assert!(failure.to_string().contains("thread"), "{failure}");
    }

    #[test]
    fn after_a_failure_no_task_starts_and_the_first_failure_is_returned() {
        let started = AtomicUsize::new(0);
        let failure = run_on_workers(&mut [()], &["a", "b", "c", "d"], |(), &task| {
            started.fetch_add(1, Ordering::Relaxed);
            if task < "b" { Ok(()) } else { Err(Error::FarEnd(task.to_owned())) }
        });
        assert_eq!(failure.expect("b fails").to_string(), "b");
        assert_eq!(started.into_inner(), 2);
    }
}
