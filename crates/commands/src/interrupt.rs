//! Ctrl-C and SIGTERM: the first makes the run stop and keep what it has, a later one ends the process at
//! once.
//!
//! Some senders send one request twice: `timeout` signals its child and then its own process group, which the
//! child belongs to. So a signal within `SAME_REQUEST` of the first is the same request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;

use crate::arenas::no_thread;
use crate::failure::Failure;

/// Starts a thread that waits for the signals; the flag becomes true at the first one.
pub fn install() -> Result<Arc<AtomicBool>, Failure> {
    let unavailable = |why| Failure::write(Path::new("signal handlers"), why);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(unavailable)?;
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

/// 128 + SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;
/// Shorter than a person's second thought, and longer than two signals of one sender are apart. Chosen.
const SAME_REQUEST: Duration = Duration::from_millis(500);
