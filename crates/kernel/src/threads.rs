//! The threads that call the ends of flows, and the means to stop them.
//!
//! | thread | what it does | file |
//! | --- | --- | --- |
//! | pacer | sleeps until the next deadline of an end, and makes the end send | `pacer.rs` |
//! | datagram receiver | reads the sockets of the flows over UDP | `readers.rs` |
//! | slow reader | reads one socket as slowly as the flow's application | `readers.rs` |
//! | connection server | serves the sockets of TCP, and samples the state of all connections | `readers.rs` |
//!
//! A thread checks a flag at least every 20 ms and ends when the flag is set. [`StoresOnDrop`] sets the flag.

mod pacer;
mod readers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talkpath_units::Duration;

use crate::clock::RunClock;
use crate::end::SharedEnd;
use crate::sys::become_real_time;

pub use self::pacer::{Punctuality, pace, pace_with};
pub use self::readers::{read_slowly, receive_datagrams, serve_connections};

/// The longest time in which a thread does not check whether it has to stop.
const MAX_SLEEP: Duration = Duration::from_millis(20);
/// The longest wait for the answer to a close. The answer comes after a round trip, or later if a packet is
/// lost. We chose 2 s, which is several round trips over a satellite.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval at which [`close_connections`] checks whether the ends are closed.
const CLOSE_POLL: Duration = Duration::from_millis(2);

/// A guard that sets the flag to true when it is dropped. A panic drops it too. Without it, a thread scope
/// would wait for its threads for ever after a panic.
pub struct StoresOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StoresOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks whether a thread of this process may become a real-time thread. It tries it in a new thread, which
/// then ends.
///
/// # Errors
/// Returns the system's error. It is `PermissionDenied` without CAP_SYS_NICE and without an RLIMIT_RTPRIO.
pub fn try_real_time() -> io::Result<()> {
    std::thread::spawn(become_real_time).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Closes the connections of talkpath's own protocols among `ends`, and waits until the far ends have
/// answered. The wait is at most 2 s, because nothing is measured any more.
pub fn close_connections(ends: &[Arc<SharedEnd>], clock: RunClock) {
    for end in ends {
        end.close();
    }
    let deadline = clock.now().saturating_add(CLOSE_TIMEOUT);
    while clock.now() < deadline && !ends.iter().all(|end| end.lock().is_closed()) {
        clock.sleep_until(clock.now().saturating_add(CLOSE_POLL), CLOSE_POLL);
    }
}
