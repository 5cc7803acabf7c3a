//! The pause in which a server accepts no connections, because the kernel has no resources for one more.
//!
//! The clients wait in the queues of the listeners meanwhile, and are accepted when other clients have left.

use std::io;

use talkpath_kernel::clock::monotonic;
use talkpath_kernel::descriptors;

use super::limited_log::MINUTE_NS;

/// The length of the pause, ns. We chose 100 ms. A client that waits for another session to end does not
/// notice it, and ten failing calls a second cost nothing.
const PAUSE_NS: i64 = 100_000_000;
/// A shortage is logged again if the last one was longer ago than this, ns.
const QUIET_NS: i64 = MINUTE_NS;

/// The pause of a server.
#[derive(Default)]
pub(super) struct AcceptPause {
    /// CLOCK_MONOTONIC when the pause ends. `None` if there is no pause.
    until_ns: Option<i64>,
    last_shortage: Option<Shortage>,
}

/// A lack of the kernel's resources.
#[derive(Clone, Copy)]
struct Shortage {
    /// CLOCK_MONOTONIC.
    at_ns: i64,
    /// The number of the system's error.
    errno: Option<i32>,
}

impl AcceptPause {
    pub(super) const fn is_active(&self) -> bool {
        self.until_ns.is_some()
    }

    /// Ends the pause if its time is over and `watch` can watch the listeners again. If `watch` fails because
    /// the kernel lacks resources, the pause begins again.
    ///
    /// # Errors
    /// Returns each other error of `watch`.
    pub(super) fn end_if_over(
        &mut self,
        watch: impl FnOnce() -> io::Result<()>,
        log: &(dyn Fn(&str) + Sync),
    ) -> io::Result<()> {
        if self.until_ns.take_if(|until_ns| monotonic() >= *until_ns).is_none() {
            return Ok(());
        }
        match watch() {
            // epoll_ctl(2): there is no memory, or the programs of this user together have reached
            // fs.epoll.max_user_watches.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOSPC)) => {
                self.begin(&error, log);
                Ok(())
            }
            result => result,
        }
    }

    /// Begins the pause. Logs the shortage, unless the server met the same shortage within the last minute.
    pub(super) fn begin(&mut self, error: &io::Error, log: &(dyn Fn(&str) + Sync)) {
        let shortage = Shortage { at_ns: monotonic(), errno: error.raw_os_error() };
        let is_known = self
            .last_shortage
            .is_some_and(|last| last.errno == shortage.errno && shortage.at_ns - last.at_ns <= QUIET_NS);
        if !is_known {
            log(&describe(error));
        }
        self.last_shortage = Some(shortage);
        self.until_ns = Some(shortage.at_ns + PAUSE_NS);
    }
}

/// Makes the line of the log about a shortage.
fn describe(error: &io::Error) -> String {
    let (what, how) = descriptors::shortage(error).unwrap_or_else(|| match error.raw_os_error() {
        Some(libc::ENOSPC) => (
            "this user's programs watch as many sockets as the system lets them".to_owned(),
            "raise `sysctl fs.epoll.max_user_watches`".to_owned(),
        ),
        _ => ("the kernel has no memory for a connection".to_owned(), String::new()),
    });
    let how = if how.is_empty() { how } else { format!("; {how}") };
    format!("no new connections for now: {what} ({error}){how}; those that are open are served on")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_pause_whose_end_meets_a_shortage_begins_again_and_ends_no_server() {
        let end = |before: i32, error: Option<i32>| {
            let last = Shortage { at_ns: monotonic(), errno: Some(before) };
            let mut pause = AcceptPause { until_ns: Some(monotonic()), last_shortage: Some(last) };
            let watch = || error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)));
            let logged = Mutex::new(String::new());
            let ended = pause.end_if_over(watch, &|line| logged.lock().unwrap().push_str(line));
            (ended.is_ok(), pause.is_active(), logged.into_inner().unwrap())
        };
        for same in [libc::ENOMEM, libc::ENOSPC] {
            assert_eq!(end(same, Some(same)), (true, true, String::new()), "it was logged a moment ago");
        }
        let (_, is_active, logged) = end(libc::EMFILE, Some(libc::ENOSPC));
        assert!(is_active && logged.contains("fs.epoll.max_user_watches"), "{logged}");
        assert_eq!(end(libc::EMFILE, Some(libc::EBADF)), (false, false, String::new()));
        assert_eq!(end(libc::EMFILE, None), (true, false, String::new()));
    }
}
