//! Ctrl-C and SIGTERM: the first makes the run stop and keep what it has, the second ends the process at
//! once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// Installs the handlers; the flag becomes true at the first signal.
pub(crate) fn install() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: at the first signal the shutdown sees the flag still unset, and the next line sets
        // it.
        flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|why| Failure::Write { what: "signal handlers".to_owned(), why })?;
    }
    Ok(stop)
}

/// 128 + SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;
