//! Ctrl-C and SIGTERM. The first signal makes the run stop and keep what it has measured. A later signal ends
//! the process at once.
//!
//! Some programs send a request to stop twice: `timeout` signals its child, and then its own process group,
//! to which the child belongs. So a signal within `SAME_REQUEST` after the first one counts as the same
//! request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;

use crate::arenas::no_thread;
use crate::failure::Failure;

/// The exit code after a signal: 128 + SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;
/// Two signals within this time are one request. We chose 0.5 s because a person needs longer to decide
/// again, and the two signals of one program follow each other sooner.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Starts a thread that waits for the signals. The returned flag becomes true at the first signal.
pub fn install() -> Result<Arc<AtomicBool>, Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|why| Failure::write(Path::new("signal handlers"), why))?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let wait = move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            if first.get_or_insert_with(Instant::now).elapsed() > SAME_REQUEST {
                exit(EXIT_INTERRUPTED);
            }
            flag.store(true, Ordering::Relaxed);
        }
    };
    let started = thread::Builder::new().name("signals".to_owned()).spawn(wait);
    started.map_err(|why| no_thread(&why))?;
    Ok(stop)
}

/// Leaves the signals of the terminal to a program that runs in this process's group: SIGINT and SIGQUIT do
/// nothing here. The flag becomes true when this process is asked to end (SIGTERM, SIGHUP).
pub fn leave_to_program() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for (signal, flag) in [
        (SIGINT, Arc::default()),
        (SIGQUIT, Arc::default()),
        (SIGTERM, Arc::clone(&stop)),
        (SIGHUP, Arc::clone(&stop)),
    ] {
        signal_hook::flag::register(signal, flag)
            .map_err(|why| Failure::write(Path::new("signal handlers"), why))?;
    }
    Ok(stop)
}
