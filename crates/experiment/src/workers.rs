//! A list of tasks that several workers share.
//!
//! ```text
//! tasks:    0  1  2  3  4  5  ...
//! worker a: 0     2     4          the one that is free takes the next
//! worker b:    1     3        5
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// Gives `tasks` to `workers` in the list's order; each worker has a thread of its own. After the first
/// failure no task begins, those under way end, and the failure is returned.
///
/// Where the system has fewer threads than there are workers, those that run share the tasks. Where it has
/// none, that is the failure.
pub(crate) fn share_out<W: Send, T: Sync>(
    workers: &mut [W],
    tasks: &[T],
    work: impl Fn(&mut W, &T) -> Result<(), Error> + Sync,
) -> Option<Error> {
    share_out_on(|_| thread::Builder::new(), workers, tasks, work)
}

/// As [`share_out`], on the threads that `thread_for` gives by the worker's number, from 0.
fn share_out_on<W: Send, T: Sync>(
    thread_for: impl Fn(usize) -> thread::Builder,
    workers: &mut [W],
    tasks: &[T],
    work: impl Fn(&mut W, &T) -> Result<(), Error> + Sync,
) -> Option<Error> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let first_failure = || locked(&failure);
    let work_on = |worker: &mut W| {
        while first_failure().is_none() {
            let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Err(why) = work(worker, task) {
                first_failure().get_or_insert(why);
            }
        }
    };
    thread::scope(|scope| {
        for (number, worker) in workers.iter_mut().take(tasks.len()).enumerate() {
            if let Err(why) = thread_for(number).spawn_scoped(scope, || work_on(worker)) {
                if number == 0 {
                    first_failure().get_or_insert_with(|| Error::no_thread(&why));
                }
                break;
            }
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What `mutex` holds, also after a thread that held it has panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that no system gives: its stack is as large as all addresses of a process.
    fn impossible() -> thread::Builder {
        thread::Builder::new().stack_size(1 << 47)
    }

    /// What five tasks and three workers come to: the tasks that were done, in order, and the failure.
    fn five_tasks(thread_for: impl Fn(usize) -> thread::Builder) -> (Vec<u32>, Option<Error>) {
        let done = Mutex::new(Vec::new());
        let failure = share_out_on(thread_for, &mut [(); 3], &[0, 1, 2, 3, 4], |(), &task| {
            done.lock().unwrap().push(task);
            Ok(())
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        (done, failure)
    }

    #[test]
    fn the_threads_that_the_system_gives_do_all_tasks() {
        let (done, failure) = five_tasks(|number| match number {
            0 | 1 => thread::Builder::new(),
            _ => impossible(),
        });
        assert!(done == [0, 1, 2, 3, 4] && failure.is_none(), "{done:?}");
    }

    #[test]
    fn where_the_system_gives_no_thread_nothing_runs_and_that_is_the_failure() {
        let (done, failure) = five_tasks(|_| impossible());
        let failure = failure.expect("nothing ran");
        assert!(done.is_empty() && matches!(failure, Error::Unavailable { .. }), "{failure}");
        assert!(failure.to_string().contains("thread"), "{failure}");
    }

    #[test]
    fn after_a_failure_no_task_begins_and_the_first_one_is_returned() {
        let begun = AtomicUsize::new(0);
        let failure = share_out(&mut [()], &["a", "b", "c", "d"], |(), &task| {
            begun.fetch_add(1, Ordering::Relaxed);
            if task < "b" { Ok(()) } else { Err(Error::FarEnd(task.to_owned())) }
        });
        assert_eq!(failure.expect("b fails").to_string(), "b");
        assert_eq!(begun.into_inner(), 2);
    }
}
